//! The signature of the manifest that `cargo xtask proof` makes, and its place in the package.
//!
//! The manifest is signed as the package is: by a catalog with its SHA-256, which has the signature of the certificate
//! for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use xtask::{files, run, workspace::Workspace};

use super::{
    CERTIFICATE, DRIVER, authenticode,
    catalog::{self, Contents, Member},
    certificate::Certificate,
    copy_into, debian,
};

/// The manifest, its catalog and its schema.
const MANIFEST: &str = "proof.json";
const CATALOG: &str = "proof.cat";
const SCHEMA: &str = "proof.schema.json";

/// A driver, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverFile {
    /// Its name.
    pub name: String,
    /// Size of the file without a signature, in bytes.
    pub bytes: u64,
    /// SHA-256 of that file.
    pub sha256: String,
    /// Authenticode's SHA-256, which the file has with any signature.
    pub authenticode_sha256: String,
}

/// The part of a manifest that says of which driver it is.
#[derive(Deserialize)]
struct OfDriver {
    driver: DriverFile,
}

/// Returns the folder of the manifest, before it is in a package.
pub fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("proof")
}

/// Describes the driver that was built.
pub fn describe(workspace: &Workspace) -> Result<DriverFile> {
    describe_file(&files::read(&workspace.artifacts().join(DRIVER))?)
}

fn describe_file(driver: &[u8]) -> Result<DriverFile> {
    Ok(DriverFile {
        name: DRIVER.to_owned(),
        bytes: driver.len() as u64,
        sha256: format!("{:x}", Sha256::digest(driver)),
        authenticode_sha256: authenticode::digest(driver)?,
    })
}

/// Writes the manifest and its signed catalog to the folder of the manifest.
pub fn seal(workspace: &Workspace, manifest: &str) -> Result<()> {
    let (folder, certificate) = (folder(workspace), Certificate::ensure(workspace)?);
    files::write(&folder.join(MANIFEST), manifest)?;
    files::copy(&workspace.root().join("docs").join(SCHEMA), &folder.join(SCHEMA))?;
    let member = Member { name: MANIFEST, contents: Contents::Whole(manifest.as_bytes()) };
    let unsigned = folder.join("unsigned.cat");
    files::write(&unsigned, catalog::unsigned(&[member], SystemTime::now())?)?;
    debian::sign_file(&certificate, &unsigned, &folder.join(CATALOG))
}

/// Copies the manifest into a package, if there is one of its driver.
pub fn adopt(workspace: &Workspace, package: &Path) -> Result<()> {
    let folder = folder(workspace);
    if !folder.join(CATALOG).is_file() {
        return Ok(());
    }
    let of: OfDriver = serde_json::from_slice(&files::read(&folder.join(MANIFEST))?)?;
    if of.driver != describe(workspace)? {
        println!("The manifest in {} is of another driver, and not in the package.", folder.display());
        return Ok(());
    }
    [MANIFEST, CATALOG, SCHEMA].iter().try_for_each(|name| copy_into(&folder.join(name), package))
}

/// Returns the manifest of a package, whose catalog has a valid signature of the certificate in the package.
///
/// # Errors
/// The signature is not valid, or the catalog is of another manifest.
pub fn verified(package: &Path) -> Result<Vec<u8>> {
    let (catalog, manifest) = (package.join(CATALOG), files::read(&package.join(MANIFEST))?);
    let folder = tempfile::tempdir()?;
    let pem = folder.path().join("certificate.pem");
    let mut convert = Command::new("openssl");
    convert.args(["x509", "-inform", "DER", "-in"]).arg(package.join(CERTIFICATE)).arg("-out").arg(&pem);
    run::output(&mut convert)?;
    let mut verify = Command::new("osslsigncode");
    verify.args(["verify", "-CAfile"]).arg(&pem).arg("-in").arg(&catalog);
    run::output(&mut verify).with_context(|| format!("the signature in {} is not valid", catalog.display()))?;
    ensure_listed(&files::read(&catalog)?, &manifest)?;
    Ok(manifest)
}

/// Checks that a catalog has the hash of a manifest.
fn ensure_listed(catalog: &[u8], manifest: &[u8]) -> Result<()> {
    let (listed, hash) = (catalog::hashes(catalog)?, Sha256::digest(manifest));
    ensure!(listed.iter().any(|one| *one == *hash), "{MANIFEST} is not what {CATALOG} was made of");
    Ok(())
}

/// Checks that a manifest is of this driver, whether the file is signed or not.
///
/// # Errors
/// It is of another.
pub fn ensure_of(described: &DriverFile, file: &[u8]) -> Result<()> {
    let found = authenticode::digest(file)?;
    ensure!(
        found == described.authenticode_sha256,
        "the manifest is of another driver: {} instead of {found}",
        described.authenticode_sha256
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authenticode::{signed_file, unsigned_file};

    #[test]
    fn a_changed_byte_of_the_manifest_is_not_what_was_signed() {
        let manifest = br#"{"driver": "a", "stages": [{"verdict": "failed"}]}"#;
        let member = Member { name: MANIFEST, contents: Contents::Whole(manifest) };
        let catalog = catalog::unsigned(&[member], SystemTime::UNIX_EPOCH).unwrap();
        ensure_listed(&catalog, manifest).unwrap();
        for place in 0..manifest.len() {
            let mut changed = manifest.to_vec();
            changed[place] ^= 1;
            assert!(ensure_listed(&catalog, &changed).is_err(), "{place}");
        }
        assert!(ensure_listed(&catalog, &manifest[1..]).is_err());
    }

    #[test]
    fn a_driver_is_known_with_and_without_a_signature_and_by_every_byte_that_one_covers() {
        let described = describe_file(&unsigned_file()).unwrap();
        ensure_of(&described, &unsigned_file()).unwrap();
        ensure_of(&described, &signed_file()).unwrap();
        let (mut refused, file) = (0, unsigned_file());
        for place in 0..file.len() {
            let mut changed = file.clone();
            changed[place] ^= 1;
            refused += usize::from(ensure_of(&described, &changed).is_err());
        }
        // Checksum, and place and size of the signature.
        assert!((file.len() - 12..=file.len() - 4).contains(&refused), "{refused} of {}", file.len());
    }
}
