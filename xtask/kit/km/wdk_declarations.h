/*
 * Declarations of the WDK for Windows 10 2004 and later that mingw-w64's kernel headers lack or that differ there.
 * ntifs.h includes this file after mingw-w64's own headers.
 */
#pragma once

/* Levels and locks: exported functions. */
NTKERNELAPI KIRQL NTAPI KeGetCurrentIrql(VOID);
NTKERNELAPI KIRQL NTAPI KfRaiseIrql(KIRQL NewIrql);
NTKERNELAPI VOID NTAPI KeLowerIrql(KIRQL NewIrql);
NTKERNELAPI VOID NTAPI KeInitializeSpinLock(PKSPIN_LOCK SpinLock);

/* Pool with flags: new in Windows 10 2004. */
typedef ULONG64 POOL_FLAGS;
NTKERNELAPI PVOID NTAPI ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);

/* Device memory that is not executable: new in Windows 10. */
NTKERNELAPI PVOID NTAPI MmMapIoSpaceEx(PHYSICAL_ADDRESS PhysicalAddress, SIZE_T NumberOfBytes, ULONG Protect);

/* The priority is an MM_PAGE_PRIORITY combined with flags, so it is not an enum. */
NTKERNELAPI PVOID NTAPI MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
                                                     MEMORY_CACHING_TYPE CacheType, PVOID RequestedAddress,
                                                     ULONG BugCheckOnFailure, ULONG Priority);

/* The reservation of hardware counters: a descriptor has 24 bytes, a list of one 32. */
typedef enum _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE {
    ResourceTypeSingle,
    ResourceTypeRange,
    ResourceTypeExtendedCounterConfiguration,
    ResourceTypeOverflow,
    ResourceTypeEventBuffer,
    ResourceTypeIdenitificationTag, /* spelt so in the WDK */
    ResourceTypeMax
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE;

typedef VOID(NTAPI PHYSICAL_COUNTER_OVERFLOW_HANDLER)(ULONGLONG OverflowBits, HANDLE CounterSetHandle);
typedef PHYSICAL_COUNTER_OVERFLOW_HANDLER *PPHYSICAL_COUNTER_OVERFLOW_HANDLER;

typedef VOID(NTAPI PHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER)(PVOID EventBuffer, SIZE_T EntrySize,
                                                                  SIZE_T NumberOfEntries, HANDLE CounterSetHandle);
typedef PHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER *PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER;

typedef struct _PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION {
    PPHYSICAL_COUNTER_EVENT_BUFFER_OVERFLOW_HANDLER OverflowHandler;
    ULONG CustomEventBufferEntrySize;
    ULONG EventThreshold;
} PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION, *PPHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION;

typedef struct _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR {
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE Type;
    ULONG Flags;
    union {
        ULONG CounterIndex;
        struct {
            ULONG Begin;
            ULONG End;
        } Range;
        PPHYSICAL_COUNTER_OVERFLOW_HANDLER OverflowHandler;
        PHYSICAL_COUNTER_EVENT_BUFFER_CONFIGURATION EventBufferConfiguration;
        ULONG IdentificationTag;
    } u;
} PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR, *PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR;

typedef struct _PHYSICAL_COUNTER_RESOURCE_LIST {
    ULONG Count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR Descriptors[ANYSIZE_ARRAY];
} PHYSICAL_COUNTER_RESOURCE_LIST, *PPHYSICAL_COUNTER_RESOURCE_LIST;

NTHALAPI NTSTATUS NTAPI HalAllocateHardwareCounters(PGROUP_AFFINITY GroupAffinty, ULONG GroupCount,
                                                    PPHYSICAL_COUNTER_RESOURCE_LIST ResourceList,
                                                    PHANDLE CounterSetHandle);

/* The HAL's dispatch table, version 5. */
#define HAL_DISPATCH_VERSION 5

typedef struct {
    ULONG Version;
    pHalQuerySystemInformation HalQuerySystemInformation;
    pHalSetSystemInformation HalSetSystemInformation;
    pHalQueryBusSlots HalQueryBusSlots;
    ULONG Spare1;
    pHalExamineMBR HalExamineMBR;
    pHalIoReadPartitionTable HalIoReadPartitionTable;
    pHalIoSetPartitionInformation HalIoSetPartitionInformation;
    pHalIoWritePartitionTable HalIoWritePartitionTable;
    pHalHandlerForBus HalReferenceHandlerForBus;
    pHalReferenceBusHandler HalReferenceBusHandler;
    pHalReferenceBusHandler HalDereferenceBusHandler;
    pHalInitPnpDriver HalInitPnpDriver;
    pHalInitPowerManagement HalInitPowerManagement;
    pHalGetDmaAdapter HalGetDmaAdapter;
    pHalGetInterruptTranslator HalGetInterruptTranslator;
    pHalStartMirroring HalStartMirroring;
    pHalEndMirroring HalEndMirroring;
    pHalMirrorPhysicalMemory HalMirrorPhysicalMemory;
    pHalEndOfBoot HalEndOfBoot;
    pHalMirrorVerify HalMirrorVerify;
    pHalGetAcpiTable HalGetCachedAcpiTable;
    pHalSetPciErrorHandlerCallback HalSetPciErrorHandlerCallback;
    PVOID HalGetPrmCache;
} HAL_DISPATCH, *PHAL_DISPATCH;

/* A pointer, as the WDK declares it for all code except the kernel itself. */
extern PHAL_DISPATCH HalDispatchTable;
