//! What identifies this Windows.

use halprof::windows::registry;

use crate::WindowsVersion;

const KEY: &str = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";

/// Returns the version in the registry. The functions for it return the one that the manifest of a program asks for,
/// and none returns the update.
pub fn query() -> WindowsVersion {
    let build = text("CurrentBuildNumber").map(|build| match registry::number(KEY, "UBR") {
        Some(update) => format!("{build}.{update}"),
        None => build,
    });
    WindowsVersion { build, release: text("DisplayVersion"), edition: text("EditionID") }
}

fn text(value: &str) -> Option<String> {
    Some(registry::text(KEY, value)?.to_string_lossy().into_owned())
}
