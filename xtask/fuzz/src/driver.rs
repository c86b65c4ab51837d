//! `cargo xtask fuzz driver`: runs the program `fuzz_driver` of the package `tests`.

use anyhow::{Result, ensure};

use xtask::{command_line::DriverArguments, demo, workspace::Workspace};

/// Builds what is missing and runs the fuzzer.
pub fn run(workspace: &Workspace, DriverArguments { seed, requests, identity }: &DriverArguments) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench runs on Linux");
    demo::bench(workspace, "fuzz_driver")?;
    let mut program = workspace.cargo("run");
    program.args(["--quiet", "--locked", "--package", "tests", "--bin", "fuzz_driver", "--"]);
    program.args(["--requests", &requests.to_string()]);
    if let Some(seed) = seed {
        program.args(["--seed", seed]);
    }
    if let Some(identity) = identity {
        program.args(["--identity", identity.name]);
    }
    demo::on_bench(workspace, &mut program)
}
