//! Redirects functions of a library in this process.

#![expect(unsafe_code, reason = "changes code")]

use crate::{consumer, control, foreign::wide};
use std::{ffi::CStr, ptr};
use windows_sys::Win32::{
    Foundation::HMODULE,
    System::{
        Diagnostics::Debug::FlushInstructionCache,
        LibraryLoader::{GetProcAddress, LoadLibraryW},
        Memory::{PAGE_EXECUTE_READWRITE, VirtualProtect},
        Threading::GetCurrentProcess,
    },
};

/// Libraries that export the functions. The second forwards to the first, or has functions of its own.
const LIBRARIES: [&str; 2] = ["sechost.dll", "advapi32.dll"];

/// `jmp [rip]`, which the address follows. It clobbers no register.
const JUMP: [u8; 6] = [0xFF, 0x25, 0, 0, 0, 0];

/// Redirects the functions for sessions and consumers.
pub fn redirect() -> Result<(), String> {
    let functions: [(&CStr, *const ()); 6] = [
        (c"StartTraceW", control::start as *const ()),
        (c"EnableTraceEx2", control::enable as *const ()),
        (c"ControlTraceW", control::control as *const ()),
        (c"OpenTraceW", consumer::open as *const ()),
        (c"ProcessTrace", consumer::process as *const ()),
        (c"CloseTrace", consumer::close as *const ()),
    ];
    for library in LIBRARIES {
        let name = wide(library);
        // SAFETY: the name is zero-terminated.
        let module = unsafe { LoadLibraryW(name.as_ptr()) };
        if module.is_null() {
            return Err(format!("{library} is missing"));
        }
        for (name, function) in functions {
            let Some(code) = export(module, name) else {
                return Err(format!("{library} has no {}", name.to_string_lossy()));
            };
            // SAFETY: no other thread of the program runs yet. Each of our functions has the type of Wine's, whose code
            // is longer than a jump or padded to 16 bytes.
            if !unsafe { write_jump(code, function) } {
                return Err(format!("{} cannot be changed", name.to_string_lossy()));
            }
        }
    }
    Ok(())
}

/// Returns the address of a function.
fn export(module: HMODULE, name: &CStr) -> Option<*mut u8> {
    // SAFETY: the module is loaded, and the name is zero-terminated.
    let function = unsafe { GetProcAddress(module, name.as_ptr().cast()) }?;
    Some((function as *mut ()).cast())
}

/// Writes a jump to a function over code. Returns false if the memory cannot be made writable.
///
/// # Safety
/// 14 bytes of the code belong to one function or to its padding, and no thread executes them now.
unsafe fn write_jump(code: *mut u8, function: *const ()) -> bool {
    let target = function.expose_provenance().to_le_bytes();
    let mut jump = [0; JUMP.len() + size_of::<usize>()];
    let (instruction, address) = jump.split_at_mut(JUMP.len());
    instruction.copy_from_slice(&JUMP);
    address.copy_from_slice(&target);
    let mut before = 0;
    // SAFETY: the code is mapped.
    if unsafe { VirtualProtect(code.cast(), jump.len(), PAGE_EXECUTE_READWRITE, &raw mut before) } == 0 {
        return false;
    }
    // SAFETY: the memory is writable now, and the caller guarantees that nothing else uses it.
    unsafe { ptr::copy_nonoverlapping(jump.as_ptr(), code, jump.len()) };
    // SAFETY: as above; this restores the protection.
    unsafe { VirtualProtect(code.cast(), jump.len(), before, &raw mut before) };
    // SAFETY: the function has no preconditions.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the range is in this process.
    unsafe { FlushInstructionCache(process, code.cast(), jump.len()) };
    true
}
