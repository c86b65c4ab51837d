//! Processors, and how to run on them.

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

/// HIGH_LEVEL on x64 (wdm.h), which is also PROFILE_LEVEL: no performance interrupt comes through.
const HIGH_LEVEL: KIRQL = 15;

/// How many are active. Any IRQL. It may grow, never shrink.
pub fn active() -> u32 {
    // SAFETY: no requirement
    unsafe { KeQueryActiveProcessorCountEx(ALL_GROUPS) }
}

/// How many there can ever be. Any IRQL.
pub fn maximum() -> u32 {
    // SAFETY: no requirement
    unsafe { KeQueryMaximumProcessorCountEx(ALL_GROUPS) }
}

/// Index of the current processor over all groups. Any IRQL; means something at DISPATCH_LEVEL and above.
pub fn current() -> ProcessorIndex {
    // SAFETY: the pointer is optional
    ProcessorIndex::new(unsafe { KeGetCurrentProcessorNumberEx(core::ptr::null_mut()) })
}

/// Runs `work` on every active processor at the same time, at HIGH_LEVEL, and comes back when all are done.
/// Below IPI_LEVEL.
pub fn broadcast<W: Fn() + Sync>(work: &W) {
    /// Runs on each processor at IPI_LEVEL.
    unsafe extern "C" fn worker<W: Fn() + Sync>(context: ULONG_PTR) -> ULONG_PTR {
        #[expect(clippy::cast_possible_truncation, reason = "ULONG_PTR is as wide as a pointer")]
        let work = core::ptr::with_exposed_provenance::<W>(context as usize);
        // SAFETY: `broadcast` lent it, and does not return before every worker has
        let work = unsafe { &*work };
        at_high_level(work);
        0
    }
    let context = core::ptr::from_ref(work).expose_provenance() as ULONG_PTR;
    // SAFETY: `worker::<W>` takes just such a context, and every caller of the engine is below IPI_LEVEL
    unsafe { KeIpiGenericCall(Some(worker::<W>), context) };
}

/// Runs `work` on the current processor at HIGH_LEVEL. DISPATCH_LEVEL to IPI_LEVEL: the processor stays the
/// same.
pub fn at_high_level(work: impl FnOnce()) {
    // SAFETY: raises, from IPI_LEVEL at most
    let before = unsafe { KfRaiseIrql(HIGH_LEVEL) };
    work();
    // SAFETY: back to the level before
    unsafe { KeLowerIrql(before) };
}

/// Waits until no processor is in an interrupt that began before: the one at PROFILE_LEVEL holds off those that this
/// sends. Below IPI_LEVEL.
pub fn wait_for_interrupts() {
    broadcast(&|| ());
}

/// While it lives, the thread runs on one processor.
pub struct Pinned {
    before: GROUP_AFFINITY,
    /// It belongs to the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Pinned {
    /// Moves the thread to the boot processor. Below DISPATCH_LEVEL.
    pub fn to_boot_processor() -> Self {
        // Processor 0 of group 0 exists on every system.
        Self::to_place(PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 })
    }

    /// Moves it to the processor of this index. Below DISPATCH_LEVEL.
    ///
    /// # Errors
    /// The kernel's NTSTATUS, where there is no such processor.
    pub fn to(processor: ProcessorIndex) -> Result<Self, NTSTATUS> {
        let mut place = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: `place` may be written
        check(unsafe { KeGetProcessorNumberFromIndex(processor.number(), &raw mut place) })?;
        Ok(Self::to_place(place))
    }

    fn to_place(place: PROCESSOR_NUMBER) -> Self {
        let mut wanted = GROUP_AFFINITY { Mask: 1 << (place.Number & 63), Group: place.Group, Reserved: [0; 3] };
        let mut before = GROUP_AFFINITY { Mask: 0, Group: 0, Reserved: [0; 3] };
        // SAFETY: the first is read, the second written; the processor exists
        unsafe { KeSetSystemGroupAffinityThread(&raw mut wanted, &raw mut before) };
        Self { before, thread: PhantomData }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the affinity that `to_place` got, on the same thread
        unsafe { KeRevertToUserGroupAffinityThread(&raw mut self.before) };
    }
}
