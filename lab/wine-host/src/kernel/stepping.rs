//! Steps through a call into a driver, and lets counters overflow at chosen instructions.
//!
//! The interrupt of an overflow is delivered on the stepping thread, before the first instruction whose IRQL allows it.
//! Meanwhile the thread that usually delivers the interrupts of the processor does not.

#![expect(unsafe_code, reason = "calls functions of the driver")]

use crate::{
    cpu::{
        affinity,
        processor::{Core, State},
        processors,
    },
    kernel::{
        interrupt, irql, loaded_images, step_trap,
        step_trap::{DriverCode, TRAP_FLAG},
    },
    lock::lock,
    nt::{self, HIGH_LEVEL},
    state::{machine::MACHINE, step_route::Trace, step_run::StepRun, stepper::AfterTrap, stepping::Phase},
};
use bench_protocol::{StepEntry, StepOverflow, StepPlan, StepReport};
use model::{Mode, Selected};
use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Duration,
};
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// The longest wait for the end of a stepped call.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

/// The longest wait for the interrupt of another processor.
const OTHER_LIMIT: Duration = Duration::from_millis(20);

/// More events than until any counter overflows that interrupts: no interval has more than 31 bits.
const MAX_EVENTS: u64 = 1 << 31;

/// A stepped call of this thread.
struct Running {
    run: StepRun,
    plan: StepPlan,
    image: Range<usize>,
    /// The instructions of the call, if it may be followed by breakpoints.
    trace: Option<Arc<Trace>>,
    /// Whether the instructions are only counted and recorded.
    counts_only: bool,
}

thread_local! {
    static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
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
    let waited = stepping.changed.wait_timeout_while(lock(&stepping.phase), WAIT_LIMIT, runs);
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

fn is_on(processor: u32) -> bool {
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
fn release(core: &Core) {
    if core.is_stepped.swap(false, Ordering::SeqCst) {
        core.pmi.notify();
    }
}

/// Continues to step after the lab has executed an instruction of the driver.
pub fn after_emulation(context: &mut CONTEXT) {
    let stepper = &MACHINE.kernel.stepping.stepper;
    let thread = nt::current_thread();
    let Ok(ip) = usize::try_from(context.Rip) else { return };
    if context.EFlags & TRAP_FLAG == 0 {
        return;
    }
    if stepper.has_passed(thread, &DriverCode) {
        context.EFlags &= !TRAP_FLAG;
    } else if stepper.is_stepping(thread) && stepper.after_instruction(ip) == AfterTrap::Stop {
        stop_at(context);
    }
}

/// Handles a trap before an instruction at which something is planned. Returns false if the trap is not of a stepping
/// thread.
pub fn on_single_step(context: &mut CONTEXT) -> bool {
    let is_stepping = MACHINE.kernel.stepping.stepper.is_stepping(nt::current_thread());
    if is_stepping {
        stop_at(context);
    }
    is_stepping
}

/// Does what is planned before the instruction, and sets the trap flag if more is to come.
fn stop_at(context: &mut CONTEXT) {
    let stepper = &MACHINE.kernel.stepping.stepper;
    context.EFlags &= !TRAP_FLAG;
    // The handler of the interrupt is not stepped.
    stepper.end(&DriverCode);
    let Some(mut running) = RUNNING.take() else { return };
    let instruction = stepper.reached().saturating_sub(1);
    let next = running.act(instruction, context.Rip);
    if next.is_some_and(|next| running.go_on(Some(instruction), next)) {
        context.EFlags |= TRAP_FLAG;
    }
    RUNNING.set(Some(running));
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
    fn go_on(&self, from: Option<u64>, next: u64) -> bool {
        let way = self.trace.as_ref().map(|trace| trace.route(from, next)).unwrap_or_default();
        MACHINE.kernel.stepping.stepper.go_on(nt::current_thread(), &way, next, &DriverCode)
    }

    /// Does what is planned before an instruction. Returns the number of the next one at which to stop.
    fn act(&mut self, instruction: u64, ip: u64) -> Option<u64> {
        let core = processors::find(self.plan.processor)?;
        let target = processors::find(self.plan.target)?;
        // The driver may have moved the thread to another processor.
        let on_planned = is_on(self.plan.processor);
        let interrupts_itself = on_planned && self.plan.target == self.plan.processor;
        if self.run.is_due(instruction) {
            let start = u64::try_from(self.image.start).unwrap_or_default();
            let mut overflow = StepOverflow {
                instruction,
                offset: ip.wrapping_sub(start),
                level: irql::current(),
                overflowed: false,
                delivered: None,
            };
            if interrupts_itself {
                core.is_stepped.store(true, Ordering::SeqCst);
            }
            overflow.overflowed = overflow_on(target);
            self.run.overflowed(overflow);
            if !interrupts_itself {
                // The other processor may wait at HIGH_LEVEL for what the stepped one holds.
                if target.pmi.notify_and_wait_up_to(OTHER_LIMIT) {
                    self.run.delivered(instruction);
                }
            }
        }
        let mut is_pending = false;
        if !on_planned {
            release(core);
        } else if core.is_stepped.load(Ordering::SeqCst) {
            if irql::current() < HIGH_LEVEL && core.with(|state| state.processor.interrupt_due()) {
                self.run.delivered(instruction);
                interrupt::deliver(core);
            }
            is_pending = core.with(|state| state.processor.interrupt_pending());
            if !is_pending {
                release(core);
            }
        }
        self.run.next_stop(Some(instruction), is_pending)
    }
}

/// Lets each event that a counter counts occur until the counter overflows. Returns whether a counter can.
fn overflow_on(core: &Core) -> bool {
    let thread = nt::current_thread();
    core.high_level.acquire(thread);
    let overflowed = core.with(overflow);
    core.high_level.release(thread);
    overflowed
}

/// Counters of one event overflow together. A counter whose status bit is still set overflows as well, but does not
/// interrupt. The code of the driver runs in kernel mode.
fn overflow(state: &mut State) -> bool {
    let processor = &mut state.processor;
    let interrupting = processor.interrupting_counters();
    let mut events: BTreeMap<Selected, u64> = BTreeMap::new();
    for counter in interrupting.iter().filter(|counter| counter.kernel && counter.events < MAX_EVENTS) {
        let least = events.entry(counter.selected).or_insert(counter.events);
        *least = counter.events.min(*least);
    }
    for (id, selected) in processor.enabled_counters() {
        if let Some(number) = processor.until_overflow(id).filter(|number| *number < MAX_EVENTS) {
            events.entry(selected).or_insert(number);
        }
    }
    processor.run(Mode::Kernel, &|selected| events.get(&selected).copied().unwrap_or_default());
    !events.is_empty()
}
