//! Takes the driver's compiler and linker settings from the WDK, and adds the version resource.

use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    // Windows requires a checksum in the header of a driver. The linker writes one only with this option.
    println!("cargo::rustc-cdylib-link-arg=/RELEASE");
    // Makes the build reproducible: the linker writes a hash instead of the time.
    println!("cargo::rustc-cdylib-link-arg=/Brepro");
    // No code changes return addresses: the driver may run where Windows protects the kernel's stacks with shadow
    // stacks.
    println!("cargo::rustc-cdylib-link-arg=/CETCOMPAT");
    // INIT holds code that runs only during load, so Windows can discard it: discardable, executable, readable.
    println!("cargo::rustc-cdylib-link-arg=/SECTION:INIT,DER");
    // Overrides rustc's list of exports, which has each function with a fixed name: the entry, and those of wdk-sys for
    // the linker. lld takes the last list that it is given. Microsoft's linker documents one list at most, so there the
    // exports remain, and do no harm.
    if cfg!(not(windows)) {
        println!("cargo::rerun-if-changed=exports.def");
        println!("cargo::rustc-cdylib-link-arg=/DEF:{}/exports.def", env::var("CARGO_MANIFEST_DIR")?);
    }
    file_resources::link(file_resources::Kind::Driver, "halprof.sys")?;
    Ok(wdk_build::configure_wdk_binary_build()?)
}
