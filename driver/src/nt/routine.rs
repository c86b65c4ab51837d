//! Kernel functions that only some releases of Windows have.

use core::ffi::c_void;

use wdk_sys::ntddk::MmGetSystemRoutineAddress;

use super::text::Text;

/// Returns the address of a kernel export, or `None` if the kernel lacks it.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn find<const LENGTH: usize>(name: &'static Text<LENGTH>) -> Option<*mut c_void> {
    // SAFETY: the name is only read; this function requires PASSIVE_LEVEL
    let address = unsafe { MmGetSystemRoutineAddress(&mut name.counted()) };
    (!address.is_null()).then_some(address)
}
