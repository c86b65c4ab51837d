//! Exports single samples as CSV.

use std::io::{self, Write};

use protocol::{
    AccessRecord, AnySample, BranchRecord, BranchType, Mode, PauseKind, PreciseKind, Prediction, Record, StopKind,
    UNKNOWN,
};

use crate::accesses::{AccessGate, operation_name};
use crate::data_source::DataSource;
use crate::filter::Filter;
use crate::input::Input;
use crate::last_branches::BranchGate;
use crate::read::{Contents, ExportError};
use crate::symbol_index::SymbolIndex;
use crate::time_order::for_each_in_order;
use crate::wait_reason::why_off_cpu;

/// Names of the fields; the first line of the output.
const FIELDS: [&str; 29] = [
    "time_ns",
    "kind",
    "processor",
    "source",
    "process",
    "process_name",
    "thread",
    "mode",
    "events",
    "address",
    "module",
    "symbol",
    "number",
    "target",
    "lost",
    "duration_ns",
    "reason",
    "waker",
    "prediction",
    "cycles",
    "branch_type",
    "operation",
    "memory_level",
    "snoop",
    "tlb",
    "locked",
    "data_address",
    "latency",
    "data_source",
];

/// The last fields; each kind of record has its own.
#[derive(Default)]
struct Details {
    /// Number of a precise sample.
    number: String,
    /// Target of a branch.
    target: String,
    /// Number of lost samples.
    lost: String,
    /// Duration of a pause, or of a time off the CPU, in nanoseconds.
    duration: String,
    /// Why a thread did not run.
    reason: String,
    /// The thread that made it ready.
    waker: String,
    /// Whether the processor predicted a branch.
    prediction: &'static str,
    /// Core clock cycles since the branch before.
    cycles: String,
    /// Type of a branch.
    branch_type: &'static str,
    /// What an instruction did to memory.
    operation: &'static str,
    /// What served it, what the other caches answered, how the address was translated, and whether it was locked.
    level: String,
    snoop: &'static str,
    translation: &'static str,
    locked: &'static str,
    /// Linear address of the data of a load.
    data_address: String,
    /// Core clock cycles until the load had them.
    latency: String,
    /// Where they came from, as the processor encodes it.
    data_source: String,
}

impl Details {
    fn of_access(access: &AccessRecord) -> Self {
        let DataSource { level, snoop, translation, locked, .. } = DataSource::of(access);
        Self {
            operation: operation_name(access.operation),
            level: level.name().into_owned(),
            snoop: snoop.name(),
            translation: translation.name(),
            locked: if locked { "yes" } else { "no" },
            data_address: format!("{:#018x}", access.address),
            latency: access.latency.to_string(),
            data_source: format!("{:#x}", access.source),
            ..Self::default()
        }
    }

    fn of_branch(branch: &BranchRecord) -> Self {
        let prediction = match branch.prediction {
            Prediction::NotReported => "",
            Prediction::Predicted => "predicted",
            Prediction::Mispredicted => "mispredicted",
        };
        let branch_type = match branch.branch_type {
            BranchType::NotReported => "",
            BranchType::Conditional => "conditional",
            BranchType::IndirectJump => "indirect_jump",
            BranchType::DirectJump => "direct_jump",
            BranchType::IndirectCall => "indirect_call",
            BranchType::DirectCall => "direct_call",
            BranchType::Return => "return",
            BranchType::Other => "other",
        };
        let cycles = if branch.cycles == 0 { String::new() } else { branch.cycles.to_string() };
        Self { target: format!("{:#018x}", branch.to), prediction, cycles, branch_type, ..Self::default() }
    }
}

/// Writes one line for each sample, loss, pause and sleep that `filter` selects, and one for each last branch and each
/// access behind its sample. An access whose sample was lost has none. `input` is the recording from which `contents`
/// was read. A field that a record does not have is empty, so that each column has one type.
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn samples_csv(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut lines = Lines { out: csv::Writer::from_writer(out), contents, symbol_index };
    lines.out.write_record(FIELDS).map_err(io::Error::from)?;
    let (mut gate, mut accesses) = (BranchGate::default(), AccessGate::default());
    for_each_in_order(contents, symbol_index, filter, input, |record, _| match (record, record.sample()) {
        (Record::LastBranch(branch), _) if gate.admit(branch, &contents.processes).is_none() => Ok(()),
        (Record::Access(access), _) if accesses.admit(access).is_none() => Ok(()),
        (Record::Precise(sample), _) => {
            accesses.open(sample);
            lines.write(record)
        }
        (Record::Sample(_), Some(sample)) => {
            gate.open(sample, contents.processes.at(sample.process, sample.time));
            lines.write(record)
        }
        _ => lines.write(record),
    })?;
    Ok(lines.out.flush()?)
}

struct Lines<'a> {
    out: csv::Writer<&'a mut dyn Write>,
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
}

impl Lines<'_> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let time = self.contents.nanoseconds(record.time()).to_string();
        let processor = record.processor().to_string();
        let sampled = self.contents.sample_counts.source_of_record(record);
        let source = match record.event() {
            protocol::ALL_EVENTS => "".into(),
            _ => self.contents.source_name(sampled),
        };
        let none = Details::default;
        let lasted = |units| Details { duration: self.contents.duration(units).to_string(), ..none() };
        let (word, details) = match record {
            Record::Sample(_) => ("sample", none()),
            Record::Precise(sample) => {
                let word = match sample.kind {
                    PreciseKind::Precise => "precise",
                    PreciseKind::PreciseNext => "precise_next",
                };
                (word, Details { number: sample.number.to_string(), ..none() })
            }
            Record::Branch(branch) => ("branch", Details::of_branch(branch)),
            Record::LastBranch(branch) => ("last_branch", Details::of_branch(branch)),
            Record::Access(access) => ("access", Details::of_access(access)),
            Record::OffCpu(record) => {
                let waker = if record.waker == 0 { String::new() } else { record.waker.to_string() };
                let (duration, reason) = (record.duration.to_string(), why_off_cpu(record));
                ("off_cpu", Details { duration, reason, waker, ..none() })
            }
            Record::Lost(lost) => ("lost", Details { lost: lost.count.to_string(), ..none() }),
            Record::Stop(stop) => match stop.kind {
                StopKind::Throttled => ("throttled", none()),
                StopKind::Silenced => ("silenced", none()),
                StopKind::Disconnected => ("disconnected", none()),
            },
            Record::Pause(pause) => match pause.kind {
                PauseKind::Resumed => ("resumed", lasted(pause.duration)),
                PauseKind::Slept => ("slept", lasted(pause.duration)),
                PauseKind::Reconnected => ("reconnected", lasted(pause.duration)),
            },
        };
        let Details { number, target, lost, duration, reason, waker, prediction, cycles, branch_type, .. } = &details;
        let Details { operation, level, snoop, translation, locked, data_address, latency, data_source, .. } = &details;
        let details = [
            number,
            target,
            lost,
            duration,
            reason,
            waker,
            *prediction,
            cycles,
            *branch_type,
            *operation,
            level,
            *snoop,
            *translation,
            *locked,
            data_address,
            latency,
            data_source,
        ];
        let at_branch = if let Record::LastBranch(branch) = record { Some(at_source(branch)) } else { None };
        if let Some(sample) = record.sample().or(at_branch) {
            return self.write_sample(&sample, [&time, word, &processor, &source], &details);
        }
        let who = if let Record::Access(access) = record { self.who(access) } else { Default::default() };
        let who = who.iter().map(String::as_str).chain([""; 5]);
        let fields = [&time, word, &processor, &source].into_iter().chain(who).chain(details);
        Ok(self.out.write_record(fields)?)
    }

    /// Returns the process of an access, its name, and the thread.
    fn who(&self, access: &AccessRecord) -> [String; 3] {
        let processes = &self.contents.processes;
        let name = processes.name_or_unknown(processes.at(access.process, access.time));
        [id_text(access.process), name.to_owned(), id_text(access.thread)]
    }

    fn write_sample(
        &mut self,
        sample: &AnySample,
        [time, word, processor, source]: [&str; 4],
        details: &[&str],
    ) -> io::Result<()> {
        let location = self.contents.processes.location(sample);
        let mode = match sample.mode {
            Mode::User => "u",
            Mode::Kernel => "k",
        };
        let fields = [
            time,
            word,
            processor,
            source,
            &id_text(sample.process),
            self.contents.processes.name_or_unknown(location.process),
            &id_text(sample.thread),
            mode,
            &sample.events.to_string(),
            &format!("{:#018x}", sample.ip),
            self.symbol_index.module(&location),
            &self.symbol_index.symbol(&location),
        ];
        Ok(self.out.write_record(fields.into_iter().chain(details.iter().copied()))?)
    }
}

/// Returns the source of a last branch in the form of a sample, which represents no events.
fn at_source(branch: &BranchRecord) -> AnySample {
    let BranchRecord { time, from, process, thread, processor, event, mode, .. } = *branch;
    AnySample { time, ip: from, events: 0, process, thread, processor, event, mode }
}

/// Returns a process or thread ID as text; empty if it is unknown.
fn id_text(id: u32) -> String {
    if id == UNKNOWN { String::new() } else { id.to_string() }
}
