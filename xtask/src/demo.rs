//! The demo: everything built, then the main job. The job itself is a program of the package `tests`.

use std::process::Command;

use anyhow::Result;

use crate::{artifacts, elevated, package, prefix, prerequisites, run, workspace::Workspace};

/// On which processors.
#[derive(Clone, Copy)]
pub enum Show<'a> {
    /// What the demo chooses.
    Usual,
    /// One, by its name.
    Processor(&'a str),
    /// One of each generation.
    Generations,
}

/// Builds what is missing and runs the main job.
pub fn run(workspace: &Workspace, show: Show<'_>) -> Result<()> {
    elevated::ensure()?;
    prerequisites::for_building(workspace)?;
    artifacts::build(workspace)?;
    if cfg!(windows) {
        package::make(workspace)?; // Windows loads no driver without a signature
    }
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", "tests", "--bin", "demo", "--"]);
    match show {
        Show::Usual => {}
        Show::Processor(name) => drop(command.args(["--processor", name])),
        Show::Generations => drop(command.arg("--generations")),
    }
    on_bench(workspace, &mut command)
}

/// Runs a program of the package `tests`, which is told where the built files, the package and the Wine prefix are. Whatever becomes
/// of it, no process of the prefix is left.
pub fn on_bench(workspace: &Workspace, command: &mut Command) -> Result<()> {
    command.env("HALPROF_ARTIFACTS", workspace.artifacts()).env("HALPROF_PACKAGE", workspace.package());
    if cfg!(windows) {
        return run::shown(command);
    }
    let prefix = prefix::ensure(workspace)?;
    let ran = run::shown(command.env("HALPROF_PREFIX", &prefix));
    prefix::stop_server(&prefix)?;
    ran
}
