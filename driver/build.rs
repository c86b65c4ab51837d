//! Takes the driver's compiler and linker settings from the WDK.

fn main() -> Result<(), wdk_build::ConfigError> {
    // Windows refuses a driver whose header has no right checksum; the linker writes it only when told.
    println!("cargo::rustc-cdylib-link-arg=/RELEASE");
    wdk_build::configure_wdk_binary_build()
}
