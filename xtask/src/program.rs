//! The programs of `cargo xtask`. The first, `xtask`, starts with few packages. The others are built when they are
//! called, because their packages take longer to compile than what most commands do.

use std::{
    env,
    ffi::OsStr,
    process::{self, ExitCode},
};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::{
    command_line::{Arguments, Command},
    run,
    workspace::Workspace,
};

/// Opens what halprof writes with programs that others wrote.
pub const CONSUMERS: &str = "xtask-consumers";
/// Looks for input for which a law does not hold.
pub const FUZZ: &str = "xtask-fuzz";
/// Generates tables from facts.
pub const IMPORT: &str = "xtask-import";
/// Makes deliberate faults.
pub const MUTATE: &str = "xtask-mutate";
/// Makes the manifest of a release.
pub const PROOF: &str = "xtask-proof";
/// Signs and packs.
pub const PACKAGE: &str = "xtask-package";
/// Runs everything in a virtual machine.
pub const VM: &str = "xtask-vm";

/// Parses the command line and executes its command.
pub fn main(execute: impl FnOnce(&Workspace, &Command) -> Result<()>) -> ExitCode {
    let arguments = Arguments::parse();
    match Workspace::find().and_then(|workspace| execute(&workspace, &arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the error of a program that has no code for its command.
pub fn unknown() -> Result<()> {
    bail!("another program executes this command\n  try: cargo xtask, which finds it")
}

/// Builds a program that is called later.
pub fn build(workspace: &Workspace, program: &str) -> Result<()> {
    run::quiet(workspace.cargo("build").args(["--quiet", "--locked", "--package", program]))
}

/// Builds a program and has it execute the command line of this one. If it fails, it has said why: this program ends
/// with the same exit code.
pub fn hand_over(workspace: &Workspace, program: &str) -> Result<()> {
    let status = command(workspace, program, env::args_os().skip(1)).status().context("cannot start cargo")?;
    if !status.success() {
        process::exit(status.code().unwrap_or(1));
    }
    Ok(())
}

/// Builds a program and calls it with these words behind `cargo xtask`.
pub fn call<Word: AsRef<OsStr>>(
    workspace: &Workspace,
    program: &str,
    words: impl IntoIterator<Item = Word>,
) -> Result<()> {
    run::verbose(&mut command(workspace, program, words))
}

/// Returns the command that builds a program and calls it with these words behind `cargo xtask`.
pub fn command<Word: AsRef<OsStr>>(
    workspace: &Workspace,
    program: &str,
    words: impl IntoIterator<Item = Word>,
) -> process::Command {
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", program, "--"]).args(words);
    command
}
