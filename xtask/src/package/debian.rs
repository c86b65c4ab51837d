//! Test signing with osslsigncode, on Debian.

use std::{path::Path, process::Command};

use anyhow::Result;

use super::{CERTIFICATE, DRIVER, certificate::Certificate};
use crate::{run, workspace::Workspace};

/// Writes the signed driver and the certificate to `folder`. The signature has no timestamp: that would need a
/// timestamp server, and the signature is for tests only.
pub fn sign(workspace: &Workspace, unsigned: &Path, folder: &Path) -> Result<()> {
    let certificate = Certificate::ensure(workspace)?;
    let signed = folder.join(DRIVER);
    let mut sign = Command::new("osslsigncode");
    sign.args(["sign", "-h", "sha256", "-n", "halprof", "-certs"]).arg(&certificate.pem);
    sign.arg("-key").arg(&certificate.key).arg("-in").arg(unsigned).arg("-out").arg(&signed);
    run::quiet(&mut sign)?;
    let mut verify = Command::new("osslsigncode");
    run::quiet(verify.args(["verify", "-CAfile"]).arg(&certificate.pem).arg("-in").arg(&signed))?;
    certificate.export(&folder.join(CERTIFICATE))
}
