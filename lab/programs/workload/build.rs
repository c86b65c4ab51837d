//! Links the program with a PDB and without the C runtime, which is missing when this is cross-compiled.

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
