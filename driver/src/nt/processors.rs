//! Processor counts and indexes, and execution on chosen processors.

use core::marker::PhantomData;

use pmu::ProcessorIndex;
use wdk_sys::ntddk::{
    KeGetProcessorNumberFromIndex, KeIpiGenericCall, KeLowerIrql, KeQueryActiveProcessorCountEx,
    KeQueryMaximumProcessorCountEx, KeRevertToUserGroupAffinityThread, KeSetSystemGroupAffinityThread, KfRaiseIrql,
};
use wdk_sys::{GROUP_AFFINITY, KIRQL, NTSTATUS, PROCESSOR_NUMBER, ULONG_PTR, USHORT};

use super::irp::check;

/// ALL_PROCESSOR_GROUPS (wdm.h).
const ALL_GROUPS: USHORT = 0xFFFF;

/// HIGH_LEVEL on x64 (wdm.h), which is also PROFILE_LEVEL: it masks performance monitor interrupts.
const HIGH_LEVEL: KIRQL = 15;

/// Returns the number of active processors. It may grow, but never shrinks.
///
/// # IRQL
/// Any.
pub fn active() -> u32 {
    // SAFETY: no requirement
    unsafe { KeQueryActiveProcessorCountEx(ALL_GROUPS) }
}

/// Returns the maximum number of processors.
///
/// # IRQL
/// Any.
pub fn maximum() -> u32 {
    // SAFETY: no requirement
    unsafe { KeQueryMaximumProcessorCountEx(ALL_GROUPS) }
}

/// Work for one or more processors, which runs at HIGH_LEVEL. Its type is erased, so that the functions that bring it
/// to its processors are compiled once.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    worker: unsafe extern "C" fn(ULONG_PTR) -> ULONG_PTR,
    context: ULONG_PTR,
    borrowed: PhantomData<&'a ()>,
}

/// Runs the work of which `context` is the address, on each processor.
///
/// # IRQL
/// At most IPI_LEVEL.
unsafe extern "C" fn worker<W: Fn() + Sync>(context: ULONG_PTR) -> ULONG_PTR {
    #[expect(clippy::cast_possible_truncation, reason = "ULONG_PTR is as wide as a pointer")]
    let work = core::ptr::with_exposed_provenance::<W>(context as usize);
    // SAFETY: from `Work::new`, and borrowed until the call that brought it here has returned
    let work = unsafe { &*work };
    at_high_level(work);
    0
}

impl<'a> Work<'a> {
    /// Borrows the work.
    pub fn new<W: Fn() + Sync>(work: &'a W) -> Self {
        let context = core::ptr::from_ref(work).expose_provenance() as ULONG_PTR;
        Self { worker: worker::<W>, context, borrowed: PhantomData }
    }

    /// Runs the work on the current processor.
    ///
    /// # IRQL
    /// At most HIGH_LEVEL.
    #[inline]
    pub fn run(self) {
        // SAFETY: `new` made the context for this worker
        unsafe { (self.worker)(self.context) };
    }

    /// Runs the work on all active processors at the same time, and waits until all are done.
    ///
    /// # IRQL
    /// Below IPI_LEVEL.
    #[inline(never)]
    pub fn broadcast(self) {
        // SAFETY: `new` made the context for this worker, and every caller of the engine is below IPI_LEVEL
        unsafe { KeIpiGenericCall(Some(self.worker), self.context) };
    }
}

/// Runs `work` on the current processor at HIGH_LEVEL, at which the thread stays on it.
///
/// # IRQL
/// At most IPI_LEVEL.
pub fn at_high_level(work: impl FnOnce()) {
    // SAFETY: raises the IRQL, from IPI_LEVEL at most
    let before = unsafe { KfRaiseIrql(HIGH_LEVEL) };
    work();
    // SAFETY: restores the previous IRQL
    unsafe { KeLowerIrql(before) };
}

/// Waits until all interrupts that are in progress have returned: a processor at PROFILE_LEVEL does not take the IPI
/// before.
///
/// # IRQL
/// Below IPI_LEVEL.
pub fn wait_for_interrupts() {
    Work::new(&|| ()).broadcast();
}

/// Guard: the thread runs on one processor while the value lives.
pub struct Pinned {
    before: GROUP_AFFINITY,
    /// The affinity belongs to the thread that created the guard.
    thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Moves the thread to the boot processor.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn to_boot_processor() -> Self {
        // Processor 0 of group 0 exists on every system.
        Self::to_place(PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 })
    }

    /// Moves the thread to the processor with this index.
    ///
    /// # Errors
    /// The kernel's NTSTATUS, if there is no such processor.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn to(processor: ProcessorIndex) -> Result<Self, NTSTATUS> {
        let mut place = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: the kernel may write to `place`
        check(unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut place) })?;
        Ok(Self::to_place(place))
    }

    fn to_place(place: PROCESSOR_NUMBER) -> Self {
        let mut wanted = GROUP_AFFINITY { Mask: 1 << (place.Number & 63), Group: place.Group, Reserved: [0; 3] };
        let mut before = GROUP_AFFINITY { Mask: 0, Group: 0, Reserved: [0; 3] };
        // SAFETY: the kernel reads the first and writes the second; the processor exists
        unsafe { KeSetSystemGroupAffinityThread(&raw mut wanted, &raw mut before) };
        Self { before, thread: PhantomData }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the affinity that `to_place` saved, on the same thread
        unsafe { KeRevertToUserGroupAffinityThread(&raw mut self.before) };
    }
}
