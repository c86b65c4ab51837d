//! The check that clean builds in two folders are identical.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::{artifacts, files, run, workspace::Workspace};

/// Builds everything in this workspace, and from scratch in a copy of it, and compares the files that are shipped.
pub fn check(workspace: &Workspace) -> Result<()> {
    artifacts::build(workspace)?;
    let folder = workspace.target().join("again");
    files::remove_folder(&folder)?;
    let copy = Workspace::at(folder.join("halprof"));
    copy_sources(workspace.root(), copy.root())?;
    artifacts::build(&copy)?;
    for name in artifacts::SHIPPED {
        let [first, second] = [workspace, &copy].map(|workspace| files::read(&workspace.artifacts().join(name)));
        let (first, second) = (first?, second?);
        ensure!(first == second, "two builds of {name} differ; the second one is in {}", copy.artifacts().display());
        println!("{name}: {} bytes, identical in two folders", first.len());
    }
    files::remove_folder(&folder)
}

/// Copies the files that are in the repository, or would be with the next commit.
fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    for name in run::output(Command::new("git").arg("-C").arg(from).args(list))?.lines() {
        let (source, copy) = (from.join(name), to.join(name));
        // A file that is deleted and not committed is still in the list.
        if source.exists() {
            if let Some(folder) = copy.parent() {
                files::make_folder(folder)?;
            }
            files::copy(&source, &copy)?;
        }
    }
    Ok(())
}
