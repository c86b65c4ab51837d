//! Symbols of the shipped programs: those of each are in a file of their own.

use std::{path::Path, process::Command};

use anyhow::Result;

use xtask::run;

/// The tool of mingw-w64, which also links them.
const OBJCOPY: &str = "x86_64-w64-mingw32-objcopy";

/// Symbols that have the path of a temporary folder in their names, by which rustc links a DLL without its library.
const TEMPORARY: &str = "*_dll_imports_lib*";

/// Copies a program that mingw-w64 linked to `stripped`, and its debug information to `symbols`, which debuggers find
/// by the name that the program has of it. The same code gives the same files, wherever and whenever it was compiled.
pub fn split(program: &Path, stripped: &Path, symbols: &Path) -> Result<()> {
    strip_temporary(program, stripped)?;
    run::quiet(objcopy().arg("--only-keep-debug").args([stripped, symbols]))?;
    run::quiet(objcopy().arg("--strip-all").arg("--add-gnu-debuglink").arg(symbols).arg(stripped))
}

/// Copies a DLL that mingw-w64 linked to `stripped`, without symbols.
pub fn strip(dll: &Path, stripped: &Path) -> Result<()> {
    strip_temporary(dll, stripped)?;
    run::quiet(objcopy().arg("--strip-all").arg(stripped))
}

fn strip_temporary(file: &Path, stripped: &Path) -> Result<()> {
    run::quiet(objcopy().args(["--wildcard", "--strip-symbol", TEMPORARY]).args([file, stripped]))
}

/// Returns objcopy with the option that keeps the time in the header, instead of that of the copy.
fn objcopy() -> Command {
    let mut command = Command::new(OBJCOPY);
    command.arg("--preserve-dates");
    command
}
