//! Programs from crates.io that a command needs.

use std::{env, ffi::OsString, process::Command};

use anyhow::{Context, Result};

use crate::{run, workspace::Workspace};

/// The toolchain that has sanitizers, the coverage of libFuzzer, and Miri.
const NIGHTLY: &str = "nightly";

/// Returns Cargo of the nightly toolchain. rustup installs that and the component, if they are missing.
///
/// # Errors
/// The toolchain cannot be installed, or has no such component.
pub fn nightly_cargo(workspace: &Workspace, component: Option<&str>) -> Result<Command> {
    let installed = run::output(Command::new("rustup").args(["toolchain", "list"]))?;
    if !installed.lines().any(|line| line.starts_with(NIGHTLY)) {
        println!("The Rust toolchain {NIGHTLY} is missing; rustup installs it:");
        run::verbose(Command::new("rustup").args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]))?;
    }
    if let Some(component) = component {
        run::verbose(Command::new("rustup").args(["component", "add", "--toolchain", NIGHTLY, component]))?;
    }
    let mut command = Command::new("rustup");
    command.args(["run", NIGHTLY, "cargo"]).current_dir(workspace.root());
    // `cargo run` set these for xtask, and they name another toolchain.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    Ok(command)
}

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
