//! The driver on the machine itself, installed from the package as a user would.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{elevated, package, run, workspace::Workspace};

/// Makes the package, then installs and starts its driver.
pub fn install(workspace: &Workspace) -> Result<()> {
    ensure_windows()?;
    elevated::ensure()?;
    package::run(workspace)?;
    run::shown(Command::new(workspace.package().join("client.exe")).arg("install"))
}

/// Stops the driver and removes it, by the client that installed it.
pub fn uninstall(workspace: &Workspace) -> Result<()> {
    ensure_windows()?;
    elevated::ensure()?;
    let client = workspace.package().join("client.exe");
    ensure!(client.is_file(), "{} is missing: run `cargo xtask package`", client.display());
    run::shown(Command::new(client).arg("uninstall"))
}

fn ensure_windows() -> Result<()> {
    ensure!(
        cfg!(windows),
        "the driver runs on Windows alone: take target/package there (`cargo xtask package` makes it, its windows.md \
         says how), or see it at work under Wine: cargo xtask demo"
    );
    Ok(())
}
