//! A release of the product on GitHub, as package managers describe it.

use xtask::command_line::Repository;

/// The name of the product.
pub const PRODUCT: &str = "halprof";

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

/// Returns the address of the zip file of a version.
pub fn address(home: &str, version: &str) -> String {
    format!("{home}/releases/download/v{version}/{}", archive_name(version))
}

/// Returns the only folder at the root of the zip file of a version.
pub fn folder(version: &str) -> String {
    format!("{PRODUCT}-{version}")
}

/// Returns the name of the zip file of a version.
pub fn archive_name(version: &str) -> String {
    format!("{PRODUCT}-{version}-x86_64.zip")
}
