//! Consumer tests: external programs use what halprof produces for them.
//!
//! Each program is installed below `target/tools`, or with apt-get. A program that cannot be installed fails the
//! test.

mod counters;
mod crates;
mod exports;
mod images;
mod libpfm4;
mod monitoring;
mod package;
mod stacks;
mod two_cpus;

use std::{env, ffi::OsString};

use anyhow::{Context, Result};

use crate::{elevated, prerequisites, run, workspace::Workspace};

/// The release of cargo-make that runs the tasks.
const CARGO_MAKE: &str = "0.37.24";

/// What a user types behind `cargo make` at the root of the repository.
pub const TASKS: [&[&str]; 4] = [&["build"], &["demo", "--processor", "zen4-7700x"], &["package"], &["test"]];

/// Runs every consumer test, up to the first that fails.
pub fn run(workspace: &Workspace) -> Result<()> {
    elevated::ensure()?;
    prerequisites::for_testing(workspace)?;
    crates::run(workspace)?;
    if cfg!(target_os = "linux") {
        exports::run(workspace)?;
        libpfm4::run(workspace)?;
        monitoring::run(workspace)?;
        counters::run(workspace)?;
        package::run(workspace)?;
    }
    cargo_make(workspace)
}

/// Runs the tasks of Makefile.toml as a user does.
fn cargo_make(workspace: &Workspace) -> Result<()> {
    let path = install(workspace, "cargo-make", CARGO_MAKE)?;
    TASKS.iter().try_for_each(|words| run::verbose(workspace.cargo("make").args(*words).env("PATH", &path)))
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
