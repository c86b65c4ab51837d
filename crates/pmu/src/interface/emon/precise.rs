//! Events that processors record precisely (PEBS), with their encodings and counters.
//!
//! The tables have the architectural events that are counted when an instruction retires. Sources: Intel's event files
//! (perfmon, August 2026), where `PEBS` is 0 for an encoding that is not recorded, and `Counter` or `PEBScounters`
//! lists the general counters that record; SDM Vol. 3B, "Processor Event Based Sampling (PEBS)" in the sections on Core
//! 2 and Nehalem, for processors without a table of their own.

use debug_store::pebs::Format;
use x86_defs::cpuid::{CORE_TYPE_ATOM, Leaf1AEax, Leaf7Edx, Signature, leaf};
use x86_defs::intel::perfmon::PerfEvtSel;

use crate::cpu::Cpuid;
use crate::source::ProfileSource;
use crate::state::CounterSet;

/// Event select and unit mask.
type Encoding = (u8, u8);

/// The precise form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreciseForm {
    /// Encoding in the table of sources.
    named: Encoding,
    /// Encoding that is recorded.
    recorded: Encoding,
    /// The general counters that record it, as far as they exist.
    counters: CounterSet,
    /// The first record format with which it is recorded.
    since: Format,
}

/// Creates an entry; bit n of `counters` is general counter n.
const fn row(named: Encoding, recorded: Encoding, counters: u8, since: Format) -> PreciseForm {
    PreciseForm { named, recorded, counters: CounterSet::from_bits(counters as u64), since }
}

/// Default for processors without a table of their own.
const USUAL: [PreciseForm; 3] = [
    row((0xC0, 0x00), (0xC0, 0x00), 0xFF, Format::Core2),
    row((0xC4, 0x00), (0xC4, 0x00), 0xFF, Format::Nehalem),
    row((0xC5, 0x00), (0xC5, 0x00), 0xFF, Format::Core2),
];

/// INST_RETIRED.PREC_DIST, BR_INST_RETIRED.ALL_BRANCHES_PEBS, BR_MISP_RETIRED.ALL_BRANCHES_PEBS.
const SANDY_BRIDGE: [PreciseForm; 3] = [
    row((0xC0, 0x00), (0xC0, 0x01), 0x02, Format::Nehalem),
    row((0xC4, 0x00), (0xC4, 0x04), 0x0F, Format::Nehalem),
    row((0xC5, 0x00), (0xC5, 0x04), 0x0F, Format::Nehalem),
];

/// INST_RETIRED.ANY_P, BR_INST_RETIRED.ALL_BRANCHES, BR_MISP_RETIRED.ALL_BRANCHES.
const GOLDEN_COVE: [PreciseForm; 3] = [
    row((0xC0, 0x00), (0xC0, 0x00), 0xFE, Format::Adaptive),
    row((0xC4, 0x00), (0xC4, 0x00), 0xFF, Format::Adaptive),
    row((0xC5, 0x00), (0xC5, 0x00), 0xFF, Format::Adaptive),
];

/// Models of family 6 with the events of [`SANDY_BRIDGE`]: Sandy Bridge, Ivy Bridge, Haswell, Broadwell, Skylake to
/// Comet Lake, and their servers up to Cascade Lake.
const SANDY_BRIDGE_MODELS: [u8; 19] =
    [0x2A, 0x2D, 0x3A, 0x3E, 0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56, 0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6, 0x55];

/// Models of family 6 with the events of [`GOLDEN_COVE`], except their E-cores: Alder Lake, Raptor Lake, Sapphire
/// Rapids, Emerald Rapids; with Redwood Cove, Meteor Lake and Granite Rapids.
const GOLDEN_COVE_MODELS: [u8; 12] = [0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0x8F, 0xCF, 0xAA, 0xAC, 0xB5, 0xAD, 0xAE];

/// The precise events of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PreciseEvents {
    /// The architectural encodings, on every counter that records.
    Usual = 0,
    /// Sandy Bridge to Cascade Lake.
    SandyBridge = 1,
    /// Golden Cove and Redwood Cove.
    GoldenCove = 2,
}

impl PreciseEvents {
    /// Returns the precise events of the current processor, by its family, model and core type.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn of(cpu: &impl Cpuid) -> Self {
        let signature = Signature::from_bits(cpu.cpuid(leaf::FEATURES, 0).eax);
        match signature.model() {
            _ if signature.family() != 6 => Self::Usual,
            model if SANDY_BRIDGE_MODELS.contains(&model) => Self::SandyBridge,
            model if GOLDEN_COVE_MODELS.contains(&model) && !is_efficient(cpu) => Self::GoldenCove,
            _ => Self::Usual,
        }
    }

    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            1 => Self::SandyBridge,
            2 => Self::GoldenCove,
            _ => Self::Usual,
        }
    }

    const fn table(self) -> &'static [PreciseForm] {
        match self {
            Self::Usual => &USUAL,
            Self::SandyBridge => &SANDY_BRIDGE,
            Self::GoldenCove => &GOLDEN_COVE,
        }
    }

    /// Returns the precise form of a source. A source of the interface's table names an event, whatever encoding
    /// records it; a raw event is recorded with its own encoding or not at all.
    pub(super) fn form_of(self, source: &ProfileSource) -> Option<&'static PreciseForm> {
        let select = PerfEvtSel::from_bits(source.select);
        if select.cmask() != 0 || select.inv() || select.edge() {
            return None;
        }
        let wanted = (select.event_select(), select.umask());
        let is_raw = source.source.raw().is_some();
        self.table().iter().find(|form| wanted == if is_raw { form.recorded } else { form.named })
    }

    /// Returns how many events follow the overflow of a counter until its record is written, including the event that
    /// writes it. An overflow arms PEBS, and the next event writes the record and reloads the counter (SDM Vol. 3B, "PEBS
    /// Programming Environment" of Sandy Bridge). Counter 0 of Golden Cove writes it at the overflow itself (SDM Vol. 3B,
    /// "PDist: Precise Distribution"; `PDISTCounter` of the event files).
    #[must_use]
    pub const fn events_to_record(self, counter: u8) -> u64 {
        match (self, counter) {
            (Self::GoldenCove, 0) => 0,
            _ => 1,
        }
    }

    /// Returns whether records of this format can record a source.
    #[must_use]
    pub fn allows(self, source: &ProfileSource, format: Format) -> bool {
        self.form_of(source).is_some_and(|form| format >= form.since)
    }
}

/// Returns whether the current processor is an E core of a hybrid. Any IRQL at which it stays the same.
fn is_efficient(cpu: &impl Cpuid) -> bool {
    cpu.cpuid(leaf::VENDOR, 0).eax >= leaf::NATIVE_MODEL
        && Leaf7Edx::from_bits(cpu.cpuid(leaf::STRUCTURED_FEATURES, 0).edx).hybrid()
        && Leaf1AEax::from_bits(cpu.cpuid(leaf::NATIVE_MODEL, 0).eax).core_type() == CORE_TYPE_ATOM
}

impl PreciseForm {
    /// Returns the general counters that record it, as far as they exist.
    pub(super) const fn counters(&self) -> CounterSet {
        self.counters
    }

    /// Returns the event select register with the encoding that is recorded.
    pub(super) const fn select(&self, select: u64) -> u64 {
        let (event, umask) = self.recorded;
        PerfEvtSel::from_bits(select).with_event_select(event).with_umask(umask).into_bits()
    }
}
