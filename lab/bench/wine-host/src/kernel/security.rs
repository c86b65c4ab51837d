//! Privileges and security descriptors. Wine grants all privileges and does not enforce descriptors.

#![expect(unsafe_code, reason = "reads what the driver points to, and calls Wine's function")]

use crate::{
    kernel::{call_stack, irql},
    lock::lock,
    nt::{self, NtStatus, PASSIVE_LEVEL, Pointer},
    state::machine::MACHINE,
    violation::catch_panic,
};
use bench_protocol::Descriptor;
use std::sync::atomic::Ordering;

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn RtlLengthSecurityDescriptor(descriptor: Pointer) -> u32;
    fn RtlMakeSelfRelativeSD(descriptor: Pointer, copy: *mut u8, length: *mut u32) -> NtStatus;
}

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn ZwSetSecurityObject(handle: Pointer, information: u32, descriptor: Pointer) -> NtStatus;
}

pub fn deny(deny: bool) {
    MACHINE.kernel.security.denies_profiling.store(deny, Ordering::SeqCst);
}

pub fn descriptor() -> Option<Descriptor> {
    lock(&MACHINE.kernel.security.descriptor).clone()
}

/// SE_SYSTEM_PROFILE_PRIVILEGE (wdm.h): the lower half of a LUID with an upper half of 0.
const SYSTEM_PROFILE: u64 = 11;

/// Implements SeSinglePrivilegeCheck. Kernel mode has every privilege; user mode has those that the test does not deny.
pub extern "system" fn single_privilege_check(privilege: u64, mode: i8) -> u8 {
    catch_panic("SeSinglePrivilegeCheck", 0, || {
        irql::check("SeSinglePrivilegeCheck", PASSIVE_LEVEL);
        let denied = privilege == SYSTEM_PROFILE && MACHINE.kernel.security.denies_profiling.load(Ordering::SeqCst);
        u8::from(mode == 0 || !denied)
    })
}

/// Implements ZwSetSecurityObject: records the descriptor, then calls Wine.
pub unsafe extern "system" fn set_security_object(handle: Pointer, information: u32, descriptor: Pointer) -> NtStatus {
    catch_panic("ZwSetSecurityObject", nt::UNSUCCESSFUL, || {
        irql::check("ZwSetSecurityObject", PASSIVE_LEVEL);
        if call_stack::fails("ZwSetSecurityObject") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the driver must pass a valid descriptor.
        let mut length = unsafe { RtlLengthSecurityDescriptor(descriptor) };
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        // SAFETY: the descriptor is valid, and the buffer has the given length.
        let copied = unsafe { RtlMakeSelfRelativeSD(descriptor, bytes.as_mut_ptr(), &raw mut length) };
        // SAFETY: the arguments are the driver's own.
        let status = unsafe { ZwSetSecurityObject(handle, information, descriptor) };
        let bytes = if copied < 0 { Vec::new() } else { bytes };
        *lock(&MACHINE.kernel.security.descriptor) =
            Some(Descriptor { information, bytes, status: status.cast_unsigned() });
        status
    })
}
