//! The distribution: the package as a zip file, and the manifests by which winget and Scoop install it from a release
//! on GitHub.
//!
//! Rules for the manifests are those of the published schemas: "winget-manifest.*.schema.json" in winget-cli and
//! "schema.json" in Scoop.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::{CLIENT, SECOND_NAME, archive, winget};
use sha2::{Digest, Sha256};
use xtask::{command_line::Repository, files, workspace::Workspace};

/// The name of the product.
const PRODUCT: &str = "halprof";

/// What the product is, in a line.
pub const DESCRIPTION: &str = "Counts and samples hardware performance events on Windows, with a kernel driver";

/// What a package manager shows after it has installed the client.
pub const NOTES: &str = "Run `halprof install` from an elevated prompt to install the driver, and `halprof uninstall` \
                         before you remove the package. windows.md describes the settings of Windows that it needs.";

/// A release of the product.
pub struct Release {
    pub repository: Repository,
    pub version: String,
    /// SHA-256 of the zip file, in lower case.
    pub hash: String,
}

impl Release {
    /// Returns the address of the repository.
    pub fn home(&self) -> String {
        format!("https://github.com/{}/{}", self.repository.owner, self.repository.name)
    }

    /// Returns the address of the zip file.
    pub fn address(&self) -> String {
        address(&self.home(), &self.version)
    }

    /// Returns the only folder at the root of the zip file.
    pub fn folder(&self) -> String {
        folder(&self.version)
    }
}

fn address(home: &str, version: &str) -> String {
    format!("{home}/releases/download/v{version}/{}", archive_name(version))
}

fn folder(version: &str) -> String {
    format!("{PRODUCT}-{version}")
}

fn archive_name(version: &str) -> String {
    format!("{PRODUCT}-{version}-x86_64.zip")
}

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
