//! Intel's P6 family: two counters with one common enable flag.

use super::{Pmu, Running, count_general, general, position};
use crate::{
    bits::{bit, ones},
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    select::Select,
    writable,
};

/// `PerfEvtSel0` (SDM Vol. 4, "MSRs in the P6 Family Processors", like the next).
const PERFEVTSEL0: u32 = 0x186;
/// `PerfCtr0`.
const PERFCTR0: u32 = 0xC1;
const COUNT: usize = 2;
/// SDM, "Performance Monitoring (P6 Family Processor)": 40 bits. A write sets the low 32 and sign-extends bit 31.
const WIDTH: u32 = 40;

#[derive(Clone, Copy)]
enum Register {
    Select(usize),
    Counter(usize),
}

pub(crate) struct P6 {
    selects: [Select; COUNT],
    counters: [Counter; COUNT],
}

impl P6 {
    pub(crate) fn new() -> Self {
        Self { selects: [Select::default(); COUNT], counters: [Counter::new(WIDTH), Counter::new(WIDTH)] }
    }
}

fn register(msr: u32) -> Option<Register> {
    let select = position(msr, PERFEVTSEL0, 1, COUNT).map(Register::Select);
    select.or_else(|| position(msr, PERFCTR0, 1, COUNT).map(Register::Counter))
}

impl Pmu for P6 {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        match register(msr)? {
            Register::Select(number) => self.selects.get(number).map(|select| select.0),
            Register::Counter(number) => self.counters.get(number).map(Counter::read),
        }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        match register(msr)? {
            Register::Select(number) => {
                let select = self.selects.get_mut(number)?;
                Some(refuse_reserved(value, !writable::p6_perfevtsel(number)).map(|()| *select = Select(value)))
            }
            Register::Counter(number) => {
                let low = value & ones(32);
                self.counters.get_mut(number)?.write(if bit(low, 31) { low | !ones(32) } else { low });
                Some(Ok(()))
            }
        }
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        self.counters.get(usize::try_from(index).ok()?).map(Counter::read)
    }

    fn running(&self) -> Vec<Running> {
        let [first, _] = self.selects;
        let on = |select: &Select| first.enabled() && (select.user() || select.kernel());
        let running = (0..).zip(&self.selects).filter(|(_, select)| on(select)).map(|(number, select)| Running {
            id: CounterId::General(number),
            selected: select.selected(),
            user: select.user(),
            kernel: select.kernel(),
            interrupt: select.interrupt(),
        });
        running.collect()
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        self.counters.get(general(id)?)
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        count_general(&mut self.counters, id, events)
    }

    /// SDM Vol. 3A, "Local Vector Table": the mask is set when a performance monitoring interrupt is handled.
    fn masks_lvt_on_delivery(&self) -> bool {
        true
    }
}
