//! Adds the version resource, the manifest, and where imports are loaded from.

use std::{env, io};

fn main() -> io::Result<()> {
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|linker| linker == "gnu")
        && env::var_os("CARGO_CFG_WINDOWS").is_some()
    {
        // Makes the build reproducible: no time in the header.
        println!("cargo::rustc-link-arg-bins=-Wl,--no-insert-timestamp");
        // Nothing refers to the load configuration (crates/system/src/windows/libraries.rs).
        println!("cargo::rustc-link-arg-bins=-Wl,--undefined=_load_config_used");
    }
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|linker| linker == "msvc") {
        // Imports are loaded from System32 only: LOAD_LIBRARY_SEARCH_SYSTEM32. The C runtime has the structure for it.
        println!("cargo::rustc-link-arg-bins=/DEPENDENTLOADFLAG:0x800");
    }
    file_resources::link(file_resources::Kind::Program, "client.exe")
}
