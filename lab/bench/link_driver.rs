//! The build script of shim and faulty-driver: links the library as a kernel driver, a native image with `DriverEntry`
//! and without C runtime.

const ARGUMENTS: [&str; 8] = [
    "/DRIVER",
    "/SUBSYSTEM:NATIVE,10.00",
    "/ENTRY:DriverEntry",
    "/NODEFAULTLIB",
    "/DYNAMICBASE",
    "/NXCOMPAT",
    "/RELEASE",
    "/OPT:REF,ICF",
];

fn main() {
    println!("cargo::rerun-if-changed=../link_driver.rs");
    let target = |key| std::env::var(key).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") == "windows" && target("CARGO_CFG_TARGET_ENV") == "msvc" {
        for argument in ARGUMENTS {
            println!("cargo::rustc-link-arg-cdylib={argument}");
        }
    }
}
