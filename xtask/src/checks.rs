//! Every check and every test, cheap ones first, with the time that each took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::{
    artifacts::{self, Group},
    demo::{self, Show},
    elevated, package, prerequisites, reproducible, run,
    workspace::Workspace,
};

/// Packages that only build for Windows, and there with a profile or a kit of their own.
const WINDOWS_ONLY: [&str; 6] = ["halprof", "shim", "specimen", "bcryptprimitives", "probe", "target"];

/// One part of the whole, with its name.
struct Stage<'a> {
    name: &'a str,
    work: Box<dyn Fn() -> Result<()> + 'a>,
}

impl<'a> Stage<'a> {
    fn new(name: &'a str, work: impl Fn() -> Result<()> + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Runs all stages up to the first that fails.
pub fn run(workspace: &Workspace) -> Result<()> {
    let started = Instant::now();
    let stages = stages(workspace);
    let mut report = Vec::new();
    let mut outcome = Ok(());
    for stage in &stages {
        if outcome.is_err() {
            report.push(format!("  {:24} {:>12}  not run", stage.name, ""));
            continue;
        }
        println!("\n== {} ==", stage.name);
        let begun = Instant::now();
        outcome = (stage.work)().with_context(|| format!("failed in the stage \"{}\"", stage.name));
        report.push(line(stage.name, begun.elapsed(), outcome.is_ok()));
    }
    println!("\n{}", report.join("\n"));
    println!("{}", line("all", started.elapsed(), outcome.is_ok()));
    outcome
}

/// What is too long for every change.
pub fn soak(workspace: &Workspace) -> Result<()> {
    const CASES: &str = "20000";
    const ROUNDS: usize = 3;
    let started = Instant::now();
    elevated::ensure()?;
    prerequisites::for_testing(workspace)?;
    artifacts::build(workspace)?;
    package::make(workspace)?;
    reproducible::check(workspace)?;
    let mut native = workspace.cargo("test");
    // Optimized: the cases take their time, not the build.
    run::shown(native.args(["--quiet", "--locked", "--release"]).env("PROPTEST_CASES", CASES))?;
    demo::run(workspace, Show::Generations)?;
    for round in 1..=ROUNDS {
        println!("\n== round {round} of {ROUNDS} ==");
        end_to_end_tests(workspace, Scope::Soak)?;
    }
    println!("{}", line("soak", started.elapsed(), true));
    Ok(())
}

fn line(name: &str, time: Duration, passed: bool) -> String {
    let result = if passed { "passed" } else { "FAILED" };
    format!("  {name:24} {:>12}  {result}", run::duration(time))
}

/// The stages, in order. The Windows lints take the profile of the build, so that both share what runs on the host.
fn stages(workspace: &Workspace) -> Vec<Stage<'_>> {
    let mut stages = vec![
        Stage::new("prerequisites", || elevated::ensure().and_then(|()| prerequisites::for_testing(workspace))),
        Stage::new("format", || run::shown(workspace.cargo("fmt").args(["--all", "--check"]))),
        Stage::new("lints, native", || native_lints(workspace)),
    ];
    let groups = artifacts::groups().iter();
    stages.extend(groups.map(|group| Stage::new(group.lints, || windows_lints(workspace, group))));
    stages.extend([
        Stage::new("tests, native", || run::shown(workspace.cargo("test").args(["--quiet", "--locked"]))),
        Stage::new("tests, every order", || loom(workspace)),
        Stage::new("build", || artifacts::build(workspace).map(|_| ())),
        Stage::new("package", || package::make(workspace).map(|_| ())),
        Stage::new("tests, end to end", || end_to_end_tests(workspace, Scope::Usual)),
    ]);
    stages
}

fn native_lints(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("clippy");
    command.args(["--locked", "--workspace"]);
    for package in WINDOWS_ONLY {
        command.args(["--exclude", package]);
    }
    run::shown(command.args(["--all-targets", "--", "-D", "warnings"]))
}

fn windows_lints(workspace: &Workspace, group: &Group) -> Result<()> {
    run::shown(group.cargo(workspace, "clippy")?.args(["--", "-D", "warnings"]))
}

/// The ring between interrupt and request, in every order of what both do. In a folder of its own: all is compiled
/// anew with loom's atomics.
fn loom(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("test");
    command.args(["--quiet", "--locked", "--release", "--package", "halprof-ring", "--test", "loom"]);
    run::shown(command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace.target().join("loom")))
}

/// How much the end-to-end tests repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Each law once, or a few times.
    Usual,
    /// Many rounds, and every processor of the model.
    Soak,
}

/// One at a time: the driver, its service and its counters are the whole machine's.
fn end_to_end_tests(workspace: &Workspace, scope: Scope) -> Result<()> {
    let mut command = workspace.cargo("test");
    command.args(["--locked", "--package", "tests", "--", "--test-threads=1"]);
    if scope == Scope::Soak {
        command.env("HALPROF_SOAK", "1");
    }
    demo::on_bench(workspace, &mut command)
}
