//! The fuzzer of the engine: the program request-fuzzer, built optimized.

use anyhow::Result;

use xtask::{command_line::RequestArguments, run, workspace::Workspace};

/// Builds and runs the fuzzer.
pub fn run(workspace: &Workspace, arguments: &RequestArguments) -> Result<()> {
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--profile", "fuzzer", "--package", "request-fuzzer", "--"]);
    command.args(["--seed", &arguments.seed.to_string(), "--requests", &arguments.requests.to_string()]);
    command.args(["--threads", &arguments.threads.to_string()]);
    if let Some(minutes) = arguments.minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    if let Some(hours) = arguments.hours {
        command.args(["--hours", &hours.to_string()]);
    }
    if arguments.lies {
        command.arg("--lies");
    }
    run::verbose(&mut command)
}
