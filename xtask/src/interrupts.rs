//! `cargo xtask interrupts`: builds everything, then runs the program `interrupts` of the package `tests`.

use std::thread;

use anyhow::{Result, anyhow, ensure};

use crate::{command_line::InterruptArguments, demo, run, workspace::Workspace};

/// The processors if none is named: an Intel and an AMD one.
const IDENTITIES: [&str; 2] = ["skylake-6600k", "zen4-7700x"];

/// Builds what is missing and interrupts the driver. Each processor has a Wine prefix of its own, so that they run at
/// the same time.
pub fn run(workspace: &Workspace, arguments: &InterruptArguments) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench, which steps through the driver, runs on Linux");
    demo::bench(workspace, "interrupts")?;
    let names = arguments.identity.map_or_else(|| IDENTITIES.to_vec(), |identity| vec![identity.name]);
    thread::scope(|scope| {
        let sweeps: Vec<_> =
            names.into_iter().map(|name| scope.spawn(move || sweep(workspace, arguments, name))).collect();
        let results: Vec<_> =
            sweeps.into_iter().map(|sweep| sweep.join().unwrap_or_else(|_| Err(anyhow!("a sweep panicked")))).collect();
        results.into_iter().collect()
    })
}

fn sweep(workspace: &Workspace, arguments: &InterruptArguments, name: &str) -> Result<()> {
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", "tests", "--bin", "interrupts", "--", "--identity", name]);
    command.args(["--seed", &arguments.seed.to_string()]);
    if let Some(scenario) = &arguments.scenario {
        command.args(["--scenario", scenario]);
    }
    if let Some(sample) = arguments.sample {
        command.args(["--sample", &sample.to_string()]);
    }
    demo::on_bench_in(workspace, &workspace.prefix(name), &mut command, run::verbose)
}
