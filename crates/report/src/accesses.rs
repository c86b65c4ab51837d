//! The accesses of precise samples.

use protocol::{
    AccessEncoding, AccessOperation, AccessRecord, PreciseKind, PreciseSample, Record, UNKNOWN, is_kernel_address,
};
use recording::Reader;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::branch_table::location;
use crate::data_source::{DataSource, data_address};
use crate::filter::Filter;
use crate::input::Input;
use crate::locations::SampleLocation;
use crate::process_keys::ProcessKey;
use crate::read::{Contents, ExportError, each_of};
use crate::sampled_sources::SampledSource;
use crate::selected::within;
use crate::symbol_index::SymbolIndex;

/// The last selected precise sample of each processor whose access can follow.
#[derive(Default)]
pub(crate) struct AccessGate(FxHashMap<u32, PreciseSample>);

impl AccessGate {
    pub fn open(&mut self, sample: &PreciseSample) {
        self.0.insert(sample.processor, *sample);
    }

    /// Returns the sample of an access if it is the last selected one of its processor, and ends the wait for it.
    pub fn admit(&mut self, access: &AccessRecord) -> Option<PreciseSample> {
        let is_of = |sample: &PreciseSample| {
            let of_access = (access.time, access.process, access.thread, access.event, u64::from(access.number));
            of_access == (sample.time, sample.process, sample.thread, sample.event, sample.number & 0xFFFF)
        };
        let Self(samples) = self;
        samples.get(&access.processor).is_some_and(is_of).then(|| samples.remove(&access.processor)).flatten()
    }
}

/// An address of data. Equal addresses are the same memory: those of user mode belong to a process, those of the kernel
/// to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataAddress {
    /// An address of a process.
    User(ProcessKey, u64),
    /// An address of the kernel.
    Kernel(u64),
    /// An address in user mode of a process that is not known.
    Unattributed,
    /// The record has no address.
    NotReported,
}

impl DataAddress {
    fn of(process: ProcessKey, address: Option<u64>) -> Self {
        match address {
            None => Self::NotReported,
            Some(address) if is_kernel_address(address) => Self::Kernel(address),
            Some(_) if process.id == UNKNOWN => Self::Unattributed,
            Some(address) => Self::User(process, address),
        }
    }

    /// Returns the address at which its block of `size` bytes, a power of two, begins.
    #[must_use]
    pub fn block(self, size: u64) -> Self {
        let start = |address: u64| address & !size.saturating_sub(1);
        match self {
            Self::User(process, address) => Self::User(process, start(address)),
            Self::Kernel(address) => Self::Kernel(start(address)),
            other => other,
        }
    }

    /// Returns the number of the address.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::User(_, address) | Self::Kernel(address) => Some(address),
            Self::Unattributed | Self::NotReported => None,
        }
    }

    /// Returns the process to which the address belongs.
    #[must_use]
    pub const fn process(self) -> Option<ProcessKey> {
        match self {
            Self::User(process, _) => Some(process),
            _ => None,
        }
    }

    /// Returns the address, with the module that has it: `app.exe+0x4010`.
    #[must_use]
    pub fn text(self, contents: &Contents) -> String {
        let (process, is_kernel, address) = match self {
            Self::User(process, address) => (process, false, address),
            Self::Kernel(address) => (ProcessKey::default(), true, address),
            Self::Unattributed => return "[process unknown]".to_owned(),
            Self::NotReported => return "[no address]".to_owned(),
        };
        match contents.processes.module_at(process, is_kernel, address) {
            Some((module, offset)) => format!("{}+{offset:#x}", contents.processes.modules().name(module)),
            None => format!("{address:#x}"),
        }
    }
}

/// What the instruction of a precise sample did to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Event and core type of the sample.
    pub source: SampledSource,
    /// Its process.
    pub process: ProcessKey,
    /// Its thread, or [`UNKNOWN`].
    pub thread: u32,
    /// Its processor.
    pub processor: u32,
    /// The instruction.
    pub ip: u64,
    /// Whether it is that instruction, and not the one before it.
    pub is_exact: bool,
    /// Number of events that the sample represents.
    pub events: u32,
    /// The data.
    pub address: DataAddress,
    /// Core clock cycles until the load had its data; 0 if the record has none.
    pub latency: u32,
    /// Where it came from.
    pub data: DataSource,
    /// What the instruction did.
    pub operation: AccessOperation,
    /// How the record said where the data came from.
    pub encoding: AccessEncoding,
}

impl Access {
    fn of(sample: &PreciseSample, access: &AccessRecord, process: ProcessKey, source: SampledSource) -> Self {
        Self {
            source,
            process,
            thread: sample.thread,
            processor: sample.processor,
            ip: sample.ip,
            is_exact: sample.kind == PreciseKind::Precise,
            events: sample.interval,
            address: DataAddress::of(process, data_address(access)),
            latency: access.latency,
            data: DataSource::of(access),
            operation: access.operation,
            encoding: access.encoding,
        }
    }

    /// Returns the location of the instruction.
    #[must_use]
    pub fn location(&self) -> SampleLocation {
        let SampledSource { event, core_type } = self.source;
        SampleLocation { event, core_type, ..location(self.process, self.ip) }
    }

    /// Returns whether the instruction loaded.
    #[must_use]
    pub const fn is_load(&self) -> bool {
        matches!(self.operation, AccessOperation::Load | AccessOperation::LoadStore)
    }

    /// Returns whether the instruction stored.
    #[must_use]
    pub const fn is_store(&self) -> bool {
        matches!(self.operation, AccessOperation::Store | AccessOperation::LoadStore)
    }
}

/// Returns the name of what an instruction did to memory.
pub(crate) const fn operation_name(operation: AccessOperation) -> &'static str {
    match operation {
        AccessOperation::None => "none",
        AccessOperation::Load => "load",
        AccessOperation::Store => "store",
        AccessOperation::LoadStore => "load and store",
        AccessOperation::Fetch => "fetch",
    }
}

/// What became of the selected precise samples of the events that record accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessStats {
    /// Number of samples.
    pub samples: u64,
    /// Number of those with an access.
    pub accesses: u64,
    /// Number of those whose instruction accessed no memory.
    pub without_memory: u64,
}

/// The accesses of the selected samples, each in memory.
#[derive(Debug, Default)]
pub struct Accesses {
    all: Vec<Access>,
    stats: FxHashMap<SampledSource, AccessStats>,
}

impl Accesses {
    /// Reads the accesses of the precise samples that `filter` selects by their source, process, processor, thread and
    /// time. `input` is the recording from which `contents` was read.
    ///
    /// # Errors
    /// If the recording cannot be read again.
    pub fn read(contents: &Contents, filter: &Filter, input: &mut dyn Input) -> Result<Self, ExportError> {
        let (mut gate, mut read) = (AccessGate::default(), Self::default());
        each_of(within(Reader::new(input)?, contents, filter), |record, _| {
            let source = contents.sample_counts.source_of_record(record);
            if let Record::Access(access) = record {
                if let Some(sample) = gate.admit(access) {
                    let stats = read.stats.entry(source).or_default();
                    if access.operation == AccessOperation::None {
                        stats.without_memory += 1;
                    } else {
                        stats.accesses += 1;
                        let process = contents.processes.at(sample.process, sample.time);
                        read.all.push(Access::of(&sample, access, process, source));
                    }
                }
                return Ok(());
            }
            let (Record::Precise(precise), Some(sample)) = (record, record.sample()) else { return Ok(()) };
            let process = contents.processes.at(sample.process, sample.time);
            if filter.slice.selects_sample(&sample) && filter.selects(source, process) {
                read.stats.entry(source).or_default().samples += 1;
                gate.open(precise);
            }
            Ok(())
        })?;
        let recorded: FxHashSet<SampledSource> = read
            .stats
            .iter()
            .filter(|(_, stats)| stats.accesses + stats.without_memory > 0)
            .map(|(key, _)| *key)
            .collect();
        read.stats.retain(|source, _| recorded.contains(source));
        Ok(read)
    }

    /// Returns whether no selected sample has an access.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stats.is_empty()
    }

    /// Keeps the accesses of instructions in the modules and symbols that `filter` selects.
    pub fn retain(&mut self, filter: &Filter, symbol_index: &SymbolIndex) {
        self.all.retain(|access| filter.selects_names(&access.location(), symbol_index));
    }

    /// Returns the accesses, those of each processor in their order.
    #[must_use]
    pub fn all(&self) -> &[Access] {
        &self.all
    }

    /// Returns the accesses of a source.
    pub fn of(&self, source: SampledSource) -> impl Iterator<Item = &Access> + Clone {
        self.all.iter().filter(move |access| access.source == source)
    }

    /// Returns the sources with accesses, in their order.
    #[must_use]
    pub fn sources(&self) -> Vec<SampledSource> {
        let mut sources: Vec<SampledSource> = self.stats.keys().copied().collect();
        sources.sort_unstable();
        sources
    }

    /// Returns what became of the samples of a source, before [`retain`](Self::retain).
    #[must_use]
    pub fn stats(&self, source: SampledSource) -> AccessStats {
        self.stats.get(&source).copied().unwrap_or_default()
    }
}
