//! The certificate for test signing and its key. They are made once on each machine and kept in target/signing.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use xtask::{files, run, workspace::Workspace};

/// Subject of the certificate, by which it is also found on Windows.
pub const SUBJECT: &str = "halprof test signing";

/// OpenSSL's configuration of a certificate that can sign code but nothing else, in particular no other certificates.
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

/// Validity in days.
const DAYS: &str = "3650";

/// Files of a certificate and its key.
pub struct Certificate {
    /// The private key (PEM). It is never copied.
    pub key: PathBuf,
    /// The certificate (PEM).
    pub pem: PathBuf,
}

impl Certificate {
    /// Returns the existing certificate, or makes one.
    pub fn ensure(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.signing();
        let certificate = Self { key: folder.join("halprof.key"), pem: folder.join("halprof.pem") };
        if certificate.key.is_file() && certificate.pem.is_file() {
            return Ok(certificate);
        }
        files::make_folder(&folder)?;
        let request = folder.join("request.cnf");
        files::write(&request, REQUEST)?;
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "rsa:3072", "-sha256", "-nodes", "-days", DAYS, "-batch", "-config"]);
        openssl.arg(request).arg("-keyout").arg(&certificate.key).arg("-out").arg(&certificate.pem);
        run::quiet(&mut openssl)?;
        println!("  made a certificate for test signing and its key in {}", folder.display());
        Ok(certificate)
    }

    /// Writes the certificate in the format that Windows imports (DER).
    pub fn export(&self, to: &Path) -> Result<()> {
        run::quiet(Command::new("openssl").args(["x509", "-outform", "DER", "-in"]).arg(&self.pem).arg("-out").arg(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_has_the_subject_that_it_is_found_by() {
        assert!(REQUEST.lines().any(|line| line == format!("CN = {SUBJECT}")));
    }
}
