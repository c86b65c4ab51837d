//! The check that two clean builds of the driver are identical.
//!
//! Both builds use the same folder: the debug information contains the full paths of the object files, and the driver
//! contains a hash of the debug information.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::{artifacts, files, run, workspace::Workspace};

/// Builds the driver twice from scratch and compares the files.
pub fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("again");
    let first = clean_build(workspace, &folder)?;
    let second = clean_build(workspace, &folder)?;
    if first != second {
        let kept = folder.join("first.sys");
        files::write(&kept, &first)?;
    }
    ensure!(first == second, "two builds of the driver differ; both files are in {}", folder.display());
    println!("driver: {} bytes, identical in two builds", first.len());
    files::remove_folder(&folder)
}

/// Returns the driver, built in an empty folder.
fn clean_build(workspace: &Workspace, folder: &Path) -> Result<Vec<u8>> {
    let group = artifacts::groups().first().context("nothing is built")?;
    let (_, made, _) = group.files.first().context("no driver is built")?;
    files::remove_folder(folder)?;
    run::verbose(group.cargo(workspace, "build")?.env("CARGO_TARGET_DIR", folder))?;
    files::read(&folder.join(group.target).join(group.profile).join(made))
}
