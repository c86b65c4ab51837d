//! Programs in C and C++ that use the library for C of the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::wine::{artifacts, package};

/// How a program is linked with the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    /// With the import library of halprof.dll.
    Dll,
    /// With the static library.
    Static,
}

/// The system libraries that the static library needs.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lntdll", "-luserenv", "-lws2_32", "-ldbghelp"];

/// Compiles `source`, a file of the repository, with mingw-w64 and all warnings as errors, and links it with the
/// library of the package. Returns the path of the program, which has its DLL beside it.
///
/// # Errors
/// The compiler is missing or refuses the source.
pub fn c_program(source: &str, standard: &str, linkage: Linkage) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the root of the repository")?;
    let (package, source) = (package()?, root.join(source));
    let folder = artifacts()?.join("c");
    fs::create_dir_all(&folder)?;
    fs::copy(package.join("halprof.dll"), folder.join("halprof.dll")).context("the package has no halprof.dll")?;
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let program = folder.join(format!("{stem}-{standard}-{linkage:?}.exe"));
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-pedantic"]).arg(format!("-std={standard}"));
    compile.arg("-I").arg(&package).arg(&source).arg("-o").arg(&program);
    match linkage {
        Linkage::Dll => compile.arg(package.join("halprof.lib")),
        Linkage::Static => compile.arg(package.join("libhalprof.a")).args(SYSTEM_LIBRARIES),
    };
    let output = compile.output().context("cannot start the compiler of mingw-w64")?;
    ensure!(output.status.success(), "{compile:?}\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}
