//! The check that clean builds in two folders are identical.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use xtask::{artifacts, files, run, workspace::Workspace};

use crate::{copy_c_library, copy_programs};

/// Builds everything in this workspace, and from scratch in a copy of it, and compares the files that are shipped.
pub fn check(workspace: &Workspace) -> Result<()> {
    artifacts::build(workspace)?;
    let folder = workspace.target().join("again");
    files::remove_folder(&folder)?;
    let copy = Workspace::at(folder.join("halprof"));
    copy_sources(workspace.root(), copy.root())?;
    artifacts::build(&copy)?;
    let [first, second] = ["first", "second"].map(|name| folder.join(name));
    ship(&copy, &second)?;
    for name in ship(workspace, &first)? {
        let [one, other] = [&first, &second].map(|folder| files::read(&folder.join(name)));
        let (one, other) = (one?, other?);
        ensure!(one == other, "two builds of {name} differ: see {} and {}", first.display(), second.display());
        println!("{name}: {} bytes, identical in two folders", one.len());
    }
    files::remove_folder(&folder)
}

/// Copies the built files to `folder`, as they are shipped. Returns their names.
fn ship(workspace: &Workspace, folder: &Path) -> Result<Vec<&'static str>> {
    let built = workspace.artifacts();
    files::make_folder(folder)?;
    artifacts::DRIVER_FILES.iter().try_for_each(|name| files::copy(&built.join(name), &folder.join(name)))?;
    let programs = copy_programs(&built, folder)?;
    let library = copy_c_library(workspace, folder)?;
    Ok(artifacts::DRIVER_FILES.into_iter().chain(programs).chain(library).collect())
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
