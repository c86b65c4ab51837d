//! What the processors own: the states of their counters, and the rest in [`PerCpu`]. A processor changes its own at
//! PROFILE_LEVEL; whoever holds the planning lock changes the states of counters that do not run.

use alloc::vec::Vec;

use crate::current_cpu::ProcessorIndex;
use crate::per_cpu::PerCpu;
use crate::state::{CounterCell, CpuCounters, PerCpuPmu, RawSlot};
use crate::try_vec::try_vec;

/// All processors, in their order.
#[derive(Debug)]
pub(super) struct Cpus<E> {
    /// Cells for each processor: the number of counters of the processor that has most.
    cells_per_cpu: usize,
    /// Cells of all processors. `None` if memory was short.
    states: Option<Vec<CounterCell>>,
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
        each.iter().for_each(|per_cpu| per_cpu.pmu.snapshot.set_capabilities(capabilities));
        Some(Self { cells_per_cpu: cells_per_cpu.into(), states, each })
    }
}

impl<E> Cpus<E> {
    /// Returns whether memory was short for the states.
    pub(super) const fn is_stateless(&self) -> bool {
        self.states.is_none()
    }

    /// Returns the bytes of the states.
    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(self.states.as_deref().unwrap_or_default())
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

    /// Returns the counters of a processor with its PMU state, or `None` if it does not exist. There are no counters if
    /// memory was short for their states.
    #[inline]
    pub(super) fn counters<'a>(&'a self, processor: ProcessorIndex, raw: &'a [RawSlot]) -> Option<CpuCounters<'a>> {
        let pmu = self.pmu(processor)?;
        let begin = processor.as_usize() * self.cells_per_cpu;
        Some(match self.states.as_deref().and_then(|states| states.get(begin..begin + self.cells_per_cpu)) {
            Some(cells) => CpuCounters { cells, active: pmu.active(), pmu, raw },
            None => CpuCounters { pmu, ..CpuCounters::default() },
        })
    }
}
