//! The certificate for test signing and its key: made on this machine, kept under target/, used again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{run, workspace::Workspace};

/// Whom it names. On Windows it is found by this, too.
pub const SUBJECT: &str = "halprof test signing";

/// What openssl is told: a certificate that signs code and nothing else, other certificates least of all.
const REQUEST: &str = "\
[req]
prompt = no
distinguished_name = subject
x509_extensions = code_signing

[subject]
CN = halprof test signing

[code_signing]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = codeSigning
subjectKeyIdentifier = hash
";

/// Days for which it is good.
const DAYS: &str = "3650";

/// A certificate with its key, in files.
pub struct Certificate {
    /// The private key (PEM). It stays where it is.
    pub key: PathBuf,
    /// The certificate (PEM).
    pub pem: PathBuf,
}

impl Certificate {
    /// The one that was made here before, or a new one.
    pub fn ensure(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.signing();
        let certificate = Self { key: folder.join("halprof.key"), pem: folder.join("halprof.pem") };
        if certificate.key.is_file() && certificate.pem.is_file() {
            return Ok(certificate);
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let request = folder.join("request.cnf");
        fs::write(&request, REQUEST).with_context(|| format!("cannot write {}", request.display()))?;
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:3072", "-sha256", "-nodes", "-days", DAYS, "-batch", "-config"]);
        openssl.arg(request).arg("-keyout").arg(&certificate.key).arg("-out").arg(&certificate.pem);
        run::quiet(&mut openssl)?;
        println!("  made a certificate for test signing, with its key, in {}", folder.display());
        Ok(certificate)
    }

    /// Writes the certificate as Windows takes it (DER).
    pub fn export(&self, to: &Path) -> Result<()> {
        run::quiet(Command::new("openssl").args(["x509", "-outform", "DER", "-in"]).arg(&self.pem).arg("-out").arg(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_names_whom_it_is_looked_for_by() {
        assert!(REQUEST.lines().any(|line| line == format!("CN = {SUBJECT}")));
    }
}
