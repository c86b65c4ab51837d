//! A copy of the sources, in which mutants are made.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use sha2::{Digest, Sha256};
use xtask::{files, run, workspace::Workspace};

use super::results::Sources;

/// Source of the crate that tells which mutant is active.
const SWITCH_CRATE: &str = include_str!("switch_crate.rs");

/// Its manifest.
const SWITCH_MANIFEST: &str = "[package]\nname = \"mutation-switch\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";

/// The copy. Unchanged files keep their timestamps, so that little is rebuilt.
pub struct Tree {
    pub folder: PathBuf,
    pub sources: Sources,
}

impl Tree {
    /// Makes the copy equal to the work tree, uncommitted changes included.
    pub fn refresh(workspace: &Workspace, folder: PathBuf) -> Result<Self> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(workspace.root());
        let listed = run::output(&mut list)?;
        let mut digests = String::new();
        let mut present = BTreeSet::new();
        let mut functions = BTreeSet::new();
        for name in listed.split('\0').filter(|name| workspace.root().join(name).is_file()) {
            let (from, to) = (workspace.root().join(name), folder.join(name));
            files::make_folder(to.parent().context("a file has a folder")?)?;
            files::copy_if_different(&from, &to)?;
            let extension = from.extension().and_then(|extension| extension.to_str());
            if matches!(extension, Some("rs" | "toml")) && !name.starts_with("xtask/") {
                let text = files::read_text(&from)?;
                digests.extend([name, " ", &sha256(text.as_bytes()), "\n"]);
                functions.extend(names_of_functions(&text).map(str::to_owned));
            }
            present.insert(name);
        }
        let index = folder.join(".files");
        for old in files::read_text(&index).unwrap_or_default().lines() {
            if !present.contains(old) && folder.join(old).is_file() {
                files::remove(&folder.join(old))?;
            }
        }
        files::write(&index, present.into_iter().collect::<Vec<_>>().join("\n"))?;
        Ok(Self { folder, sources: Sources { digest: sha256(digests.as_bytes()), functions } })
    }

    /// Adds the crate of the switch, as a dependency of the package in `package`.
    pub fn add_switch(&self, package: &Path) -> Result<()> {
        let switch = self.folder.join("lab").join("mutation-switch");
        files::make_folder(&switch.join("src"))?;
        write_if_different(&switch.join("Cargo.toml"), SWITCH_MANIFEST)?;
        write_if_different(&switch.join("src").join("lib.rs"), SWITCH_CRATE)?;
        let manifest = self.folder.join(package).join("Cargo.toml");
        let text = files::read_text(&manifest)?;
        files::write(&manifest, format!("{text}\n[dependencies.mutation-switch]\npath = {:?}\n", switch.display()))
    }

    /// Returns the command `cargo SUBCOMMAND` in the copy, with settings that make builds and tests fast.
    pub fn cargo(&self, workspace: &Workspace, subcommand: &str) -> Command {
        let mut command = workspace.cargo(subcommand);
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", build_folder(workspace))
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_INCREMENTAL", "1")
            // A mutant may leave something unused.
            .env("RUSTFLAGS", "--cap-lints=allow")
            // The switch needs to know whether the compiler evaluates it.
            .env("RUSTC_BOOTSTRAP", "mutation_switch");
        command
    }
}

/// Returns the names of the functions in a source.
fn names_of_functions(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.split("fn ").skip(1).filter_map(move |rest| rest.split(|character| !is_part(character)).next())
}

/// Returns a source without the module of tests at its end.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {").and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Writes a file only if its content differs.
pub fn write_if_different(path: &Path, text: &str) -> Result<()> {
    if files::read_text(path).is_ok_and(|old| old == text) { Ok(()) } else { files::write(path, text) }
}

/// Returns the folder of everything that `mutate` makes.
pub fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("mutants")
}

fn build_folder(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("build")
}

/// Returns the SHA-256 of a content, in hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_macros_too() {
        let text = "pub fn a<T>() {}\nproptest! {\n    fn b_1(c in 0..2) { f(); }\n}\n";
        assert_eq!(names_of_functions(text).collect::<Vec<_>>(), ["a", "b_1"]);
    }

    #[test]
    fn the_module_of_tests_is_left_out() {
        assert_eq!(without_tests("fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"), "fn a() {}\n");
        assert_eq!(without_tests("#[cfg(test)]\nmod tests;\nfn a() {}\n"), "#[cfg(test)]\nmod tests;\nfn a() {}\n");
    }
}
