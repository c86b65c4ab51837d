//! The memory-mapped registers of the local APIC.

use pmu::GuardedCpu;
use pmu::lvt_pmi::{self, EntryLocation};
use processor::local_apic::{Access, set_access};
use wdk_sys::ntddk::{MmMapIoSpaceEx, MmUnmapIoSpace};
use wdk_sys::{NTSTATUS, PAGE_NOCACHE, PAGE_READWRITE, PHYSICAL_ADDRESS, PVOID, STATUS_INSUFFICIENT_RESOURCES};
use x86_defs::local_apic::XAPIC_PAGE_SIZE;

use super::{device_object, processors};

/// STATUS_NOT_SUPPORTED (ntstatus.h).
const STATUS_NOT_SUPPORTED: NTSTATUS = 0xC000_00BB_u32.cast_signed();

/// Determines the kind of access, and maps the page if the registers are memory-mapped.
///
/// # Errors
/// STATUS_NOT_SUPPORTED if there is no local APIC, STATUS_INSUFFICIENT_RESOURCES if it cannot be mapped.
///
/// # IRQL
/// Below DISPATCH_LEVEL.
pub fn open(cpu: &impl GuardedCpu) -> Result<(), NTSTATUS> {
    let access = match lvt_pmi::place(cpu).ok_or(STATUS_NOT_SUPPORTED)? {
        EntryLocation::Register => Access::Registers,
        EntryLocation::Page(physical) => Access::Page(map(physical)?),
    };
    // SAFETY: the page is mapped until `close`
    unsafe { set_access(access) };
    Ok(())
}

fn map(physical: u64) -> Result<PVOID, NTSTATUS> {
    let physical = PHYSICAL_ADDRESS { QuadPart: physical.cast_signed() };
    // SAFETY: the processor reports its local APIC at this address; the access flags suit device memory
    let page = unsafe { MmMapIoSpaceEx(physical, XAPIC_PAGE_SIZE as u64, PAGE_READWRITE | PAGE_NOCACHE) };
    if page.is_null() { Err(STATUS_INSUFFICIENT_RESOURCES) } else { Ok(page) }
}

/// Ends all access to the local APIC and unmaps the page. The caller has waited for accesses in progress, except those
/// of interrupts that the HAL delivers although the handler was to be unregistered.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn close() {
    // SAFETY: no page
    let before = unsafe { set_access(Access::Closed) };
    if device_object::is_kept() {
        processors::wait_for_interrupts(); // those that found the page
    }
    if let Access::Page(page) = before {
        // SAFETY: mapped by `open`, with this length, and unmapped once
        unsafe { MmUnmapIoSpace(page, XAPIC_PAGE_SIZE as u64) };
    }
}
