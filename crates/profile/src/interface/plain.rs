//! A bank of counters with nothing over them: a select register and a counter each, no status, no common control.
//!
//! AMD's counters are such a bank, and Intel's architectural version 1 is. Overflow is found by the counter's value:
//! it is loaded with its top bit set, and an overflow clears that. The seed compares with the initial value instead,
//! which fails when as many events as the interval follow an overflow before it is looked for.

use crate::cpu::{Cpu, Msr};
use crate::state::{CounterSet, CounterState, Row, top_bit};

/// Registers of such a bank.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    /// The first select register; the others follow.
    pub selects: Msr,
    /// The first counter; the others follow.
    pub counters: Msr,
    /// How many there are.
    pub count: u8,
    /// Bits of a counter.
    pub width: u8,
}

impl Bank {
    /// Zero in every select register.
    pub fn clear(self, cpu: &impl Cpu) {
        self.clear_selects(cpu, CounterSet::first(self.count));
    }

    /// Zero in the select registers of `counters`: one write each.
    pub fn clear_selects(self, cpu: &impl Cpu, counters: CounterSet) {
        for counter in counters.iter() {
            cpu.wrmsr(self.selects.at(counter), 0);
        }
    }

    /// Whether the first select register and the first counter keep what is written to them. All have to be off.
    pub fn works(self, cpu: &impl Cpu) -> bool {
        /// Some event in both modes, but not enabled: valid with every vendor.
        const SELECT: u64 = 0x0003_00C0;
        /// Bit 31 is clear: a write of 32 bits is not extended by its sign.
        const COUNT: u64 = 0x2468_ACE1;
        let keeps = |register, value| {
            cpu.wrmsr(register, value);
            let kept = cpu.rdmsr(register) == value;
            cpu.wrmsr(register, 0);
            kept
        };
        self.count == 0 || (keeps(self.selects, SELECT) && keeps(self.counters, COUNT))
    }

    /// Loads and selects `counters` as their states say: two writes each.
    pub fn load(self, cpu: &impl Cpu, row: Row<'_>, counters: CounterSet, select: impl Fn(CounterState) -> u64) {
        for counter in counters.iter() {
            let state = row.get(counter);
            self.reload(cpu, counter, state);
            cpu.wrmsr(self.selects.at(counter), select(state));
        }
    }

    /// Loads a counter: one write.
    pub fn reload(self, cpu: &impl Cpu, counter: u8, state: CounterState) {
        cpu.wrmsr(self.counters.at(counter), state.initial_count(self.width));
    }

    /// Serves an interrupt: one RDPMC for each counter with an interval, one write for each that overflowed. The
    /// counters go on meanwhile; what they count between the two is lost.
    #[inline]
    pub fn serve(self, cpu: &impl Cpu, row: Row<'_>, mut overflowed: impl FnMut(u8, CounterState, u64)) -> CounterSet {
        let (mut served, top_bit) = (CounterSet::NONE, top_bit(self.width));
        for (counter, cell) in (0..).zip(row.cells) {
            let state = cell.load();
            if !state.is_interrupting() {
                continue;
            }
            let count = cpu.rdpmc(counter);
            if count & top_bit == 0 {
                self.reload(cpu, counter, state);
                overflowed(counter, state, count);
                served = served.with(counter);
            }
        }
        served
    }
}

/// Those of the counters with an interval whose value says that they overflowed: one RDPMC each.
pub fn overflowed(cpu: &impl Cpu, interrupting: CounterSet, width: u8) -> CounterSet {
    let top_bit = top_bit(width);
    interrupting.iter().filter(|counter| cpu.rdpmc(*counter) & top_bit == 0).collect()
}

/// Tells and reloads counters that a status register says have overflowed: one write each, and an RDPMC of each that
/// is exact.
pub fn reload_overflowed(
    bank: Bank,
    cpu: &impl Cpu,
    row: Row<'_>,
    counters: CounterSet,
    mut overflowed: impl FnMut(u8, CounterState, u64),
) {
    for counter in counters.iter() {
        let state = row.get(counter);
        let value = if state.exact() { cpu.rdpmc(counter) } else { 0 };
        bank.reload(cpu, counter, state);
        overflowed(counter, state, value);
    }
}
