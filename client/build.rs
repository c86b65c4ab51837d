//! Adds the version resource and the manifest, `program.manifest`.

use std::{env, io};

fn main() -> io::Result<()> {
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|linker| linker == "gnu")
        && env::var_os("CARGO_CFG_WINDOWS").is_some()
    {
        // Makes the build reproducible: no time in the header.
        println!("cargo::rustc-link-arg-bins=-Wl,--no-insert-timestamp");
    }
    file_resources::link(file_resources::Kind::Program, "client.exe")
}
