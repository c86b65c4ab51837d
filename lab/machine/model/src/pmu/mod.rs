//! The kinds of PMU, one file each, behind one trait.

mod absent;
mod amd;
mod amd_v2;
mod errata;
mod intel;
mod intel_leaf;
mod metrics;
mod netburst;
mod northbridge;
mod p6;
mod pentium;

pub(crate) use absent::Absent;
pub(crate) use amd::Amd;
pub(crate) use amd_v2::AmdV2;
pub(crate) use errata::of_processor as with_erratum;
pub(crate) use intel::Intel;
pub(crate) use intel_leaf::{IntelLeaf, hides_counters, leaf_23};
pub(crate) use netburst::NetBurst;
pub(crate) use p6::P6;
pub(crate) use pentium::Pentium;

use crate::{
    counter::{Counter, CounterId},
    fault::GeneralProtection,
    select::Selected,
};

/// The interface between a performance monitoring unit and its processor.
pub(crate) trait Pmu: Send {
    /// Reads a register. Returns `None` if the register does not exist.
    fn rdmsr(&self, msr: u32) -> Option<u64>;

    /// Writes a register. Returns `None` if the register does not exist.
    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>>;

    /// Reads a counter by RDPMC. Returns `None` if the counter does not exist.
    fn rdpmc(&self, index: u32) -> Option<u64>;

    /// Returns the counters that are enabled in any mode, general counters first.
    fn running(&self) -> Vec<Running>;

    fn counter(&self, id: CounterId) -> Option<&Counter>;

    /// Returns a counter if the unit supports PEBS.
    fn counter_mut(&mut self, _: CounterId) -> Option<&mut Counter> {
        None
    }

    /// Returns whether the counter writes adaptive records.
    fn adaptive(&self, _: CounterId) -> bool {
        false
    }

    /// Sets or clears the overflow bit of a counter, if the unit has a status register.
    fn set_overflow(&mut self, _: CounterId, _overflowed: bool) {}

    /// Sets the bit of the PEBS buffer, if the unit has a status register.
    fn note_buffer(&mut self) {}

    /// Returns whether the status bit of a counter is set, which suppresses the interrupt of its next overflow.
    fn is_stuck(&self, _: CounterId) -> bool {
        false
    }

    /// Returns whether the status bit of an interrupting counter is set, whether or not it counts now. With `records`,
    /// also checks the bit of the PEBS buffer.
    fn has_interrupting_status(&self, _records: bool) -> bool {
        false
    }

    /// Returns whether the processor has counters.
    fn is_there(&self) -> bool {
        true
    }

    /// Notes that time passes with the registers as they are.
    fn elapse(&mut self) {}

    /// Returns the number of events that a counter counts while `events` of its event occur; another number with an
    /// erratum.
    fn counted(&mut self, _: &Running, events: u64) -> u64 {
        events
    }

    /// Returns the number of events until a counter overflows.
    fn until_overflow(&self, id: CounterId) -> Option<u64> {
        self.counter(id).map(Counter::until_overflow)
    }

    /// Returns the most that a counter adds in a cycle, if its event can occur more often.
    fn most_per_cycle(&self, _: &Running) -> Option<u64> {
        None
    }

    /// Adds to a counter, records an overflow in the status register if there is one, and returns the number of
    /// overflows.
    fn count(&mut self, id: CounterId, events: u64) -> u64;

    /// Freezes what an interrupt freezes by `DEBUGCTL`: the counters, the last branch records. Returns whether the
    /// recording of those ends instead, which clears its bit in `DEBUGCTL`.
    fn freeze(&mut self, _: Freeze) -> bool {
        false
    }

    /// Returns whether a write raised an interrupt since the last call.
    fn take_raised(&mut self) -> bool {
        false
    }

    /// Returns the unit of the other thread of the core if the two have something in common: a view of the same
    /// registers, or an erratum.
    fn other_thread(&self) -> Option<Box<dyn Pmu>> {
        None
    }

    /// Returns the unit of another core of the node if the cores of a node have counters in common.
    fn other_core(&self) -> Option<Box<dyn Pmu>> {
        None
    }

    /// Returns whether delivery of the interrupt masks the LVT entry.
    fn masks_lvt_on_delivery(&self) -> bool;
}

/// What the interrupt of a counter or of the PEBS buffer freezes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Freeze {
    pub(crate) counters: bool,
    pub(crate) branches: bool,
}

/// The configuration of an enabled counter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) id: CounterId,
    pub(crate) selected: Selected,
    pub(crate) user: bool,
    pub(crate) kernel: bool,
    pub(crate) interrupt: bool,
}

/// Returns the index of a general counter, or `None` for a fixed counter.
fn general(id: CounterId) -> Option<usize> {
    match id {
        CounterId::General(number) => Some(usize::from(number)),
        CounterId::Fixed(_) | CounterId::Metric(_) => None,
    }
}

/// Implements [`Pmu::count`] for units with only general counters and no status register.
fn count_general(counters: &mut [Counter], id: CounterId, events: u64) -> u64 {
    general(id).and_then(|number| counters.get_mut(number)).map_or(0, |counter| counter.add(events))
}

/// Returns the index of `msr` among `count` registers that begin at `base`, `stride` apart.
fn position(msr: u32, base: u32, stride: u32, count: usize) -> Option<usize> {
    let offset = usize::try_from(msr.checked_sub(base)?).ok()?;
    let stride = usize::try_from(stride).ok()?;
    (offset % stride == 0 && offset / stride < count).then_some(offset / stride)
}
