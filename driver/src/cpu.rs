//! The ways to stay on one processor, and instructions that may fault.

#![expect(unsafe_code, reason = "only the IRQL or an affinity holds code on a processor")]

mod guarded;

use pmu::{CurrentCpu, ProcessorIndex};
use processor::{Processor, with_current};
use protocol::ProcessorSet;

use crate::nt::processors::{self, Pinned, Work};
use crate::nt::targeted_calls::TargetedCalls;

pub use guarded::{PinnedProcessor, on_processor};

/// Runs `work` on the boot processor.
///
/// # IRQL
/// Below DISPATCH_LEVEL, which is also the IRQL of `work`.
pub fn on_boot_processor<T>(work: impl FnOnce(&Processor) -> T) -> T {
    let _stay = Pinned::to_boot_processor();
    // SAFETY: the thread stays there
    let processor = unsafe { Processor::current() };
    work(&processor)
}

/// Runs `work` on every active processor at the same time, at HIGH_LEVEL, and returns when all are done.
///
/// # IRQL
/// Below IPI_LEVEL.
pub fn on_each_processor(work: &(impl Fn(CurrentCpu<'_, Processor>) + Sync)) {
    let work = || {
        // SAFETY: `Work` runs at HIGH_LEVEL until this returns
        unsafe { with_current(work) }
    };
    Work::new(&work).broadcast();
}

/// Runs `work` on these processors, which are active, at HIGH_LEVEL, and returns when all are done. All active
/// processors are interrupted together. Others get a DPC each, and the current one alone none.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn on_processors(
    calls: &TargetedCalls,
    processors: &ProcessorSet,
    work: &(impl Fn(CurrentCpu<'_, Processor>) + Sync),
) {
    let work = || {
        let if_concerned = |current: CurrentCpu<'_, Processor>| {
            if processors.contains(current.index().number()) {
                work(current);
            }
        };
        // SAFETY: `Work` runs at HIGH_LEVEL until this returns
        unsafe { with_current(if_concerned) }
    };
    bring(calls, processors, Work::new(&work));
}

/// Brings work, which does nothing on other processors, to these.
#[inline(never)]
fn bring(calls: &TargetedCalls, processors: &ProcessorSet, work: Work<'_>) {
    let mut wanted = processors.iter().map(ProcessorIndex::new);
    let Some(first) = wanted.next() else { return };
    if wanted.next().is_none() && here(first, work) {
        return;
    }
    let are_all = ProcessorIndex::first(processors::active()).all(|processor| processors.contains(processor.number()));
    if are_all || !calls.run(processors, work) {
        work.broadcast();
    }
}

/// Runs the work if this thread is on the processor. Returns whether it is.
fn here(processor: ProcessorIndex, work: Work<'_>) -> bool {
    let mut is_here = false;
    at_high_level(|current| {
        is_here = current.index() == processor;
        if is_here {
            work.run();
        }
    });
    is_here
}

/// Runs `work` on the current processor at HIGH_LEVEL.
///
/// # IRQL
/// At most IPI_LEVEL.
pub fn at_high_level(work: impl FnOnce(CurrentCpu<'_, Processor>)) {
    processors::at_high_level(|| {
        // SAFETY: `at_high_level` is at HIGH_LEVEL until this returns
        unsafe { with_current(work) }
    });
}
