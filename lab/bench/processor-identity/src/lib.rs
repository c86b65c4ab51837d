//! processor-identity.dll: CPUID of the lab's processors in a program. `launcher` loads it before the program's first
//! instruction. It turns the CPUID instructions of Rust code in the program into traps, and answers them with the
//! leaves of the identity that the environment names ([`PROCESSOR_IDENTITY`]).
//!
//! A program must not find instructions that this machine lacks, so flags of instructions are those of both. C code of
//! the program and libraries of Wine see this machine's CPUID.

#![cfg(windows)]
#![expect(unsafe_code, reason = "the entry point, and the image of the program")]

mod instructions;
mod trap;

use bench_protocol::PROCESSOR_IDENTITY;
use std::{env, ffi::c_void};
use windows_sys::Win32::{
    Foundation::{FALSE, HINSTANCE, TRUE},
    System::SystemServices::DLL_PROCESS_ATTACH,
};
use windows_sys::core::BOOL;

/// The entry point. Without a valid identity the library is not loaded.
///
/// # Safety
/// Only the loader calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DllMain(_library: HINSTANCE, reason: u32, _reserved: *mut c_void) -> BOOL {
    if reason != DLL_PROCESS_ATTACH {
        return TRUE;
    }
    match replace() {
        Ok(()) => TRUE,
        Err(why) => {
            eprintln!("processor-identity.dll: {why}");
            FALSE
        }
    }
}

fn replace() -> Result<(), String> {
    let name = env::var(PROCESSOR_IDENTITY).map_err(|error| format!("{PROCESSOR_IDENTITY}: {error}"))?;
    let identity = cpuid_dumps::find(&name).ok_or_else(|| format!("there is no processor {name}"))?;
    // SAFETY: the launcher loads this library before the first instruction of the program.
    trap::replace(unsafe { instructions::of_program() }, identity)
}
