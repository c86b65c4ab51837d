//! `cargo xtask fuzz`: random tests of any length.

pub mod driver;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

/// What to fuzz.
#[derive(Subcommand)]
pub enum Target {
    /// Send random requests to the driver as it ships, from two threads of a program
    ///
    /// Runs halprof.sys under Wine on the processors of the model. Meanwhile events occur, timers expire, the machine
    /// sleeps, processors are added, other programs write registers, and programs are killed. Prints the seed; a
    /// failure prints the seed of its round, and that round alone can be repeated with it.
    Driver(driver::Arguments),
}

/// Runs a fuzzer.
pub fn run(workspace: &Workspace, target: &Target) -> Result<()> {
    match target {
        Target::Driver(arguments) => driver::run(workspace, arguments),
    }
}
