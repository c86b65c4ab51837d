//! The package: a folder to copy to a Windows machine, with a test-signed driver.

mod authenticode;
mod certificate;
mod debian;
mod inf;
mod windows_kit;

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};

use crate::{artifacts, files, prerequisites, workspace::Workspace};

/// The file that is signed.
const DRIVER: &str = "halprof.sys";

/// The certificate that verifies the signature, without its private key.
const CERTIFICATE: &str = "halprof.cer";

/// The signed catalog with the hashes of the package's files. Only Windows' tools can make it.
const CATALOG: &str = "halprof.cat";

/// Built files that are copied into the package.
const BUILT: &[&str] = &["client.exe", "halprof.pdb"];

/// Files of the repository that are copied into the package.
const WRITTEN: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "docs/windows.md"];

/// Builds everything and makes the package.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_building(workspace)?;
    artifacts::build(workspace)?;
    let folder = make(workspace)?;
    println!("\nThe package is {}", folder.display());
    for name in contents(&folder)? {
        println!("  {name}");
    }
    if cfg!(not(windows)) {
        println!(
            "{CATALOG} is not included: inf2cat, which makes it, runs only on Windows. The signature in {DRIVER}\n\
             is enough for `client install`. To install with halprof.inf, make the package on Windows."
        );
    }
    println!("The next steps are in windows.md.");
    Ok(())
}

/// Makes the package from the built files, replacing an earlier one.
pub fn make(workspace: &Workspace) -> Result<PathBuf> {
    let (built, folder) = (workspace.artifacts(), workspace.package());
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    for name in BUILT {
        copy_into(&built.join(name), &folder)?;
    }
    for name in WRITTEN {
        copy_into(&workspace.root().join(name), &folder)?;
    }
    let stamped = inf::stamp(inf::TEMPLATE, SystemTime::now(), env!("CARGO_PKG_VERSION"))?;
    files::write(&folder.join("halprof.inf"), stamped)?;

    let (unsigned, signed) = (built.join(DRIVER), folder.join(DRIVER));
    if cfg!(windows) {
        windows_kit::sign(&unsigned, &folder)?;
    } else {
        debian::sign(workspace, &unsigned, &folder)?;
    }
    authenticode::ensure_only_signed(&files::read(&unsigned)?, &files::read(&signed)?)
        .with_context(|| format!("signing changed the content of {}", unsigned.display()))?;
    Ok(folder)
}

fn copy_into(from: &Path, folder: &Path) -> Result<()> {
    let name = from.file_name().with_context(|| format!("{} is not a file", from.display()))?;
    files::copy(from, &folder.join(name))
}

/// Returns the names of the files in the package, sorted.
fn contents(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
