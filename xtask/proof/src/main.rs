//! `cargo xtask proof`: the manifest of what was checked of a driver.
//!
//! | module | contents |
//! |---|---|
//! | `manifest` | the manifest, a JSON object with a schema |
//! | `stages` | what a run checks, and how the stages share its time |
//! | `run` | a run: commands, their logs, and the manifest that becomes of them |
//! | `recorder` | what a stage runs, and what becomes of the output |
//! | `figures` | numbers in the output of the commands |
//! | `summary` | the table in docs/proof.md |

#![forbid(unsafe_code)]

mod figures;
mod manifest;
mod recorder;
mod run;
mod stages;
mod summary;

use std::process::ExitCode;

use xtask::{command_line::Command, program};

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Proof(arguments) => match &arguments.check {
            Some(folder) => run::check(folder),
            None => run::make(workspace, arguments.minutes),
        },
        _ => program::unknown(),
    })
}
