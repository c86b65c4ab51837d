//! Redirects functions of libraries in this process: a jump replaces the first instructions of an exported function, or
//! another function replaces it in the imports of the program.

#![cfg(windows)]
#![expect(unsafe_code, reason = "changes code")]

mod program;

pub use program::{Section, sections};

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

/// `jmp [rip]`, which the address follows. It clobbers no register.
const JUMP: [u8; 6] = [0xFF, 0x25, 0, 0, 0, 0];

/// A library of this process.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    name: &'static str,
    module: HMODULE,
}

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    /// The library is missing.
    pub fn load(name: &'static str) -> Result<Self, String> {
        let units: Vec<u16> = name.encode_utf16().chain([0]).collect();
        // SAFETY: the name is zero-terminated.
        let module = unsafe { LoadLibraryW(units.as_ptr()) };
        if module.is_null() { Err(format!("{name} is missing")) } else { Ok(Self { name, module }) }
    }

    /// Returns the base address.
    #[must_use]
    pub fn address(self) -> usize {
        self.module.addr()
    }

    fn function(self, name: &CStr) -> Result<*mut u8, String> {
        // SAFETY: the module is loaded, and the name is zero-terminated.
        let code = unsafe { GetProcAddress(self.module, name.as_ptr().cast()) };
        let code = code.ok_or_else(|| format!("{} has no {}", self.name, name.to_string_lossy()))?;
        Ok((code as *mut ()).cast())
    }

    /// Replaces an exported function by `function` in the imports of the program, if it has it, and returns the
    /// exported one.
    ///
    /// # Errors
    /// The library does not export it, or the imports cannot be changed.
    ///
    /// # Safety
    /// The program does not run yet, and `function` has the type of the exported one.
    pub unsafe fn replace_import(self, name: &CStr, function: *const ()) -> Result<*const (), String> {
        const SIZE: usize = size_of::<usize>();
        let original = self.function(name)?;
        let (wanted, replacement) = (original.addr().to_ne_bytes(), function.expose_provenance().to_ne_bytes());
        for section in sections().filter(|section| !section.is_executable) {
            // SAFETY: guaranteed by the caller. The content is not used when the section is written.
            let words = unsafe { section.content() }.chunks_exact(SIZE);
            for (place, _) in words.enumerate().filter(|(_, word)| **word == wanted) {
                // SAFETY: the word is an import, and the program does not run yet.
                if !unsafe { write(section.address.wrapping_add(place * SIZE), &replacement) } {
                    return Err("the imports of the program cannot be changed".to_owned());
                }
            }
        }
        Ok(original.cast_const().cast())
    }

    /// Redirects an exported function to `function`.
    ///
    /// # Errors
    /// The library does not export it, or its code cannot be changed.
    ///
    /// # Safety
    /// No other thread executes the function now. `function` has its type, and its code is longer than a jump or padded
    /// to 16 bytes.
    pub unsafe fn redirect(self, name: &CStr, function: *const ()) -> Result<(), String> {
        // SAFETY: guaranteed by the caller.
        if unsafe { write(self.function(name)?, &jump(function)) } {
            return Ok(());
        }
        Err(format!("{} cannot be changed", name.to_string_lossy()))
    }
}

fn jump(function: *const ()) -> [u8; JUMP.len() + size_of::<usize>()] {
    let target = function.expose_provenance().to_le_bytes();
    let mut jump = [0; JUMP.len() + size_of::<usize>()];
    let (instruction, address) = jump.split_at_mut(JUMP.len());
    instruction.copy_from_slice(&JUMP);
    address.copy_from_slice(&target);
    jump
}

/// Writes instructions over code. Returns false if the memory cannot be made writable.
///
/// # Safety
/// The bytes of the code belong to one function or to its padding, and no thread executes them now.
#[must_use]
pub unsafe fn write(code: *mut u8, instructions: &[u8]) -> bool {
    let mut before = 0;
    // SAFETY: the code is mapped.
    if unsafe { VirtualProtect(code.cast(), instructions.len(), PAGE_EXECUTE_READWRITE, &raw mut before) } == 0 {
        return false;
    }
    // SAFETY: the memory is writable now, and the caller guarantees that nothing else uses it.
    unsafe { ptr::copy_nonoverlapping(instructions.as_ptr(), code, instructions.len()) };
    // SAFETY: as above; this restores the protection.
    unsafe { VirtualProtect(code.cast(), instructions.len(), before, &raw mut before) };
    // SAFETY: the function has no preconditions.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the range is in this process.
    unsafe { FlushInstructionCache(process, code.cast(), instructions.len()) };
    true
}
