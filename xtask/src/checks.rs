//! Every check and test, cheap ones first, with the duration and the time budget of each.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result, bail};

use crate::{
    artifacts::{self, Group},
    command_line::{Extras, InterruptArguments},
    demo::{self, DemoProcessors},
    elevated, interrupts, lab, package, prerequisites,
    program::{self, CONSUMERS, FUZZ, VM},
    run, tools,
    workspace::Workspace,
};

/// Packages that only build for Windows, and there with a profile or a kit of their own.
const WINDOWS_ONLY: [&str; 14] = [
    "driver",
    "interrupt-path",
    "processor",
    "shim",
    "faulty-driver",
    "bcryptprimitives",
    "etw",
    "launcher",
    "probe",
    "processor-identity",
    "redirect",
    "thread-counts",
    "thread-profiling",
    "workload",
];

/// One part of the whole.
struct Stage<'a> {
    name: &'a str,
    /// Time that it may take in a clean clone on two cores. Exceeding it is reported but does not fail, because
    /// machines differ.
    budget: Duration,
    work: Box<dyn Fn() -> Result<()> + 'a>,
}

impl<'a> Stage<'a> {
    fn new(name: &'a str, budget: u64, work: impl Fn() -> Result<()> + 'a) -> Self {
        Self { name, budget: Duration::from_secs(budget), work: Box::new(work) }
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
        report.push(line(stage.name, begun.elapsed(), Some(stage.budget), outcome.is_ok()));
    }
    println!("\n{}", report.join("\n"));
    println!(
        "{}",
        line("all", started.elapsed(), Some(stages.iter().map(|stage| stage.budget).sum()), outcome.is_ok())
    );
    outcome
}

/// Runs the checks that take too long for every change.
pub fn soak(workspace: &Workspace) -> Result<()> {
    const CASES: &str = "20000";
    const ROUNDS: usize = 3;
    const SOAK_PREEMPTIONS: &str = "4";
    let started = Instant::now();
    elevated::ensure()?;
    prerequisites::for_testing(workspace)?;
    artifacts::build(workspace)?;
    let mut native = workspace.cargo("test");
    // Optimized: the cases take their time, not the build.
    run::verbose(native.args(["--quiet", "--locked", "--release"]).env("PROPTEST_CASES", CASES))?;
    // Alone: with the variable, other tests need the whole machine.
    let mut faults = workspace.cargo("test");
    faults.args(["--quiet", "--locked", "--package", "engine", "--test", "faults"]).env("HALPROF_SOAK", "1");
    run::verbose(&mut faults)?;
    demo::run(workspace, DemoProcessors::Generations)?;
    let identity = cpuid_dumps::parse_name("zen4-7700x").map_err(Error::msg)?;
    lab::run(workspace, identity, &["client".to_owned(), "info".to_owned()])?;
    package::make_with(workspace, &Extras { reproducible: true, ..Extras::default() })?;
    for round in 1..=ROUNDS {
        println!("\n== round {round} of {ROUNDS} ==");
        end_to_end_tests(workspace, Scope::Soak)?;
    }
    interrupts::run(workspace, &InterruptArguments::default())?;
    run::verbose(&mut loom(workspace, Some(SOAK_PREEMPTIONS)))?;
    match miri(workspace) {
        Ok(mut command) => run::verbose(&mut command)?,
        Err(error) => println!("Miri was not run: {error:#}"),
    }
    program::call(workspace, FUZZ, ["fuzz", "soak"])?;
    program::call(workspace, CONSUMERS, ["test", "--consumers"])?;
    println!("{}", line("soak", started.elapsed(), None, true));
    Ok(())
}

fn line(name: &str, time: Duration, budget: Option<Duration>, passed: bool) -> String {
    let result = if passed { "passed" } else { "FAILED" };
    let over = budget.filter(|budget| time > *budget);
    let over = over.map(|budget| format!(", over its budget of {}", run::duration(budget))).unwrap_or_default();
    format!("  {name:24} {:>12}  {result}{over}", run::duration(time))
}

/// Returns the stages in order. Their budgets, in seconds, add up to 20 minutes on Linux. The Windows lints use the
/// profile of the build, so that both share the build scripts and procedural macros.
fn stages(workspace: &Workspace) -> Vec<Stage<'_>> {
    let mut stages = vec![
        Stage::new("prerequisites", 90, || elevated::ensure().and_then(|()| prerequisites::for_testing(workspace))),
        Stage::new("format", 10, || run::verbose(workspace.cargo("fmt").args(["--all", "--check"]))),
        Stage::new("lints, native", 120, || native_lints(workspace)),
    ];
    let groups = artifacts::groups().iter();
    stages.extend(groups.map(|group| Stage::new(group.lints, 40, || windows_lints(workspace, group))));
    stages.extend([
        Stage::new("tests, native", 240, || run::verbose(&mut native_tests(workspace))),
        Stage::new("tests, loom", 60, || run::verbose(&mut loom(workspace, None))),
        Stage::new("documentation", 60, || documentation(workspace)),
        Stage::new("build", 240, || artifacts::build(workspace).map(|_| ())),
        Stage::new("package", 20, || whole_package(workspace)),
        Stage::new("tests, end to end", 240, || end_to_end_tests(workspace, Scope::Short)),
    ]);
    stages
}

/// Makes the package, and checks that the plan of `vm` can use it.
fn whole_package(workspace: &Workspace) -> Result<()> {
    package::make_whole(workspace)?;
    let words = ["vm".into(), "--dry-run".into(), "--package".into(), workspace.package().into_os_string()];
    run::quiet(&mut program::command(workspace, VM, words))
}

/// Returns the command that runs the native tests with a quarter of proptest's usual cases for each law. [`soak`] tries
/// many more.
pub fn native_tests(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("test");
    command.args(["--quiet", "--locked"]).env("PROPTEST_CASES", "64");
    command
}

fn native_lints(workspace: &Workspace) -> Result<()> {
    let mut command = workspace.cargo("clippy");
    command.args(["--locked", "--workspace"]);
    for package in WINDOWS_ONLY {
        command.args(["--exclude", package]);
    }
    run::verbose(command.args(["--all-targets", "--", "-D", "warnings"]))?;
    // All targets are those that `cargo test` runs.
    let mut consumers = workspace.cargo("clippy");
    consumers.args(["--locked", "--package", "tests", "--test", "consumers", "--", "-D", "warnings"]);
    run::verbose(&mut consumers)
}

/// Builds the documentation of every package for its own target. A broken link fails, and so does a public item without
/// documentation.
fn documentation(workspace: &Workspace) -> Result<()> {
    let mut native = workspace.cargo("doc");
    native.arg("--locked");
    let windows = artifacts::groups().iter().map(|group| group.cargo(workspace, "doc"));
    for command in std::iter::once(Ok(native)).chain(windows) {
        let mut command = command?;
        command.args(["--quiet", "--no-deps", "--document-private-items"]);
        run::verbose(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

fn windows_lints(workspace: &Workspace, group: &Group) -> Result<()> {
    run::verbose(group.cargo(workspace, "clippy")?.args(["--", "-D", "warnings"]))
}

/// Returns the command that runs the model checker loom on the ring, on what waits and ends in the driver, and on the
/// engine: it tries every order of the operations of several threads. It has a target folder of its own, because
/// everything is compiled with loom's atomics. `preemptions` replaces the bounds of the tests, also where a test has
/// none.
pub fn loom(workspace: &Workspace, preemptions: Option<&str>) -> Command {
    let mut command = workspace.cargo("test");
    command.args(["--quiet", "--locked", "--release"]);
    command.args(["--package", "sample-ring", "--package", "driver-core", "--package", "engine", "--test", "loom"]);
    if let Some(preemptions) = preemptions {
        command.env("LOOM_MAX_PREEMPTIONS", preemptions);
    }
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", workspace.target().join("loom"));
    command
}

/// Returns the command that runs tests under Miri, which finds undefined behavior: those of the packages whose unsafe
/// code ships and runs without Windows, and of those that read what it delivers.
///
/// # Errors
/// Not every nightly toolchain has Miri.
pub fn miri(workspace: &Workspace) -> Result<Command> {
    const PACKAGES: [&str; 4] = ["sample-ring", "driver-core", "debug-store", "protocol"];
    let mut command = tools::nightly_cargo(workspace, Some("miri"))?;
    command.args(["miri", "test", "--quiet", "--locked"]);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    // proptest reads its folder. Miri is some hundred times slower.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "4");
    command.env("CARGO_TARGET_DIR", workspace.target().join("miri"));
    Ok(command)
}

/// How much the end-to-end tests repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Each law once, or a few times.
    Short,
    /// Many rounds, and every processor of the model.
    Soak,
}

/// Modules of the end-to-end tests that take about half of the time of all.
const HALF: [&str; 8] =
    ["c_programs", "debug_store", "faults", "identities", "installing", "interrupts", "record", "time"];

/// Runs the end-to-end tests, one at a time in a prefix, because driver, service and counters exist once there. The
/// short ones run in two prefixes, half in each.
fn end_to_end_tests(workspace: &Workspace, scope: Scope) -> Result<()> {
    let tests = || {
        let mut command = workspace.cargo("test");
        command.args(["--locked", "--package", "tests"]);
        command
    };
    let one_at_a_time = ["--", "--test-threads=1"];
    if cfg!(windows) || scope == Scope::Soak {
        let mut all = tests();
        if scope == Scope::Soak {
            all.env("HALPROF_SOAK", "1");
        }
        return demo::on_bench(workspace, all.args(one_at_a_time));
    }
    run::verbose(tests().arg("--no-run"))?;
    let modules = HALF.map(|module| format!("{module}::"));
    let (mut half, mut rest) = (tests(), tests());
    half.args(["--test", "end_to_end"]).args(one_at_a_time).args(&modules);
    rest.args(one_at_a_time).args(modules.iter().flat_map(|module| ["--skip", module]));
    thread::scope(|threads| {
        let half = threads.spawn(|| {
            let log = workspace.log("end-to-end-second");
            demo::on_bench_in(workspace, &workspace.prefix("second"), &mut half, |half| run::quiet_in(&log, half))
        });
        let rest = demo::on_bench(workspace, &mut rest);
        half.join().unwrap_or_else(|_| bail!("the thread of the second prefix panicked")).and(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budgets_of_the_stages_are_at_most_twenty_minutes() {
        let workspace = Workspace::find().unwrap();
        let sum: Duration = stages(&workspace).iter().map(|stage| stage.budget).sum();
        assert!(sum <= Duration::from_mins(20), "{sum:?}");
    }

    #[test]
    fn the_halves_name_modules_of_the_end_to_end_tests() {
        let root = Workspace::find().unwrap().root().join("tests/tests/end_to_end/main.rs");
        let text = crate::files::read_text(&root).unwrap();
        for module in HALF {
            assert!(text.contains(&format!("mod {module};")), "{module}");
        }
    }

    #[test]
    fn the_report_marks_a_stage_that_exceeds_its_budget() {
        let budget = Some(Duration::from_secs(10));
        assert!(line("format", Duration::from_secs(10), budget, true).ends_with("10.0 s  passed"));
        assert!(line("format", Duration::from_secs(11), budget, true).ends_with("passed, over its budget of 10.0 s"));
    }
}
