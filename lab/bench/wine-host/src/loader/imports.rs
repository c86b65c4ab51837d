//! The kernel functions that the lab serves, by name.

#![expect(unsafe_code, reason = "calls Wine's functions with what the driver points to")]

use crate::{
    kernel::{
        call_stack, callbacks, contiguous_memory, current_ids, devices, dpc, etw, group_affinity, hal,
        hardware_counters, io_space, ipi, irql, irql_checked, nodes, object_references, pool, processor_change,
        processor_numbers, requests, security, synchronization, system_information, system_threads, time, timer,
        version, work_items,
    },
    nt::{self, PASSIVE_LEVEL, Pointer, UnicodeString},
    violation::catch_panic,
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn MmGetSystemRoutineAddress(name: *const UnicodeString) -> Pointer;
}

/// The build number of Windows Server 2022.
const SERVER_2022: u32 = 20_348;

/// Functions of Wine that only write a log line, one name per line.
const STUBS: &str = include_str!("stubs.txt");

/// Returns the address of the lab's function, or None if the driver gets Wine's.
pub fn find(name: &str) -> Option<usize> {
    let function = match name {
        "EtwRegister" => etw::register as *const (),
        "EtwSetInformation" => etw::set_information as *const (),
        "EtwUnregister" => etw::unregister as *const (),
        "EtwWriteTransfer" => etw::write_transfer as *const (),
        "ExAcquireFastMutex" => synchronization::acquire_fast_mutex as *const (),
        "ExAllocatePool2" => pool::allocate2 as *const (),
        "ExAllocatePool3" if version::build() >= SERVER_2022 => pool::allocate3 as *const (),
        "ExAllocatePoolWithTag" => pool::allocate_with_tag as *const (),
        "ExCreateCallback" => callbacks::create as *const (),
        "ExFreePool" => pool::free as *const (),
        "ExFreePoolWithTag" => pool::free_with_tag as *const (),
        "ExRegisterCallback" => callbacks::register as *const (),
        "ExReleaseFastMutex" => synchronization::release_fast_mutex as *const (),
        "ExSetTimerResolution" => timer::set_resolution as *const (),
        "ExUnregisterCallback" => callbacks::unregister as *const (),
        "HalAllocateHardwareCounters" => hal::allocate_counters as *const (),
        "HalDispatchTable" => return Some(hal::dispatch_table()),
        "HalFreeHardwareCounters" => hal::free_counters as *const (),
        "IoAcquireCancelSpinLock" => requests::acquire_cancel_lock as *const (),
        "IoAllocateWorkItem" => work_items::allocate as *const (),
        "IoCancelIrp" => requests::cancel as *const (),
        "IoCreateDevice" => devices::create as *const (),
        "IoDeleteDevice" => devices::delete as *const (),
        "IoFreeWorkItem" => work_items::free as *const (),
        "IoQueueWorkItem" => work_items::queue as *const (),
        "IoReleaseCancelSpinLock" => requests::release_cancel_lock as *const (),
        "IofCompleteRequest" => requests::complete as *const (),
        "KeAcquireSpinLockRaiseToDpc" => synchronization::acquire_spin_lock as *const (),
        "KeBugCheckEx" => synchronization::bug_check as *const (),
        "KeCancelTimer" => timer::cancel as *const (),
        "KeDeregisterProcessorChangeCallback" => processor_change::deregister as *const (),
        "KeFlushQueuedDpcs" => dpc::flush as *const (),
        "KeGetCurrentIrql" => irql::get as *const (),
        "KeGetCurrentProcessorNumberEx" => processor_numbers::current as *const (),
        "KeGetProcessorIndexFromNumber" => processor_numbers::to_index as *const (),
        "KeGetProcessorNumberFromIndex" => processor_numbers::from_index as *const (),
        "KeInitializeDpc" => dpc::initialize as *const (),
        "KeInitializeThreadedDpc" => dpc::initialize_threaded as *const (),
        "KeInitializeTimer" => timer::initialize as *const (),
        "KeInitializeTimerEx" => timer::initialize_ex as *const (),
        "KeInsertQueueDpc" => dpc::insert as *const (),
        "KeIpiGenericCall" => ipi::generic_call as *const (),
        "KeLowerIrql" => irql::lower as *const (),
        "KeQueryActiveProcessorCountEx" => processor_numbers::active_count as *const (),
        "KeQueryHardwareCounterConfiguration" => hardware_counters::query as *const (),
        "KeQueryHighestNodeNumber" => nodes::query_highest as *const (),
        "KeQueryInterruptTime" => time::interrupt_time as *const (),
        "KeQueryMaximumProcessorCountEx" => processor_numbers::maximum_count as *const (),
        "KeQueryNodeActiveAffinity" => nodes::query_active as *const (),
        "KeQueryPerformanceCounter" => time::performance_counter as *const (),
        "KeRegisterProcessorChangeCallback" => processor_change::register as *const (),
        "KeReleaseSpinLock" => synchronization::release_spin_lock as *const (),
        "KeRemoveQueueDpc" => dpc::remove as *const (),
        "KeRevertToUserGroupAffinityThread" => group_affinity::revert as *const (),
        "KeSetCoalescableTimer" => timer::set_coalescable as *const (),
        "KeSetHardwareCounterConfiguration" => hardware_counters::set as *const (),
        "KeSetImportanceDpc" => dpc::set_importance as *const (),
        "KeSetSystemGroupAffinityThread" => group_affinity::set as *const (),
        "KeSetTargetProcessorDpcEx" => dpc::set_target as *const (),
        "KeSetTimer" => timer::set as *const (),
        "KeSetTimerEx" => timer::set_ex as *const (),
        "KeWaitForSingleObject" => synchronization::wait_for_single_object as *const (),
        "KfRaiseIrql" => irql::raise as *const (),
        "MmAllocateContiguousNodeMemory" => contiguous_memory::allocate as *const (),
        "MmFreeContiguousMemory" => contiguous_memory::free as *const (),
        "MmGetPhysicalAddress" => contiguous_memory::physical_address as *const (),
        "MmGetSystemRoutineAddress" => system_routine as *const (),
        "MmMapIoSpaceEx" => io_space::map as *const (),
        "MmMapLockedPagesSpecifyCache" => requests::map_locked_pages as *const (),
        "MmUnmapIoSpace" => io_space::unmap as *const (),
        "ObReferenceObjectByHandle" => system_threads::reference as *const (),
        "ObfReferenceObject" => object_references::reference as *const (),
        "ObfDereferenceObject" => object_references::dereference as *const (),
        "PsCreateSystemThread" => system_threads::create as *const (),
        "PsGetCurrentProcessId" => current_ids::process as *const (),
        "PsGetCurrentThreadId" => current_ids::thread as *const (),
        "PsTerminateSystemThread" => system_threads::terminate as *const (),
        "RtlGetVersion" => version::get as *const (),
        "SeSinglePrivilegeCheck" => security::single_privilege_check as *const (),
        "ZwClose" => system_threads::close as *const (),
        "ZwQuerySystemInformation" => system_information::query as *const (),
        "ZwSetSecurityObject" => security::set_security_object as *const (),
        "ZwSetSystemInformation" => system_information::set as *const (),
        "ZwWaitForSingleObject" => system_threads::wait as *const (),
        _ => return irql_checked::find(name),
    };
    Some(function.expose_provenance())
}

/// Returns what is wrong with Wine's function of this name, which the lab does not serve.
pub fn wrong_with_wine(module: &str, name: &str) -> Option<&'static str> {
    match nt::export(module, name) {
        None => Some("missing"),
        // SAFETY: the address is an export of a loaded module, whose code section is longer than a stub.
        Some(address) if unsafe { is_stub(address) } => Some("a stub"),
        Some(_) if STUBS.lines().any(|stub| stub == name) => Some("a stub that only logs"),
        Some(_) => None,
    }
}

/// Returns whether the function only ends the process, in the form that winebuild writes: `sub rsp, 28h; lea rcx,
/// module; lea rdx, name; call`.
///
/// # Safety
/// Fourteen bytes are readable at the address.
unsafe fn is_stub(address: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    let code = unsafe { std::ptr::with_exposed_provenance::<[u8; 14]>(address).read_unaligned() };
    matches!(code, [0x48, 0x83, 0xEC, 0x28, 0x48, 0x8D, 0x0D, _, _, _, _, 0x48, 0x8D, 0x15])
}

/// Implements MmGetSystemRoutineAddress: returns the lab's function, or a working one of Wine's.
unsafe extern "system" fn system_routine(name: *const UnicodeString) -> Pointer {
    catch_panic("MmGetSystemRoutineAddress", std::ptr::null_mut(), || {
        irql::check("MmGetSystemRoutineAddress", PASSIVE_LEVEL);
        if call_stack::fails("MmGetSystemRoutineAddress") {
            return std::ptr::null_mut();
        }
        // SAFETY: the driver must pass a valid string.
        let text = unsafe { nt::text(name) };
        if let Some(function) = find(&text) {
            return std::ptr::with_exposed_provenance_mut(function);
        }
        let modules = ["ntoskrnl.exe", "hal.dll"];
        if modules.iter().all(|module| wrong_with_wine(module, &text).is_some()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the arguments are the driver's own.
        unsafe { MmGetSystemRoutineAddress(name) }
    })
}
