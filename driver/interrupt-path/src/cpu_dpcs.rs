//! A deferred procedure call for each processor, which that processor queues itself.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use pmu::{ProcessorIndex, try_vec};
use wdk_sys::ntddk::{KeInitializeDpc, KeInsertQueueDpc, KeSetImportanceDpc};
use wdk_sys::{_KDPC, _KDPC_IMPORTANCE, KDPC, PVOID};

use crate::dpc;

/// A DPC of the kernel, in non-paged memory.
struct Object {
    dpc: UnsafeCell<MaybeUninit<KDPC>>,
    work: fn(),
}

// SAFETY: the kernel's functions for DPCs may be called from any processor
unsafe impl Sync for Object {}

/// The DPCs of the processors, or null; and their number.
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Guard: the DPCs of the processors, which [`queue`] queues. There is one value at a time.
pub struct CpuDpcs(Vec<Object>);

// SAFETY: kernel objects belong to no thread
unsafe impl Send for CpuDpcs {}

impl CpuDpcs {
    /// Allocates a DPC for each of `most` possible processors, which calls `work` at DISPATCH_LEVEL on the processor
    /// that queued it. Returns `None` if memory is low.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn new(most: u32, work: fn()) -> Option<Self> {
        let mut objects = try_vec(most as usize, |_| Object { dpc: UnsafeCell::new(MaybeUninit::zeroed()), work })?;
        for object in &*objects {
            let context = ptr::from_ref(object).cast_mut().cast();
            // SAFETY: non-paged memory, which does not move again, and not queued; `run` expects an `Object`
            unsafe { KeInitializeDpc(object.dpc.get().cast(), Some(run), context) };
            // Before the other DPCs of the processor, while the interrupted code is next on its stack.
            // SAFETY: initialized above, and not queued
            unsafe { KeSetImportanceDpc(object.dpc.get().cast(), _KDPC_IMPORTANCE::HighImportance) };
        }
        COUNT.store(objects.len(), Ordering::Relaxed);
        OBJECTS.store(objects.as_mut_ptr(), Ordering::Release);
        Some(Self(objects))
    }
}

impl Drop for CpuDpcs {
    /// Waits until every queued DPC has run. No processor queues one any more.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    fn drop(&mut self) {
        OBJECTS.store(ptr::null_mut(), Ordering::Release);
        dpc::flush();
        self.0 = Vec::new();
    }
}

/// Queues the DPC of the current processor, unless it is queued already.
///
/// # IRQL
/// DISPATCH_LEVEL or above, on `processor`.
pub fn queue(processor: ProcessorIndex) {
    let first = OBJECTS.load(Ordering::Acquire);
    if first.is_null() || processor.as_usize() >= COUNT.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: below the number of objects behind the first
    let object = unsafe { first.add(processor.as_usize()) };
    // SAFETY: `drop` frees them only after no processor queues one any more
    let object = unsafe { &*object };
    // SAFETY: initialized by `new`. False means that it is queued already and will handle this call too.
    let _ = unsafe { KeInsertQueueDpc(object.dpc.get().cast(), ptr::null_mut(), ptr::null_mut()) };
}

/// Routine of the DPCs.
///
/// # IRQL
/// DISPATCH_LEVEL.
unsafe extern "C" fn run(_object: *mut _KDPC, context: PVOID, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `new` passed an object, and `drop` keeps it until no DPC is queued
    let object = unsafe { &*context.cast::<Object>() };
    (object.work)();
}
