//! Processor counts and indexes, and execution on chosen processors.

use core::marker::PhantomData;

use pmu::ProcessorIndex;
use wdk_sys::ntddk::{
    KeGetCurrentProcessorNumberEx, KeGetProcessorNumberFromIndex, KeIpiGenericCall, KeLowerIrql,
    KeQueryActiveProcessorCountEx, KeQueryMaximumProcessorCountEx, KeRevertToUserGroupAffinityThread,
    KeSetSystemGroupAffinityThread, KfRaiseIrql,
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

/// Returns the index of the current processor over all groups. Below DISPATCH_LEVEL the thread may have moved when the
/// function returns.
///
/// # IRQL
/// Any.
pub fn current() -> ProcessorIndex {
    // SAFETY: the pointer is optional
    ProcessorIndex::new(unsafe { KeGetCurrentProcessorNumberEx(core::ptr::null_mut()) })
}

/// Runs `work` on all active processors at the same time, at HIGH_LEVEL, and waits until all are done.
///
/// # IRQL
/// Below IPI_LEVEL.
pub fn broadcast<W: Fn() + Sync>(work: &W) {
    /// Runs on each processor.
    ///
    /// # IRQL
    /// IPI_LEVEL.
    unsafe extern "C" fn worker<W: Fn() + Sync>(context: ULONG_PTR) -> ULONG_PTR {
        #[expect(clippy::cast_possible_truncation, reason = "ULONG_PTR is as wide as a pointer")]
        let work = core::ptr::with_exposed_provenance::<W>(context as usize);
        // SAFETY: `broadcast` passed it, and returns only after all workers have
        let work = unsafe { &*work };
        at_high_level(work);
        0
    }
    let context = core::ptr::from_ref(work).expose_provenance() as ULONG_PTR;
    // SAFETY: `worker::<W>` expects this context, and every caller of the engine is below IPI_LEVEL
    unsafe { KeIpiGenericCall(Some(worker::<W>), context) };
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
    broadcast(&|| ());
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
