//! The demo: everything built, then the main job. The job itself is a program of the package `tests`.

use std::process::Command;

use anyhow::Result;

use crate::{artifacts, prefix, prerequisites, run, workspace::Workspace};

/// Builds what is missing and runs the main job.
pub fn run(workspace: &Workspace, processor: Option<&str>) -> Result<()> {
    prerequisites::for_building(workspace)?;
    artifacts::build(workspace)?;
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", "tests", "--bin", "demo", "--"]);
    if let Some(name) = processor {
        command.args(["--processor", name]);
    }
    bench(workspace, &mut command)?;
    run::shown(&mut command)
}

/// Tells a program of the package `tests` where the built files and the Wine prefix are.
pub fn bench(workspace: &Workspace, command: &mut Command) -> Result<()> {
    command.env("HALPROF_ARTIFACTS", workspace.artifacts());
    if cfg!(not(windows)) {
        command.env("HALPROF_PREFIX", prefix::ensure(workspace)?);
    }
    Ok(())
}
