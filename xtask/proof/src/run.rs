//! A run: the stages one after the other, their logs, and the manifest that becomes of them.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use xtask::{files, prerequisites, run, workspace::Workspace};
use xtask_package::proof;

use crate::figures::Figures;
use crate::manifest::{Manifest, Run, SCHEMA, Sources, StageRecord, Verdict};
use crate::recorder::Recorder;
use crate::stages::{self, STAGES, Stage};
use crate::summary;

/// Time limit of one command, beside the length of the run.
const LIMIT: Duration = Duration::from_hours(1);

/// Runs the stages for so many minutes, and makes the manifest of the driver that was checked.
pub fn make(workspace: &Workspace, minutes: u64) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench runs on Linux");
    let (started, began) = (Instant::now(), SystemTime::now());
    prerequisites::for_testing(workspace)?;
    stages::build(workspace)?;
    let folder = proof::folder(workspace);
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    let driver = proof::describe(workspace)?;
    let length = Duration::from_mins(minutes);
    let mut records = Vec::new();
    for (index, stage) in STAGES.iter().enumerate() {
        let share = stages::minutes(STAGES, index, length.saturating_sub(started.elapsed()));
        records.push(record(workspace, &folder.join("logs"), stage, share));
    }
    ensure!(proof::describe(workspace)? == driver, "the driver has changed during the run");
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sources: sources(workspace)?,
        driver,
        compiler: run::output(Command::new("rustc").arg("--version"))?.trim().to_owned(),
        processors: thread::available_parallelism()?.get(),
        run: Run {
            began: humantime::format_rfc3339_seconds(began).to_string(),
            minutes,
            seconds: started.elapsed().as_secs(),
        },
        stages: records,
    };
    let text = manifest.to_text()?;
    files::write(&folder.join("unsigned.json"), &text)?;
    print!("{}", summary::table(&manifest));
    let failed: Vec<&str> = manifest.with(Verdict::Failed).map(|stage| stage.name.as_str()).collect();
    ensure!(failed.is_empty(), "these stages failed: {}; no manifest was signed", failed.join(", "));
    proof::seal(workspace, &text)?;
    let document = workspace.root().join("docs/proof.md");
    files::write(&document, summary::replace(&files::read_text(&document)?, &manifest)?)?;
    xtask::package::make_whole(workspace)?;
    check(&workspace.package())
}

/// Runs a stage for so many minutes, or notes why it is not run.
fn record(workspace: &Workspace, logs: &Path, stage: &Stage, minutes: Result<u64, String>) -> StageRecord {
    let mut record = StageRecord {
        name: stage.name.to_owned(),
        subject: stage.subject.to_owned(),
        verdict: Verdict::NotRun,
        reason: None,
        commands: Vec::new(),
        seconds: 0,
        figures: Figures::new(),
    };
    let minutes = match minutes {
        Ok(minutes) => minutes,
        Err(reason) => return StageRecord { reason: Some(reason), ..record },
    };
    println!("\n== {} ==", stage.name);
    let mut recorder = Recorder {
        workspace,
        logs: logs.to_owned(),
        name: stage.name,
        limit: Duration::from_mins(minutes) + LIMIT,
        commands: Vec::new(),
        figures: Figures::new(),
    };
    let started = Instant::now();
    let outcome = (stage.work)(&mut recorder, minutes);
    record.seconds = started.elapsed().as_secs();
    (record.commands, record.figures) = (recorder.commands, recorder.figures);
    (record.verdict, record.reason) = match outcome {
        Ok(()) => (Verdict::Passed, None),
        // Nothing was begun: a tool is missing.
        Err(error) if record.commands.is_empty() => (Verdict::NotRun, Some(neutral(workspace, &error))),
        Err(error) => (Verdict::Failed, Some(neutral(workspace, &error))),
    };
    record
}

/// Returns the text of an error without the folder of the sources.
fn neutral(workspace: &Workspace, error: &anyhow::Error) -> String {
    format!("{error:#}").replace(&format!("{}/", workspace.root().display()), "")
}

fn sources(workspace: &Workspace) -> Result<Sources> {
    let git = |words: &[&str]| run::output(Command::new("git").arg("-C").arg(workspace.root()).args(words));
    let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
    Ok(Sources { commit, changed: !git(&["status", "--porcelain"])?.trim().is_empty() })
}

/// Checks the manifest in a package: its signature, its form, and that it is of the driver in the package.
pub fn check(package: &Path) -> Result<()> {
    let text = proof::verified(package)?;
    let manifest = Manifest::parse(&text)?;
    let names: BTreeSet<&str> = manifest.stages.iter().map(|stage| stage.name.as_str()).collect();
    let missing: Vec<&str> = STAGES.iter().map(|stage| stage.name).filter(|name| !names.contains(name)).collect();
    ensure!(missing.is_empty(), "the manifest lacks the stages {}", missing.join(", "));
    proof::ensure_of(&manifest.driver, &fs::read(package.join(&manifest.driver.name)).context("no driver")?)?;
    let count = |verdict| manifest.with(verdict).count();
    if count(Verdict::Failed) > 0 {
        bail!("stages failed in the run of the manifest");
    }
    println!(
        "The manifest is valid: {} of {} stages passed, {} were not run, for {} {}",
        count(Verdict::Passed),
        manifest.stages.len(),
        count(Verdict::NotRun),
        manifest.driver.name,
        manifest.driver.sha256
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures, recorder::shown};

    fn stage(work: stages::Work) -> Stage {
        Stage { name: "a stage", subject: "s", length: stages::Length::Fixed(1), work }
    }

    fn of(work: stages::Work, minutes: Result<u64, String>) -> StageRecord {
        let logs = tempfile::tempdir().unwrap();
        record(&Workspace::find().unwrap(), logs.path(), &stage(work), minutes)
    }

    fn shell(recorder: &mut Recorder<'_>, script: &str) -> Result<()> {
        recorder.run(Command::new("sh").args(["-c", script]), figures::tests)
    }

    #[test]
    fn a_stage_passes_only_if_its_commands_succeed_and_check_something() {
        let passed = of(|recorder, _| shell(recorder, "echo test result: ok. 3 passed"), Ok(1));
        assert_eq!((passed.verdict, passed.figures["tests"]), (Verdict::Passed, 3));
        assert_eq!(passed.commands, ["sh -c 'echo test result: ok. 3 passed'"]);
        for script in ["echo test result: ok. 3 passed; exit 1", "echo test result: ok. 0 passed", "true"] {
            let failed = match script {
                "true" => of(|recorder, _| shell(recorder, "true"), Ok(1)),
                "echo test result: ok. 0 passed" => {
                    of(|recorder, _| shell(recorder, "echo test result: ok. 0 passed"), Ok(1))
                }
                _ => of(|recorder, _| shell(recorder, "echo test result: ok. 3 passed; exit 1"), Ok(1)),
            };
            assert_eq!(failed.verdict, Verdict::Failed, "{script}");
            assert!(failed.reason.is_some() && failed.figures.is_empty(), "{script}");
        }
    }

    #[test]
    fn a_stage_that_did_not_begin_was_not_run() {
        let late = of(|_, _| Ok(()), Err("no time".to_owned()));
        assert_eq!((late.verdict, late.reason.as_deref()), (Verdict::NotRun, Some("no time")));
        let missing = of(|_, _| bail!("a tool is missing"), Ok(1));
        assert_eq!((missing.verdict, missing.reason.as_deref()), (Verdict::NotRun, Some("a tool is missing")));
    }

    #[test]
    fn a_command_is_shown_with_what_decides_its_checks_and_without_paths() {
        let mut command = Command::new("/bin/cargo");
        command.args(["test", "-q"]).env("PROPTEST_CASES", "64").env("CARGO_TARGET_DIR", "/somewhere");
        assert_eq!(shown(&command), "PROPTEST_CASES='64' cargo test -q");
    }
}
