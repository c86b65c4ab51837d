//! The three manifests of winget: the version, the installer, and the texts in one language.

use anyhow::Result;
use serde::Serialize;

use super::{
    CLIENT, SECOND_NAME,
    release::{DESCRIPTION, NOTES, Release},
};

/// Version of the schema: the first with `ArchiveBinariesDependOnPath` is 1.9.0.
const SCHEMA: &str = "1.10.0";

/// Language of the texts.
const LOCALE: &str = "en-US";

/// Windows 10 version 2004.
const OLDEST_WINDOWS: &str = "10.0.19041.0";

/// Beginning of each manifest.
#[derive(Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Package {
    package_identifier: String,
    package_version: String,
}

/// End of each manifest.
#[derive(Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Kind {
    manifest_type: &'static str,
    manifest_version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct VersionManifest {
    #[serde(flatten)]
    package: Package,
    default_locale: &'static str,
    #[serde(flatten)]
    kind: Kind,
}

/// The client is a portable program in a zip file. It finds the driver beside itself, so its folder becomes a part of
/// PATH: winget's other way, a link in another folder, would hide the driver.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct InstallerManifest {
    #[serde(flatten)]
    package: Package,
    platform: [&'static str; 1],
    #[serde(rename = "MinimumOSVersion")]
    oldest_windows: &'static str,
    installer_type: &'static str,
    nested_installer_type: &'static str,
    nested_installer_files: [NestedFile; 2],
    archive_binaries_depend_on_path: bool,
    installers: [Download; 1],
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NestedFile {
    relative_file_path: String,
    portable_command_alias: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    architecture: &'static str,
    installer_url: String,
    installer_sha256: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct LocaleManifest {
    #[serde(flatten)]
    package: Package,
    package_locale: &'static str,
    publisher: String,
    publisher_support_url: String,
    package_name: &'static str,
    package_url: String,
    license: &'static str,
    short_description: &'static str,
    tags: [&'static str; 4],
    release_notes_url: String,
    installation_notes: &'static str,
    #[serde(flatten)]
    kind: Kind,
}

/// Returns the manifests with the names of their files.
pub fn manifests(release: &Release) -> Result<[(String, String); 3]> {
    let identifier = format!("{}.halprof", release.repository.owner);
    let package = Package { package_identifier: identifier.clone(), package_version: release.version.clone() };
    let kind = |manifest_type| Kind { manifest_type, manifest_version: SCHEMA };
    let nested = |file: &'static str| NestedFile {
        relative_file_path: format!("{}\\{file}", release.folder()),
        portable_command_alias: file.trim_end_matches(".exe"),
    };
    let home = release.home();
    let version = VersionManifest { package: package.clone(), default_locale: LOCALE, kind: kind("version") };
    let installer = InstallerManifest {
        package: package.clone(),
        platform: ["Windows.Desktop"],
        oldest_windows: OLDEST_WINDOWS,
        installer_type: "zip",
        nested_installer_type: "portable",
        nested_installer_files: [nested(CLIENT), nested(SECOND_NAME)],
        archive_binaries_depend_on_path: true,
        installers: [Download {
            architecture: "x64",
            installer_url: release.address(),
            installer_sha256: release.hash.to_uppercase(),
        }],
        kind: kind("installer"),
    };
    let texts = LocaleManifest {
        package,
        package_locale: LOCALE,
        publisher: release.repository.owner.clone(),
        publisher_support_url: format!("{home}/issues"),
        package_name: "halprof",
        package_url: home.clone(),
        license: env!("CARGO_PKG_LICENSE"),
        short_description: DESCRIPTION,
        tags: ["performance", "pmu", "profiler", "sampling"],
        release_notes_url: format!("{home}/releases/tag/v{}", release.version),
        installation_notes: NOTES,
        kind: kind("defaultLocale"),
    };
    Ok([
        (format!("{identifier}.yaml"), text(&version, "version")?),
        (format!("{identifier}.installer.yaml"), text(&installer, "installer")?),
        (format!("{identifier}.locale.{LOCALE}.yaml"), text(&texts, "defaultLocale")?),
    ])
}

/// Returns the text of a manifest, with the schema for editors in its first line.
fn text(manifest: &impl Serialize, kind: &str) -> Result<String> {
    let schema = format!("https://aka.ms/winget-manifest.{kind}.{SCHEMA}.schema.json");
    // Each value in one line, as in other manifests.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(manifest, options)?;
    Ok(format!("# yaml-language-server: $schema={schema}\n{text}"))
}
