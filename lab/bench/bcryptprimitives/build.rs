//! Links the DLL without the C runtime and without an entry point, because it only forwards one call.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key| std::env::var(key).unwrap_or_default();
    if target("CARGO_CFG_TARGET_OS") == "windows" && target("CARGO_CFG_TARGET_ENV") == "msvc" {
        for argument in ["/NOENTRY", "/NODEFAULTLIB"] {
            println!("cargo::rustc-link-arg-cdylib={argument}");
        }
    }
}
