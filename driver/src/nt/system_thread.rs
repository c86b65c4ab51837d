//! A system thread that works when it is woken and at regular intervals.

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

/// KernelMode (wdm.h).
pub const KERNEL_MODE: i8 = 0;

/// The thread, and the means to stop it.
pub struct SystemThread {
    work: fn() -> u64,
    woken: UnsafeCell<MaybeUninit<KEVENT>>,
    stopping: AtomicBool,
    /// The thread object while the thread runs, or null.
    thread: AtomicPtr<core::ffi::c_void>,
}

// SAFETY: any thread may wait for and set the event, a kernel object; `start` and `stop` never run concurrently
unsafe impl Sync for SystemThread {}

impl SystemThread {
    /// Creates a thread that calls `work` at PASSIVE_LEVEL whenever it is woken, and when as many units of 100 ns as
    /// `work` returned have passed.
    pub const fn new(work: fn() -> u64) -> Self {
        let thread = AtomicPtr::new(core::ptr::null_mut());
        let woken = UnsafeCell::new(MaybeUninit::zeroed());
        Self { work, woken, stopping: AtomicBool::new(false), thread }
    }

    fn event(&self) -> *mut KEVENT {
        self.woken.get().cast()
    }

    /// Starts the thread. Called once, by DriverEntry.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; no thread runs then.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn start(&'static self) -> Result<(), NTSTATUS> {
        // SAFETY: a static is in non-paged memory, and no thread waits for the event yet
        unsafe { KeInitializeEvent(self.event(), _EVENT_TYPE::SynchronizationEvent, 0) };
        let mut handle: HANDLE = core::ptr::null_mut();
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the kernel may write to the handle; `run` expects a `SystemThread`, and a static lives long enough
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
        // SAFETY: the handle was just created; kernel-mode callers may pass a null type
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
            // The load fails now and the image is unmapped, so the thread must have ended before.
            self.end();
            // SAFETY: the handle was created above with the right to wait; without a timeout the call waits until the
            // thread ends
            let _ = unsafe { ZwWaitForSingleObject(handle, 0, core::ptr::null_mut()) };
        }
        // SAFETY: created above, closed once
        let _ = unsafe { ZwClose(handle) };
        outcome
    }

    /// Stops the thread and waits until it ends. Repeated calls do nothing.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn stop(&self) {
        let thread = self.thread.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if thread.is_null() {
            return;
        }
        self.end();
        // SAFETY: `start` referenced it; an unlimited wait is allowed at PASSIVE_LEVEL
        let _ =
            unsafe { KeWaitForSingleObject(thread, _KWAIT_REASON::Executive, KERNEL_MODE, 0, core::ptr::null_mut()) };
        // SAFETY: `start` took this reference, and the swap above ensures that it is released once
        unsafe { ObfDereferenceObject(thread) };
    }

    /// Wakes the thread; if it is working, it works again afterwards. Requires [`start`](Self::start).
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn wake(&self) {
        // SAFETY: initialized by `start`
        unsafe { KeSetEvent(self.event(), 0, 0) };
    }

    fn end(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
    }
}

/// Routine of the thread.
///
/// # IRQL
/// PASSIVE_LEVEL.
unsafe extern "C" fn run(context: PVOID) {
    // SAFETY: `start` passed a static
    let thread = unsafe { &*context.cast::<SystemThread>() };
    while !thread.stopping.load(Ordering::Acquire) {
        let pause = (thread.work)();
        let mut pause = LARGE_INTEGER { QuadPart: -i64::try_from(pause).unwrap_or(i64::MAX) };
        // SAFETY: the event was initialized before the thread was created; `pause` is only read
        let _ = unsafe {
            let event = thread.event().cast();
            KeWaitForSingleObject(event, _KWAIT_REASON::Executive, KERNEL_MODE, 0, &raw mut pause)
        };
    }
    // SAFETY: a system thread may end itself, and this one holds no resources
    let _ = unsafe { PsTerminateSystemThread(STATUS_SUCCESS) };
}
