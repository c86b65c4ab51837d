//! The Amd64 interface: AMD's four performance counters (seed 000; APM Vol. 2, 13.2).

mod sources;

use bitfield_struct::bitfield;

use super::plain::{self, Bank};
use super::{Enabled, ProfileInterface, Reloaded, Support};
use crate::cpu::{Cpu, Msr};
use crate::source::ProfileSource;
use crate::state::{self, Active, CounterSet, CounterState, Found, Row};

pub use sources::SOURCES;

/// PerfEvtSel0 to PerfEvtSel3, MSRC001_0000 to 0003 (APM Vol. 2, 13.2.1). Seed 000 has a misprint here.
pub const PERF_EVT_SEL0: Msr = Msr::new(0xC001_0000);

/// PerfCtr0 to PerfCtr3, MSRC001_0004 to 0007 (APM Vol. 2, 13.2.1).
pub const PERF_CTR0: Msr = Msr::new(0xC001_0004);

/// Counters of a processor (seed 000).
pub const COUNTERS: u8 = 4;

/// Bits of a counter (seed 003, 1.2; APM Vol. 2, 13.2.1, "PerfCtr").
pub const WIDTH: u8 = 48;

const BANK: Bank = Bank { selects: PERF_EVT_SEL0, counters: PERF_CTR0, count: COUNTERS, mask: state::mask(WIDTH) };

/// PerfEvtSeln (APM Vol. 2, 13.2.1, "PerfEvtSel").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// EventSelect\[7:0\].
    pub event_select: u8,
    /// UnitMask.
    pub unit_mask: u8,
    /// USR: count at CPL 3.
    pub usr: bool,
    /// OS: count at CPL 0.
    pub os: bool,
    /// E: count edges.
    pub edge: bool,
    /// Reserved, must be zero.
    __: bool,
    /// INT: interrupt on overflow.
    pub int: bool,
    /// Reserved, must be zero.
    __: bool,
    /// EN: count.
    pub en: bool,
    /// INV: invert the comparison with CntMask.
    pub inv: bool,
    /// CntMask.
    pub cnt_mask: u8,
    /// EventSelect\[11:8\].
    #[bits(4)]
    pub event_select_high: u8,
    /// Reserved, must be zero.
    #[bits(4)]
    __: u8,
    /// HG_ONLY: guest only, host only; zero counts both.
    #[bits(2)]
    pub hg_only: u8,
    /// Reserved, must be zero.
    #[bits(22)]
    __: u32,
}

impl PerfEvtSel {
    /// What starts a counter as its state says.
    fn of(state: CounterState) -> Self {
        let select = SOURCES.get(usize::from(state.event())).map_or(0, |source| source.select);
        Self::from_bits(u64::from(select))
            .with_usr(state.user())
            .with_os(state.kernel())
            .with_int(state.interrupt())
            .with_en(true)
    }
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Amd64;

impl ProfileInterface for Amd64 {
    fn counters(&self) -> u8 {
        COUNTERS
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    /// The table is what every processor of the interface has; the HAL asks none.
    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        BANK.enabled(cpu)
    }

    /// N writes for N counters.
    fn initialize(&self, cpu: &impl Cpu) -> Found {
        BANK.clear(cpu);
        Found::default()
    }

    fn works(&self, cpu: &impl Cpu) -> bool {
        BANK.works(cpu)
    }

    /// 2N writes.
    fn enable(&self, cpu: &impl Cpu, row: Row<'_>, counters: CounterSet) {
        BANK.load(cpu, row, counters, |state| PerfEvtSel::of(state).into_bits());
    }

    /// N writes.
    fn disable(&self, cpu: &impl Cpu, _row: Row<'_>, counters: CounterSet) {
        BANK.clear_selects(cpu, counters);
    }

    /// One RDPMC for each counter with an interval.
    fn check_overflow(&self, cpu: &impl Cpu, active: Active) -> CounterSet {
        plain::overflowed(cpu, active.interrupting, BANK.mask)
    }

    /// One RDPMC for each counter with an interval, one write for each that overflowed.
    #[inline]
    fn serve(&self, cpu: &impl Cpu, row: Row<'_>, overflowed: impl FnMut(Reloaded)) -> CounterSet {
        BANK.serve(cpu, row, overflowed)
    }

    fn release(&self, cpu: &impl Cpu, _found: Found) {
        BANK.clear(cpu);
    }
}
