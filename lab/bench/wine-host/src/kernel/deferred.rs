//! The threads that run DPCs and timers, one for each processor. Routines run at DISPATCH_LEVEL, when no other thread
//! of the processor is at that level.
//!
//! A routine starts when no profile interrupt and no KeIpiGenericCall is handled on its processor. Either can come
//! while the routine runs, and then runs concurrently with it.

#![expect(unsafe_code, reason = "calls functions of the driver")]

use crate::{
    cpu::{
        affinity,
        processor::{Core, State},
        processors,
    },
    kernel::{
        current_ids,
        dispatcher_objects::{self, Kdpc, Ktimer},
        dispatcher_stack, ipi, irql, stepping,
    },
    lock::lock,
    nt::{self, DISPATCH_LEVEL},
    state::{
        deferred::DeferredWork,
        dpc_queues::{Call, QueuedBy},
        machine::MACHINE,
    },
    violation::{self, catch_panic},
};
use bench_protocol::{Interruptions, StepEntry, Ticks};
use std::{
    ops::Range,
    ptr,
    sync::{MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Changes the deferred work, and wakes the threads of the processors.
pub fn change<T>(body: impl FnOnce(&mut DeferredWork) -> T) -> T {
    let result = body(&mut lock(&MACHINE.kernel.deferred.work));
    MACHINE.kernel.deferred.changed.notify_all();
    result
}

/// Waits until `so` holds. Returns false at the deadline.
fn wait_until(deadline: Instant, so: impl Fn(&DeferredWork) -> bool) -> bool {
    let mut work = lock(&MACHINE.kernel.deferred.work);
    while !so(&work) {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
        work = wait(work, Some(left));
    }
    true
}

fn wait(work: MutexGuard<'static, DeferredWork>, limit: Option<Duration>) -> MutexGuard<'static, DeferredWork> {
    match limit {
        None => MACHINE.kernel.deferred.changed.wait(work).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => {
            MACHINE.kernel.deferred.changed.wait_timeout(work, limit).unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

/// Starts the thread of each processor.
pub fn start() -> impl Iterator<Item = thread::JoinHandle<()>> {
    processors::possible().iter().map(|core| {
        thread::spawn(move || {
            affinity::restrict(1 << core.number);
            let thread = nt::current_thread();
            while wait_for_work(core.number) {
                core.dispatch_level.acquire(thread);
                catch_panic("a DPC", (), || run_due(core, thread));
                core.dispatch_level.release(thread);
            }
        })
    })
}

pub fn stop() {
    change(|work| work.stop = true);
}

/// Waits until a processor has work. Returns false if its thread must end.
fn wait_for_work(processor: u32) -> bool {
    let mut work = lock(&MACHINE.kernel.deferred.work);
    while !work.stop {
        let next = if MACHINE.time_mode.is_real() { work.timers.next(processor, &work.dpcs) } else { None };
        let left = next.map(|due| due.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) || work.dpcs.has_waiting(processor) || work.ticks.contains_key(&processor) {
            return true;
        }
        work = wait(work, left);
    }
    false
}

/// Expires timers, and runs the queued DPCs.
fn run_due(core: &Core, thread: u32) {
    change(|work| work.expire(core.number));
    loop {
        core.ipi.wait_until_free(thread);
        core.high_level.wait_until_free(thread);
        let call = lock(&MACHINE.kernel.deferred.work).begin(core.number);
        let Some(call) = call else { break };
        // The clock interrupt that expired the timer found this code.
        let clock_interrupt = |state: &mut State| {
            state.last_site = state.clock_sites.next_interrupt();
            state.last_site
        };
        let site = call.by_timer.then(|| core.with(clock_interrupt)).flatten();
        // Interrupts that come while the routine runs do not change the stack below it.
        core.with(|state| state.dpc_site = state.last_site);
        // SAFETY: the driver initialized the DPC with this routine and this context, and queued it.
        let routine = || irql::run_at(DISPATCH_LEVEL, || unsafe { run(call) });
        match site {
            Some(site) => current_ids::with_interrupted(site, || dispatcher_stack::run_at(site, routine)),
            None => routine(),
        }
        change(|work| work.dpcs.end(core.number));
    }
}

/// # Safety
/// The driver queued this call.
unsafe fn run(Call { dpc, routine, context, arguments: [first, second], by_timer, .. }: Call) {
    let entry = if by_timer { StepEntry::Timer } else { StepEntry::Dpc };
    let routine = ptr::with_exposed_provenance(routine);
    // SAFETY: the driver passed a function with four arguments to KeInitializeDpc; the caller guarantees the rest.
    unsafe { stepping::call(entry, routine, [dpc, context, first, second]) };
}

impl DeferredWork {
    /// Expires the due timers of a processor: by the clock, or by the script.
    fn expire(&mut self, processor: u32) {
        let now = if let Some(left) = self.ticks.get_mut(&processor) {
            *left -= 1;
            if *left == 0 {
                self.ticks.remove(&processor);
            }
            None
        } else if MACHINE.time_mode.is_real() {
            Some(Instant::now())
        } else {
            return;
        };
        for (timer, dpc) in self.timers.expire(processor, now, &self.dpcs) {
            // SAFETY: the timer is set, so its memory is not freed, and this thread holds the lock of the deferred
            // work.
            let object: &mut Ktimer = unsafe { dispatcher_objects::object_at(timer) };
            object.expired();
            if let Some(dpc) = dpc {
                // As in Windows, a DPC that is still queued is not queued again.
                self.insert(dpc, processor, QueuedBy::Timer);
            }
        }
    }

    /// Queues a DPC on its target processor, or on processor `here`. Returns None if the DPC is unknown.
    pub fn insert(&mut self, dpc: usize, here: u32, queued_by: QueuedBy) -> Option<bool> {
        let inserted = self.dpcs.insert(dpc, here, queued_by).ok()?;
        if inserted {
            // SAFETY: the DPC is registered, and this thread holds the lock of the deferred work.
            let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(dpc) };
            object.queued(if let QueuedBy::Driver(arguments) = queued_by { arguments } else { [0; 2] });
        }
        Some(inserted)
    }

    fn begin(&mut self, processor: u32) -> Option<Call> {
        let call = self.dpcs.begin(processor)?;
        // SAFETY: the DPC is registered, and this thread holds the lock of the deferred work.
        let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(call.dpc) };
        if !object.calls(call.routine, call.context) {
            violation::other(format!("the DPC {:#x} was written over while it was queued", call.dpc));
        }
        object.taken();
        Some(call)
    }

    /// Removes timers and DPCs in the address range. Returns what was set or queued.
    fn forget(&mut self, addresses: &Range<usize>) -> impl Iterator<Item = &'static str> + use<> {
        let timer = self.timers.forget(addresses, &self.dpcs).then_some("a timer that is set");
        let dpc = self.dpcs.forget(addresses).then_some("a DPC that is queued");
        timer.into_iter().chain(dpc)
    }
}

/// Waits until every DPC that is queued now has run or was removed.
pub fn flush() {
    let mut work = lock(&MACHINE.kernel.deferred.work);
    let mark = work.dpcs.mark();
    while !work.dpcs.done(mark) {
        work = wait(work, None);
    }
}

/// Reports and removes set timers and queued DPCs in memory that is about to be freed.
pub fn memory_freed(function: &str, addresses: &Range<usize>) {
    for what in change(|work| work.forget(addresses)) {
        violation::other(format!("{function} of {:#x}, which {what} needs", addresses.start));
    }
}

/// Reports and removes set timers and queued DPCs of an unloaded driver.
pub fn image_unloaded(addresses: &Range<usize>) {
    for what in change(|work| work.forget(addresses)) {
        violation::other(format!("a driver was unloaded that {what} needs"));
    }
    if lock(&MACHINE.kernel.deferred.work).dpcs.runs_in(addresses) {
        violation::other("a driver was unloaded while a DPC of it ran");
        // The code is unmapped when this returns. The lab survives if the routine ends first.
        wait_until(Instant::now() + nt::HANG_LIMIT, |work| !work.dpcs.runs_in(addresses));
    }
}

/// Restarts the timers after a change of the time mode, and waits until no routine of the old mode runs.
pub fn time_changed() {
    let mark = change(|work| {
        work.timers.restart(Instant::now());
        work.dpcs.mark()
    });
    wait_until(Instant::now() + nt::HANG_LIMIT, |work| work.dpcs.done(mark));
}

/// Expires the timers of a processor `times` times, and runs the resulting DPCs each time. Returns false on timeout.
pub fn tick(processor: u32, times: u64) -> bool {
    let deadline = Instant::now() + nt::HANG_LIMIT;
    if times > 0 {
        change(|work| {
            let left = work.ticks.entry(processor).or_default();
            *left = left.saturating_add(times);
        });
    }
    let ticked = wait_until(deadline, |work| !work.ticks.contains_key(&processor));
    let mark = change(|work| {
        work.ticks.remove(&processor);
        work.dpcs.mark()
    });
    ticked && wait_until(deadline, |work| work.dpcs.done(mark))
}

pub fn ticks() -> Ticks {
    let work = lock(&MACHINE.kernel.deferred.work);
    let ran = work.dpcs.timer_calls().into_iter().take(processors::active().len()).collect();
    Ticks { ran, set: u64::try_from(work.timers.count_set()).unwrap_or(u64::MAX) }
}

/// Returns what has interrupted each active processor for calls of the driver.
pub fn interruptions() -> Vec<Interruptions> {
    let work = lock(&MACHINE.kernel.deferred.work);
    let dpcs = work.dpcs.targeted_calls().into_iter().zip(work.dpcs.untargeted_calls());
    let all = ipi::taken().into_iter().zip(dpcs).take(processors::active().len());
    all.map(|(broadcasts, (targeted, untargeted))| Interruptions { broadcasts, targeted, untargeted }).collect()
}

/// Sets how timers expire in real time.
pub fn set_timer_mode(mode: model::TimerMode) {
    change(|work| work.timers.set_mode(mode, Instant::now()));
}

/// Resets the number of DPC calls by timers.
pub fn reset_timer_calls() {
    lock(&MACHINE.kernel.deferred.work).dpcs.reset_timer_calls();
}
