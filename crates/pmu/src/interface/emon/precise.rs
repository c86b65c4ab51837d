//! Events that processors record precisely (PEBS), with their encodings and counters.

use debug_store::pebs::Format;
use x86_defs::intel::perfmon::{GlobalStatus, PerfEvtSel};

use super::{Emon, IA32_PERF_GLOBAL_OVF_CTRL, Microarchitecture, Recorders};
use crate::cpu::Cpu;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::recorder::Recorder;
use crate::source::ProfileSource;
use crate::state::CounterSet;

/// Event select, and unit mask with UMASK2 in bits 15:8.
type Encoding = (u8, u16);

/// The precise form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreciseForm {
    /// Encoding that is recorded.
    recorded: Encoding,
    /// The general counters that record it, as far as they exist.
    counters: CounterSet,
    /// The first record format with which it is recorded.
    since: Format,
}

/// Instructions retired. From Golden Cove on, counter 0 does not record them (Linux, arch/x86/events/intel/ds.c,
/// `intel_glc_pebs_event_constraints`).
const INSTRUCTIONS: Encoding = (0xC0, 0x00);

/// Another encoding of an event of the table of sources, which older processors record instead:
/// INST_RETIRED.PREC_DIST or INST_RETIRED.ANY_P, BR_INST_RETIRED.ALL_BRANCHES_PEBS, BR_MISP_RETIRED.ALL_BRANCHES_PEBS.
const fn other_encoding(named: Encoding) -> Encoding {
    match named {
        (0xC0, 0x00) => (0xC0, 0x01),
        (0xC4 | 0xC5, 0x00) => (named.0, 0x04),
        _ => named,
    }
}

/// Returns the precise form on processors without facts about precise events: the architectural events that are counted
/// when an instruction retires (SDM Vol. 3B, "Processor Event Based Sampling (PEBS)" in the sections on Core 2 and
/// Nehalem).
const fn usual(encoding: Encoding) -> Option<PreciseForm> {
    let since = match encoding {
        (0xC0 | 0xC5, 0x00) => Format::Core2,
        (0xC4, 0x00) => Format::Nehalem,
        _ => return None,
    };
    Some(PreciseForm { recorded: encoding, counters: CounterSet::first(8), since })
}

impl Microarchitecture {
    /// Returns whether its table says which events are precise.
    const fn lists_precise(self) -> bool {
        !matches!(self, Self::Unknown | Self::Core | Self::Core2)
    }

    /// Returns the precise form of an encoding by its table.
    fn listed_form(self, encoding: Encoding) -> Option<PreciseForm> {
        let (event, umask) = encoding;
        if !self.lists_precise() {
            return usual(encoding);
        }
        let class = self.table().find_whole(event.into(), umask)?;
        let counters = class.precise();
        let form = PreciseForm { recorded: encoding, counters, since: Format::Core2 };
        (!counters.is_empty()).then_some(form)
    }

    /// Returns the precise form of an encoding, which may need an extra register.
    fn form(self, encoding: Encoding) -> Option<PreciseForm> {
        let (event, umask) = encoding;
        let with_extra = || {
            let class = self.table().find_whole(event.into(), umask);
            let class = class.filter(|_| self.is_precise_with_extra(event, umask))?;
            Some(PreciseForm { recorded: encoding, counters: class.counters(), since: Format::Core2 })
        };
        self.listed_form(encoding).or_else(with_extra)
    }

    /// Returns the precise form of a source. A source of the interface's table names an event, whatever encoding
    /// records it; a raw event is recorded with its own encoding or not at all.
    #[must_use]
    pub fn precise_form(self, source: &ProfileSource) -> Option<PreciseForm> {
        Self::precise_form_by(source, |encoding| self.form(encoding))
    }

    /// As [`precise_form`](Self::precise_form), without events that need an extra register, which are recorded with
    /// their own encoding: less stack for the handler.
    pub(super) fn listed_precise_form(self, source: &ProfileSource) -> Option<PreciseForm> {
        Self::precise_form_by(source, |encoding| self.listed_form(encoding))
    }

    fn precise_form_by(source: &ProfileSource, form: impl Fn(Encoding) -> Option<PreciseForm>) -> Option<PreciseForm> {
        let select = PerfEvtSel::from_bits(source.select);
        if select.cmask() != 0 || select.inv() || select.edge() || select.eq() {
            return None;
        }
        let named = (select.event_select(), u16::from_le_bytes([select.umask(), select.umask2()]));
        let other = || form(other_encoding(named)).filter(|_| !source.source.is_raw());
        form(named).or_else(other)
    }

    /// Returns how many events follow the overflow of a counter until its record is written, including the event that
    /// writes it. An overflow arms PEBS, and the next event writes the record and reloads the counter (SDM Vol. 3B,
    /// "PEBS Programming Environment" of Sandy Bridge). A general counter with precise distribution writes it at the
    /// overflow itself (SDM Vol. 3B, "PDist: Precise Distribution"; `PDISTCounter` of the event files).
    const fn events_to_record(self, counter: u8) -> u64 {
        match (self, counter) {
            // CPUID.23H.5:EBX says the same of the last four.
            (Self::GoldenCove | Self::RedwoodCove, 0)
            | (Self::LionCove | Self::CougarCove | Self::CoyoteCove | Self::Darkmont | Self::ArcticWolf, 0 | 1) => 0,
            _ => 1,
        }
    }

    /// Returns whether fixed counter 0 records instructions, which it does with precise distribution:
    /// INST_RETIRED.PREC_DIST of P cores, INST_RETIRED.ANY of E cores (`PEBScounters` of the event files; Linux,
    /// arch/x86/events/intel/ds.c, `intel_icl_pebs_event_constraints` and those after it).
    const fn has_fixed_recorder(self) -> bool {
        matches!(
            self,
            Self::IceLake
                | Self::GoldenCove
                | Self::RedwoodCove
                | Self::LionCove
                | Self::CougarCove
                | Self::CoyoteCove
                | Self::Tremont
                | Self::Gracemont
                | Self::Crestmont
                | Self::Skymont
                | Self::Darkmont
                | Self::ArcticWolf
        )
    }

    /// Returns whether records of this format can record a source.
    #[must_use]
    pub fn records(self, source: &ProfileSource, format: Format) -> bool {
        self.precise_form(source).is_some_and(|form| format >= form.since)
    }
}

impl PreciseForm {
    /// Returns the general counters that record it, as far as they exist.
    #[must_use]
    pub const fn counters(&self) -> CounterSet {
        self.counters
    }

    /// Returns the event select register with the encoding that is recorded.
    #[must_use]
    pub const fn select(&self, select: u64) -> u64 {
        let (event, umask) = self.recorded;
        let [umask, umask2] = umask.to_le_bytes();
        let select = PerfEvtSel::from_bits(select).with_event_select(event).with_umask(umask).with_umask2(umask2);
        select.into_bits()
    }
}

impl Emon {
    /// Returns the interface for a processor with these recorders.
    #[must_use]
    pub const fn with_recorders(self, recorders: Recorders) -> Self {
        Self { capabilities: self.capabilities.recording(recorders) }
    }

    /// Returns the counters that record a source precisely.
    #[must_use]
    pub fn precise(self, source: &ProfileSource) -> CounterSet {
        let Recorders { general, fixed } = self.capabilities.recorders();
        let fixed = if fixed { self.fixed() } else { CounterSet::NONE };
        self.recorded(source).and(CounterSet::first(general).or(fixed))
    }

    /// Returns the counters that record a source precisely, if the processor has PEBS.
    #[must_use]
    pub fn recorded(self, source: &ProfileSource) -> CounterSet {
        let microarchitecture = self.capabilities.microarchitecture();
        let fixed = match self.fixed_for(source) {
            Some(counter) if self.number(counter) == Some(0) && microarchitecture.has_fixed_recorder() => {
                CounterSet::NONE.with(counter)
            }
            _ => CounterSet::NONE,
        };
        let Some(form) = microarchitecture.precise_form(source) else { return fixed };
        // An unknown model may be the successor of one whose counter 0 does not record instructions. Where only counter
        // 0 records, no such one exists.
        let is_doubtful = microarchitecture == Microarchitecture::Unknown
            && form.recorded == INSTRUCTIONS
            && self.capabilities.recorders().general != 1;
        let doubtful = if is_doubtful { CounterSet::first(1) } else { CounterSet::NONE };
        form.counters().and(self.general()).without(doubtful).or(fixed)
    }

    /// Returns what kind of counter this is for precise records, if it records some.
    #[must_use]
    pub const fn recorder(self, counter: u8) -> Recorder {
        match (self.number(counter), self.events_to_record(counter)) {
            (Some(_), _) => Recorder::Fixed,
            (None, 0) => Recorder::Distributed,
            (None, _) => Recorder::General,
        }
    }

    /// Returns how many events of a counter that records precisely follow its overflow until the record is written,
    /// including the event that writes it. Fixed counter 0 has precise distribution wherever it records.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    #[must_use]
    pub const fn events_to_record(self, counter: u8) -> u64 {
        match self.number(counter) {
            Some(_) => 0,
            None => self.capabilities.microarchitecture().events_to_record(counter),
        }
    }
}

/// Returns the bit of the status that tells that records of this format have reached their threshold.
const fn records_status(format: Format) -> u64 {
    let status = GlobalStatus::new();
    if format.is_architectural() { status.with_pebs_threshold(true) } else { status.with_ovf_buf(true) }.into_bits()
}

/// Clears the PEBS status of the current processor after its records have been fetched.
///
/// # IRQL
/// PROFILE_LEVEL.
pub fn acknowledge_records(cpu: &impl Cpu, format: Format) {
    cpu.wrmsr(IA32_PERF_GLOBAL_OVF_CTRL, records_status(format));
}

/// Tries what [`acknowledge_records`] writes.
pub fn access_records(first: &FirstAccess<'_, impl GuardedCpu>, format: Format) -> Result<(), Faulted> {
    first.write(IA32_PERF_GLOBAL_OVF_CTRL, records_status(format))
}
