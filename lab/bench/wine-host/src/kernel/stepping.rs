//! Steps through a call into a driver, and lets counters overflow at chosen instructions.
//!
//! The interrupt of an overflow is delivered on the stepping thread, before the first instruction whose IRQL allows it
//! (`step_stops.rs`). Meanwhile the thread that usually delivers the interrupts of the processor does not.

#![expect(unsafe_code, reason = "calls functions of the driver")]

use crate::{
    cpu::{affinity, processor::Core, processors},
    kernel::{
        loaded_images,
        step_trap::{self, DriverCode},
    },
    lock::lock,
    nt,
    state::{machine::MACHINE, step_route::Trace, step_run::StepRun, stepping::Phase},
};
use bench_protocol::{StepEntry, StepPlan, StepReport};
use std::{
    cell::Cell,
    ops::Range,
    sync::{Arc, PoisonError, atomic::Ordering},
};

/// A stepped call of this thread.
pub struct Running {
    pub run: StepRun,
    pub plan: StepPlan,
    pub image: Range<usize>,
    /// The instructions of the call, if it may be followed by breakpoints.
    trace: Option<Arc<Trace>>,
    /// Whether the instructions are only counted and recorded.
    counts_only: bool,
}

thread_local! {
    pub static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
}

/// Plans the next call. Returns false if the call of an earlier plan does not return.
pub fn arm(plan: StepPlan) -> bool {
    step_trap::start();
    loaded_images::make_code_writable();
    let Some(mut phase) = not_running() else { return false };
    *phase = Phase::Armed(plan);
    true
}

/// Returns what happened in the planned call after its end, and forgets the plan. Returns None if the call does not
/// return.
pub fn take() -> Option<StepReport> {
    match std::mem::take(&mut *not_running()?) {
        Phase::Done(report) => Some(report),
        _ => Some(StepReport::default()),
    }
}

fn not_running() -> Option<std::sync::MutexGuard<'static, Phase>> {
    let stepping = &MACHINE.kernel.stepping;
    let runs = |phase: &mut Phase| matches!(phase, Phase::Running);
    let waited = stepping.changed.wait_timeout_while(lock(&stepping.phase), nt::HANG_LIMIT, runs);
    let (phase, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
    (!timeout.timed_out()).then_some(phase)
}

/// Calls a function of a driver: step by step if a plan waits for this call, or if this thread steps already.
///
/// # Safety
/// The function takes these arguments, and has no others.
pub unsafe fn call(entry: StepEntry, routine: *const (), arguments: [usize; 4]) -> usize {
    let Some(running) = begin(entry, routine.addr()) else {
        let steps = MACHINE.kernel.stepping.stepper.is_stepping(nt::current_thread());
        // SAFETY: guaranteed by the caller.
        return unsafe { step_trap::call(routine, arguments, steps) };
    };
    affinity::with_scheduled(running.plan.processor, || {
        let steps = running.begin();
        // SAFETY: guaranteed by the caller.
        let result = unsafe { step_trap::call(routine, arguments, steps) };
        end();
        result
    })
}

/// Runs `body`, which raises the IRQL and then makes a call of this kind, on the processor of a plan that waits for it.
pub fn on_planned_processor<T>(entry: StepEntry, body: impl FnOnce() -> T) -> T {
    let planned = match &*lock(&MACHINE.kernel.stepping.phase) {
        Phase::Armed(plan) if plan.entry == entry => Some(plan.processor),
        _ => None,
    };
    match planned {
        Some(processor) => affinity::with_scheduled(processor, body),
        None => body(),
    }
}

/// Takes the plan if it waits for this call.
fn begin(entry: StepEntry, routine: usize) -> Option<Running> {
    let mut phase = lock(&MACHINE.kernel.stepping.phase);
    let is_it = |plan: &StepPlan| plan.entry == entry && (is_bound_by_plan(entry) || is_on(plan.processor));
    let image = match &*phase {
        Phase::Armed(plan) if is_it(plan) => loaded_images::addresses_around(routine)?,
        _ => return None,
    };
    match std::mem::replace(&mut *phase, Phase::Running) {
        Phase::Armed(plan) => {
            let counts_only = plan.overflow_at.is_empty();
            let trace = lock(&MACHINE.kernel.stepping.trace).clone().filter(|_| plan.by_breakpoints && !counts_only);
            Some(Running { run: StepRun::new(plan.overflow_at.clone()), plan, image, trace, counts_only })
        }
        _ => None,
    }
}

/// Returns whether the call runs below DISPATCH_LEVEL on any processor, so that the plan chooses it.
const fn is_bound_by_plan(entry: StepEntry) -> bool {
    matches!(entry, StepEntry::Request { .. })
}

/// Returns whether this thread runs on the processor.
pub fn is_on(processor: u32) -> bool {
    affinity::current_processor() == processor
}

fn end() {
    let stepping = &MACHINE.kernel.stepping;
    let instructions = stepping.stepper.reached();
    stepping.stepper.end(&DriverCode);
    let Some(Running { run, plan, counts_only, .. }) = RUNNING.take() else { return };
    let mut report = run.end(instructions);
    if counts_only {
        let trace = Trace::new(stepping.stepper.recorded());
        report.first_executions = trace.first_executions();
        *lock(&stepping.trace) = Some(Arc::new(trace));
    }
    if let Some(core) = processors::find(plan.processor) {
        release(core);
    }
    *lock(&stepping.phase) = Phase::Done(report);
    stepping.changed.notify_all();
}

/// Lets the usual thread deliver the interrupts of the processor again.
pub fn release(core: &Core) {
    if core.is_stepped.swap(false, Ordering::SeqCst) {
        core.pmi.notify();
    }
}

impl Running {
    /// Begins the call on this thread. Returns whether it steps from the first instruction on.
    fn begin(mut self) -> bool {
        let first = self.run.next_stop(None, false).unwrap_or(u64::MAX);
        MACHINE.kernel.stepping.stepper.begin(&self.image, self.counts_only);
        let steps = self.go_on(None, first);
        RUNNING.set(Some(self));
        steps
    }

    /// Goes on to the instruction with the number `next`. Returns whether the thread steps now.
    pub fn go_on(&self, from: Option<u64>, next: u64) -> bool {
        let way = self.trace.as_ref().map(|trace| trace.route(from, next)).unwrap_or_default();
        MACHINE.kernel.stepping.stepper.go_on(nt::current_thread(), &way, next, &DriverCode)
    }
}
