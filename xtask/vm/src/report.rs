//! The report of a run: a verdict for each claim of docs/claims.md, as JSON and as a page without external requests.

mod page;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use super::{
    Run,
    claims::{CLAIMS, Claim, Scope},
    facts::Facts,
    output,
    plan::Step,
    proof::Outcome,
    state::{State, StepResult, now},
};
use xtask::files;

/// Schema of the JSON file.
const SCHEMA: &str = "halprof.vm/1";

/// The verdict of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every step that decides it passed.
    Proved,
    /// A step that decides it failed.
    Refuted,
    /// No step decided it.
    NotTried,
}

/// A claim with its verdict.
#[derive(Debug, Serialize)]
pub struct ClaimReport {
    /// Its identifier.
    pub id: &'static str,
    /// The claim, as docs/claims.md has it.
    pub claim: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the steps that decide a part of it passed, and nothing decides the rest.
    pub in_part: bool,
    /// What was shown, or why it was not.
    pub because: String,
    /// The steps that decide it.
    pub steps: Vec<String>,
}

/// A step with its result.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// Its name.
    pub name: String,
    /// The command, to read.
    pub command: String,
    /// What it shows if it passes.
    pub shows: &'static str,
    /// The claims that it decides.
    pub decides: Vec<&'static str>,
    /// The result; nothing if the run ended before it.
    pub result: Option<StepResult>,
    /// The end of its standard output.
    pub out: String,
    /// The end of its standard error.
    pub err: String,
}

/// The number of claims with each verdict, and of crashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Proved claims.
    pub proved: usize,
    /// Refuted claims.
    pub refuted: usize,
    /// Claims that were not tried.
    pub not_tried: usize,
    /// Those of them that were shown in part.
    pub in_part: usize,
    /// Steps that failed.
    pub failed_steps: usize,
    /// Crashes of the guest.
    pub crashes: usize,
}

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// The virtual machine.
    pub name: String,
    /// How it was reached.
    pub transport: String,
    /// SHA-256 of halprof.sys.
    pub package: String,
    /// When the run began.
    pub started: String,
    /// When the report was written.
    pub written: String,
    /// Whether every step has a result.
    pub complete: bool,
    /// Why the run ended before its last step.
    pub interrupted: Option<String>,
    /// What is known about the guest.
    pub guest: Facts,
    /// The numbers.
    pub summary: Summary,
    /// The claims, in the order of the document.
    pub claims: Vec<ClaimReport>,
    /// The steps, in the order of the plan.
    pub steps: Vec<StepReport>,
}

impl Report {
    /// Makes the report of a run. `interrupted` is the error that ended it early.
    pub fn new(run: &Run<'_>, state: &State, interrupted: Option<String>) -> Self {
        let steps = run.steps;
        let claims: Vec<ClaimReport> = CLAIMS.iter().map(|claim| judge(claim, steps, state)).collect();
        let with = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
        let results = || state.results.values();
        let summary = Summary {
            proved: with(Verdict::Proved),
            refuted: with(Verdict::Refuted),
            not_tried: with(Verdict::NotTried),
            in_part: claims.iter().filter(|claim| claim.in_part).count(),
            failed_steps: results().filter(|result| matches!(result.outcome, Outcome::Failed(_))).count(),
            crashes: results().filter(|result| result.crash.is_some()).count(),
        };
        let reports = steps.iter().map(|step| {
            let (out, err) = output::shown(run.folder, &step.name);
            StepReport {
                name: step.name.clone(),
                command: step.command(),
                shows: step.shows,
                decides: step.decides.clone(),
                result: state.results.get(&step.name).cloned(),
                out,
                err,
            }
        });
        Self {
            schema: SCHEMA,
            name: run.name.to_owned(),
            transport: run.transport.to_owned(),
            package: state.package.clone(),
            started: state.started.clone(),
            written: now(),
            complete: steps.iter().all(|step| state.results.contains_key(&step.name)),
            interrupted,
            guest: state.facts.clone(),
            summary,
            claims,
            steps: reports.collect(),
        }
    }

    /// Writes `report.json` and `report.html` into a folder, and returns their paths.
    pub fn write(&self, folder: &Path) -> Result<[PathBuf; 2]> {
        let paths = ["report.json", "report.html"].map(|name| folder.join(name));
        let [json, html] = &paths;
        files::write(json, serde_json::to_string_pretty(self)?)?;
        files::write(html, page::render(self))?;
        Ok(paths)
    }
}

/// Returns the verdict of a claim. A failed step refutes it. Passed steps prove it if they decide all of it.
fn judge(claim: &Claim, steps: &[Step], state: &State) -> ClaimReport {
    let deciding: Vec<&Step> = steps.iter().filter(|step| step.decides.contains(&claim.id)).collect();
    let outcome = |step: &&Step| state.results.get(&step.name).map(|result| &result.outcome);
    let failed = deciding.iter().find_map(|step| match outcome(step) {
        Some(Outcome::Failed(reason)) => Some(format!("{}: {reason}", step.name)),
        _ => None,
    });
    let open = deciding.iter().find_map(|step| match outcome(step) {
        Some(Outcome::NotTried(reason)) => Some(format!("{}: {reason}", step.name)),
        Some(_) => None,
        None => Some(format!("{}: the run ended before this step", step.name)),
    });
    let in_part = matches!(claim.scope, Scope::InPart(_)) && failed.is_none() && open.is_none();
    let (verdict, because) = match (claim.scope, failed, open) {
        (_, Some(reason), _) => (Verdict::Refuted, reason),
        (Scope::NoStep(reason), None, _) => (Verdict::NotTried, format!("no step: {reason}")),
        (_, None, Some(reason)) => (Verdict::NotTried, reason),
        (Scope::Complete, None, None) => (Verdict::Proved, shown(&deciding)),
        (Scope::InPart(rest), None, None) => {
            (Verdict::NotTried, format!("in part: {}; this remains: {rest}", shown(&deciding)))
        }
    };
    let steps = deciding.iter().map(|step| step.name.clone()).collect();
    ClaimReport { id: claim.id, claim: claim.text, verdict, in_part, because, steps }
}

/// Returns what passed steps have shown, each fact once.
fn shown(steps: &[&Step]) -> String {
    let mut facts: Vec<&str> = Vec::new();
    for step in steps {
        if !facts.contains(&step.shows) {
            facts.push(step.shows);
        }
    }
    facts.join("; ")
}
