//! What the processors own: the states of their counters, and the rest in [`PerCpu`]. A processor changes its own at
//! PROFILE_LEVEL; the thread that holds the planning lock changes the states of counters that do not run.

use alloc::vec::Vec;

use crate::current_cpu::ProcessorIndex;
use crate::per_cpu::PerCpu;
use crate::state::{CounterCell, PerCpuPmu};
use crate::try_vec::try_vec;

/// All processors, in their order.
#[derive(Debug)]
pub(super) struct Cpus<E> {
    /// Cells for each processor: the number of counters of the processor that has most.
    cells_per_cpu: u8,
    /// Cells of all processors. There are none if memory was short.
    states: Vec<CounterCell>,
    is_stateless: bool,
    each: Vec<PerCpu<E>>,
}

impl<E: Default> Cpus<E> {
    /// Makes processors with these [`Interface::capabilities`](crate::Interface::capabilities), or returns `None` if
    /// memory is low.
    // Never inlined: the caller would have one processor on its stack all the time.
    #[inline(never)]
    pub(super) fn new(
        count: u32,
        capabilities: u64,
        cells_per_cpu: u8,
        states: Option<Vec<CounterCell>>,
    ) -> Option<Self> {
        let each = try_vec(count as usize, |_| PerCpu::<E>::default())?;
        for per_cpu in &each {
            per_cpu.pmu.snapshot.set_capabilities(capabilities);
        }
        let is_stateless = states.is_none();
        Some(Self { cells_per_cpu, states: states.unwrap_or_default(), is_stateless, each })
    }
}

impl<E> Cpus<E> {
    /// Returns whether memory was short for the states.
    pub(super) const fn is_stateless(&self) -> bool {
        self.is_stateless
    }

    /// Returns the bytes of the states.
    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(&*self.states)
    }

    /// Iterates over what each processor owns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PerCpu<E>> {
        self.each.iter()
    }

    /// Returns what a processor owns, or `None` if it does not exist.
    #[inline]
    pub(super) fn get(&self, processor: ProcessorIndex) -> Option<&PerCpu<E>> {
        self.each.get(processor.as_usize())
    }

    /// Returns the PMU state of a processor, or `None` if it does not exist.
    #[inline]
    pub(super) fn pmu(&self, processor: ProcessorIndex) -> Option<&PerCpuPmu> {
        self.get(processor).map(|per_cpu| &per_cpu.pmu)
    }

    /// Returns the states of the counters of a processor. `None` if it does not exist, or memory was short.
    #[inline]
    pub(super) fn states(&self, processor: ProcessorIndex) -> Option<&[CounterCell]> {
        let cells_per_cpu = usize::from(self.cells_per_cpu);
        let begin = processor.as_usize() * cells_per_cpu;
        self.states.get(begin..begin + cells_per_cpu)
    }
}
