//! The kinds of PMU, one file each, behind one trait.

mod absent;
mod amd;
mod amd_v2;
mod intel;
mod intel_leaf;
mod netburst;
mod p6;
mod pentium;

pub(crate) use absent::Absent;
pub(crate) use amd::Amd;
pub(crate) use amd_v2::AmdV2;
pub(crate) use intel::Intel;
pub(crate) use intel_leaf::IntelLeaf;
pub(crate) use netburst::NetBurst;
pub(crate) use p6::P6;
pub(crate) use pentium::Pentium;

use crate::{
    counter::{Counter, CounterId},
    fault::GeneralProtection,
    select::Selected,
};

/// A performance monitoring unit, as the processor around it sees it.
pub(crate) trait Pmu: Send {
    /// None: there is no such register.
    fn rdmsr(&self, msr: u32) -> Option<u64>;

    /// None: there is no such register.
    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>>;

    /// None: there is no such counter.
    fn rdpmc(&self, index: u32) -> Option<u64>;

    /// The counters that are enabled in any mode, general ones first.
    fn running(&self) -> Vec<Running>;

    fn counter(&self, id: CounterId) -> Option<&Counter>;

    /// A counter whose overflows can write records. None: it has none that can.
    fn counter_mut(&mut self, _: CounterId) -> Option<&mut Counter> {
        None
    }

    /// The records of a counter have the groups that were asked for.
    fn adaptive(&self, _: CounterId) -> bool {
        false
    }

    /// The status, where there is one, tells that a counter overflowed.
    fn note_overflow(&mut self, _: CounterId) {}

    /// The status, where there is one, tells that the buffer of records has come to its threshold.
    fn note_buffer(&mut self) {}

    /// Whether the status of a counter is set, so that its next overflow raises no interrupt.
    fn is_stuck(&self, _: CounterId) -> bool {
        false
    }

    /// Whether the status of a counter that interrupts is set, whether or not the counter counts now; or, if `records`,
    /// that of the buffer of records.
    fn has_interrupting_status(&self, _records: bool) -> bool {
        false
    }

    /// Whether there is anything to count with.
    fn is_there(&self) -> bool {
        true
    }

    /// How many more events of a counter until it overflows.
    fn until_overflow(&self, id: CounterId) -> Option<u64> {
        self.counter(id).map(Counter::until_overflow)
    }

    /// Adds to a counter, notes its overflow where there is a status register, and returns how often it overflowed.
    fn count(&mut self, id: CounterId, events: u64) -> u64;

    /// Whether a write has raised an interrupt since this was last asked.
    fn take_raised(&mut self) -> bool {
        false
    }

    /// The same registers as the other thread of the core sees them. None: the registers are not shared.
    fn other_thread(&self) -> Option<Box<dyn Pmu>> {
        None
    }

    /// Does delivery of the interrupt set the mask bit of the LVT entry?
    fn masks_lvt_on_delivery(&self) -> bool;
}

/// A counter that is enabled, and how it is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) id: CounterId,
    pub(crate) selected: Selected,
    pub(crate) user: bool,
    pub(crate) kernel: bool,
    pub(crate) interrupt: bool,
}

/// The position of a general counter among those; None of a fixed one.
fn general(id: CounterId) -> Option<usize> {
    match id {
        CounterId::General(number) => Some(usize::from(number)),
        CounterId::Fixed(_) => None,
    }
}

/// [`Pmu::count`] of a unit that has general counters alone, and no status register.
fn count_general(counters: &mut [Counter], id: CounterId, events: u64) -> u64 {
    general(id).and_then(|number| counters.get_mut(number)).map_or(0, |counter| counter.add(events))
}

/// The position of `msr` in the `count` registers that begin at `base`, `stride` apart.
fn position(msr: u32, base: u32, stride: u32, count: usize) -> Option<usize> {
    let offset = usize::try_from(msr.checked_sub(base)?).ok()?;
    let stride = usize::try_from(stride).ok()?;
    (offset % stride == 0 && offset / stride < count).then_some(offset / stride)
}
