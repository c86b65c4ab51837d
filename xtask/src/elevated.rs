//! Whether the prompt may install drivers.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// On Windows, makes sure that the prompt is an elevated one. Elsewhere drivers run under Wine, where everyone may.
pub fn ensure() -> Result<()> {
    if cfg!(not(windows)) {
        return Ok(());
    }
    // It lists the filters of file systems, which it may for an administrator alone.
    let mut asked = Command::new("fltmc.exe");
    let status = asked.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.context("cannot start fltmc.exe, which tells an elevated prompt")?;
    ensure!(
        status.success(),
        "this installs a driver, which takes an elevated prompt: open it with \"Run as administrator\", then run the \
         command again"
    );
    Ok(())
}
