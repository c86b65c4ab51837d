//! `cargo xtask install` and `uninstall`: the driver on this machine, installed from the package as a user installs it.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{command_line::Extras, elevated, package, run, workspace::Workspace};

/// Creates the package, then installs and starts its driver.
pub fn install(workspace: &Workspace) -> Result<()> {
    ensure_windows()?;
    elevated::ensure()?;
    package::run(workspace, &Extras::default())?;
    run::verbose(Command::new(workspace.package().join("client.exe")).arg("install"))
}

/// Stops and removes the driver with the client of the package.
pub fn uninstall(workspace: &Workspace) -> Result<()> {
    ensure_windows()?;
    elevated::ensure()?;
    let client = workspace.package().join("client.exe");
    ensure!(client.is_file(), "{} is missing: run `cargo xtask package`", client.display());
    run::verbose(Command::new(client).arg("uninstall"))
}

fn ensure_windows() -> Result<()> {
    ensure!(
        cfg!(windows),
        "the driver runs only on Windows: copy target/package there (`cargo xtask package` makes it, its windows.md \
         explains the installation), or run the driver under Wine: cargo xtask demo"
    );
    Ok(())
}
