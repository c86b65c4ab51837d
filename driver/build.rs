//! Takes the driver's compiler and linker settings from the WDK, and adds the version resource.

use std::error::Error;

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
    file_resources::link(file_resources::Kind::Driver, "halprof.sys")?;
    Ok(wdk_build::configure_wdk_binary_build()?)
}
