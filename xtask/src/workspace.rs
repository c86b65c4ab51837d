//! Where things are, and how cargo is called.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

/// The repository and the folders below its target directory that xtask fills.
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that `cargo xtask` was called in.
    pub fn find() -> Result<Self> {
        let xtask = env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = xtask.parent().context("the folder xtask has no parent")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// The folder that holds Cargo.lock.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The target directory. Always this one: wdk-build wants it under the folder that holds Cargo.lock.
    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// The stand-in for the Windows Driver Kit.
    pub fn kit(&self) -> PathBuf {
        self.target().join("kit")
    }

    /// Everything that the test bench needs.
    pub fn lab(&self) -> PathBuf {
        self.target().join("lab")
    }

    /// The built files.
    pub fn artifacts(&self) -> PathBuf {
        self.lab().join("artifacts")
    }

    /// What is carried to a Windows machine.
    pub fn package(&self) -> PathBuf {
        self.target().join("package")
    }

    /// The certificate for test signing and its key.
    pub fn signing(&self) -> PathBuf {
        self.target().join("signing")
    }

    /// Programs that the consumer tests install.
    pub fn tools(&self) -> PathBuf {
        self.target().join("tools")
    }

    /// The Wine prefix.
    pub fn prefix(&self) -> PathBuf {
        self.lab().join("prefix")
    }

    /// The full output of a command of which only progress is shown.
    pub fn log(&self, name: &str) -> PathBuf {
        self.target().join("xtask-logs").join(name).with_extension("log")
    }

    /// `cargo SUBCOMMAND`, in the workspace, with the workspace's own target directory.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.arg(subcommand).current_dir(&self.root).env("CARGO_TARGET_DIR", self.target());
        // `cargo run` described this package to this process; to the packages built next that would be a lie.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
                command.env_remove(name);
            }
        }
        command
    }
}

/// Writes a file only when its content differs, so that what depends on its time stays valid.
pub fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    let content = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if std::fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    std::fs::write(to, content).with_context(|| format!("cannot write {}", to.display()))
}
