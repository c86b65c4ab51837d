//! Whether the driver comes out the same when it is built again from nothing.
//!
//! In the same folder: the debug information names the object files by their whole paths, and its hash is in the driver.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{artifacts, run, workspace::Workspace};

/// Builds the driver twice, each time with nothing there before, and compares the two.
pub fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target().join("again");
    let first = built(workspace, &folder)?;
    let second = built(workspace, &folder)?;
    if first != second {
        let kept = folder.join("first.sys");
        fs::write(&kept, &first).with_context(|| format!("cannot write {}", kept.display()))?;
    }
    ensure!(first == second, "the driver came out otherwise the second time; both are kept: see {}", folder.display());
    println!("driver: {} bytes, the same twice", first.len());
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// The driver's file, built in a folder that was empty.
fn built(workspace: &Workspace, folder: &Path) -> Result<Vec<u8>> {
    let group = artifacts::groups().first().context("nothing is built")?;
    let (_, made, _) = group.files.first().context("no driver is built")?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    run::shown(group.cargo(workspace, "build")?.env("CARGO_TARGET_DIR", folder))?;
    let path = folder.join(group.target).join(group.profile).join(made);
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}
