//! System information: kernel VA shadowing and control areas. Wine serves the other classes.

#![expect(unsafe_code, reason = "writes what the driver points to, and calls Wine's functions")]

use crate::{
    kernel::{control_areas, irql, version},
    lock::lock,
    nt::{self, NtStatus, PASSIVE_LEVEL, Pointer},
    state::machine::MACHINE,
    violation::catch_panic,
};
use bench_protocol::KvaShadow;

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn NtSetSystemInformation(class: u32, buffer: Pointer, length: u32) -> NtStatus;
    fn NtQuerySystemInformation(class: u32, buffer: Pointer, length: u32, returned: *mut u32) -> NtStatus;
}

/// SystemProcessorProfileControlArea of SYSTEM_INFORMATION_CLASS.
const CONTROL_AREA: u32 = 0x81;
/// SystemKernelVaShadowInformation: a ULONG of flags.
const SHADOW_INFORMATION: u32 = 196;
const SHADOW_BYTES: u32 = 4;
/// Its flag KvaShadowEnabled.
const SHADOW_ENABLED: u32 = 1;

pub fn set_kva_shadow(shadow: KvaShadow) {
    *lock(&MACHINE.kernel.windows.shadow) = shadow;
}

/// Restores the defaults.
pub fn reset() {
    version::reset();
    set_kva_shadow(KvaShadow::Off);
}

/// Implements ZwSetSystemInformation.
pub unsafe extern "system" fn set(class: u32, buffer: Pointer, length: u32) -> NtStatus {
    catch_panic("ZwSetSystemInformation", nt::UNSUCCESSFUL, || {
        irql::check("ZwSetSystemInformation", PASSIVE_LEVEL);
        match class {
            // SAFETY: the driver must pass a buffer of this length.
            CONTROL_AREA => unsafe { control_areas::set(buffer, length) },
            // SAFETY: the arguments are the driver's own.
            _ => unsafe { NtSetSystemInformation(class, buffer, length) },
        }
    })
}

/// Implements ZwQuerySystemInformation.
pub unsafe extern "system" fn query(class: u32, buffer: Pointer, length: u32, returned: *mut u32) -> NtStatus {
    catch_panic("ZwQuerySystemInformation", nt::UNSUCCESSFUL, || {
        irql::check("ZwQuerySystemInformation", PASSIVE_LEVEL);
        if class != SHADOW_INFORMATION {
            // SAFETY: the arguments are the driver's own.
            return unsafe { NtQuerySystemInformation(class, buffer, length, returned) };
        }
        let flags = match *lock(&MACHINE.kernel.windows.shadow) {
            KvaShadow::QueryFails(status) => return nt::status(status),
            KvaShadow::On => SHADOW_ENABLED,
            KvaShadow::Off => 0,
        };
        if !returned.is_null() {
            // SAFETY: the pointer is not null, so it must point to a variable of the driver.
            unsafe { returned.write_unaligned(SHADOW_BYTES) };
        }
        if length < SHADOW_BYTES {
            return nt::INFO_LENGTH_MISMATCH;
        }
        // SAFETY: the driver must pass a buffer of the checked length.
        unsafe { buffer.cast::<u32>().write_unaligned(flags) };
        nt::SUCCESS
    })
}
