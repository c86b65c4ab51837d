//! Finds the sources of packages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Returns the folder of a package in the workspace of `manifest`. Cargo downloads a missing package and verifies its
/// checksum in Cargo.lock.
pub fn folder(manifest: &str, name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let mut metadata = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    metadata.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    // Downloads fewer packages than all platforms need.
    metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = metadata.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let mut found = packages.iter().filter(|package| package["name"] == name);
    let manifest = found.next().unwrap_or_else(|| panic!("no package {name}"))["manifest_path"].as_str().unwrap();
    assert!(found.next().is_none(), "more than one {name}");
    Path::new(manifest).parent().unwrap().to_path_buf()
}
