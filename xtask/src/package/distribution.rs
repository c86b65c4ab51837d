//! The distribution: the package as a zip file, and the manifests by which winget and Scoop install it from a release
//! on GitHub.
//!
//! Rules for the manifests are those of the published schemas: "winget-manifest.*.schema.json" in winget-cli and
//! "schema.json" in Scoop.

use std::{path::PathBuf, str::FromStr};

use anyhow::{Context, Error, Result, ensure};
use serde_json::json;

use super::{CLIENT, SECOND_NAME, winget};
use crate::{archive, files, workspace::Workspace};

/// The name of the product.
const PRODUCT: &str = "halprof";

/// What the product is, in a line.
pub const DESCRIPTION: &str = "Counts and samples hardware performance events on Windows, with a kernel driver";

/// What a package manager shows after it has installed the client.
pub const NOTES: &str = "Run `halprof install` from an elevated prompt to install the driver, and `halprof uninstall` \
                         before you remove the package. windows.md describes the settings of Windows that it needs.";

/// A repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    pub owner: String,
    name: String,
}

impl FromStr for Repository {
    type Err = Error;

    /// Parses OWNER/NAME. The owner becomes a part of winget's identifier, which may have 32 characters.
    fn from_str(text: &str) -> Result<Self> {
        let (owner, name) = text.split_once('/').context("a repository has the form OWNER/NAME")?;
        let plain = |text: &str, others: &[char]| {
            !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || others.contains(&it))
        };
        ensure!(
            plain(owner, &['-']) && owner.len() <= 32,
            "{owner:?} is no owner: up to 32 letters, digits or hyphens"
        );
        ensure!(plain(name, &['-', '_', '.']), "{name:?} is no name of a repository");
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

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
    let hash = files::sha256(&packed);
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
