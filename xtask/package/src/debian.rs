//! Test signing with osslsigncode, on Debian.

use std::{path::Path, process::Command, time::SystemTime};

use anyhow::Result;

use super::{
    CATALOG, CERTIFICATE, DRIVER, INF, authenticode,
    catalog::{self, Contents, Member},
    certificate::Certificate,
};
use xtask::{files, run, workspace::Workspace};

/// Writes the signed driver, the signed catalog and the certificate to `folder`, which already contains the INF. The
/// signatures have no timestamp: that would need a timestamp server, and they are for tests only.
pub fn sign(workspace: &Workspace, unsigned: &Path, folder: &Path) -> Result<()> {
    let certificate = Certificate::ensure(workspace)?;
    let (driver, catalog) = (folder.join(DRIVER), folder.join(CATALOG));
    sign_file(&certificate, unsigned, &driver)?;
    let list = workspace.signing().join("unsigned.cat");
    files::write(&list, list_files(folder)?)?;
    add_signature(&certificate, &list, &catalog)?;
    run::quiet(verify(&certificate, &driver).arg("-catalog").arg(&catalog))?;
    certificate.export(&folder.join(CERTIFICATE))
}

/// Returns a catalog of the package in `folder`, which is not signed. It also holds for the driver without its
/// signature, because the hash does not cover signatures.
pub fn list_files(folder: &Path) -> Result<Vec<u8>> {
    let (signed, inf) = (files::read(&folder.join(DRIVER))?, files::read(&folder.join(INF))?);
    let members = [
        Member { name: DRIVER, contents: Contents::Signed(authenticode::certificates(&signed)?) },
        Member { name: INF, contents: Contents::Whole(&inf) },
    ];
    catalog::unsigned(&members, SystemTime::now())
}

/// Writes `unsigned` with a signature to `signed`, and verifies it.
pub fn sign_file(certificate: &Certificate, unsigned: &Path, signed: &Path) -> Result<()> {
    add_signature(certificate, unsigned, signed)?;
    run::quiet(&mut verify(certificate, signed))
}

/// Returns the command that verifies the signature in `file`.
fn verify(certificate: &Certificate, file: &Path) -> Command {
    let mut verify = Command::new("osslsigncode");
    verify.args(["verify", "-CAfile"]).arg(&certificate.pem).arg("-in").arg(file);
    verify
}

fn add_signature(certificate: &Certificate, unsigned: &Path, signed: &Path) -> Result<()> {
    let mut sign = Command::new("osslsigncode");
    sign.args(["sign", "-h", "sha256", "-n", "halprof", "-certs"]).arg(&certificate.pem);
    sign.arg("-key").arg(&certificate.key).arg("-in").arg(unsigned).arg("-out").arg(signed);
    run::quiet(&mut sign)
}
