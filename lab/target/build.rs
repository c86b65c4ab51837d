//! Makes a program without the C runtime, which there is none of where this is cross-compiled, and with a PDB.

const ARGUMENTS: [&str; 4] = ["/ENTRY:start", "/SUBSYSTEM:CONSOLE", "/NODEFAULTLIB", "/DEBUG:FULL"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key| std::env::var(key).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") == "windows" && target("CARGO_CFG_TARGET_ENV") == "msvc" {
        for argument in ARGUMENTS {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}
