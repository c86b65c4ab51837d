//! Calls on chosen processors, by DPCs that are bound to them. Other processors are not interrupted.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use interrupt_path::dpc;
use pmu::{ProcessorIndex, try_vec};
use protocol::ProcessorSet;
use wdk_sys::ntddk::{
    KeGetProcessorNumberFromIndex, KeInitializeDpc, KeInitializeEvent, KeInsertQueueDpc, KeSetEvent,
    KeSetImportanceDpc, KeSetTargetProcessorDpcEx, KeWaitForSingleObject,
};
use wdk_sys::{_EVENT_TYPE, _KDPC, _KDPC_IMPORTANCE, _KWAIT_REASON, KDPC, KEVENT, PROCESSOR_NUMBER, PVOID};

use super::irp::check;
use super::processors::{self, Work};
use super::system_thread::KERNEL_MODE;

/// A DPC of the kernel, in non-paged memory.
struct DpcObject(UnsafeCell<MaybeUninit<KDPC>>);

impl DpcObject {
    fn get(&self) -> *mut KDPC {
        self.0.get().cast()
    }
}

/// The end of a call, which all its processors share. A static: the processor that sets the event may still be in
/// KeSetEvent when the waiting thread continues.
struct End {
    /// The number of processors that have not finished.
    remaining: AtomicU32,
    /// Set when it is 0. A synchronization event, which the wait resets.
    event: UnsafeCell<MaybeUninit<KEVENT>>,
}

// SAFETY: any thread may wait for and set the event, a kernel object
unsafe impl Sync for End {}

static END: End = End { remaining: AtomicU32::new(0), event: UnsafeCell::new(MaybeUninit::zeroed()) };

impl End {
    fn event(&self) -> *mut KEVENT {
        self.event.get().cast()
    }
}

/// A DPC for each possible processor. There is one value, which one thread uses at a time: it is not `Sync`.
pub struct TargetedCalls {
    dpcs: Vec<DpcObject>,
    one_thread: PhantomData<*const ()>,
}

// SAFETY: kernel objects belong to no thread
unsafe impl Send for TargetedCalls {}

impl TargetedCalls {
    /// Allocates the DPCs. Called once, by DriverEntry. Returns `None` if memory is low.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn new() -> Option<Self> {
        // SAFETY: a static is in non-paged memory, and no thread waits for the event yet
        unsafe { KeInitializeEvent(END.event(), _EVENT_TYPE::SynchronizationEvent, 0) };
        let most = processors::maximum() as usize;
        let dpcs = try_vec(most, |_| DpcObject(UnsafeCell::new(MaybeUninit::zeroed())))?;
        Some(Self { dpcs, one_thread: PhantomData })
    }

    /// Runs `work` on these processors, at HIGH_LEVEL, and waits until all are done. Each runs it as soon as it is
    /// below DISPATCH_LEVEL. Returns false without a call if a processor cannot be addressed.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn run(&self, processors: &ProcessorSet, work: Work<'_>) -> bool {
        let each = || processors.iter().map(ProcessorIndex::new);
        let mut count = 0;
        for processor in each() {
            if !self.aim(processor, &work) {
                return false;
            }
            count += 1;
        }
        if count == 0 {
            return true;
        }
        END.remaining.store(count, Ordering::Release);
        for dpc in each().filter_map(|processor| self.dpcs.get(processor.as_usize())) {
            // SAFETY: `aim` initialized it, and it is not queued, so that it is queued now
            let _ = unsafe { KeInsertQueueDpc(dpc.get(), core::ptr::null_mut(), core::ptr::null_mut()) };
        }
        // Without a timeout, and not ended by an APC: `work` and what it borrows live until all processors are done.
        // SAFETY: `new` initialized the event; an unlimited wait is allowed at APC_LEVEL
        let _ = unsafe {
            let event = END.event().cast();
            KeWaitForSingleObject(event, _KWAIT_REASON::Executive, KERNEL_MODE, 0, core::ptr::null_mut())
        };
        true
    }

    /// Prepares the DPC of a processor. It is not queued: every call waits for the DPCs that it queued.
    fn aim(&self, processor: ProcessorIndex, work: &Work<'_>) -> bool {
        let Some(dpc) = self.dpcs.get(processor.as_usize()) else { return false };
        let mut number = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: the kernel may write to `number`
        let found = unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut number) };
        let context = core::ptr::from_ref(work).cast_mut().cast();
        // SAFETY: the DPC's own memory, in non-paged pool, and not queued; `worker` expects this context
        unsafe { KeInitializeDpc(dpc.get(), Some(worker), context) };
        // Of high importance, a DPC interrupts its processor at once. Others may wait there for the next interrupt.
        // SAFETY: initialized above, and not queued
        unsafe { KeSetImportanceDpc(dpc.get(), _KDPC_IMPORTANCE::HighImportance) };
        // SAFETY: initialized above, and not queued
        let aimed = unsafe { KeSetTargetProcessorDpcEx(dpc.get(), &raw mut number) };
        check(found).and(check(aimed)).is_ok()
    }
}

impl Drop for TargetedCalls {
    /// Waits until the last DPC has returned, which may be after its call.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    fn drop(&mut self) {
        dpc::flush();
    }
}

/// DPC routine, on its target processor.
///
/// # IRQL
/// DISPATCH_LEVEL.
unsafe extern "C" fn worker(_dpc: *mut _KDPC, context: *mut c_void, _argument1: PVOID, _argument2: PVOID) {
    // SAFETY: `aim` passed it, and `run` returns only after the last processor has set the event below
    let work = unsafe { &*context.cast_const().cast::<Work<'_>>() };
    work.run();
    if END.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: `new` initialized the event
        unsafe { KeSetEvent(END.event(), 0, 0) };
    }
}
