//! The driver's imports from the kernel and the HAL. All of them exist in Windows 10 2004, the oldest supported
//! release.

use std::collections::BTreeSet;

use object::read::pe::PeFile64;

use crate::file::{bytes, imports};

/// The release that introduced a function, or an older release that is known to have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    Windows2000,
    ServerSp1_2003,
    Vista,
    Windows7,
    Windows8,
    Windows10,
    Windows10_2004,
}

/// The highest IRQL at which a function may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// PASSIVE_LEVEL or APC_LEVEL.
    Thread,
    Dispatch,
    /// Below IPI_LEVEL.
    BelowIpi,
    /// HIGH_LEVEL.
    Any,
}

use Level::{Any, BelowIpi, Dispatch, Thread};
use Release::{ServerSp1_2003, Vista, Windows7, Windows8, Windows10, Windows10_2004, Windows2000};

/// "Minimum supported client" and "IRQL" in the WDK's reference, or Windows 2000 if it names no release. The levels are
/// those for memory of the non-paged pool and for waits without a timeout. The reference does not document memcmp,
/// memcpy, memset, __C_specific_handler and KfRaiseIrql, but compilers and wdm.h rely on them; and
/// RtlLookupFunctionEntry and RtlVirtualUnwind for user mode only, but every x64 kernel dispatches exceptions by them,
/// up to DISPATCH_LEVEL.
const EXPORTS: &[(&str, &str, Release, Level)] = &[
    ("hal.dll", "HalAllocateHardwareCounters", Windows7, Thread),
    ("hal.dll", "HalFreeHardwareCounters", Windows7, Thread),
    ("hal.dll", "KeQueryPerformanceCounter", Windows2000, Any),
    ("ntoskrnl.exe", "EtwRegister", Vista, Thread),
    ("ntoskrnl.exe", "EtwSetInformation", Windows10, Thread),
    ("ntoskrnl.exe", "EtwUnregister", Vista, Thread),
    ("ntoskrnl.exe", "EtwWriteTransfer", Windows7, Any),
    ("ntoskrnl.exe", "ExAcquireFastMutex", Windows2000, Thread),
    ("ntoskrnl.exe", "ExAllocatePool2", Windows10_2004, Dispatch),
    ("ntoskrnl.exe", "ExCreateCallback", Windows2000, Thread),
    ("ntoskrnl.exe", "ExFreePool", Windows2000, Dispatch),
    ("ntoskrnl.exe", "ExRegisterCallback", Windows2000, Thread),
    ("ntoskrnl.exe", "ExReleaseFastMutex", Windows2000, Thread),
    ("ntoskrnl.exe", "ExSetTimerResolution", Windows2000, Thread),
    ("ntoskrnl.exe", "ExUnregisterCallback", Windows2000, Thread),
    ("ntoskrnl.exe", "HalDispatchTable", Windows2000, Any), // data
    ("ntoskrnl.exe", "IoAllocateWorkItem", Windows2000, Dispatch),
    ("ntoskrnl.exe", "IoCreateDevice", Windows2000, Thread),
    ("ntoskrnl.exe", "IoCreateSymbolicLink", Windows2000, Thread),
    ("ntoskrnl.exe", "IoDeleteDevice", Windows2000, Thread),
    ("ntoskrnl.exe", "IoDeleteSymbolicLink", Windows2000, Thread),
    ("ntoskrnl.exe", "IoFreeWorkItem", Windows2000, Dispatch),
    ("ntoskrnl.exe", "IoQueueWorkItem", Windows2000, Dispatch),
    ("ntoskrnl.exe", "IoReleaseCancelSpinLock", Windows2000, Dispatch),
    ("ntoskrnl.exe", "IofCompleteRequest", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeAcquireSpinLockRaiseToDpc", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeCancelTimer", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeDelayExecutionThread", Windows2000, Thread),
    ("ntoskrnl.exe", "KeDeregisterProcessorChangeCallback", Vista, Thread),
    ("ntoskrnl.exe", "KeFlushQueuedDpcs", Windows2000, Thread),
    ("ntoskrnl.exe", "KeGetCurrentProcessorNumberEx", Windows7, Any),
    ("ntoskrnl.exe", "KeGetProcessorNumberFromIndex", Windows7, Any),
    ("ntoskrnl.exe", "KeInitializeDpc", Windows2000, Any),
    ("ntoskrnl.exe", "KeInitializeEvent", Windows2000, Any),
    ("ntoskrnl.exe", "KeInitializeTimerEx", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeInsertQueueDpc", Windows2000, Any),
    ("ntoskrnl.exe", "KeIpiGenericCall", ServerSp1_2003, BelowIpi),
    ("ntoskrnl.exe", "KeLowerIrql", Windows2000, Any),
    ("ntoskrnl.exe", "KeQueryActiveProcessorCountEx", Windows7, Any),
    ("ntoskrnl.exe", "KeQueryHighestNodeNumber", Windows7, Any),
    ("ntoskrnl.exe", "KeQueryMaximumProcessorCountEx", Windows7, Any),
    ("ntoskrnl.exe", "KeQueryNodeActiveAffinity", Windows7, Any),
    ("ntoskrnl.exe", "KeRegisterProcessorChangeCallback", Vista, Thread),
    ("ntoskrnl.exe", "KeReleaseSpinLock", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeRevertToUserGroupAffinityThread", Windows7, Thread),
    ("ntoskrnl.exe", "KeSetEvent", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeSetSystemGroupAffinityThread", Windows7, Thread),
    ("ntoskrnl.exe", "KeSetHardwareCounterConfiguration", Windows7, Thread),
    ("ntoskrnl.exe", "KeSetImportanceDpc", Windows2000, Any),
    ("ntoskrnl.exe", "KeSetTargetProcessorDpcEx", Windows7, Any),
    ("ntoskrnl.exe", "KeSetTimerEx", Windows2000, Dispatch),
    ("ntoskrnl.exe", "KeWaitForSingleObject", Windows2000, Thread),
    ("ntoskrnl.exe", "KfRaiseIrql", Windows7, Any),
    ("ntoskrnl.exe", "MmAllocateContiguousNodeMemory", Windows8, Dispatch),
    ("ntoskrnl.exe", "MmFreeContiguousMemory", Windows2000, Dispatch),
    ("ntoskrnl.exe", "MmGetPhysicalAddress", Windows2000, Any),
    ("ntoskrnl.exe", "MmGetSystemRoutineAddress", Windows2000, Thread),
    ("ntoskrnl.exe", "MmMapIoSpaceEx", Windows10, Dispatch),
    ("ntoskrnl.exe", "MmMapLockedPagesSpecifyCache", Windows2000, Dispatch),
    ("ntoskrnl.exe", "MmUnmapIoSpace", Windows2000, Dispatch),
    ("ntoskrnl.exe", "ObOpenObjectByPointer", Windows2000, Thread),
    ("ntoskrnl.exe", "ObReferenceObjectByHandle", Windows2000, Thread),
    ("ntoskrnl.exe", "ObfDereferenceObject", Windows2000, Dispatch),
    ("ntoskrnl.exe", "ObfReferenceObject", Windows2000, Dispatch),
    ("ntoskrnl.exe", "PsCreateSystemThread", Windows2000, Thread),
    ("ntoskrnl.exe", "PsGetCurrentProcessId", Windows2000, Any),
    ("ntoskrnl.exe", "PsGetCurrentThreadId", Windows2000, Any),
    ("ntoskrnl.exe", "PsTerminateSystemThread", Windows2000, Thread),
    ("ntoskrnl.exe", "RtlCaptureContext", ServerSp1_2003, Any),
    ("ntoskrnl.exe", "RtlGetVersion", Windows2000, Thread),
    ("ntoskrnl.exe", "RtlLookupFunctionEntry", ServerSp1_2003, Dispatch),
    ("ntoskrnl.exe", "RtlVirtualUnwind", ServerSp1_2003, Dispatch),
    ("ntoskrnl.exe", "SeSinglePrivilegeCheck", Windows2000, Thread),
    ("ntoskrnl.exe", "ZwClose", Windows2000, Thread),
    ("ntoskrnl.exe", "ZwOpenKey", Windows2000, Thread),
    ("ntoskrnl.exe", "ZwQueryValueKey", Windows2000, Thread),
    ("ntoskrnl.exe", "ZwSetSecurityObject", Windows2000, Thread),
    ("ntoskrnl.exe", "ZwWaitForSingleObject", Windows2000, Thread),
    ("ntoskrnl.exe", "__C_specific_handler", ServerSp1_2003, Any),
    ("ntoskrnl.exe", "memcmp", Windows2000, Any),
    ("ntoskrnl.exe", "memcpy", Windows2000, Any),
    ("ntoskrnl.exe", "memset", Windows2000, Any),
];

/// Returns the highest IRQL at which an import may be called; the lowest one for an unknown import.
pub fn level(import: &str) -> Level {
    EXPORTS.iter().find(|(_, name, ..)| *name == import).map_or(Thread, |(.., level)| *level)
}

#[test]
fn the_driver_imports_only_what_windows_10_2004_exports() {
    let bytes = bytes();
    let imported = imports(&PeFile64::parse(&*bytes).unwrap());
    let imported: BTreeSet<(&str, &str)> =
        imported.iter().map(|import| (import.module.as_str(), import.name.as_str())).collect();
    let exported: BTreeSet<(&str, &str)> = EXPORTS.iter().map(|(module, name, ..)| (*module, *name)).collect();
    assert_eq!(exported.len(), EXPORTS.len(), "a row occurs twice");
    let unknown: Vec<_> = imported.difference(&exported).collect();
    assert!(unknown.is_empty(), "these imports are not in the table: {unknown:?}");
    if !cfg!(windows) {
        // The WDK's libraries may provide a few of these.
        let unused: Vec<_> = exported.difference(&imported).collect();
        assert!(unused.is_empty(), "the driver does not import these: {unused:?}");
    }
    let newest = EXPORTS.iter().map(|(.., release, _)| *release).max().unwrap();
    assert!(newest <= Windows10_2004);
}
