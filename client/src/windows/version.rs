//! What identifies this Windows.

use windows_sys::Win32::System::Registry::{RRF_RT_REG_DWORD, RRF_RT_REG_SZ};

use super::convert::narrow;
use super::registry;
use crate::system::WindowsVersion;

const KEY: &str = "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion";

/// Maximum length of a value in UTF-16 units.
const LONGEST: usize = 128;

/// Returns the version in the registry. The functions for it return the one that the manifest of a program asks for,
/// and none returns the update.
pub fn query() -> WindowsVersion {
    let build = text("CurrentBuildNumber").map(|build| match update() {
        Some(update) => format!("{build}.{update}"),
        None => build,
    });
    WindowsVersion { build, release: text("DisplayVersion"), edition: text("EditionID") }
}

fn text(value: &str) -> Option<String> {
    let mut text = [0_u16; LONGEST];
    registry::read(KEY, value, RRF_RT_REG_SZ, &mut text)?;
    Some(narrow(&text).to_string_lossy().into_owned())
}

/// Returns the number of the update.
fn update() -> Option<u32> {
    let mut update = [0_u32];
    registry::read(KEY, "UBR", RRF_RT_REG_DWORD, &mut update)?;
    let [update] = update;
    Some(update)
}
