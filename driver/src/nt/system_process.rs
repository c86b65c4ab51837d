//! Work in the System process, whoever asks for it.

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

/// The device to which work items belong. It is there before the first request and after the last.
static DEVICE: AtomicPtr<DEVICE_OBJECT> = AtomicPtr::new(core::ptr::null_mut());

/// Called when the driver has its device, and with null before it has it no more.
pub fn initialize(device: PDEVICE_OBJECT) {
    DEVICE.store(device, Ordering::Release);
}

/// The device, or null. Any IRQL.
pub fn device() -> PDEVICE_OBJECT {
    DEVICE.load(Ordering::Acquire)
}

/// A worker thread of the System process, to be had when it is needed.
pub struct Worker(PIO_WORKITEM);

// SAFETY: a work item may be queued and freed by any thread
unsafe impl Send for Worker {}

/// Work, and the event that tells its end.
struct Job<'a> {
    work: UnsafeCell<&'a mut (dyn FnMut() + Send)>,
    done: UnsafeCell<KEVENT>,
}

impl Worker {
    /// `None` where memory is short. DISPATCH_LEVEL at most, while there is a device.
    pub fn new() -> Option<Self> {
        // SAFETY: the driver's own device, which lives as long as requests come
        let item = unsafe { IoAllocateWorkItem(device()) };
        if item.is_null() { None } else { Some(Self(item)) }
    }

    /// Runs `work` in the System process at PASSIVE_LEVEL and waits for its end. APC_LEVEL at most.
    pub fn run(&self, work: &mut (dyn FnMut() + Send)) {
        let job = Job { work: UnsafeCell::new(work), done: UnsafeCell::new(KEVENT::default()) };
        // SAFETY: nobody knows of the event yet; the stack of a thread that waits in kernel mode is not paged out
        unsafe { KeInitializeEvent(job.done.get(), _EVENT_TYPE::NotificationEvent, 0) };
        let context = (&raw const job).cast_mut().cast();
        // SAFETY: the item is not queued, since `run` waits for its end; `routine` takes a job
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

/// A thread of the System process, at PASSIVE_LEVEL.
unsafe extern "C" fn routine(_device: *mut _DEVICE_OBJECT, context: PVOID) {
    // SAFETY: `run` gave a job, and waits until it is done
    let job = unsafe { &*context.cast::<Job<'_>>() };
    // SAFETY: `run` does not touch it while it waits
    let work = unsafe { &mut *job.work.get() };
    work();
    // SAFETY: initialized by `run`; after this call the job may be gone
    unsafe { KeSetEvent(job.done.get(), 0, 0) };
}
