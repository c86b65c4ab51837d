//! Work in the System process on behalf of any caller.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::ntddk::{
    IoAllocateWorkItem, IoFreeWorkItem, IoQueueWorkItem, KeInitializeEvent, KeSetEvent, KeWaitForSingleObject,
};
use wdk_sys::{
    _DEVICE_OBJECT, _EVENT_TYPE, _KWAIT_REASON, _WORK_QUEUE_TYPE, DEVICE_OBJECT, KEVENT, PDEVICE_OBJECT, PIO_WORKITEM,
    PVOID,
};

/// KernelMode (wdm.h).
const KERNEL_MODE: i8 = 0;

/// The device to which work items belong. It exists before the first request and after the last.
static DEVICE: AtomicPtr<DEVICE_OBJECT> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the device after its creation; null clears it before the deletion.
pub fn initialize(device: PDEVICE_OBJECT) {
    DEVICE.store(device, Ordering::Release);
}

/// Returns the device, or null.
///
/// # IRQL
/// Any.
pub fn device() -> PDEVICE_OBJECT {
    DEVICE.load(Ordering::Acquire)
}

/// A work item that runs code on a worker thread of the System process.
pub struct Worker(PIO_WORKITEM);

// SAFETY: a work item may be queued and freed by any thread
unsafe impl Send for Worker {}

/// The work, and the event that signals its completion.
struct Job<'a> {
    work: UnsafeCell<&'a mut (dyn FnMut() + Send)>,
    done: UnsafeCell<KEVENT>,
}

impl Worker {
    /// Allocates the work item, or returns `None` if memory is low. The device must exist.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn new() -> Option<Self> {
        // SAFETY: the driver's own device, which exists as long as requests arrive
        let item = unsafe { IoAllocateWorkItem(device()) };
        if item.is_null() { None } else { Some(Self(item)) }
    }

    /// Runs `work` in the System process at PASSIVE_LEVEL and waits until it is done.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn run(&self, work: &mut (dyn FnMut() + Send)) {
        let job = Job { work: UnsafeCell::new(work), done: UnsafeCell::new(KEVENT::default()) };
        // SAFETY: the event is not shared yet; the stack of a thread that waits in kernel mode is not paged out
        unsafe { KeInitializeEvent(job.done.get(), _EVENT_TYPE::NotificationEvent, 0) };
        let context = (&raw const job).cast_mut().cast();
        // SAFETY: the item is not queued, because `run` waits for its completion; `routine` expects a `Job`
        unsafe { IoQueueWorkItem(self.0, Some(routine), _WORK_QUEUE_TYPE::DelayedWorkQueue, context) };
        // SAFETY: initialized above
        let _ = unsafe {
            let event = job.done.get().cast();
            KeWaitForSingleObject(event, _KWAIT_REASON::Executive, KERNEL_MODE, 0, core::ptr::null_mut())
        };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, and not queued
        unsafe { IoFreeWorkItem(self.0) };
    }
}

/// Routine of the work item, on a thread of the System process.
///
/// # IRQL
/// PASSIVE_LEVEL.
unsafe extern "C" fn routine(_device: *mut _DEVICE_OBJECT, context: PVOID) {
    // SAFETY: `run` passed a `Job`, and waits until it is done
    let job = unsafe { &*context.cast::<Job<'_>>() };
    // SAFETY: `run` does not access it while it waits
    let work = unsafe { &mut *job.work.get() };
    work();
    // SAFETY: initialized by `run`; after this call the job may not exist any more
    unsafe { KeSetEvent(job.done.get(), 0, 0) };
}
