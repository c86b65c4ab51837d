//! The client's symbols, in a file of their own.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::run;

/// The tool of mingw-w64, which also links the client.
const OBJCOPY: &str = "x86_64-w64-mingw32-objcopy";

/// Copies a program that mingw-w64 linked to `stripped`, and its debug information to `symbols`, which debuggers find
/// by the name that the program has of it.
pub fn split(program: &Path, stripped: &Path, symbols: &Path) -> Result<()> {
    run::quiet(Command::new(OBJCOPY).arg("--only-keep-debug").args([program, symbols]))?;
    let mut strip = Command::new(OBJCOPY);
    strip.arg("--strip-all").arg("--add-gnu-debuglink").arg(symbols).args([program, stripped]);
    run::quiet(&mut strip)
}
