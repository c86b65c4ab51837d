//! `cargo xtask constraints` and `cargo xtask events`: generate the tables from the facts.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use xtask::{command_line::Command, program};
use xtask_import::{constraints, events};

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Constraints => constraints::run(workspace),
        Command::Events { import, check } => events::run(workspace, import.as_deref(), *check),
        _ => program::unknown(),
    })
}
