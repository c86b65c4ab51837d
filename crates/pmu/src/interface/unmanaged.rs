//! A bank of counters with nothing over them: a select register and a counter each, no status, no common control.
//!
//! AMD's counters are such a bank, and Intel's architectural version 1 is. Overflow is found by the counter's value:
//! it is loaded with its top bit set, and an overflow clears that. The seed compares with the initial value instead,
//! which fails when as many events as the interval follow an overflow before it is looked for.

use x86_defs::amd;
use x86_defs::intel::perfmon::PerfEvtSel;

use super::{Enabled, Reloaded};
use crate::cpu::{Cpu, Msr};
use crate::state::{self, CounterSet, CounterState, CpuCounters};

/// Registers of such a bank.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    /// The first select register; the others follow.
    pub selects: Msr,
    /// The first counter; the others follow.
    pub counters: Msr,
    /// From one of them to the next.
    pub stride: u8,
    /// How many there are.
    pub count: u8,
    /// The bits of a counter, all set.
    pub mask: u64,
}

const _: () = assert!(
    PerfEvtSel::new().with_en(true).into_bits() == amd::perfmon::PerfEvtSel::new().with_en(true).into_bits(),
    "both vendors have EN in the same bit"
);

impl Bank {
    fn select(self, counter: u8) -> Msr {
        self.selects.at(counter.wrapping_mul(self.stride))
    }

    #[inline]
    fn counter(self, counter: u8) -> Msr {
        self.counters.at(counter.wrapping_mul(self.stride))
    }

    /// The first counter that is selected and enabled, and its select register: somebody's. A read for each counter
    /// up to that.
    pub fn enabled(self, cpu: &impl Cpu) -> Option<Enabled> {
        let read = |counter| Enabled { counter, select: cpu.rdmsr(self.select(counter)) };
        (0..self.count).map(read).find(|enabled| PerfEvtSel::from_bits(enabled.select).en())
    }

    /// How many bits of 64 a counter has not.
    const fn missing_bits(self) -> u8 {
        (self.mask.leading_zeros() & 0x7F) as u8
    }

    /// Zero in every select register.
    pub fn clear(self, cpu: &impl Cpu) {
        self.clear_selects(cpu, CounterSet::first(self.count));
    }

    /// Zero in the select registers of `counters`: one write each.
    pub fn clear_selects(self, cpu: &impl Cpu, counters: CounterSet) {
        for counter in counters.iter() {
            cpu.wrmsr(self.select(counter), 0);
        }
    }

    /// Whether the first select register and the first counter keep what is written to them. All have to be off.
    pub fn readback_ok(self, cpu: &impl Cpu) -> bool {
        /// Some event in both modes, but not enabled: valid with every vendor.
        const SELECT: u64 = PerfEvtSel::new().with_event_select(0xC0).with_usr(true).with_os(true).into_bits();
        self.count == 0 || (readback_ok(cpu, self.selects, SELECT) && readback_ok(cpu, self.counters, COUNT))
    }

    /// Loads and selects `counters` as their states say: two writes each.
    pub fn load(
        self,
        cpu: &impl Cpu,
        row: CpuCounters<'_>,
        counters: CounterSet,
        select: impl Fn(CounterState) -> u64,
    ) {
        for counter in counters.iter() {
            let state = row.get(counter);
            Counters::load(self, cpu, counter, state);
            cpu.wrmsr(self.select(counter), select(state));
        }
    }

    /// Serves an interrupt: one RDPMC for each counter with an interval, one write for each that overflowed. The
    /// counters go on meanwhile; what they count between the two is lost.
    #[inline]
    pub fn serve(self, cpu: &impl Cpu, row: CpuCounters<'_>, mut overflowed: impl FnMut(Reloaded)) -> CounterSet {
        let (mut served, top_bit) = (CounterSet::NONE, state::top_bit(self.mask));
        for counter in row.active.interrupting.iter() {
            let value = cpu.rdpmc(u32::from(counter));
            if value & top_bit == 0 {
                let state = row.get(counter);
                let initial = state.armed_within(self.mask);
                cpu.wrmsr(self.counter(counter), initial);
                overflowed(Reloaded { counter, state, value, initial, missing_bits: self.missing_bits() });
                served = served.with(counter);
            }
        }
        served
    }
}

/// Those of the counters with an interval whose value says that they overflowed: one RDPMC each.
pub fn overflowed(cpu: &impl Cpu, interrupting: CounterSet, mask: u64) -> CounterSet {
    let top_bit = state::top_bit(mask);
    interrupting.iter().filter(|counter| cpu.rdpmc(u32::from(*counter)) & top_bit == 0).collect()
}

/// What every counter keeps that works. Bit 31 is clear: a write of 32 bits is not extended by its sign.
pub const COUNT: u64 = 0x2468_ACE1;

/// Whether a register keeps what is written to it. It is zero afterwards.
pub fn readback_ok(cpu: &impl Cpu, register: Msr, value: u64) -> bool {
    cpu.wrmsr(register, value);
    let kept = cpu.rdmsr(register) == value;
    cpu.wrmsr(register, 0);
    kept
}

/// Where a counter is.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The register by which it is loaded.
    pub register: Msr,
    /// Its number for RDPMC.
    pub index: u32,
    /// How many bits of 64 it has not.
    pub missing_bits: u8,
}

/// Counters that can be found.
pub trait Counters: Copy {
    /// Where a counter is.
    fn place(self, counter: u8) -> Place;

    /// Loads a counter as its state says: one write.
    fn load(self, cpu: &impl Cpu, counter: u8, state: CounterState) {
        let place = self.place(counter);
        cpu.wrmsr(place.register, state.initial_within(state::all_but(place.missing_bits)));
    }
}

impl Counters for Bank {
    #[inline]
    fn place(self, counter: u8) -> Place {
        Place { register: self.counter(counter), index: u32::from(counter), missing_bits: self.missing_bits() }
    }
}

/// Tells and reloads counters that a status register says have overflowed: one RDPMC and one write each. The RDPMC brings
/// what the counter has counted since its overflow, so that no event is missing in the count.
#[inline]
pub fn reload_overflowed(
    bank: impl Counters,
    cpu: &impl Cpu,
    row: CpuCounters<'_>,
    counters: CounterSet,
    mut overflowed: impl FnMut(Reloaded),
) {
    for counter in counters.iter() {
        let (state, Place { register, index, missing_bits }) = (row.get(counter), bank.place(counter));
        let value = cpu.rdpmc(index);
        let initial = state.armed_within(state::all_but(missing_bits));
        cpu.wrmsr(register, initial);
        overflowed(Reloaded { counter, state, value, initial, missing_bits });
    }
}
