//! Whether the driver comes out the same when it is built again, from nothing, in another folder.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use crate::{artifacts, run, workspace::Workspace};

/// Builds the driver anew and compares it with the one among the artifacts.
pub fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("again");
    let group = artifacts::groups().first().context("nothing is built")?;
    let (_, made, name) = group.files.first().context("no driver is built")?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    run::shown(group.cargo(workspace, "build")?.env("CARGO_TARGET_DIR", &folder))?;
    let read = |path: PathBuf| fs::read(&path).with_context(|| format!("cannot read {}", path.display()));
    let first = read(workspace.artifacts().join(name))?;
    let second = read(folder.join(group.target).join(group.profile).join(made))?;
    ensure!(first == second, "{name} came out otherwise the second time; both are kept: see {}", folder.display());
    println!("{name}: {} bytes, the same twice", first.len());
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
