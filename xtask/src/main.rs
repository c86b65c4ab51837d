//! What people run: `cargo xtask build`, `test`, `soak`, `demo`, `bench`, `clean-lab`. The same on Linux and on Windows.
//!
//! On Linux the driver is built against a stand-in for the Windows Driver Kit (`kit`) and runs under Wine with a model
//! of the hardware; on Windows the installed WDK and the machine's own processor take their places.

#![forbid(unsafe_code)]

mod artifacts;
mod bench;
mod checks;
mod demo;
mod import_library;
mod kit;
mod prefix;
mod prerequisites;
mod run;
mod wdk_port;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Build, test and show halprof. What is missing on a Debian system is installed first, and said.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the driver, the client and (on Linux) the test bench
    ///
    /// On Linux: installs what is missing, prepares a stand-in for the Windows Driver Kit under target/kit and puts the
    /// files into target/lab/artifacts. On Windows: builds the driver with the installed WDK and the client.
    Build,

    /// Run every check and every test
    ///
    /// Formatting, lints of all packages, the native tests, the build, and the tests of the real driver from end to
    /// end. Stops at the first stage that fails; the end says what each took.
    Test,

    /// Load the driver and run the main job
    ///
    /// Builds what is needed, then installs the driver, shows what it found, counts events and uninstalls it. On Linux
    /// this happens under Wine and the counters are those of a model; on Windows they are the machine's own.
    Demo {
        /// The processor that the model plays, by name; without it the demo chooses
        #[arg(long, value_name = "NAME")]
        processor: Option<String>,
    },

    /// Run for long what `test` runs for short
    ///
    /// The property tests with 20,000 cases each, then the tests of the real driver from end to end, five times over.
    /// Takes about half an hour.
    Soak,

    /// Count the instructions of starts, stops, reads and interrupts
    ///
    /// On Linux, under callgrind: how many each takes on one processor besides its accesses to model-specific
    /// registers. The figures repeat exactly. BENCHMARKS.md explains them.
    Bench {
        /// Measure times as well, which takes some minutes and does not repeat
        #[arg(long)]
        time: bool,
    },

    /// Stop the test bench's Wine and remove target/lab
    ///
    /// Takes away the built files and the Wine prefix, nothing else. The next build or demo makes them again.
    CleanLab,
}

fn main() -> ExitCode {
    match execute(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &Command) -> Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Build => {
            prerequisites::for_building(&workspace)?;
            let folder = artifacts::build(&workspace)?;
            println!("The files are in {}", folder.display());
            Ok(())
        }
        Command::Test => checks::run(&workspace),
        Command::Soak => checks::soak(&workspace),
        Command::Demo { processor } => demo::run(&workspace, processor.as_deref()),
        Command::Bench { time } => bench::run(&workspace, *time),
        Command::CleanLab => prefix::clean_lab(&workspace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
