//! Programs from crates.io that a command needs.

use std::{env, ffi::OsString};

use anyhow::{Context, Result};

use crate::{run, workspace::Workspace};

/// Installs a program from crates.io unless that release is installed already. Returns a PATH that finds it.
pub fn install(workspace: &Workspace, package: &str, release: &str) -> Result<OsString> {
    let tools = workspace.tools();
    let mut command = workspace.cargo("install");
    command.args(["--quiet", "--locked", "--version", release, "--root"]).arg(&tools).arg(package);
    run::verbose(command.env("CARGO_TARGET_DIR", tools.join("build")))?;
    let inherited = env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools.join("bin")).chain(env::split_paths(&inherited));
    env::join_paths(folders).context("a folder of PATH cannot be part of a list")
}
