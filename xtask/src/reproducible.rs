//! The check that two clean builds of the driver are identical.
//!
//! Both builds use the same folder: the debug information contains the full paths of the object files, and the driver
//! contains a hash of the debug information.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{artifacts, run, workspace::Workspace};

/// Builds the driver twice from scratch and compares the files.
pub fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("again");
    let first = clean_build(workspace, &folder)?;
    let second = clean_build(workspace, &folder)?;
    if first != second {
        let kept = folder.join("first.sys");
        fs::write(&kept, &first).with_context(|| format!("cannot write {}", kept.display()))?;
    }
    ensure!(first == second, "two builds of the driver differ; both files are in {}", folder.display());
    println!("driver: {} bytes, identical in two builds", first.len());
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Returns the driver, built in an empty folder.
fn clean_build(workspace: &Workspace, folder: &Path) -> Result<Vec<u8>> {
    let group = artifacts::groups().first().context("nothing is built")?;
    let (_, made, _) = group.files.first().context("no driver is built")?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    run::shown(group.cargo(workspace, "build")?.env("CARGO_TARGET_DIR", folder))?;
    let path = folder.join(group.target).join(group.profile).join(made);
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}
