//! The distribution: the package as a zip file, and the manifests by which winget and Scoop install it from a release
//! on GitHub.
//!
//! Rules for the manifests are those of the published schemas: "winget-manifest.*.schema.json" in winget-cli and
//! "schema.json" in Scoop.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::{
    CLIENT, SECOND_NAME, archive,
    release::{DESCRIPTION, NOTES, PRODUCT, Release, address, archive_name, folder},
    winget,
};
use sha2::{Digest, Sha256};
use xtask::{command_line::Repository, files, workspace::Workspace};

/// Makes the zip file of the package and the manifests, replacing earlier ones.
pub fn make(workspace: &Workspace, repository: &Repository) -> Result<PathBuf> {
    let (distribution, version) = (workspace.distribution(), env!("CARGO_PKG_VERSION"));
    files::remove_folder(&distribution)?;
    files::make_folder(&distribution)?;
    let packed = archive::pack(&workspace.package(), &folder(version))?;
    files::write(&distribution.join(archive_name(version)), &packed)?;
    let hash = format!("{:x}", Sha256::digest(&packed));
    let release = Release { repository: repository.clone(), version: version.to_owned(), hash };
    for (name, text) in winget::manifests(&release)? {
        files::write(&distribution.join(name), text)?;
    }
    files::write(&distribution.join(format!("{PRODUCT}.json")), scoop(&release)?)?;
    Ok(distribution)
}

/// Returns the manifest of Scoop.
fn scoop(release: &Release) -> Result<String> {
    let home = release.home();
    let manifest = json!({
        "version": release.version,
        "description": DESCRIPTION,
        "homepage": home,
        // Scoop separates licenses of which the user takes one by a bar.
        "license": env!("CARGO_PKG_LICENSE").replace(" OR ", "|"),
        "notes": NOTES,
        "architecture": {
            "64bit": { "url": release.address(), "hash": release.hash, "extract_dir": release.folder() }
        },
        "bin": [CLIENT, SECOND_NAME],
        "checkver": "github",
        "autoupdate": {
            "architecture": {
                "64bit": { "url": address(&home, "$version"), "extract_dir": folder("$version") }
            }
        }
    });
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}

#[cfg(test)]
mod tests;
