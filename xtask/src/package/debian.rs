//! Test signing with osslsigncode, on Debian.

use std::{path::Path, process::Command, time::SystemTime};

use anyhow::Result;

use super::{
    CATALOG, CERTIFICATE, DRIVER, INF, authenticode,
    catalog::{self, Contents, Member},
    certificate::Certificate,
};
use crate::{files, run, workspace::Workspace};

/// Writes the signed driver, the signed catalog and the certificate to `folder`, which already contains the INF. The
/// signatures have no timestamp: that would need a timestamp server, and they are for tests only.
pub fn sign(workspace: &Workspace, unsigned: &Path, folder: &Path) -> Result<()> {
    let certificate = Certificate::ensure(workspace)?;
    let (driver, catalog) = (folder.join(DRIVER), folder.join(CATALOG));
    add_signature(&certificate, unsigned, &driver)?;
    let (signed, inf) = (files::read(&driver)?, files::read(&folder.join(INF))?);
    let members = [
        Member { name: DRIVER, contents: Contents::Signed(authenticode::certificates(&signed)?) },
        Member { name: INF, contents: Contents::Whole(&inf) },
    ];
    let list = workspace.signing().join("unsigned.cat");
    files::write(&list, catalog::unsigned(&members, SystemTime::now())?)?;
    add_signature(&certificate, &list, &catalog)?;
    let verify = || {
        let mut verify = Command::new("osslsigncode");
        verify.args(["verify", "-CAfile"]).arg(&certificate.pem).arg("-in").arg(&driver);
        verify
    };
    run::quiet(&mut verify())?;
    run::quiet(verify().arg("-catalog").arg(&catalog))?;
    certificate.export(&folder.join(CERTIFICATE))
}

fn add_signature(certificate: &Certificate, unsigned: &Path, signed: &Path) -> Result<()> {
    let mut sign = Command::new("osslsigncode");
    sign.args(["sign", "-h", "sha256", "-n", "halprof", "-certs"]).arg(&certificate.pem);
    sign.arg("-key").arg(&certificate.key).arg("-in").arg(unsigned).arg("-out").arg(signed);
    run::quiet(&mut sign)
}
