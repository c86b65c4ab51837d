//! Test signing with Windows' tools: PowerShell makes the certificate, signtool (Windows SDK) signs, inf2cat (WDK)
//! makes the catalog.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::{CATALOG, CERTIFICATE, DRIVER, certificate::SUBJECT};
use xtask::{files, run};

/// A program of the Windows SDK or the WDK.
struct Tool {
    file: &'static str,
    /// Name of its folder below the version folder.
    architecture: &'static str,
    reason: &'static str,
}

const SIGNTOOL: Tool =
    Tool { file: "signtool.exe", architecture: "x64", reason: "it signs the driver and is part of the Windows SDK" };

const INF2CAT: Tool = Tool {
    file: "inf2cat.exe",
    architecture: "x86",
    reason: "it makes the catalog, which an installation by halprof.inf needs, and is part of the WDK",
};

/// Folder of the kits' programs below `ProgramFiles(x86)`.
const KITS: &str = "Windows Kits\\10\\bin";

/// Writes the signed driver, the signed catalog and the certificate to `folder`, which already contains the rest of the
/// package. The signatures have no timestamp, as in `debian`.
pub fn sign(unsigned: &Path, folder: &Path) -> Result<()> {
    let signtool = SIGNTOOL.find()?;
    let (driver, catalog) = (folder.join(DRIVER), folder.join(CATALOG));
    files::copy(unsigned, &driver)?;

    let thumbprint = run::output(&mut powershell(&certificate_script(&folder.join(CERTIFICATE))))?;
    let sign = |file: &Path| {
        let mut command = Command::new(&signtool);
        command.args(["sign", "/fd", "SHA256", "/d", "halprof", "/sha1", thumbprint.trim()]).arg(file);
        run::quiet(&mut command)
    };
    // The catalog contains the driver's hash, so the driver is signed first.
    sign(&driver)?;
    list_files(folder)?;
    sign(&catalog)?;
    for file in [&driver, &catalog] {
        run::quiet(&mut powershell(&check_script(file)))?;
    }
    Ok(())
}

/// Writes a catalog of the driver and the INF in `folder`, which is not signed, to `folder`.
pub fn list_files(folder: &Path) -> Result<()> {
    let mut list = Command::new(INF2CAT.find()?);
    run::quiet(list.arg(format!("/driver:{}", folder.display())).args(["/os:10_X64", "/verbose"]))
}

fn powershell(script: &str) -> Command {
    let mut command = Command::new("powershell.exe");
    command.args(["-NoProfile", "-NonInteractive", "-Command", script]);
    command
}

/// Returns a script that finds the certificate or makes one, exports it to `file` and prints its thumbprint.
fn certificate_script(file: &Path) -> String {
    format!(
        "$ErrorActionPreference = 'Stop'; \
         $c = Get-ChildItem Cert:\\CurrentUser\\My -CodeSigningCert | \
         Where-Object {{ $_.Subject -eq 'CN={SUBJECT}' -and $_.NotAfter -gt (Get-Date) }} | Select-Object -First 1; \
         if (-not $c) {{ $c = New-SelfSignedCertificate -Type CodeSigningCert -Subject 'CN={SUBJECT}' \
         -HashAlgorithm SHA256 -KeyLength 3072 -NotAfter (Get-Date).AddYears(10) \
         -CertStoreLocation Cert:\\CurrentUser\\My }}; \
         Export-Certificate -Cert $c -FilePath {} | Out-Null; $c.Thumbprint",
        quoted(file)
    )
}

/// Returns a script that fails if the file is not signed or does not match its signature. It ignores whether this
/// machine trusts the signer.
fn check_script(file: &Path) -> String {
    format!(
        "if ((Get-AuthenticodeSignature {}).Status -in 'NotSigned','HashMismatch','NotSupportedFileFormat') {{ exit 1 }}",
        quoted(file)
    )
}

/// Returns the path as a literal of PowerShell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

impl Tool {
    fn find(&self) -> Result<PathBuf> {
        let kits = env::var_os("ProgramFiles(x86)").map(|folder| PathBuf::from(folder).join(KITS));
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = || env::split_paths(&path).map(|folder| folder.join(self.file)).find(|file| file.is_file());
        kits.and_then(|kits| self.newest(&kits))
            .or_else(on_path)
            .with_context(|| format!("{} is neither in the Windows kits nor on the PATH: {}", self.file, self.reason))
    }

    /// Returns the program of the newest version that contains it; `kits` is the folder of the kits' programs.
    fn newest(&self, kits: &Path) -> Option<PathBuf> {
        let folders = fs::read_dir(kits).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let versions = folders.filter_map(|folder| Some((version(folder.file_name()?.to_str()?)?, folder)));
        let files = versions.map(|(version, folder)| (version, folder.join(self.architecture).join(self.file)));
        files.filter(|(_, file)| file.is_file()).max().map(|(_, file)| file)
    }
}

/// Parses a version such as `10.0.26100.0`.
fn version(name: &str) -> Option<Vec<u32>> {
    name.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_contains_a_tool_is_used() {
        let kits = tempfile::tempdir().unwrap();
        assert_eq!(SIGNTOOL.newest(kits.path()), None);
        for (folder, file) in [
            ("10.0.9600.0/x64", "signtool.exe"),
            ("10.0.22621.0/x64", "signtool.exe"),
            ("10.0.26100.0/x86", "signtool.exe"),
            ("10.0.26100.0/x64", "other.exe"),
            ("x64", "signtool.exe"),
        ] {
            fs::create_dir_all(kits.path().join(folder)).unwrap();
            fs::write(kits.path().join(folder).join(file), "").unwrap();
        }
        assert_eq!(SIGNTOOL.newest(kits.path()), Some(kits.path().join("10.0.22621.0/x64/signtool.exe")));
    }

    #[test]
    fn the_error_for_a_missing_tool_says_what_it_is_for() {
        let tool = Tool { file: "no-such-tool.exe", architecture: "x64", reason: "it does nothing" };
        let error = tool.find().unwrap_err().to_string();
        assert_eq!(error, "no-such-tool.exe is neither in the Windows kits nor on the PATH: it does nothing");
    }

    #[test]
    fn a_quote_in_a_path_does_not_end_the_literal() {
        let script = certificate_script(Path::new("C:\\it's here\\halprof.cer"));
        assert!(script.contains("-FilePath 'C:\\it''s here\\halprof.cer' |"), "{script}");
    }
}
