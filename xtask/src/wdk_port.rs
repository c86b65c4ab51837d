//! The edits that let wdk-build run on Linux.
//!
//! wdk-build runs in build scripts, that is, on the host. Its work there (finding headers, calling bindgen, passing
//! arguments to the linker) is portable except for the registry, two `cfg` guards and a symbolic link. If an anchor
//! does not occur as often as expected, the edit fails, so that a new version of wdk-build is never ported in part.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::files;

/// A text replacement in one file.
pub struct Edit {
    /// The file, relative to the package.
    pub file: &'static str,
    /// Why the edit is made.
    pub reason: &'static str,
    /// The text to replace; lines end in a line feed.
    pub anchor: &'static str,
    /// Expected number of occurrences of the anchor.
    pub times: usize,
    /// The replacement of each occurrence.
    pub replacement: &'static str,
}

/// All edits of wdk-build, in order.
pub const EDITS: &[Edit] = &[
    Edit {
        file: "src/lib.rs",
        reason: "cargo reports the warnings of packages in `paths`, and we cannot fix these",
        anchor: "\n\nuse std::{\n    env,\n    fmt,",
        times: 1,
        replacement: "\n\n#![allow(warnings)]\nuse std::{\n    env,\n    fmt,",
    },
    Edit {
        file: "src/cargo_make.rs",
        reason: "the function for symbolic links is another one on Unix",
        anchor: "std::os::windows::fs::symlink_file(",
        times: 2,
        replacement: "std::os::unix::fs::symlink(",
    },
    Edit {
        file: "src/utils.rs",
        reason: "only Windows has a registry",
        anchor: "\nuse windows::{",
        times: 1,
        replacement: "\n#[cfg(windows)]\nuse windows::{",
    },
    Edit {
        file: "src/utils.rs",
        reason: "WDKContentRoot names the kit, not the registry",
        anchor: "    if let Some(path) = read_registry_key_string_value(",
        times: 2,
        replacement: "    #[cfg(windows)]\n    if let Some(path) = read_registry_key_string_value(",
    },
    Edit {
        file: "src/utils.rs",
        reason: "only Windows has a registry",
        anchor: "\nfn read_registry_key_string_value(",
        times: 1,
        replacement: "\n#[cfg(windows)]\nfn read_registry_key_string_value(",
    },
    // The Windows versions are sound here as well: a build script sets its environment before it starts a thread.
    Edit {
        file: "src/utils.rs",
        reason: "set_var works on every system",
        anchor: "#[cfg(target_os = \"windows\")]\npub fn set_var",
        times: 1,
        replacement: "pub fn set_var",
    },
    Edit {
        file: "src/utils.rs",
        reason: "the variant of set_var that does not compile is not needed",
        anchor: "#[cfg(not(target_os = \"windows\"))]\npub fn set_var",
        times: 1,
        replacement: "#[cfg(any())]\npub fn set_var",
    },
    Edit {
        file: "src/utils.rs",
        reason: "remove_var works on every system",
        anchor: "#[cfg(target_os = \"windows\")]\npub fn remove_var",
        times: 1,
        replacement: "pub fn remove_var",
    },
    Edit {
        file: "src/utils.rs",
        reason: "the variant of remove_var that does not compile is not needed",
        anchor: "#[cfg(not(target_os = \"windows\"))]\npub fn remove_var",
        times: 1,
        replacement: "#[cfg(any())]\npub fn remove_var",
    },
];

/// Applies all edits to the copy of wdk-build in `package`.
pub fn port(package: &Path) -> Result<()> {
    for edit in EDITS {
        let path = package.join(edit.file);
        let old = files::read_text(&path)?;
        files::write(&path, edited(&old, edit)?)?;
    }
    Ok(())
}

/// Returns `text` with one edit applied and with CR LF line ends, which the package has, converted to LF.
fn edited(text: &str, edit: &Edit) -> Result<String> {
    let text = text.replace("\r\n", "\n");
    let found = text.matches(edit.anchor).count();
    ensure!(
        found == edit.times,
        "xtask/src/wdk_port.rs does not support this version of wdk-build: {} contains {found} times, not {}, the text\
         \n    {}\n(the edit is needed because {})",
        edit.file,
        edit.times,
        edit.anchor.trim(),
        edit.reason,
    );
    Ok(text.replace(edit.anchor, edit.replacement))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: Edit =
        Edit { file: "src/a.rs", reason: "it must", anchor: "\nuse old::", times: 1, replacement: "\nuse new::" };

    #[test]
    fn an_edit_replaces_its_anchor_with_any_line_ends() {
        assert_eq!(edited("x\r\nuse old::y;\r\n", &EDIT).unwrap(), "x\nuse new::y;\n");
    }

    #[test]
    fn a_missing_anchor_is_an_error_that_names_file_and_anchor() {
        let error = edited("x\nuse older::y;\n", &EDIT).unwrap_err().to_string();
        assert!(error.contains("src/a.rs contains 0 times, not 1"), "{error}");
        assert!(error.contains("use old::"), "{error}");
    }

    #[test]
    fn an_ambiguous_anchor_is_an_error() {
        let error = edited("x\nuse old::y;\nuse old::z;\n", &EDIT).unwrap_err().to_string();
        assert!(error.contains("2 times"), "{error}");
    }
}
