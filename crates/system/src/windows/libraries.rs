//! From where DLLs are loaded: from System32 only.
//!
//! An elevated client usually runs from the folder where its package was unpacked, which ordinary programs can write
//! to. Windows searches that folder first, so a `userenv.dll` beside client.exe would run elevated.

#![expect(unsafe_code, reason = "calls to Windows")]

use windows_sys::Win32::System::LibraryLoader::{LOAD_LIBRARY_SEARCH_SYSTEM32, SetDefaultDllDirectories};

/// Restricts what this process loads from now on. The imports of client.exe are loaded before any code of it runs: for
/// them, `DependentLoadFlags` in its load configuration says the same. The linker of Visual Studio writes that, and
/// `cargo xtask build` makes mingw's file refer to `_load_config_used`.
pub fn restrict() {
    // SAFETY: the function has no preconditions. It fails for other flags only.
    let _ = unsafe { SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32) };
}

#[cfg(target_env = "gnu")]
mod load_configuration {
    use windows_sys::Win32::System::Diagnostics::Debug::IMAGE_LOAD_CONFIG_DIRECTORY64;
    use windows_sys::Win32::System::LibraryLoader::LOAD_LIBRARY_SEARCH_SYSTEM32;

    /// The load configuration, under the name that linkers know. Binutils before 2.45 do not enter it into the header,
    /// so it has a section of its own, by which xtask finds it. The build script keeps the linker from dropping it.
    #[expect(clippy::cast_possible_truncation, reason = "a size of 320 and a flag of 12 bits")]
    #[used]
    #[unsafe(no_mangle)]
    #[unsafe(link_section = ".ldcfg")]
    static _load_config_used: IMAGE_LOAD_CONFIG_DIRECTORY64 = {
        // SAFETY: the structure has integers only.
        let mut configuration: IMAGE_LOAD_CONFIG_DIRECTORY64 = unsafe { core::mem::zeroed() };
        configuration.Size = size_of::<IMAGE_LOAD_CONFIG_DIRECTORY64>() as u32;
        configuration.DependentLoadFlags = LOAD_LIBRARY_SEARCH_SYSTEM32 as u16;
        configuration
    };
}
