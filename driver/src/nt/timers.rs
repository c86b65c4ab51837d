//! Periodic timers, one for each processor, that count their expiries and do something there.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use pmu::ProcessorIndex;
use wdk_sys::ntddk::{
    ExSetTimerResolution, KeCancelTimer, KeGetProcessorNumberFromIndex, KeInitializeDpc, KeInitializeTimerEx,
    KeSetTargetProcessorDpcEx, KeSetTimerEx,
};
use wdk_sys::{_KDPC, _TIMER_TYPE, KDPC, KTIMER, LARGE_INTEGER, PROCESSOR_NUMBER, PVOID};

use super::dpc;
use super::irp::check;
use super::processors;

/// Units of 100 ns in the millisecond by which the kernel counts periods.
const MILLISECOND: u32 = 10_000;

/// The smallest interval that a kernel timer has and that is at least `wanted`, in units of 100 ns.
pub fn interval(wanted: u32) -> u32 {
    wanted.div_ceil(MILLISECOND).max(1).saturating_mul(MILLISECOND)
}

/// One processor's.
struct Timer {
    object: UnsafeCell<MaybeUninit<KTIMER>>,
    dpc: UnsafeCell<MaybeUninit<KDPC>>,
    ticks: AtomicU64,
    work: fn(),
    /// It has a processor.
    aimed: AtomicBool,
}

impl Timer {
    const fn new(work: fn()) -> Self {
        let (object, dpc) = (UnsafeCell::new(MaybeUninit::zeroed()), UnsafeCell::new(MaybeUninit::zeroed()));
        Self { object, dpc, ticks: AtomicU64::new(0), work, aimed: AtomicBool::new(false) }
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

    /// Makes it the timer of a processor, once. It must not move from here on.
    fn aim(&self, processor: ProcessorIndex) -> bool {
        if self.is_aimed() {
            return true;
        }
        let mut number = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: `number` may be written
        let found = unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut number) };
        // SAFETY: the timer's own memory, in non-paged pool, and nobody uses it yet
        unsafe { KeInitializeTimerEx(self.object(), _TIMER_TYPE::NotificationTimer) };
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the DPC's own memory likewise; `expired` takes this context, which lives as long as the DPC
        unsafe { KeInitializeDpc(self.dpc(), Some(expired), context) };
        // SAFETY: initialized above, and not queued
        let aimed = unsafe { KeSetTargetProcessorDpcEx(self.dpc(), &raw mut number) };
        let is_aimed = check(found).and(check(aimed)).is_ok();
        self.aimed.store(is_aimed, Ordering::Release);
        is_aimed
    }

    fn start(&self, interval: u32) {
        let due = LARGE_INTEGER { QuadPart: -i64::from(interval) };
        let period = i32::try_from(interval / MILLISECOND).unwrap_or(i32::MAX);
        // SAFETY: both were initialized by `aim`, and stay where they are while the timer runs
        unsafe { KeSetTimerEx(self.object(), due, period, self.dpc()) };
    }

    fn stop(&self) {
        // SAFETY: initialized by `aim`
        unsafe { KeCancelTimer(self.object()) };
    }
}

/// Runs on the timer's processor at DISPATCH_LEVEL.
unsafe extern "C" fn expired(_dpc: *mut _KDPC, context: *mut c_void, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `aim` gave the timer's address, whose memory `drop` keeps until no DPC is queued
    let timer = unsafe { &*context.cast::<Timer>() };
    timer.ticks.fetch_add(1, Ordering::Relaxed);
    (timer.work)();
}

/// The timers of all processors.
pub struct Timers {
    /// One for each processor that there can be.
    timers: Vec<Timer>,
    /// While they run, the interval; else 0.
    interval: AtomicU32,
}

// SAFETY: kernel timers and DPCs may be used from any thread
unsafe impl Send for Timers {}

impl Timers {
    /// For the processors that are active; each calls `work` at DISPATCH_LEVEL when its timer expires. `None` when
    /// memory is short. PASSIVE_LEVEL to DISPATCH_LEVEL.
    pub fn new(work: fn()) -> Option<Self> {
        let most = processors::maximum() as usize;
        let mut timers = Vec::new();
        timers.try_reserve_exact(most).ok()?;
        timers.resize_with(most, || Timer::new(work));
        let timers = Self { timers, interval: AtomicU32::new(0) };
        ProcessorIndex::first(processors::active()).all(|processor| timers.adopt(processor)).then_some(timers)
    }

    /// For one processor more; if the others run, it runs. False where that can not be. DISPATCH_LEVEL at most.
    pub fn adopt(&self, processor: ProcessorIndex) -> bool {
        let Some(timer) = self.timers.get(processor.as_usize()).filter(|timer| timer.aim(processor)) else {
            return false;
        };
        let interval = self.interval.load(Ordering::Relaxed);
        if interval != 0 {
            timer.start(interval);
        }
        true
    }

    fn aimed(&self) -> impl Iterator<Item = &Timer> {
        self.timers.iter().filter(|timer| timer.is_aimed())
    }

    /// Starts all, or gives them another interval, which [`interval`] has answered. APC_LEVEL at most.
    pub fn start(&self, interval: u32) {
        self.interval.store(interval, Ordering::Relaxed);
        for timer in self.aimed() {
            timer.start(interval);
        }
    }

    /// Stops all; what expired just before may still be counted. APC_LEVEL at most.
    pub fn stop(&self) {
        self.interval.store(0, Ordering::Relaxed);
        for timer in self.aimed() {
            timer.stop();
        }
    }

    /// How often a processor's timer has expired. Any IRQL.
    pub fn ticks(&self, processor: ProcessorIndex) -> u64 {
        self.timers.get(processor.as_usize()).map_or(0, |timer| timer.ticks.load(Ordering::Relaxed))
    }
}

impl Drop for Timers {
    /// PASSIVE_LEVEL.
    fn drop(&mut self) {
        self.stop();
        dpc::flush();
    }
}

/// Asks the system's clock for its best resolution while the value lives: at its usual 15.6 ms a shorter period would
/// expire no more often.
pub struct FineClock(());

impl FineClock {
    /// APC_LEVEL at most.
    pub fn ask() -> Self {
        // SAFETY: no requirement but the level
        unsafe { ExSetTimerResolution(MILLISECOND, 1) };
        Self(())
    }
}

impl Drop for FineClock {
    fn drop(&mut self) {
        // SAFETY: gives back what `ask` asked for
        unsafe { ExSetTimerResolution(0, 0) };
    }
}
