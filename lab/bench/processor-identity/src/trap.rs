//! Traps instead of CPUID instructions, and their handler.

use cpuid_dumps::{CpuIdentity, executable};
use std::{arch::x86_64::__cpuid_count, sync::OnceLock};
use windows_sys::Win32::{
    Foundation::EXCEPTION_ILLEGAL_INSTRUCTION,
    System::{
        Diagnostics::Debug::{AddVectoredExceptionHandler, EXCEPTION_POINTERS},
        Threading::GetCurrentProcessorNumber,
    },
};

/// What the handler returns.
const EXCEPTION_CONTINUE_EXECUTION: i32 = -1;
const EXCEPTION_CONTINUE_SEARCH: i32 = 0;

/// `ud2`, which has the length of CPUID.
const TRAP: [u8; 2] = [0x0F, 0x0B];

/// The addresses of the traps, and the identity.
static REPLACED: OnceLock<(Vec<usize>, &CpuIdentity)> = OnceLock::new();

/// Replaces the instructions at these addresses by traps, which are answered with the leaves of `identity`.
pub fn replace(addresses: Vec<usize>, identity: &'static CpuIdentity) -> Result<(), String> {
    let (addresses, _) = REPLACED.get_or_init(|| (addresses, identity));
    // SAFETY: the handler stays loaded as long as the program runs.
    if unsafe { AddVectoredExceptionHandler(1, Some(handler)) }.is_null() {
        return Err("AddVectoredExceptionHandler failed".to_owned());
    }
    for address in addresses {
        // SAFETY: the two bytes are one instruction of the program, which does not run yet.
        if !unsafe { redirect::write(std::ptr::with_exposed_provenance_mut(*address), &TRAP) } {
            return Err("the code of the program cannot be changed".to_owned());
        }
    }
    Ok(())
}

/// Executes CPUID for the program if the exception is a trap.
///
/// # Safety
/// Only Windows calls it.
unsafe extern "system" fn handler(exception: *mut EXCEPTION_POINTERS) -> i32 {
    // SAFETY: Windows passes a valid pointer.
    let EXCEPTION_POINTERS { ExceptionRecord: record, ContextRecord: context } = unsafe { exception.read() };
    // SAFETY: as above.
    let code = unsafe { record.read() }.ExceptionCode;
    // SAFETY: as above, and nothing else uses the context now.
    let context = unsafe { &mut *context };
    let Some((addresses, identity)) = REPLACED.get() else { return EXCEPTION_CONTINUE_SEARCH };
    let is_ours = |address: &usize| *address as u64 == context.Rip;
    if code != EXCEPTION_ILLEGAL_INSTRUCTION || !addresses.iter().any(is_ours) {
        return EXCEPTION_CONTINUE_SEARCH;
    }
    let [leaf, subleaf] =
        [context.Rax, context.Rcx].map(|register| (register & u64::from(u32::MAX)).try_into().unwrap_or_default());
    let here = __cpuid_count(leaf, subleaf);
    // SAFETY: the function has no preconditions.
    let number = unsafe { GetCurrentProcessorNumber() };
    let model = identity.cpuid_of_processor(number)(leaf, subleaf);
    let registers = executable(leaf, subleaf, model, [here.eax, here.ebx, here.ecx, here.edx]);
    [context.Rax, context.Rbx, context.Rcx, context.Rdx] = registers.map(u64::from);
    context.Rip += TRAP.len() as u64;
    EXCEPTION_CONTINUE_EXECUTION
}
