//! The LVT entry for performance counters, as the driver found it accessible.

use core::sync::atomic::{AtomicU64, Ordering};

use wdk_sys::PVOID;
use x86_defs::local_apic::XAPIC_LVT_PERFORMANCE;

/// How the LVT entry for performance counters is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No access.
    Shut,
    /// As a model-specific register.
    Register,
    /// Through this address, at which each processor sees its own local APIC.
    Memory(*mut u32),
}

/// How the local APIC is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No access.
    Closed,
    /// By model-specific registers.
    Registers,
    /// Through the page that is mapped at this address.
    Page(PVOID),
}

/// [`CLOSED`], [`REGISTER`], or the address at which the page is mapped.
static STATE: AtomicU64 = AtomicU64::new(CLOSED);
const CLOSED: u64 = 0;
const REGISTER: u64 = 1;

/// Returns the current kind of access.
///
/// # IRQL
/// Any.
#[inline]
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

/// Changes the kind of access, and returns the one before.
///
/// # Safety
/// A page is that of the local APIC, and mapped until it is no longer accessible and no interrupt that found it is in
/// progress.
///
/// # IRQL
/// Any.
pub unsafe fn set_access(access: Access) -> Access {
    let state = match access {
        Access::Closed => CLOSED,
        Access::Registers => REGISTER,
        Access::Page(page) => page.expose_provenance() as u64,
    };
    match STATE.swap(state, Ordering::AcqRel) {
        CLOSED => Access::Closed,
        REGISTER => Access::Registers,
        page => Access::Page(address(page)),
    }
}
