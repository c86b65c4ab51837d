//! The commands of the repository: `cargo xtask build`, `test`, `soak`, `proof`, `fuzz`, `interrupts`, `mutate`,
//! `demo`, `lab`, `package`, `install`, `uninstall`, `vm`, `bench`, `findings`, `clean-lab`. They are the same on Linux
//! and on Windows; `install` and `uninstall` exist on Windows only, `findings` on Debian only.
//!
//! On Linux the driver is built against a stand-in for the Windows Driver Kit (`kit`) and runs under Wine with a model
//! of the hardware. On Windows the installed WDK and the machine's own processor are used.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use xtask::{
    artifacts, bench, checks,
    command_line::Command,
    demo::{self, DemoProcessors},
    findings, installed, interrupts, lab, package, prefix, prerequisites,
    program::{self, CONSUMERS, FUZZ, IMPORT, MUTATE, PROOF, VM},
    workspace::Workspace,
};

fn main() -> ExitCode {
    program::main(execute)
}

fn execute(workspace: &Workspace, command: &Command) -> Result<()> {
    match command {
        Command::Build => {
            prerequisites::for_building(workspace)?;
            let folder = artifacts::build(workspace)?;
            println!("The files are in {}", folder.display());
            Ok(())
        }
        Command::Test { consumers: true } => program::hand_over(workspace, CONSUMERS),
        Command::Test { consumers: false } => checks::run(workspace),
        Command::Soak => checks::soak(workspace),
        Command::Demo { generations: true, .. } => demo::run(workspace, DemoProcessors::Generations),
        Command::Demo { processor: Some(identity), .. } => demo::run(workspace, DemoProcessors::Named(identity.name)),
        Command::Demo { .. } => demo::run(workspace, DemoProcessors::Default),
        Command::Lab { list: true, .. } => lab::list(),
        Command::Lab { processor, command, .. } => lab::run(workspace, processor, command),
        Command::Package { extras } => package::run(workspace, extras),
        Command::Install => installed::install(workspace),
        Command::Uninstall => installed::uninstall(workspace),
        Command::Interrupts(arguments) => interrupts::run(workspace, arguments),
        Command::Bench { time } => bench::run(workspace, *time),
        Command::Findings { names } => findings::run(workspace, names),
        Command::CleanLab => prefix::clean_lab(workspace),
        Command::Vm(_) => program::hand_over(workspace, VM),
        Command::Fuzz { .. } => program::hand_over(workspace, FUZZ),
        Command::Mutate(_) => program::hand_over(workspace, MUTATE),
        Command::Proof(_) => program::hand_over(workspace, PROOF),
        Command::Constraints | Command::Events { .. } => program::hand_over(workspace, IMPORT),
    }
}
