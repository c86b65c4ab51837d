//! The crates for other programs: cargo packages each of them and builds it from its package, and their public items
//! are those of the listings in the repository, so that no change of an interface goes unnoticed.

use std::{collections::BTreeSet, env, ffi::OsStr, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};

use xtask::{files, run, workspace::Workspace};

use super::install;

/// The release of cargo-public-api that lists public items. It reads the JSON of the rustdoc that it was made for,
/// which is that of the Rust release in the README.
const PUBLIC_API: &str = "0.52.0";

/// Packages that are published, each after those that it depends on.
const PUBLISHED: [&str; 7] = ["x86-defs", "debug-store", "pmu", "protocol", "events", "halprof", "halprof-criterion"];

/// Version of the packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Packages whose interfaces are listed in `public-api.txt`: those that programs depend on directly.
const LISTED: [&str; 2] = ["halprof", "halprof-criterion"];

/// Set to write the listings instead of comparing them.
const UPDATE: &str = "HALPROF_UPDATE_GENERATED";

/// Packages the crates, and compares their listings.
pub fn run(workspace: &Workspace) -> Result<()> {
    let mut package = workspace.cargo("package");
    // Cargo's own verification takes a package that it has unpacked before in the home of the user instead of a newer
    // one with the same version.
    package.args(["--quiet", "--locked", "--allow-dirty", "--no-verify"]);
    for name in PUBLISHED {
        package.args(["--package", name]);
    }
    // The target directory of the workspace has the driver's package in the folder that cargo would use.
    run::verbose(package.env("CARGO_TARGET_DIR", packaging(workspace)))?;
    build(workspace)?;
    for name in PUBLISHED {
        println!("{name}: {} bytes as a package", files::read(&package_file(workspace, name))?.len());
    }
    let path = install(workspace, "cargo-public-api", PUBLIC_API)?;
    LISTED.iter().try_for_each(|name| compare(workspace, name, &path))
}

/// Returns the target directory for packaging.
fn packaging(workspace: &Workspace) -> PathBuf {
    workspace.tools().join("crates")
}

/// Returns the file that would be uploaded.
fn package_file(workspace: &Workspace, name: &str) -> PathBuf {
    packaging(workspace).join("package").join(format!("{name}-{VERSION}.crate"))
}

/// Unpacks the packages, and builds each from its files and those of the others alone.
fn build(workspace: &Workspace) -> Result<()> {
    let folder = packaging(workspace).join("unpacked");
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    for name in PUBLISHED {
        let mut unpack = Command::new("tar");
        // Cargo gives all files the same time, by which a later build would not notice a change: -m is the time of now.
        unpack.arg("-xzmf").arg(package_file(workspace, name)).arg("-C").arg(&folder);
        run::quiet(&mut unpack)?;
    }
    files::write(&folder.join("Cargo.toml"), manifest())?;
    files::copy(&workspace.root().join("Cargo.lock"), &folder.join("Cargo.lock"))?;
    // One by one: a package has no features that only another one enables.
    PUBLISHED.iter().try_for_each(|name| {
        let mut build = workspace.cargo("build");
        build.args(["--quiet", "--package", name]).current_dir(&folder);
        run::verbose(build.env("CARGO_TARGET_DIR", packaging(workspace).join("built")))
    })
}

/// Returns the manifest of a workspace in which the packages need each other instead of what is published.
fn manifest() -> String {
    let members = PUBLISHED.map(|name| format!("\"{name}-{VERSION}\"")).join(", ");
    let patches = PUBLISHED.map(|name| format!("{name}.path = \"{name}-{VERSION}\"\n")).concat();
    format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n\n[patch.crates-io]\n{patches}")
}

/// Compares the public items of a package with its listing.
fn compare(workspace: &Workspace, name: &str, path: &OsStr) -> Result<()> {
    let mut rustdoc = workspace.cargo("rustdoc");
    rustdoc.args(["--quiet", "--locked", "--lib", "--package", name, "--", "-Z", "unstable-options"]);
    // The JSON format is unstable. A stable compiler writes it if it accepts unstable options.
    run::verbose(rustdoc.args(["--output-format", "json"]).env("RUSTC_BOOTSTRAP", "1"))?;
    let json = workspace.target().join("doc").join(name.replace('-', "_")).with_extension("json");
    // -sss leaves out the implementations that derive and the compiler make.
    let mut list = Command::new("cargo-public-api");
    list.arg("--rustdoc-json").arg(&json).arg("-sss").env("PATH", path);
    let items = run::output(&mut list)?;
    let listing = workspace.root().join("crates").join(name).join("public-api.txt");
    if env::var_os(UPDATE).is_some() {
        return fs::write(&listing, items).with_context(|| format!("cannot write {}", listing.display()));
    }
    let listed = fs::read_to_string(&listing).with_context(|| format!("cannot read {}", listing.display()))?;
    ensure!(
        listed == items,
        "the public items of {name} differ from {}: {}. If the change is meant, run \
         `HALPROF_UPDATE_GENERATED=1 cargo xtask test --consumers` and commit the listing",
        listing.display(),
        first_difference(&listed, &items)
    );
    println!("{name}: {} public items, as listed", items.lines().count());
    Ok(())
}

/// Returns the first line that is in one of the texts only.
fn first_difference(listed: &str, items: &str) -> String {
    let missing = |from: &str, of: &str| {
        let of: BTreeSet<&str> = of.lines().collect();
        from.lines().find(|line| !of.contains(line)).map(str::to_owned)
    };
    match (missing(listed, items), missing(items, listed)) {
        (Some(line), _) => format!("`{line}` is gone"),
        (None, Some(line)) => format!("`{line}` is new"),
        (None, None) => "the order of the lines".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_first_line() {
        assert_eq!(first_difference("a\nb\n", "a\n"), "`b` is gone");
        assert_eq!(first_difference("a\n", "a\nb\n"), "`b` is new");
        assert_eq!(first_difference("a\nb\n", "b\na\n"), "the order of the lines");
    }
}
