//! The CPUID instructions of the program.

#![expect(unsafe_code, reason = "reads the image of the program")]

use std::{ptr, slice};
use windows_sys::Win32::System::{
    Diagnostics::Debug::{IMAGE_NT_HEADERS64, IMAGE_SCN_MEM_EXECUTE, IMAGE_SECTION_HEADER},
    LibraryLoader::GetModuleHandleW,
    SystemServices::IMAGE_DOS_HEADER,
};

/// Returns the addresses of the CPUID instructions of Rust code in the program.
pub fn of_program() -> Result<Vec<usize>, String> {
    // SAFETY: a null name stands for the program.
    let base: *const u8 = unsafe { GetModuleHandleW(ptr::null()) }.cast();
    // SAFETY: an image begins with this header.
    let headers = unsafe { base.cast::<IMAGE_DOS_HEADER>().read_unaligned() }.e_lfanew;
    let headers = base.wrapping_add(usize::try_from(headers).map_err(|_| "the program has no headers")?);
    // SAFETY: the loader has checked that these headers are there.
    let found = unsafe { headers.cast::<IMAGE_NT_HEADERS64>().read_unaligned() };
    let optional = usize::from(found.FileHeader.SizeOfOptionalHeader);
    let sections = headers.wrapping_add(size_of_val(&found.Signature) + size_of_val(&found.FileHeader) + optional);
    let mut addresses = Vec::new();
    for number in 0..usize::from(found.FileHeader.NumberOfSections) {
        let header = sections.wrapping_add(number * size_of::<IMAGE_SECTION_HEADER>());
        // SAFETY: the headers of the sections follow the optional header.
        let section = unsafe { header.cast::<IMAGE_SECTION_HEADER>().read_unaligned() };
        if section.Characteristics & IMAGE_SCN_MEM_EXECUTE != 0 {
            let code = base.wrapping_add(section.VirtualAddress as usize);
            // SAFETY: the size in memory and in the file is the first member of a union of integers.
            let size = unsafe { section.Misc.VirtualSize } as usize;
            // SAFETY: the section is mapped, and no other thread runs yet.
            let bytes = unsafe { slice::from_raw_parts(code, size) };
            addresses.extend(find(bytes).map(|at| code.addr() + at));
        }
    }
    Ok(addresses)
}

/// Returns the offsets of CPUID instructions in `code`. Rust's `__cpuid_count` preserves RBX by `mov r64, rbx` before
/// and `xchg r64, rbx` after it, which tells them from the same bytes inside other instructions.
fn find(code: &[u8]) -> impl Iterator<Item = usize> {
    let is_cpuid = |bytes: &[u8]| {
        matches!(bytes, [0x48 | 0x49, 0x89, 0xD8..=0xDF, 0x0F, 0xA2, 0x48 | 0x49 | 0x4C, 0x87, 0xC0..=0xFF])
    };
    code.windows(8).enumerate().filter(move |(_, bytes)| is_cpuid(bytes)).map(|(at, _)| at + 3)
}
