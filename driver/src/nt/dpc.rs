//! A deferred procedure call.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use wdk_sys::ntddk::{KeFlushQueuedDpcs, KeInitializeDpc, KeInsertQueueDpc};
use wdk_sys::{_KDPC, KDPC, PVOID};

/// Calls a function at DISPATCH_LEVEL on the processor on which it was queued.
pub struct Dpc {
    work: fn(),
    object: UnsafeCell<MaybeUninit<KDPC>>,
}

// SAFETY: a DPC object may be queued on any processor at any time
unsafe impl Sync for Dpc {}

impl Dpc {
    /// Not to be queued before [`initialize`](Self::initialize).
    pub const fn new(work: fn()) -> Self {
        Self { work, object: UnsafeCell::new(MaybeUninit::zeroed()) }
    }

    /// Called once, by DriverEntry.
    pub fn initialize(&'static self) {
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: a static lives in memory that is not paged, and nobody has queued it yet; `run` takes a `Dpc`
        unsafe { KeInitializeDpc(self.object.get().cast(), Some(run), context) };
    }

    /// Queues it, unless it is queued already. Any IRQL.
    pub fn queue(&self) {
        // SAFETY: initialized. False says that it is queued: it will see what this call is about.
        let _ = unsafe { KeInsertQueueDpc(self.object.get().cast(), core::ptr::null_mut(), core::ptr::null_mut()) };
    }
}

/// Runs at DISPATCH_LEVEL.
unsafe extern "C" fn run(_object: *mut _KDPC, context: PVOID, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `initialize` gave a static
    let dpc = unsafe { &*context.cast::<Dpc>() };
    (dpc.work)();
}

/// Waits until every DPC that is queued has run. PASSIVE_LEVEL.
pub fn flush() {
    // SAFETY: PASSIVE_LEVEL by this function's contract
    unsafe { KeFlushQueuedDpcs() };
}
