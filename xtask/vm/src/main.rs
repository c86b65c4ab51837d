//! `cargo xtask vm`: takes the package to a virtual machine with Windows, runs the steps of docs/windows.md there, and
//! writes a report with a verdict for each claim of that document.

#![forbid(unsafe_code)]

mod claims;
mod event_access;
mod facts;
mod guest;
mod host;
mod hyperv;
mod output;
mod payload;
mod pending_stop;
mod plan;
mod powershell;
mod proof;
mod protection;
mod report;
mod runner;
mod ssh;
mod state;
mod steps;
#[cfg(test)]
mod tests;

use std::{
    env,
    ffi::OsStr,
    path::Path,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use self::{
    guest::{Call, Clock, Failure, Guest},
    hyperv::HyperVGuest,
    plan::Step,
    report::Report,
    runner::Runner,
    ssh::SshGuest,
    state::State,
};
use anyhow::{Context, Result, bail, ensure};
use xtask::{
    command_line::{Command, VmArguments},
    files, program,
    workspace::Workspace,
};

/// Time limit for the first answer of a guest.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);

/// The time of this machine.
struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&mut self, time: Duration) {
        thread::sleep(time);
    }
}

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Vm(arguments) => run(workspace, arguments),
        _ => program::unknown(),
    })
}

/// Runs the plan in the guest, or prints it.
fn run(workspace: &Workspace, arguments: &VmArguments) -> Result<()> {
    let steps = steps::plan();
    if arguments.dry_run {
        arguments.package.as_deref().map_or(Ok(()), payload::check)?;
        print!("{}", list(&steps));
        return Ok(());
    }
    let name = arguments.name.as_deref();
    let name = name.context("which virtual machine?\n  try: cargo xtask vm --name NAME --address USER@HOST")?;
    let (mut guest, transport) = connect(name, arguments, &env::var_os("PATH").unwrap_or_default())?;
    guest.check()?;
    let folder = workspace.target().join("vm").join(name);
    let state = if let Some(state) = state_of(arguments, &folder)? {
        state
    } else {
        // A machine of Hyper-V may be off, and the plan starts it.
        if arguments.address.is_some() {
            check_answer(guest.as_mut())?;
        }
        begin(workspace, arguments, &folder)?
    };
    let run = Run { name, transport: &transport, steps: &steps, folder: &folder };
    let report = execute(&run, guest.as_mut(), &mut RealClock(Instant::now()), state)?;
    ensure!(report.summary.refuted == 0, "{} claims are refuted", report.summary.refuted);
    Ok(())
}

/// Returns the guest of the command line, and how it is reached.
fn connect(name: &str, arguments: &VmArguments, path: &OsStr) -> Result<(Box<dyn Guest>, String)> {
    Ok(match &arguments.address {
        Some(address) => (Box::new(SshGuest::new(address, path)?), format!("SSH to {address}")),
        None => {
            (Box::new(HyperVGuest::new(name, arguments.credential.as_deref(), path)?), "PowerShell Direct".to_owned())
        }
    })
}

/// Returns the state of the last run, if it goes on.
fn state_of(arguments: &VmArguments, folder: &Path) -> Result<Option<State>> {
    if arguments.fresh {
        return Ok(None);
    }
    let state = State::unfinished(folder)?;
    if let Some(state) = &state {
        println!(
            "Continues the run of {} after {} steps, with its package. --fresh begins a new one.",
            state.started,
            state.results.len()
        );
    }
    Ok(state)
}

/// Checks that a guest answers, before anything is built for it and before the last run is removed.
fn check_answer(guest: &mut dyn Guest) -> Result<()> {
    let why = match guest.run(&Call::boot_time(), ANSWER_LIMIT) {
        Ok(_) => return Ok(()),
        Err(Failure::Host(error)) => return Err(error),
        Err(Failure::Lost(why)) => why,
        Err(Failure::TimedOut) => format!("PowerShell takes longer than {} s", ANSWER_LIMIT.as_secs()),
    };
    bail!("the guest does not answer: {why}\n  try: start the guest and its SSH server, and connect once by hand");
}

/// Makes the payload and the state of a new run. What an earlier run collected is removed.
fn begin(workspace: &Workspace, arguments: &VmArguments, folder: &Path) -> Result<State> {
    if let Some(package) = &arguments.package {
        payload::check(package)?; // before the last run is removed
    }
    files::remove_folder(folder)?;
    files::make_folder(folder)?;
    let (hash, facts) = payload::make(workspace, arguments.package.as_deref(), &folder.join("payload"))?;
    let state = State::new(hash, facts);
    state.save(folder)?;
    Ok(state)
}

/// What a run is about.
struct Run<'a> {
    /// Name of the virtual machine.
    name: &'a str,
    /// How it is reached, to read.
    transport: &'a str,
    /// The plan.
    steps: &'a [Step],
    /// Folder of the state, the outputs and the report.
    folder: &'a Path,
}

/// Runs the steps and writes the report, also if the run ends early.
fn execute(run: &Run<'_>, guest: &mut dyn Guest, clock: &mut dyn Clock, state: State) -> Result<Report> {
    let mut runner = Runner::new(guest, clock, run.steps, run.folder, state);
    let ran = runner.run();
    let interrupted = ran.as_ref().err().map(|error| format!("{error:#}"));
    let report = Report::new(run, runner.state(), interrupted);
    let [json, html] = report.write(run.folder)?;
    let summary = report.summary;
    println!(
        "\n{} claims proved, {} refuted, {} not tried ({} shown in part); {} steps failed, {} crashes",
        summary.proved, summary.refuted, summary.not_tried, summary.in_part, summary.failed_steps, summary.crashes
    );
    for claim in report.claims.iter().filter(|claim| claim.verdict == report::Verdict::Refuted) {
        println!("  refuted: {}\n    {}", claim.claim, claim.because);
    }
    println!("The report is {}\n          and {}", html.display(), json.display());
    ran.map(|()| report)
}

/// Returns the plan, with a paragraph for each step.
fn list(steps: &[Step]) -> String {
    let paragraph = |(number, step): (usize, &Step)| {
        let needs: Vec<&str> = step.needs.iter().map(|need| need.name()).collect();
        let names =
            |title, names: &[&str]| (!names.is_empty()).then(|| format!("     {title}: {}\n", names.join(", ")));
        [
            Some(format!("{number:>3}  {}\n     {}\n", step.name, step.command())),
            names("needs", &needs),
            names("decides", &step.decides),
        ]
        .into_iter()
        .flatten()
        .collect::<String>()
    };
    (1..).zip(steps).map(paragraph).collect()
}
