//! The memory-mapped registers of the local APIC.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::GuardedCpu;
use pmu::lvt_pmi::{self, EntryLocation};
use wdk_sys::ntddk::{MmMapIoSpaceEx, MmUnmapIoSpace};
use wdk_sys::{NTSTATUS, PAGE_NOCACHE, PAGE_READWRITE, PHYSICAL_ADDRESS, PVOID, STATUS_INSUFFICIENT_RESOURCES};
use x86_defs::local_apic::{XAPIC_LVT_PERFORMANCE, XAPIC_PAGE_SIZE};

use super::{device_object, processors};

/// STATUS_NOT_SUPPORTED (ntstatus.h).
const STATUS_NOT_SUPPORTED: NTSTATUS = 0xC000_00BB_u32.cast_signed();

/// How the LVT entry for performance counters is accessed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No access.
    Shut,
    /// As a model-specific register.
    Register,
    /// Through this address, at which each processor sees its own local APIC.
    Memory(*mut u32),
}

/// [`CLOSED`], [`REGISTER`], or the address at which the page is mapped.
static STATE: AtomicU64 = AtomicU64::new(CLOSED);
const CLOSED: u64 = 0;
const REGISTER: u64 = 1;

/// Returns the current kind of access.
///
/// # IRQL
/// Any.
pub fn entry() -> Entry {
    match STATE.load(Ordering::Acquire) {
        CLOSED => Entry::Shut,
        REGISTER => Entry::Register,
        page => Entry::Memory(address(page).wrapping_byte_add(XAPIC_LVT_PERFORMANCE.into()).cast()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "an address is 64 bits wide")]
fn address(page: u64) -> PVOID {
    core::ptr::with_exposed_provenance_mut(page as usize)
}

/// Determines the kind of access, and maps the page if the registers are memory-mapped.
///
/// # Errors
/// STATUS_NOT_SUPPORTED if there is no local APIC, STATUS_INSUFFICIENT_RESOURCES if it cannot be mapped.
///
/// # IRQL
/// Below DISPATCH_LEVEL.
pub fn open(cpu: &impl GuardedCpu) -> Result<(), NTSTATUS> {
    let state = match lvt_pmi::place(cpu).ok_or(STATUS_NOT_SUPPORTED)? {
        EntryLocation::Register => REGISTER,
        EntryLocation::Page(physical) => map(physical)?,
    };
    STATE.store(state, Ordering::Release);
    Ok(())
}

fn map(physical: u64) -> Result<u64, NTSTATUS> {
    let physical = PHYSICAL_ADDRESS { QuadPart: physical.cast_signed() };
    // SAFETY: the processor reports its local APIC at this address; the access flags suit device memory
    let page = unsafe { MmMapIoSpaceEx(physical, XAPIC_PAGE_SIZE as u64, PAGE_READWRITE | PAGE_NOCACHE) };
    if page.is_null() { Err(STATUS_INSUFFICIENT_RESOURCES) } else { Ok(page.expose_provenance() as u64) }
}

/// Ends all access to the local APIC and unmaps the page. The caller has waited for accesses in progress, except those
/// of interrupts that the HAL delivers although the handler was to be unregistered.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn close() {
    let page = STATE.swap(CLOSED, Ordering::AcqRel);
    if device_object::is_kept() {
        processors::wait_for_interrupts(); // those that found the page
    }
    if !matches!(page, CLOSED | REGISTER) {
        // SAFETY: mapped by `open`, with this length, and unmapped once
        unsafe { MmUnmapIoSpace(address(page), XAPIC_PAGE_SIZE as u64) };
    }
}
