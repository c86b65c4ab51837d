//! Where the kernel is: in the upper half of the addresses, as on Windows. By that a stack tells kernel from user mode.

#![expect(unsafe_code, reason = "answers a function of Windows")]

use std::{ffi::c_void, fs, sync::OnceLock};

/// The base of ntoskrnl.exe for the sites of the test bench.
const BASE: u64 = 0xFFFF_F800_0000_0000;

/// The file of the kernel that Wine reports as the first module.
const FILE: &str = "C:\\windows\\system32\\ntoskrnl.exe";

/// SystemModuleInformation, and the offsets of the base and the size of the first module in the answer, an
/// RTL_PROCESS_MODULES (phnt, ntexapi.h and ntldr.h).
const MODULES: i32 = 11;
const FIRST_BASE: usize = 24;
const FIRST_SIZE: usize = 32;

/// NtQuerySystemInformation.
pub type Query = unsafe extern "system" fn(i32, *mut c_void, u32, *mut u32) -> i32;

/// Wine's function, and the size of the kernel's image.
static KERNEL: OnceLock<(Query, u32)> = OnceLock::new();

/// Remembers Wine's function, for [`query`].
pub fn set_original(original: Query) -> Result<(), String> {
    let size = image_size().ok_or_else(|| format!("{FILE} is no image"))?;
    KERNEL.get_or_init(|| (original, size));
    Ok(())
}

/// Returns SizeOfImage of the kernel's file, without which its symbols would not belong to the module.
fn image_size() -> Option<u32> {
    /// Offsets of e_lfanew, and of SizeOfImage behind the signature (PE format, "Optional Header").
    const HEADERS: usize = 0x3C;
    const SIZE_OF_IMAGE: usize = 0x50;
    let file = fs::read(FILE).ok()?;
    let word = |at: usize| Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?));
    word(usize::try_from(word(HEADERS)?).ok()? + SIZE_OF_IMAGE)
}

/// Implements NtQuerySystemInformation.
///
/// # Safety
/// As the documentation demands.
pub unsafe extern "system" fn query(class: i32, answer: *mut c_void, length: u32, returned: *mut u32) -> i32 {
    /// STATUS_UNSUCCESSFUL.
    const UNSUCCESSFUL: i32 = 0xC000_0001_u32.cast_signed();
    let Some((original, size)) = KERNEL.get() else { return UNSUCCESSFUL };
    // SAFETY: the arguments are the program's.
    let status = unsafe { original(class, answer, length, returned) };
    if class == MODULES && status == 0 {
        let answer: *mut u8 = answer.cast();
        // SAFETY: an answer without error has at least the first module.
        unsafe { answer.wrapping_add(FIRST_BASE).cast::<u64>().write_unaligned(BASE) };
        // SAFETY: as above.
        unsafe { answer.wrapping_add(FIRST_SIZE).cast::<u32>().write_unaligned(*size) };
    }
    status
}
