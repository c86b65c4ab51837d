//! Takes the driver's compiler and linker settings from the WDK.

fn main() -> Result<(), wdk_build::ConfigError> {
    // Windows refuses a driver whose header has no right checksum; the linker writes it only when told.
    println!("cargo::rustc-cdylib-link-arg=/RELEASE");
    // The same source makes the same file: a hash where the linker would write the time.
    println!("cargo::rustc-cdylib-link-arg=/Brepro");
    // What runs at load alone can be thrown away after it: discardable, executable, readable.
    println!("cargo::rustc-cdylib-link-arg=/SECTION:INIT,DER");
    wdk_build::configure_wdk_binary_build()
}
