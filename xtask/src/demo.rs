//! `cargo xtask demo`: builds everything, then runs the program `demo` of the package `tests`.

use std::{path::Path, process::Command};

use anyhow::Result;

use crate::{
    artifacts, elevated, package, prefix, prerequisites,
    program::{self, PACKAGE},
    run,
    workspace::Workspace,
};

/// Processors that the demo shows.
#[derive(Clone, Copy)]
pub enum DemoProcessors<'a> {
    /// The demo's own selection.
    Default,
    /// One processor, by the name of its identity.
    Named(&'a str),
    /// One processor of each generation.
    Generations,
}

/// Builds what is missing and runs the demo.
pub fn run(workspace: &Workspace, processors: DemoProcessors<'_>) -> Result<()> {
    elevated::ensure()?;
    bench(workspace, "demo")?;
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", "tests", "--bin", "demo", "--"]);
    match processors {
        DemoProcessors::Default => {}
        DemoProcessors::Named(name) => drop(command.args(["--processor", name])),
        DemoProcessors::Generations => drop(command.arg("--generations")),
    }
    on_bench(workspace, &mut command)
}

/// Builds what a program of the package `tests` runs, and the program, all at the same time.
pub fn bench(workspace: &Workspace, name: &str) -> Result<()> {
    prerequisites::for_building(workspace)?;
    artifacts::build_beside(workspace, || {
        // Not in one call: with other packages, those that both need could have other features.
        program::build(workspace, PACKAGE)?;
        run::quiet(workspace.cargo("build").args(["--quiet", "--locked", "--package", "tests", "--bin", name]))
    })?;
    package::make(workspace) // `client install` refuses an unsigned driver
}

/// Runs a program of the package `tests` with the paths of the built files, the package and the Wine prefix in its
/// environment. Afterwards stops every process of the prefix, even if the program failed.
pub fn on_bench(workspace: &Workspace, command: &mut Command) -> Result<()> {
    on_bench_in(workspace, &workspace.prefix("first"), command, run::verbose)
}

/// Like [`on_bench`], in one of the prefixes and run by `run`.
pub fn on_bench_in(
    workspace: &Workspace,
    prefix: &Path,
    command: &mut Command,
    run: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<()> {
    command.env("HALPROF_ARTIFACTS", workspace.artifacts()).env("HALPROF_PACKAGE", workspace.package());
    if cfg!(windows) {
        return run(command);
    }
    prefix::ensure(workspace, prefix)?;
    let ran = run(command.env("HALPROF_PREFIX", prefix));
    prefix::stop_server(prefix)?;
    ran
}
