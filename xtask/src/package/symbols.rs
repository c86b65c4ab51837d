//! The client's symbols, in a file of their own.

use std::{mem::offset_of, mem::size_of, path::Path, process::Command};

use anyhow::{Context, Result};
use object::pe::{ImageDosHeader, ImageNtHeaders64, ImageOptionalHeader64};

use crate::{files, run};

/// The tool of mingw-w64, which also links the client.
const OBJCOPY: &str = "x86_64-w64-mingw32-objcopy";

/// Symbols that have the path of a temporary folder in their names, by which rustc links a DLL without its library.
const TEMPORARY: &str = "*_dll_imports_lib_iname";

/// Copies a program that mingw-w64 linked to `stripped`, and its debug information to `symbols`, which debuggers find
/// by the name that the program has of it. The same code gives the same files, wherever and whenever it was compiled.
pub fn split(program: &Path, stripped: &Path, symbols: &Path) -> Result<()> {
    run::quiet(objcopy().args(["--wildcard", "--strip-symbol", TEMPORARY]).args([program, stripped]))?;
    let mut bytes = files::read(stripped)?;
    clear_checksum(&mut bytes).with_context(|| format!("{} is not a program", program.display()))?;
    files::write(stripped, bytes)?;
    run::quiet(objcopy().arg("--only-keep-debug").args([stripped, symbols]))?;
    run::quiet(objcopy().arg("--strip-all").arg("--add-gnu-debuglink").arg(symbols).arg(stripped))
}

/// Returns objcopy with the option that keeps the time in the header, instead of that of the copy.
fn objcopy() -> Command {
    let mut command = Command::new(OBJCOPY);
    command.arg("--preserve-dates");
    command
}

/// Clears the checksum in the header, which the linker computed with the symbols. Windows checks that of drivers only.
fn clear_checksum(program: &mut [u8]) -> Result<()> {
    let headers = ImageDosHeader::parse(&*program)?.nt_headers_offset() as usize;
    let checksum = offset_of!(ImageNtHeaders64, optional_header) + offset_of!(ImageOptionalHeader64, check_sum);
    let start = headers + checksum;
    program.get_mut(start..start + size_of::<u32>()).context("the headers are truncated")?.fill(0);
    Ok(())
}
