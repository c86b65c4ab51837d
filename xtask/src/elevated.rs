//! The check for an elevated prompt.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Checks on Windows that the prompt is elevated. Elsewhere drivers run under Wine, which needs no privilege.
pub fn ensure() -> Result<()> {
    if cfg!(not(windows)) {
        return Ok(());
    }
    // fltmc lists file system filters, which only administrators may do.
    let mut fltmc = Command::new("fltmc.exe");
    let status = fltmc.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.context("cannot start fltmc.exe, which shows whether the prompt is elevated")?;
    ensure!(
        status.success(),
        "this command installs a driver, which needs an elevated prompt: open one with \"Run as administrator\", then \
         run the command again"
    );
    Ok(())
}
