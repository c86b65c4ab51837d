//! The profile sources of the NetBurst interface, and the units that detect them (SDM Vol. 3B, "Performance Monitoring
//! Events for Processors Based on Intel NetBurst Microarchitecture": non-retirement and at-retirement events).
//!
//! Numbers and names are those of the same events in Emon.

use x86_defs::intel::netburst::{
    ACTIVE_THREAD_ANY, Cccr, Escr, MSR_BSU_ESCR0, MSR_CRU_ESCR0, MSR_CRU_ESCR2, MSR_FSB_ESCR0, escr_select,
};

use crate::cpu::Msr;
use crate::source::{ProfileSource, Source};
use crate::state::CounterState;

/// A unit that detects events, with two ESCRs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// MSR_BSU_ESCR0 and 1: the bus sequence unit.
    Bsu = 0,
    /// MSR_FSB_ESCR0 and 1: the front-side bus.
    Fsb = 1,
    /// MSR_CRU_ESCR0 and 1: retirement.
    Cru01 = 2,
    /// MSR_CRU_ESCR2 and 3: retirement.
    Cru23 = 3,
}

/// Counters that are wired to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// MSR_BPU_COUNTER0 to 3: counters 0 to 3.
    Bpu,
    /// MSR_IQ_COUNTER0 to 5: counters 12 to 17.
    Iq,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 4] = [Self::Bsu, Self::Fsb, Self::Cru01, Self::Cru23];

    /// Returns the ESCR of a column, 0 or 1.
    pub const fn escr(self, column: u8) -> Msr {
        let first = match self {
            Self::Bsu => MSR_BSU_ESCR0,
            Self::Fsb => MSR_FSB_ESCR0,
            Self::Cru01 => MSR_CRU_ESCR0,
            Self::Cru23 => MSR_CRU_ESCR2,
        };
        Msr::new(first).at(column)
    }

    /// Returns the CCCR of a stopped counter that uses the unit, for any active threads.
    pub const fn cccr(self) -> Cccr {
        let any = Cccr::new().with_active_thread(ACTIVE_THREAD_ANY);
        match self {
            Self::Bsu => any.with_escr_select(escr_select::BSU_ESCR0),
            Self::Fsb => any.with_escr_select(escr_select::FSB_ESCR0),
            Self::Cru01 => any.with_escr_select(escr_select::CRU_ESCR0),
            Self::Cru23 => any.with_escr_select(escr_select::CRU_ESCR2),
        }
    }

    /// Returns the counters that can use the unit.
    pub const fn group(self) -> Group {
        match self {
            Self::Bsu | Self::Fsb => Group::Bpu,
            Self::Cru01 | Self::Cru23 => Group::Iq,
        }
    }
}

/// An event and the unit that detects it.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// The unit that detects the event.
    pub unit: Unit,
    /// Event select and event mask.
    pub escr: Escr,
}

impl Event {
    const fn new(unit: Unit, event_select: u8, event_mask: u16) -> Self {
        Self { unit, escr: Escr::new().with_event_select(event_select).with_event_mask(event_mask) }
    }

    /// Returns the event of a counter in this state.
    pub fn of(state: CounterState) -> Option<Self> {
        EVENTS.get(usize::from(state.event())).copied().flatten()
    }

    /// Returns the event of a table entry, or `None` for ProfileTime.
    pub fn of_source(source: &ProfileSource) -> Option<Self> {
        let mut rows = SOURCES.iter().zip(EVENTS);
        rows.find(|(row, _)| row.source == source.source).and_then(|(_, event)| event)
    }

    const fn row(self, source: u64, name: &'static str) -> ProfileSource {
        let both_modes = self.escr.with_t0_usr(true).with_t0_os(true).into_bits();
        ProfileSource { source: Source(source), name, select: both_modes }
    }
}

/// GLOBAL_POWER_EVENTS, RUNNING: clocks in which the processor does not sleep.
const CYCLES: Event = Event::new(Unit::Fsb, 0x13, 1);

/// INSTR_RETIRED, NBOGUSNTAG: instructions that are neither bogus nor tagged.
const INSTRUCTIONS: Event = Event::new(Unit::Cru01, 0x02, 1);

/// BRANCH_RETIRED: taken or not, predicted or not.
const BRANCHES: Event = Event::new(Unit::Cru23, 0x06, 0xF);

/// MISPRED_BRANCH_RETIRED, NBOGUS.
const MISPREDICTIONS: Event = Event::new(Unit::Cru01, 0x03, 1);

/// BSQ_CACHE_REFERENCE: RD_2ndL_MISS, RD_3rdL_MISS, WR_2ndL_MISS.
const CACHE_MISSES: Event = Event::new(Unit::Bsu, 0x0C, 0x700);

/// Events of the entries of [`SOURCES`].
const EVENTS: [Option<Event>; 7] =
    [None, Some(INSTRUCTIONS), Some(BRANCHES), Some(CACHE_MISSES), Some(MISPREDICTIONS), Some(CYCLES), Some(CYCLES)];

/// The sources in ascending order of KPROFILE_SOURCE; the select is the ESCR of a processor without Hyper-Threading.
pub const SOURCES: [ProfileSource; EVENTS.len()] = [
    ProfileSource { source: Source::TIME, name: "Time", select: 0 },
    INSTRUCTIONS.row(0x02, "TotalIssues"),
    BRANCHES.row(0x06, "BranchInstructions"),
    CACHE_MISSES.row(0x0A, "CacheMisses"),
    MISPREDICTIONS.row(0x0B, "BranchMispredictions"),
    CYCLES.row(0x13, "TotalCycles"),
    CYCLES.row(0x19, "UnhaltedCoreCycles"),
];
