//! The image of the program.

use std::{ptr, slice};
use windows_sys::Win32::System::{
    Diagnostics::Debug::{IMAGE_NT_HEADERS64, IMAGE_SCN_MEM_EXECUTE, IMAGE_SECTION_HEADER},
    LibraryLoader::GetModuleHandleW,
    SystemServices::IMAGE_DOS_HEADER,
};

/// A section of the program.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its address.
    pub address: *mut u8,
    /// Its size in bytes.
    size: usize,
    /// Whether it contains code.
    pub is_executable: bool,
}

impl Section {
    /// Returns its content.
    ///
    /// # Safety
    /// The program does not run yet, and nothing writes to the section as long as the content is used.
    #[must_use]
    pub unsafe fn content(&self) -> &[u8] {
        // SAFETY: the loader has mapped the section, and the caller guarantees the rest.
        unsafe { slice::from_raw_parts(self.address, self.size) }
    }
}

/// Returns the sections of the program.
pub fn sections() -> impl Iterator<Item = Section> {
    // SAFETY: a null name stands for the program.
    let base: *mut u8 = unsafe { GetModuleHandleW(ptr::null()) }.cast();
    // SAFETY: an image begins with this header.
    let headers = unsafe { base.cast::<IMAGE_DOS_HEADER>().read_unaligned() }.e_lfanew;
    let headers = base.wrapping_offset(headers as isize);
    // SAFETY: the loader has checked that these headers are there.
    let found = unsafe { headers.cast::<IMAGE_NT_HEADERS64>().read_unaligned() };
    let optional = usize::from(found.FileHeader.SizeOfOptionalHeader);
    let first = headers.wrapping_add(size_of_val(&found.Signature) + size_of_val(&found.FileHeader) + optional);
    (0..usize::from(found.FileHeader.NumberOfSections)).map(move |number| {
        let header = first.wrapping_add(number * size_of::<IMAGE_SECTION_HEADER>());
        // SAFETY: the headers of the sections follow the optional header.
        let header = unsafe { header.cast::<IMAGE_SECTION_HEADER>().read_unaligned() };
        Section {
            address: base.wrapping_add(header.VirtualAddress as usize),
            // SAFETY: every member of this union is a number.
            size: unsafe { header.Misc.VirtualSize } as usize,
            is_executable: header.Characteristics & IMAGE_SCN_MEM_EXECUTE != 0,
        }
    })
}
