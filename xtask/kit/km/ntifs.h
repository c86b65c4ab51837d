/*
 * The first header that wdk-sys reads. It includes mingw-w64's kernel headers and renames the declarations in them that
 * differ from the WDK's to `hidden_*`. wdk_declarations.h then declares these as the WDK does. There is no code here.
 */
#pragma once

/* The WDK aligns it to MEMORY_ALLOCATION_ALIGNMENT: 336 bytes instead of 328. */
struct __declspec(align(16)) _DEVICE_OBJECT;
/* Likewise; the alignment also affects the offsets of fields after it in other structures. */
struct __declspec(align(16)) _IRP;

/* The WDK's declaration has no tag; bindgen would name the module of the constants after it. */
#define _KE_PROCESSOR_CHANGE_NOTIFY_STATE

/* Inline functions in mingw-w64, exports of the kernel in the WDK. */
#define KeGetCurrentIrql     hidden_KeGetCurrentIrql
#define KfRaiseIrql          hidden_KfRaiseIrql
#define KeLowerIrql          hidden_KeLowerIrql
#define KeInitializeSpinLock hidden_KeInitializeSpinLock

/* The type of the last parameter differs. */
#define MmMapLockedPagesSpecifyCache hidden_MmMapLockedPagesSpecifyCache

/* Older layouts of what a counter reservation passes. */
#define _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE hidden__COUNTER_DESCRIPTOR_TYPE
#define PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE  hidden_COUNTER_DESCRIPTOR_TYPE
#define ResourceTypeSingle                         hidden_ResourceTypeSingle
#define ResourceTypeRange                          hidden_ResourceTypeRange
#define ResourceTypeExtendedCounterConfiguration   hidden_ResourceTypeExtended
#define ResourceTypeOverflow                       hidden_ResourceTypeOverflow
#define ResourceTypeMax                            hidden_ResourceTypeMax
#define _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR      hidden__COUNTER_DESCRIPTOR
#define PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR       hidden_COUNTER_DESCRIPTOR
#define PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR      hidden_PCOUNTER_DESCRIPTOR
#define _PHYSICAL_COUNTER_RESOURCE_LIST            hidden__COUNTER_LIST
#define PHYSICAL_COUNTER_RESOURCE_LIST             hidden_COUNTER_LIST
#define PPHYSICAL_COUNTER_RESOURCE_LIST            hidden_PCOUNTER_LIST
#define HalAllocateHardwareCounters                hidden_HalAllocateHardwareCounters

/* The HAL's dispatch table: another member, another version, and a structure where the WDK has a pointer. */
#define HAL_DISPATCH         hidden_HAL_DISPATCH
#define PHAL_DISPATCH        hidden_PHAL_DISPATCH
#define HalDispatchTable     hidden_HalDispatchTable
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmacro-redefined"
/* bindgen uses the first of two definitions, so this one must precede mingw-w64's. */
#define HAL_DISPATCH_VERSION 5

#include_next <ntifs.h>

#pragma clang diagnostic pop

#undef _KE_PROCESSOR_CHANGE_NOTIFY_STATE
#undef KeGetCurrentIrql
#undef KfRaiseIrql
#undef KeLowerIrql
#undef KeInitializeSpinLock
#undef MmMapLockedPagesSpecifyCache
#undef _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE
#undef PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR_TYPE
#undef ResourceTypeSingle
#undef ResourceTypeRange
#undef ResourceTypeExtendedCounterConfiguration
#undef ResourceTypeOverflow
#undef ResourceTypeMax
#undef _PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef PPHYSICAL_COUNTER_RESOURCE_DESCRIPTOR
#undef _PHYSICAL_COUNTER_RESOURCE_LIST
#undef PHYSICAL_COUNTER_RESOURCE_LIST
#undef PPHYSICAL_COUNTER_RESOURCE_LIST
#undef HalAllocateHardwareCounters
#undef HAL_DISPATCH
#undef PHAL_DISPATCH
#undef HalDispatchTable
#undef HAL_DISPATCH_VERSION

/* mingw-w64's shorthands for the table's members would rename the members declared below. */
#undef HALDISPATCH
#undef HalDispatchTableVersion
#undef HalQuerySystemInformation
#undef HalSetSystemInformation
#undef HalQueryBusSlots
#undef HalReferenceHandlerForBus
#undef HalReferenceBusHandler
#undef HalDereferenceBusHandler
#undef HalInitPnpDriver
#undef HalInitPowerManagement
#undef HalGetDmaAdapter
#undef HalGetInterruptTranslator
#undef HalStartMirroring
#undef HalEndMirroring
#undef HalMirrorPhysicalMemory
#undef HalEndOfBoot
#undef HalMirrorVerify
#undef HalGetCachedAcpiTable
#undef HalSetPciErrorHandlerCallback

#include <wdk_declarations.h>
