//! Consumer tests: external programs use what halprof produces for them.
//!
//! Each program is installed below `target/tools`, or with apt-get. A program that cannot be installed fails the
//! test.

#![forbid(unsafe_code)]

mod bench;
mod client;
mod counters;
mod crates;
mod data_types;
mod exports;
mod images;
mod libpfm4;
mod monitoring;
mod package;
mod profiles;
mod stacks;
mod two_cpus;

use std::process::ExitCode;

use anyhow::Result;
use xtask::{command_line::Command, elevated, prerequisites, program, run, tools::install, workspace::Workspace};

/// The release of cargo-make that runs the tasks.
const CARGO_MAKE: &str = "0.37.24";

/// What a user types behind `cargo make` at the root of the repository.
const TASKS: [&[&str]; 4] = [&["build"], &["demo", "--processor", "zen4-7700x"], &["package"], &["test"]];

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Test { consumers: true } => run(workspace),
        _ => program::unknown(),
    })
}

/// Runs every consumer test, up to the first that fails.
fn run(workspace: &Workspace) -> Result<()> {
    elevated::ensure()?;
    prerequisites::for_testing(workspace)?;
    crates::run(workspace)?;
    if cfg!(target_os = "linux") {
        exports::run(workspace)?;
        data_types::run(workspace)?;
        libpfm4::run(workspace)?;
        monitoring::run(workspace)?;
        counters::run(workspace)?;
        package::run(workspace)?;
    }
    cargo_make(workspace)
}

/// Runs the tasks of Makefile.toml as a user does.
fn cargo_make(workspace: &Workspace) -> Result<()> {
    let path = install(workspace, "cargo-make", CARGO_MAKE)?;
    TASKS.iter().try_for_each(|words| run::verbose(workspace.cargo("make").args(*words).env("PATH", &path)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;
    use xtask::command_line::Arguments;

    use super::*;

    #[test]
    fn the_consumer_test_of_cargo_make_types_what_xtask_understands() {
        let file: Value = toml::from_str(include_str!("../../../Makefile.toml")).unwrap();
        for words in TASKS {
            assert!(file["tasks"].get(words[0]).is_some(), "{words:?}");
            let line = ["cargo xtask"].into_iter().chain(words.iter().copied());
            assert!(Arguments::try_parse_from(line).is_ok(), "{words:?}");
        }
    }
}
