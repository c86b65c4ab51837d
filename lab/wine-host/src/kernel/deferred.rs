//! DPCs and timers at work: one thread for each processor, on which timers expire and the routines of DPCs run, at
//! DISPATCH_LEVEL and so when no other thread there is at that level.
//!
//! A routine begins when no profile interrupt and no KeIpiGenericCall is being handled on its processor. Either may
//! come while it runs, and then runs beside it.

#![expect(unsafe_code, reason = "calls functions of the driver")]

use crate::{
    cpu::{
        affinity,
        processor::{self, Core},
        time_mode,
    },
    kernel::{
        dispatcher_objects::{self, Kdpc, Ktimer},
        dpc_queues::{Call, DpcQueues, QueuedBy},
        irql,
        timers::Timers,
    },
    lock::lock,
    nt::{self, DISPATCH_LEVEL, Pointer},
    violation::{self, catch_panic},
};
use bench_protocol::Ticks;
use std::{
    collections::BTreeMap,
    ops::Range,
    ptr,
    sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long a test may wait for routines.
const PATIENCE: Duration = Duration::from_secs(10);

type Routine = unsafe extern "system" fn(Pointer, Pointer, Pointer, Pointer);

/// The account of everything. Who holds it may access the objects that it knows.
pub struct DeferredWork {
    pub dpcs: DpcQueues,
    pub timers: Timers,
    /// How often the timers of a processor still are to expire, of a script.
    ticks: BTreeMap<u32, u64>,
    stop: bool,
}

static WORK: LazyLock<Mutex<DeferredWork>> = LazyLock::new(|| {
    let dpcs = DpcQueues::new(processor::possible().len());
    Mutex::new(DeferredWork { dpcs, timers: Timers::default(), ticks: BTreeMap::new(), stop: false })
});
static CHANGED: Condvar = Condvar::new();

/// Changes the account; the processors see to what follows from it.
pub fn change<T>(body: impl FnOnce(&mut DeferredWork) -> T) -> T {
    let result = body(&mut lock(&WORK));
    CHANGED.notify_all();
    result
}

/// Waits until that is so; false if it takes too long.
fn wait_until(deadline: Instant, so: impl Fn(&DeferredWork) -> bool) -> bool {
    let mut work = lock(&WORK);
    while !so(&work) {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
        work = wait(work, Some(left));
    }
    true
}

fn wait(work: MutexGuard<'static, DeferredWork>, most: Option<Duration>) -> MutexGuard<'static, DeferredWork> {
    match most {
        None => CHANGED.wait(work).unwrap_or_else(PoisonError::into_inner),
        Some(most) => CHANGED.wait_timeout(work, most).unwrap_or_else(PoisonError::into_inner).0,
    }
}

/// Starts the thread of each processor.
pub fn start() -> impl Iterator<Item = thread::JoinHandle<()>> {
    processor::possible().iter().map(|core| {
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

/// Waits until there is something to do on a processor; false when its thread is to end.
fn wait_for_work(processor: u32) -> bool {
    let mut work = lock(&WORK);
    while !work.stop {
        let next = if time_mode::is_live() { work.timers.next(processor, &work.dpcs) } else { None };
        let left = next.map(|due| due.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) || work.dpcs.has_waiting(processor) || work.ticks.contains_key(&processor) {
            return true;
        }
        work = wait(work, left);
    }
    false
}

/// Lets timers expire, and runs what is queued.
fn run_due(core: &Core, thread: u32) {
    change(|work| work.expire(core.number));
    loop {
        core.ipi.wait_until_free(thread);
        core.high_level.wait_until_free(thread);
        let call = lock(&WORK).begin(core.number);
        let Some(call) = call else { break };
        // SAFETY: the driver initialized the DPC with this routine and this context, and queued it.
        irql::run_at(DISPATCH_LEVEL, || unsafe { run(call) });
        change(|work| work.dpcs.end(core.number));
    }
}

/// # Safety
/// The call is one that the driver asked for.
unsafe fn run(Call { dpc, routine, context, arguments: [first, second] }: Call) {
    let pointer = ptr::with_exposed_provenance_mut;
    let routine: *const () = ptr::with_exposed_provenance(routine);
    // SAFETY: what KeInitializeDpc was given is a function of this type.
    let routine = unsafe { std::mem::transmute::<*const (), Routine>(routine) };
    // SAFETY: the caller promises it.
    unsafe { routine(pointer(dpc), pointer(context), pointer(first), pointer(second)) };
}

impl DeferredWork {
    /// Lets expire what is due on a processor: by the clock, or by the script.
    fn expire(&mut self, processor: u32) {
        let now = if let Some(left) = self.ticks.get_mut(&processor) {
            *left -= 1;
            if *left == 0 {
                self.ticks.remove(&processor);
            }
            None
        } else if time_mode::is_live() {
            Some(Instant::now())
        } else {
            return;
        };
        for (timer, dpc) in self.timers.expire(processor, now, &self.dpcs) {
            // SAFETY: a timer that is set; freed memory is no longer in the account, which this thread holds.
            let object: &mut Ktimer = unsafe { dispatcher_objects::object_at(timer) };
            object.expired();
            if let Some(dpc) = dpc {
                // One that is still queued from the last time is not queued again, as in Windows.
                self.insert(dpc, processor, QueuedBy::Timer);
            }
        }
    }

    /// Queues a DPC, on its processor or on the one told; None if there is no such DPC.
    pub fn insert(&mut self, dpc: usize, here: u32, queued_by: QueuedBy) -> Option<bool> {
        let inserted = self.dpcs.insert(dpc, here, queued_by).ok()?;
        if inserted {
            // SAFETY: a DPC of the account, which this thread holds.
            let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(dpc) };
            object.queued(if let QueuedBy::Driver(arguments) = queued_by { arguments } else { [0; 2] });
        }
        Some(inserted)
    }

    fn begin(&mut self, processor: u32) -> Option<Call> {
        let call = self.dpcs.begin(processor)?;
        // SAFETY: a DPC of the account, which this thread holds.
        let object: &mut Kdpc = unsafe { dispatcher_objects::object_at(call.dpc) };
        if !object.calls(call.routine, call.context) {
            violation::other(format!("the DPC {:#x} was written over while it was queued", call.dpc));
        }
        object.taken();
        Some(call)
    }

    /// Forgets timers and DPCs that are in memory which goes; tells what was set or queued.
    fn forget(&mut self, addresses: &Range<usize>) -> impl Iterator<Item = &'static str> + use<> {
        let timer = self.timers.forget(addresses, &self.dpcs).then_some("a timer that is set");
        let dpc = self.dpcs.forget(addresses).then_some("a DPC that is queued");
        timer.into_iter().chain(dpc)
    }
}

/// Waits until everything that was queued before has come to its end.
pub fn flush() {
    let mut work = lock(&WORK);
    let mark = work.dpcs.mark();
    while !work.dpcs.done(mark) {
        work = wait(work, None);
    }
}

/// Memory is about to be freed; timers that are set, and DPCs that are queued, are noted and forgotten.
pub fn memory_freed(function: &str, addresses: &Range<usize>) {
    for what in change(|work| work.forget(addresses)) {
        violation::other(format!("{function} of {:#x}, which {what} needs", addresses.start));
    }
}

/// A driver is gone, and with it its routines: the same.
pub fn image_unloaded(addresses: &Range<usize>) {
    for what in change(|work| work.forget(addresses)) {
        violation::other(format!("a driver was unloaded that {what} needs"));
    }
    if lock(&WORK).dpcs.runs_in(addresses) {
        violation::other("a driver was unloaded while a DPC of it ran");
        // Its code goes when this returns: the lab goes on if the routine ends.
        wait_until(Instant::now() + PATIENCE, |work| !work.dpcs.runs_in(addresses));
    }
}

/// Time goes on in another way: by the clock from now on, or no longer; then nothing runs that it had begun.
pub fn time_changed() {
    let mark = change(|work| {
        work.timers.restart(Instant::now());
        work.dpcs.mark()
    });
    wait_until(Instant::now() + PATIENCE, |work| work.dpcs.done(mark));
}

/// Lets the timers of a processor expire so often, each time to the end of what follows; false if that takes too long.
pub fn tick(processor: u32, times: u64) -> bool {
    let deadline = Instant::now() + PATIENCE;
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
    let work = lock(&WORK);
    let ran = work.dpcs.timer_calls().into_iter().take(processor::active().len()).collect();
    Ticks { ran, set: u64::try_from(work.timers.count_set()).unwrap_or(u64::MAX) }
}

/// Begins the account of what ran anew.
pub fn reset_timer_calls() {
    lock(&WORK).dpcs.reset_timer_calls();
}
