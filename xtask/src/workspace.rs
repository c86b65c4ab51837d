//! Paths of the workspace, and calls of cargo.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// The repository and the folders below its target directory that xtask writes to.
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the workspace that `cargo xtask` was called in.
    pub fn find() -> Result<Self> {
        let package =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = package.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
        Ok(Self { root: root.context("no Cargo.lock above this program's package")?.to_path_buf() })
    }

    /// Makes the workspace of another folder.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the folder that contains Cargo.lock.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the target directory. It is always `target`: wdk-build requires it below the folder that contains
    /// Cargo.lock.
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Returns the folder of the stand-in for the Windows Driver Kit.
    pub fn kit(&self) -> PathBuf {
        self.target().join("kit")
    }

    /// Returns the folder with everything that the test bench needs.
    pub fn lab(&self) -> PathBuf {
        self.target().join("lab")
    }

    /// Returns the folder of the built files.
    pub fn artifacts(&self) -> PathBuf {
        self.lab().join("artifacts")
    }

    /// Returns the folder of the package for a Windows machine.
    pub fn package(&self) -> PathBuf {
        self.target().join("package")
    }

    /// Returns the folder of what is submitted to Microsoft for a signature.
    pub fn submission(&self) -> PathBuf {
        self.target().join("submission")
    }

    /// Returns the folder of what a release consists of: the package as a zip file, and manifests that point to it.
    pub fn distribution(&self) -> PathBuf {
        self.target().join("distribution")
    }

    /// Returns the folder of the test-signing certificate and its key.
    pub fn signing(&self) -> PathBuf {
        self.target().join("signing")
    }

    /// Returns the folder of programs that the consumer tests install.
    pub fn tools(&self) -> PathBuf {
        self.target().join("tools")
    }

    /// Returns the folder of the Wine prefix with this name. Runs of the bench can go on at the same time in different
    /// ones.
    pub fn prefix(&self, name: &str) -> PathBuf {
        self.prefixes().join(name)
    }

    /// Returns the folder of all Wine prefixes.
    pub fn prefixes(&self) -> PathBuf {
        self.lab().join("prefixes")
    }

    /// Returns the log file for the full output of a command that shows only its progress.
    pub fn log(&self, name: &str) -> PathBuf {
        self.target().join("xtask-logs").join(name).with_extension("log")
    }

    /// Returns the folders of this machine that compilers write into what they build, and names to write instead, which
    /// are the same everywhere: builds in other folders are identical, and do not tell where they were made.
    pub fn neutral_folders(&self) -> Result<[(String, &'static str); 2]> {
        let home = || Some(env::home_dir()?.join(".cargo"));
        let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home).context("cargo has no home folder")?;
        Ok([(cargo.display().to_string(), "cargo"), (self.root.display().to_string(), "halprof")])
    }

    /// Returns the command `cargo SUBCOMMAND`, run in the workspace with the workspace's target directory.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg(subcommand).current_dir(&self.root).env("CARGO_TARGET_DIR", self.target());
        // `cargo run` set these variables for xtask. They would be wrong for the packages built next.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
                command.env_remove(name);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    const MANIFEST: &str = include_str!("../../Cargo.toml");
    const LOCK: &str = include_str!("../../Cargo.lock");

    /// What is built before anything of a command happens.
    #[test]
    fn xtask_itself_has_at_most_fifty_packages() {
        let mut tree = super::Workspace::find().unwrap().cargo("tree");
        tree.args(["--locked", "--package", "xtask", "--edges", "normal,build", "--prefix", "none"]);
        let tree = crate::run::output(&mut tree).unwrap();
        let packages: BTreeSet<_> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
        assert!((10..=50).contains(&packages.len()), "{}: {packages:?}", packages.len());
    }

    /// A server, a client of a collector and an asynchronous runtime are in the agent alone.
    #[test]
    fn the_client_has_few_packages_and_none_of_a_server() {
        let packages = |program: &str| {
            let mut tree = super::Workspace::find().unwrap().cargo("tree");
            tree.args(["--locked", "--target", "x86_64-pc-windows-gnu", "--edges", "normal", "--prefix", "none"]);
            let tree = crate::run::output(tree.args(["--package", program])).unwrap();
            let names = tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned());
            names.filter(|line| !line.is_empty()).collect::<BTreeSet<_>>()
        };
        for (program, most) in [("client", 200), ("halprof-agent", 195)] {
            let packages = packages(program);
            assert!((100..=most).contains(&packages.len()), "{program}: {}: {packages:?}", packages.len());
            let runtime = packages.iter().any(|name| ["tokio ", "hyper "].iter().any(|one| name.starts_with(one)));
            assert_eq!(runtime, program == "halprof-agent", "{program}");
        }
    }

    /// Otherwise every build in the profile begins with a warning.
    #[test]
    fn every_package_that_a_profile_names_is_used() {
        let manifest: Value = toml::from_str(MANIFEST).unwrap();
        let profiles = manifest["profile"].as_object().unwrap().values();
        let named = profiles.filter_map(|profile| profile.get("package")?.as_object()).flat_map(|table| table.keys());
        let named: Vec<&String> = named.filter(|name| *name != "*").collect();
        assert!(named.len() > 20, "{named:?}");
        for name in named {
            assert!(LOCK.contains(&format!("\nname = \"{name}\"\n")), "{name}");
        }
    }
}
