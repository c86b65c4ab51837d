//! A system thread that does something whenever it is woken, and now and then.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use wdk_sys::ntddk::{
    KeInitializeEvent, KeSetEvent, KeWaitForSingleObject, ObReferenceObjectByHandle, ObfDereferenceObject,
    PsCreateSystemThread, PsTerminateSystemThread, ZwClose, ZwWaitForSingleObject,
};
use wdk_sys::{
    _EVENT_TYPE, _KWAIT_REASON, HANDLE, KEVENT, LARGE_INTEGER, NTSTATUS, PVOID, STATUS_SUCCESS, SYNCHRONIZE,
    THREAD_ALL_ACCESS,
};

use super::irp::check;

const KERNEL_MODE: i8 = 0;

/// The thread and what stops it.
pub struct SystemThread {
    work: fn() -> u64,
    woken: UnsafeCell<MaybeUninit<KEVENT>>,
    stopping: AtomicBool,
    /// The thread object, while it runs.
    thread: AtomicPtr<core::ffi::c_void>,
}

// SAFETY: the event is a kernel object that any thread may wait for and set; `start` and `stop` come one after the other
unsafe impl Sync for SystemThread {}

impl SystemThread {
    /// To call `work` at PASSIVE_LEVEL, whenever it is woken and after as many units of 100 ns as `work` answered.
    pub const fn new(work: fn() -> u64) -> Self {
        let thread = AtomicPtr::new(core::ptr::null_mut());
        let woken = UnsafeCell::new(MaybeUninit::zeroed());
        Self { work, woken, stopping: AtomicBool::new(false), thread }
    }

    fn event(&self) -> *mut KEVENT {
        self.woken.get().cast()
    }

    /// Starts the thread. Called once, by DriverEntry, at PASSIVE_LEVEL.
    ///
    /// # Errors
    /// The NTSTATUS of what failed; then no thread runs.
    pub fn start(&'static self) -> Result<(), NTSTATUS> {
        // SAFETY: a static lives in memory that is not paged, and nobody waits for the event yet
        unsafe { KeInitializeEvent(self.event(), _EVENT_TYPE::SynchronizationEvent, 0) };
        let mut handle: HANDLE = core::ptr::null_mut();
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the handle may be written; `run` takes a thread as its context, and a static lives long enough
        let created = unsafe {
            PsCreateSystemThread(
                &raw mut handle,
                THREAD_ALL_ACCESS,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                Some(run),
                context,
            )
        };
        check(created)?;
        let mut thread: PVOID = core::ptr::null_mut();
        // SAFETY: the handle was just made; a null type is allowed to callers in kernel mode
        let referenced = unsafe {
            ObReferenceObjectByHandle(
                handle,
                SYNCHRONIZE,
                core::ptr::null_mut(),
                KERNEL_MODE,
                &raw mut thread,
                core::ptr::null_mut(),
            )
        };
        let outcome = check(referenced);
        if outcome.is_ok() {
            self.thread.store(thread, Ordering::Release);
        } else {
            // The load fails now, and the image goes away: the thread must have left it before.
            self.end();
            // SAFETY: the handle was made above with the right to wait; no time means until the thread has ended
            let _ = unsafe { ZwWaitForSingleObject(handle, 0, core::ptr::null_mut()) };
        }
        // SAFETY: made above, closed once
        let _ = unsafe { ZwClose(handle) };
        outcome
    }

    /// Stops the thread and waits for its end. PASSIVE_LEVEL. Again does nothing.
    pub fn stop(&self) {
        let thread = self.thread.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if thread.is_null() {
            return;
        }
        self.end();
        // SAFETY: `start` referenced it; PASSIVE_LEVEL may wait without end
        let _ =
            unsafe { KeWaitForSingleObject(thread, _KWAIT_REASON::Executive, KERNEL_MODE, 0, core::ptr::null_mut()) };
        // SAFETY: the reference of `start`
        unsafe { ObfDereferenceObject(thread) };
    }

    /// Makes the thread do its work, as soon as it has done what it is at. DISPATCH_LEVEL at most, not before
    /// [`start`](Self::start).
    pub fn wake(&self) {
        // SAFETY: initialized by `start`
        unsafe { KeSetEvent(self.event(), 0, 0) };
    }

    fn end(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }
}

/// The thread, at PASSIVE_LEVEL.
unsafe extern "C" fn run(context: PVOID) {
    // SAFETY: `start` gave a static thread
    let thread = unsafe { &*context.cast::<SystemThread>() };
    while !thread.stopping.load(Ordering::Acquire) {
        let pause = (thread.work)();
        let mut pause = LARGE_INTEGER { QuadPart: -i64::try_from(pause).unwrap_or(i64::MAX) };
        // SAFETY: the event was initialized before the thread was made; `pause` is read only
        let _ = unsafe {
            let event = thread.event().cast();
            KeWaitForSingleObject(event, _KWAIT_REASON::Executive, KERNEL_MODE, 0, &raw mut pause)
        };
    }
    // SAFETY: a system thread ends itself so, and holds nothing
    let _ = unsafe { PsTerminateSystemThread(STATUS_SUCCESS) };
}
