//! The Pentium interface: two counters with one control register, without interrupts (HAL PMU design, section 1.2; SDM
//! Vol. 3B, "Performance Monitoring (Pentium Processors)").
//!
//! The counters count but cannot sample. RDPMC came only with MMX, so they are read as registers. None of these
//! processors ever ran a 64-bit Windows, so the code is tested only against the model.

mod sources;

use bitfield_struct::bitfield;

use super::{Enabled, ProfileInterface, Reloaded, Support};
use crate::cpu::{Cpu, Msr};
use crate::source::ProfileSource;
use crate::state::{Active, CounterSet, CounterState, CpuCounters, SavedMsrs};

pub use sources::SOURCES;

/// CESR: control and event select register (SDM Vol. 4, "MSRs in Pentium Processors").
pub const CESR: Msr = Msr::new(0x11);

/// CTR0 and CTR1 (same table).
pub const CTR0: Msr = Msr::new(0x12);

/// Counters of a processor (seed 003, 1.2).
pub const COUNTERS: u8 = 2;

/// Bits of a counter (seed 003, 1.2).
pub const WIDTH: u8 = 40;

/// The half of [`Cesr`] that is one counter's.
const OF_ONE: u64 = 0xFFFF;

/// CESR (SDM Vol. 3B, "Control and Event Select Register (CESR)").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Cesr {
    /// ES0: event select of counter 0.
    #[bits(6)]
    pub es0: u8,
    /// CC0, lowest bit: count at privilege levels 0 to 2.
    pub kernel0: bool,
    /// CC0, middle bit: count at privilege level 3.
    pub user0: bool,
    /// CC0, highest bit: count the clocks for which the event lasts.
    pub clocks0: bool,
    /// PC0: pin control.
    pub pin_control0: bool,
    /// Reserved.
    #[bits(6)]
    __: u8,
    /// The same of counter 1.
    pub second: u16,
    /// Reserved.
    __: u32,
}

impl Cesr {
    /// The half of a counter, as its state says.
    fn half(state: CounterState) -> u16 {
        let select = SOURCES.get(usize::from(state.event())).map_or(0, |source| source.select);
        let half = Self::from_bits(select).with_user0(state.user()).with_kernel0(state.kernel());
        (half.into_bits() & OF_ONE) as u16
    }

    /// With these counters on, as `row` says.
    fn of(row: CpuCounters<'_>, counters: CounterSet) -> Self {
        let half = |counter| if counters.has(counter) { Self::half(row.get(counter)) } else { 0 };
        Self::from_bits(u64::from(half(0))).with_second(half(1))
    }

    /// What the half of a counter would be of counter 0.
    fn of_counter(self, counter: u8) -> Self {
        if counter == 0 { self } else { Self::from_bits(u64::from(self.second())) }
    }
}

/// The Pentium interface.
#[derive(Debug, Clone, Copy)]
pub struct Pentium;

impl ProfileInterface for Pentium {
    fn counters(&self) -> u8 {
        COUNTERS
    }

    fn width(&self) -> u8 {
        WIDTH
    }

    fn interrupts(&self) -> bool {
        false
    }

    /// One RDMSR.
    fn read(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdmsr(CTR0.at(counter))
    }

    /// Every processor of this interface supports the whole table.
    fn support(&self, _source: &ProfileSource) -> Support {
        Support::Supported
    }

    /// One read.
    fn enabled(&self, cpu: &impl Cpu) -> Option<Enabled> {
        let cesr = Cesr::from_bits(cpu.rdmsr(CESR));
        let counts = |counter: &u8| {
            let half = cesr.of_counter(*counter);
            half.user0() || half.kernel0()
        };
        let counter = (0..COUNTERS).find(counts)?;
        Some(Enabled { counter, select: cesr.into_bits() })
    }

    /// One write.
    fn initialize(&self, cpu: &impl Cpu) -> SavedMsrs {
        cpu.wrmsr(CESR, 0);
        SavedMsrs::default()
    }

    fn readback_ok(&self, cpu: &impl Cpu) -> bool {
        /// An event in no mode.
        const SELECT: u64 = 0x0000_0016;
        /// Has bits above bit 31, which must be kept too.
        const COUNT: u64 = 0x5A_2468_ACE1;
        let readback_ok = |register, value| {
            cpu.wrmsr(register, value);
            let kept = cpu.rdmsr(register) == value;
            cpu.wrmsr(register, 0);
            kept
        };
        readback_ok(CESR, SELECT) && readback_ok(CTR0, COUNT)
    }

    /// One write for each counter, and one that starts all at once. The half of another counter is rewritten with its
    /// current value.
    fn enable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        for counter in counters.iter() {
            cpu.wrmsr(CTR0.at(counter), 0);
        }
        cpu.wrmsr(CESR, Cesr::of(row, row.active.all.or(counters)).into_bits());
    }

    /// One write.
    fn disable(&self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        cpu.wrmsr(CESR, Cesr::of(row, row.active.all.without(counters)).into_bits());
    }

    fn check_overflow(&self, _cpu: &impl Cpu, _active: Active) -> CounterSet {
        CounterSet::NONE
    }

    #[inline]
    fn serve(&self, _cpu: &impl Cpu, _row: CpuCounters<'_>, _overflowed: impl FnMut(Reloaded)) -> CounterSet {
        CounterSet::NONE
    }

    fn release(&self, cpu: &impl Cpu, _found: SavedMsrs) {
        cpu.wrmsr(CESR, 0);
    }
}
