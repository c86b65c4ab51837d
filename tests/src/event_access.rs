//! The security descriptor of the driver's events, in the registry. `reg` reads and changes it, not the client.

use anyhow::{Context, Result};
use protocol::trace::security::VALUE_NAME;

use crate::program::ProgramOutput;

/// The key with the security descriptors of providers.
const KEY: &str = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\WMI\\Security";

/// Returns the descriptor, if there is one. `run` runs a program of Windows.
///
/// # Errors
/// The registry cannot be read, or the value is not binary.
pub fn query(run: impl Fn(&str, &[&str]) -> Result<ProgramOutput>) -> Result<Option<Vec<u8>>> {
    let query = run("reg", &["query", KEY, "/v", VALUE_NAME])?;
    if query.code != 0 {
        return Ok(None);
    }
    let found = query.out.split_once("REG_BINARY").map(|(_, digits)| digits.trim());
    let digits = found.with_context(|| format!("no binary value: {}", query.out))?;
    let byte = |place: usize| u8::from_str_radix(digits.get(place..place + 2).unwrap_or_default(), 16);
    (0..digits.len()).step_by(2).map(byte).collect::<Result<_, _>>().map(Some).context("the value is not binary")
}

/// Sets the descriptor, or removes it. `run` runs a program of Windows.
///
/// # Errors
/// The registry cannot be changed, or there is no descriptor to remove.
pub fn set(run: impl Fn(&str, &[&str]) -> Result<ProgramOutput>, descriptor: Option<&[u8]>) -> Result<()> {
    let changed = match descriptor {
        Some(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().concat();
            run("reg", &["add", KEY, "/v", VALUE_NAME, "/t", "REG_BINARY", "/d", &digits, "/f"])?
        }
        None => run("reg", &["delete", KEY, "/v", VALUE_NAME, "/f"])?,
    };
    changed.success().map(drop)
}
