//! Periodic timers, one per processor, that call a function.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use interrupt_path::dpc;
use pmu::{ProcessorIndex, try_vec};
use protocol::ProcessorSet;
use wdk_sys::ntddk::{
    ExSetTimerResolution, KeCancelTimer, KeGetProcessorNumberFromIndex, KeInitializeDpc, KeInitializeTimerEx,
    KeSetImportanceDpc, KeSetTargetProcessorDpcEx, KeSetTimerEx,
};
use wdk_sys::{_KDPC, _KDPC_IMPORTANCE, _TIMER_TYPE, KDPC, KTIMER, LARGE_INTEGER, PROCESSOR_NUMBER, PVOID};

use super::irp::check;
use super::processors;

/// Units of 100 ns in a millisecond, the unit of kernel timer periods.
const MILLISECOND: u32 = 10_000;

/// Returns the smallest interval of a kernel timer that is at least `wanted`, in units of 100 ns.
pub fn interval(wanted: u32) -> u32 {
    wanted.div_ceil(MILLISECOND).max(1).saturating_mul(MILLISECOND)
}

/// The timer of one processor, with the memory that its function needs.
struct Timer<S> {
    object: UnsafeCell<MaybeUninit<KTIMER>>,
    dpc: UnsafeCell<MaybeUninit<KDPC>>,
    memory: S,
    work: fn(&S),
    /// Whether the timer is bound to a processor.
    aimed: AtomicBool,
    /// Whether it is set.
    running: AtomicBool,
}

impl<S> Timer<S> {
    fn new(work: fn(&S)) -> Self
    where
        S: Default,
    {
        let (object, dpc) = (UnsafeCell::new(MaybeUninit::zeroed()), UnsafeCell::new(MaybeUninit::zeroed()));
        Self { object, dpc, memory: S::default(), work, aimed: AtomicBool::new(false), running: AtomicBool::new(false) }
    }

    fn object(&self) -> *mut KTIMER {
        self.object.get().cast()
    }

    fn dpc(&self) -> *mut KDPC {
        self.dpc.get().cast()
    }

    fn is_aimed(&self) -> bool {
        self.aimed.load(Ordering::Acquire)
    }

    /// Binds the timer to a processor, once. It must not move afterwards.
    fn aim(&self, processor: ProcessorIndex) -> bool {
        if self.is_aimed() {
            return true;
        }
        let mut number = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: the kernel may write to `number`
        let found = unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut number) };
        // SAFETY: the timer's own memory, in non-paged pool, and not in use yet
        unsafe { KeInitializeTimerEx(self.object(), _TIMER_TYPE::NotificationTimer) };
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the DPC's own memory, likewise; `expired` expects this context, which lives as long as the DPC
        unsafe { KeInitializeDpc(self.dpc(), Some(expired::<S>), context) };
        // If another processor expires the timer, its DPC must not wait for the next interrupt of this one.
        // SAFETY: initialized above, and not queued
        unsafe { KeSetImportanceDpc(self.dpc(), _KDPC_IMPORTANCE::MediumHighImportance) };
        // SAFETY: initialized above, and not queued
        let aimed = unsafe { KeSetTargetProcessorDpcEx(self.dpc(), &raw mut number) };
        let is_aimed = check(found).and(check(aimed)).is_ok();
        self.aimed.store(is_aimed, Ordering::Release);
        is_aimed
    }

    fn start(&self, interval: u32) {
        let due = LARGE_INTEGER { QuadPart: -i64::from(interval) };
        let period = i32::try_from(interval / MILLISECOND).unwrap_or(i32::MAX);
        // SAFETY: `aim` initialized both, and they do not move while the timer runs
        unsafe { KeSetTimerEx(self.object(), due, period, self.dpc()) };
        self.running.store(true, Ordering::Relaxed);
    }

    fn stop(&self) {
        // SAFETY: `aim` initialized it
        unsafe { KeCancelTimer(self.object()) };
        self.running.store(false, Ordering::Relaxed);
    }
}

/// DPC routine, on the timer's processor.
///
/// # IRQL
/// DISPATCH_LEVEL.
unsafe extern "C" fn expired<S>(_dpc: *mut _KDPC, context: *mut c_void, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `aim` passed the address of the timer, and `drop` keeps its memory until no DPC is queued
    let timer = unsafe { &*context.cast::<Timer<S>>() };
    (timer.work)(&timer.memory);
}

/// The timers of all processors.
pub struct Timers<S> {
    /// One entry for each possible processor.
    timers: Vec<Timer<S>>,
    /// The interval of the timers that run, or 0 if none has run yet.
    interval: AtomicU32,
}

// SAFETY: kernel timers and DPCs may be used from any thread
unsafe impl<S> Send for Timers<S> {}

impl<S: Default> Timers<S> {
    /// Creates timers for all possible processors; each calls `work` at DISPATCH_LEVEL when it expires, with memory
    /// that it shares with no other timer. None runs yet. Returns `None` if memory is low or an active processor cannot
    /// have a timer.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn new(work: fn(&S)) -> Option<Self> {
        let most = processors::maximum() as usize;
        let timers = Self { timers: try_vec(most, |_| Timer::new(work))?, interval: AtomicU32::new(0) };
        ProcessorIndex::first(processors::active()).all(|processor| timers.adopt(processor)).then_some(timers)
    }

    /// Prepares the timer of a processor. Returns false if that is impossible.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn adopt(&self, processor: ProcessorIndex) -> bool {
        self.timers.get(processor.as_usize()).is_some_and(|timer| timer.aim(processor))
    }

    /// Lets the timers of exactly these processors run, with this interval, which must come from [`interval`]. Those
    /// that run with it already go on undisturbed. A DPC of a timer that is stopped may still run once. Returns false
    /// if a timer is unavailable; then nothing has changed. One thread calls this at a time.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn run(&self, processors: &ProcessorSet, interval: u32) -> bool {
        if !processors.iter().all(|processor| self.adopt(ProcessorIndex::new(processor))) {
            return false;
        }
        let is_new = self.interval.swap(interval, Ordering::Relaxed) != interval;
        for (processor, timer) in (0..).zip(&self.timers) {
            match (processors.contains(processor), timer.running.load(Ordering::Relaxed)) {
                (true, is_running) if is_new || !is_running => timer.start(interval),
                (false, true) => timer.stop(),
                _ => {}
            }
        }
        true
    }
}

impl<S> Drop for Timers<S> {
    /// Stops the timers and waits for their DPCs.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    fn drop(&mut self) {
        for timer in self.timers.iter().filter(|timer| timer.is_aimed()) {
            timer.stop();
        }
        dpc::flush();
    }
}

/// Guard: requests the finest resolution of the system clock while the value lives. At the default of 15.6 ms, timers
/// with shorter periods would not expire more often.
pub struct FineClock(());

impl FineClock {
    /// Requests the finest resolution.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn ask() -> Self {
        // SAFETY: the only requirement is the IRQL
        unsafe { ExSetTimerResolution(MILLISECOND, 1) };
        Self(())
    }
}

impl Drop for FineClock {
    fn drop(&mut self) {
        // SAFETY: undoes the request of `ask`
        unsafe { ExSetTimerResolution(0, 0) };
    }
}
