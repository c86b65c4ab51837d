//! A deferred procedure call.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use wdk_sys::ntddk::{KeFlushQueuedDpcs, KeInitializeDpc, KeInsertQueueDpc};
use wdk_sys::{_KDPC, KDPC, PVOID};

/// A DPC that calls a function at DISPATCH_LEVEL on the processor that queued it.
pub struct Dpc {
    work: fn(),
    object: UnsafeCell<MaybeUninit<KDPC>>,
}

// SAFETY: a DPC object may be queued on any processor at any time
unsafe impl Sync for Dpc {}

impl Dpc {
    /// Creates the DPC. It must not be queued before [`initialize`](Self::initialize).
    pub const fn new(work: fn()) -> Self {
        Self { work, object: UnsafeCell::new(MaybeUninit::zeroed()) }
    }

    /// Initializes the kernel object. Called once, by DriverEntry.
    pub fn initialize(&'static self) {
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: a static is in non-paged memory, and the DPC is not queued yet; `run` expects a `Dpc`
        unsafe { KeInitializeDpc(self.object.get().cast(), Some(run), context) };
    }

    /// Queues the DPC, unless it is queued already.
    ///
    /// # IRQL
    /// Any.
    pub fn queue(&self) {
        // SAFETY: initialized. False means that it is queued already and will handle this call too.
        let _ = unsafe { KeInsertQueueDpc(self.object.get().cast(), core::ptr::null_mut(), core::ptr::null_mut()) };
    }
}

/// Routine of the DPC.
///
/// # IRQL
/// DISPATCH_LEVEL.
unsafe extern "C" fn run(_object: *mut _KDPC, context: PVOID, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `initialize` passed a static
    let dpc = unsafe { &*context.cast::<Dpc>() };
    (dpc.work)();
}

/// Waits until every queued DPC has run.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn flush() {
    // SAFETY: this function requires PASSIVE_LEVEL
    unsafe { KeFlushQueuedDpcs() };
}
