/*
 * The first header that wdk-sys reads. It brings in mingw-w64's kernel headers with what they lay out otherwise than
 * the WDK moved out of the way (names beginning with `hidden_`), then declares those things as the WDK does
 * (wdk_declarations.h). Nothing but declarations: no code comes from here.
 */
#pragma once

/* The WDK aligns it to MEMORY_ALLOCATION_ALIGNMENT: 336 bytes instead of 328. */
struct __declspec(align(16)) _DEVICE_OBJECT;
/* Likewise: what lies after it in another structure would lie elsewhere. */
struct __declspec(align(16)) _IRP;

/* No tag in the WDK; bindgen would name the constants' module after it. */
#define _KE_PROCESSOR_CHANGE_NOTIFY_STATE

/* Inline functions in mingw-w64, exports of the kernel in the WDK. */
#define KeGetCurrentIrql     hidden_KeGetCurrentIrql
#define KfRaiseIrql          hidden_KfRaiseIrql
#define KeLowerIrql          hidden_KeLowerIrql
#define KeInitializeSpinLock hidden_KeInitializeSpinLock

/* The last parameter is another type. */
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
/* Of two definitions bindgen takes the first, so this one has to come before mingw-w64's. */
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
