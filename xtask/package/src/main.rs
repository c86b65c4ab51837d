//! `cargo xtask package`: makes the package from the built files.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use xtask::{command_line::Command, program};

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Package { extras } => xtask_package::run(workspace, extras),
        _ => program::unknown(),
    })
}
