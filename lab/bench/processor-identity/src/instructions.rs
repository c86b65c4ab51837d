//! The CPUID instructions of the program.

/// Returns the addresses of the CPUID instructions of Rust code in the program.
///
/// # Safety
/// The program does not run yet.
pub unsafe fn of_program() -> Vec<usize> {
    let mut addresses = Vec::new();
    for section in redirect::sections().filter(|section| section.is_executable) {
        // SAFETY: guaranteed by the caller.
        let code = unsafe { section.content() };
        addresses.extend(find(code).map(|at| section.address.expose_provenance() + at));
    }
    addresses
}

/// Returns the offsets of CPUID instructions in `code`. Rust's `__cpuid_count` preserves RBX by `mov r64, rbx` before
/// and `xchg r64, rbx` after it, which tells them from the same bytes inside other instructions.
fn find(code: &[u8]) -> impl Iterator<Item = usize> {
    let is_cpuid = |bytes: &[u8]| {
        matches!(bytes, [0x48 | 0x49, 0x89, 0xD8..=0xDF, 0x0F, 0xA2, 0x48 | 0x49 | 0x4C, 0x87, 0xC0..=0xFF])
    };
    code.windows(8).enumerate().filter(move |(_, bytes)| is_cpuid(bytes)).map(|(at, _)| at + 3)
}
