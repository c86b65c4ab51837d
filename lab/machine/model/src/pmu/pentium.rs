//! Intel's Pentium: one control register for two counters, which raise no interrupts in the model.
//!
//! Not in the model: the PM pins, and counting the duration of an event in clocks.

use super::{Pmu, Running, count_general, general, position};
use crate::{
    bits::{bit, byte, field},
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    select::Selected,
    writable,
};

/// `CESR` (SDM Vol. 4, "MSRs in Pentium Processors", like the next).
const CESR: u32 = 0x11;
/// `CTR0`; `CTR1` follows.
const CTR0: u32 = 0x12;
const COUNT: usize = 2;
/// SDM, "Performance Monitoring (Pentium Processors)".
const WIDTH: u32 = 40;

pub(crate) struct Pentium {
    cesr: u64,
    counters: [Counter; COUNT],
    /// The processor has RDPMC, which came with MMX.
    rdpmc: bool,
}

impl Pentium {
    pub(crate) fn new(rdpmc: bool) -> Self {
        Self { cesr: 0, counters: [Counter::new(WIDTH), Counter::new(WIDTH)], rdpmc }
    }
}

impl Pmu for Pentium {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        if msr == CESR {
            return Some(self.cesr);
        }
        self.counters.get(position(msr, CTR0, 1, COUNT)?).map(Counter::read)
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        if msr == CESR {
            return Some(refuse_reserved(value, !writable::CESR).map(|()| self.cesr = value));
        }
        let counter = self.counters.get_mut(position(msr, CTR0, 1, COUNT)?)?;
        Some(refuse_reserved(value, counter.reserved()).map(|()| counter.write(value)))
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        self.counters.get(usize::try_from(index).ok()?).filter(|_| self.rdpmc).map(Counter::read)
    }

    fn running(&self) -> Vec<Running> {
        let half = |number: u8| field(self.cesr, 16 * u32::from(number) + 15, 16 * u32::from(number));
        // CC: the lowest bit enables CPL 0 to 2, the middle bit CPL 3; the highest bit counts clocks.
        let counts = |half: u64| (bit(half, 6) || bit(half, 7)) && !bit(half, 8);
        let halves = (0..2).map(|number| (number, half(number))).filter(|(_, half)| counts(*half));
        let running = halves.map(|(number, half)| Running {
            id: CounterId::General(number),
            selected: Selected::event(u16::from(byte(half.to_le_bytes()[0].into(), 5, 0)), 0),
            user: bit(half, 7),
            kernel: bit(half, 6),
            interrupt: false,
        });
        running.collect()
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        self.counters.get(general(id)?)
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        count_general(&mut self.counters, id, events)
    }

    /// The counters never interrupt.
    fn masks_lvt_on_delivery(&self) -> bool {
        false
    }
}
