//! Runs the steps of the plan in a guest that may crash.

mod guest_link;

use std::path::Path;

use anyhow::Result;

use self::guest_link::{Called, GuestLink};
use super::{
    guest::{Call, Clock, Failure, Guest, HostAction, HostResult, Ran},
    output,
    plan::{self, Action, DriverState, Step},
    proof::{self, Outcome},
    state::{Crash, Running, State, StepResult, now},
};
use xtask::run;

/// A run of the plan.
pub struct Runner<'a> {
    link: GuestLink<'a>,
    steps: &'a [Step],
    folder: &'a Path,
    state: State,
}

/// What a step did, before its meaning is known.
enum Did {
    Ran(Ran),
    Is(Outcome),
    Crashed(Crash),
}

impl<'a> Runner<'a> {
    /// Makes a run of `steps`, whose files are in `folder`, from a state.
    pub fn new(
        guest: &'a mut dyn Guest,
        clock: &'a mut dyn Clock,
        steps: &'a [Step],
        folder: &'a Path,
        state: State,
    ) -> Self {
        Self { link: GuestLink::new(guest, clock, folder), steps, folder, state }
    }

    /// Returns the state.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Runs every step that has no result yet.
    ///
    /// An error says that the run cannot go on now. The state on the disk is that before the step which could not run,
    /// so that the same command continues there.
    pub fn run(&mut self) -> Result<()> {
        let width = self.steps.iter().map(|step| step.name.len()).max().unwrap_or_default();
        for (number, step) in (1..).zip(self.steps) {
            if self.state.results.contains_key(&step.name) {
                continue;
            }
            let in_guest = !matches!(step.action, Action::Host(_));
            if in_guest {
                self.enter()?;
            }
            if self.state.results.contains_key(&step.name) {
                continue; // it crashed before the host's command was ended
            }
            let result = self.step(step)?;
            let word = match &result.outcome {
                Outcome::Passed => "passed".to_owned(),
                Outcome::Failed(reason) => format!("FAILED: {reason}"),
                Outcome::NotTried(reason) => format!("not tried: {reason}"),
            };
            let time = run::duration(std::time::Duration::from_secs_f64(result.seconds));
            println!("  {number:>3} of {}  {:width$} {time:>12}  {word}", self.steps.len(), step.name);
            self.end(&step.name, result)?;
        }
        self.state.finished = Some(now());
        self.state.save(self.folder)
    }

    /// Waits until the guest answers, and finds out whether it crashed since the last step. The next step saves the
    /// state.
    fn enter(&mut self) -> Result<()> {
        let boot = self.link.wait_for_answer()?;
        if self.state.dumps.is_none() {
            self.state.dumps = Some(self.link.list_dumps()?);
        }
        let unfinished = self.state.running.take();
        let before = unfinished.as_ref().map_or(&self.state.boot, |running| &running.boot);
        if before.as_ref().is_some_and(|before| *before != boot) {
            let blamed = unfinished.map(|running| running.step).or_else(|| self.state.last.clone());
            let crash = self.link.collect(&mut self.state, blamed.as_deref().unwrap_or("start"))?;
            if let Some(name) = blamed {
                self.blame(&name, crash);
            }
            self.state.driver_runs = None;
        } else if unfinished.is_some() {
            self.link.end_leftovers()?;
        }
        self.state.boot = Some(boot);
        Ok(())
    }

    /// Records a crash as the result of a step, which may have had another one. A restart that was requested is none
    /// unless it left a dump.
    fn blame(&mut self, name: &str, crash: Crash) {
        let requested = self.steps.iter().any(|step| step.name == name && step.action == Action::Restart);
        let outcome = if requested && crash == Crash::default() { Outcome::Passed } else { crashed(&crash) };
        println!("  {name}: {outcome:?}");
        let crash = (outcome != Outcome::Passed).then_some(crash);
        let old = self.state.results.remove(name);
        let (code, seconds) = old.map_or((None, 0.0), |old| (old.code, old.seconds));
        self.state.results.insert(name.to_owned(), StepResult { outcome, code, seconds, crash });
    }

    /// Writes the result of a step.
    fn end(&mut self, name: &str, result: StepResult) -> Result<()> {
        self.state.running = None;
        self.state.last = Some(name.to_owned());
        self.state.results.insert(name.to_owned(), result);
        self.state.save(self.folder)
    }

    fn step(&mut self, step: &Step) -> Result<StepResult> {
        let passed = |name: &&String| self.state.results.get(*name).is_some_and(|done| done.outcome == Outcome::Passed);
        let missing = step.after.iter().find(|name| !passed(name)).map(|name| format!("the step {name} did not pass"));
        let unmet = step.needs.iter().find_map(|need| need.unmet(&self.state.facts)).or(missing);
        if let Some(reason) = unmet {
            return Ok(result(Outcome::NotTried(reason), None, 0.0));
        }
        let boot = self.state.boot.clone();
        self.state.running = Some(Running { step: step.name.clone(), boot });
        self.state.save(self.folder)?;
        let begun = self.link.now();
        let did = match self.prepare_driver(step)? {
            Some(did) => did,
            None => self.act(step)?,
        };
        let seconds = self.link.now().saturating_sub(begun).as_secs_f64();
        Ok(match did {
            Did::Is(outcome) => result(outcome, None, seconds),
            Did::Crashed(crash) => StepResult { crash: Some(crash.clone()), ..result(crashed(&crash), None, seconds) },
            Did::Ran(ran) => {
                (step.learn)(&ran, &mut self.state.facts);
                let is_client = matches!(step.action, Action::Client(_));
                let usage = is_client.then(|| proof::usage(&ran)).flatten();
                let outcome = usage.unwrap_or_else(|| (step.proof)(&ran));
                output::write(self.folder, &step.name, &ran)?;
                result(outcome, Some(ran.code), seconds)
            }
        })
    }

    /// Brings the driver into the state that the step begins with; returns why the step cannot begin.
    fn prepare_driver(&mut self, step: &Step) -> Result<Option<Did>> {
        let (verb, wanted) = match step.driver {
            DriverState::Any => return Ok(None),
            DriverState::Running => ("install", true),
            DriverState::Absent => ("uninstall", false),
        };
        if self.state.driver_runs == Some(wanted) {
            return Ok(None);
        }
        let ran = match self.call(&step.name, &plan::client(&[verb]), step.limit)? {
            Did::Ran(ran) => ran,
            other => return Ok(Some(other)),
        };
        if ran.code == 0 {
            self.state.driver_runs = Some(wanted);
            return Ok(None);
        }
        let text = ran.err.lines().next().unwrap_or_default();
        let reason = format!("client {verb}, which it begins with, failed (exit code {}): {text}", ran.code);
        Ok(Some(Did::Is(Outcome::NotTried(reason))))
    }

    fn act(&mut self, step: &Step) -> Result<Did> {
        match &step.action {
            Action::Host(action) => self.host(*action),
            Action::Copy => {
                self.link.copy_payload(step.limit)?;
                Ok(Did::Is(Outcome::Passed))
            }
            Action::Restart => self.restart(&step.name),
            Action::Client(arguments) => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let did = self.call(&step.name, &plan::client(&arguments), step.limit)?;
                let verb = arguments.first().copied();
                match (&did, verb) {
                    (Did::Ran(ran), Some("install")) => self.state.driver_runs = (ran.code == 0).then_some(true),
                    (Did::Ran(ran), Some("uninstall")) => self.state.driver_runs = (ran.code == 0).then_some(false),
                    _ => {}
                }
                Ok(did)
            }
            Action::Program(call) => {
                // The tests install and uninstall the driver themselves, and so do sc and pnputil.
                self.state.driver_runs = None;
                self.call(&step.name, call, step.limit)
            }
        }
    }

    fn host(&mut self, action: HostAction) -> Result<Did> {
        let done = match self.link.host(action) {
            Ok(done) => done,
            Err(Failure::Host(error)) => return Err(error),
            Err(Failure::Lost(text)) => HostResult::Refused(text),
            Err(Failure::TimedOut) => HostResult::Refused("it took too long".to_owned()),
        };
        // Some of these actions restart the guest, which is not a crash.
        self.state.boot = None;
        Ok(match done {
            HostResult::Done(out) => Did::Ran(Ran { out, ..Ran::default() }),
            HostResult::Refused(reason) => Did::Is(Outcome::Failed(reason)),
            HostResult::ByHand(reason) => Did::Is(Outcome::NotTried(reason)),
        })
    }

    fn restart(&mut self, name: &str) -> Result<Did> {
        let before = self.state.boot.clone();
        self.state.driver_runs = None;
        let Some(boot) = self.link.restart(name, before.as_deref())? else {
            return Ok(Did::Is(Outcome::Failed("the guest did not restart".to_owned())));
        };
        self.state.boot = Some(boot);
        let crash = self.link.collect_after_restart(&mut self.state, name)?;
        Ok(if crash == Crash::default() { Did::Is(Outcome::Passed) } else { Did::Crashed(crash) })
    }

    /// Runs a program in the guest, and deals with a guest that does not answer any more.
    fn call(&mut self, name: &str, call: &Call, limit: std::time::Duration) -> Result<Did> {
        Ok(match self.link.call(name, call, limit, self.state.boot.as_deref())? {
            Called::Ran(ran) => Did::Ran(ran),
            Called::TimedOut => {
                self.state.driver_runs = None;
                Did::Is(Outcome::Failed(format!("it did not end within {}", run::duration(limit))))
            }
            Called::Lost(text) => {
                self.state.driver_runs = None;
                Did::Is(Outcome::NotTried(format!("the connection was lost, and the guest did not restart: {text}")))
            }
            Called::Restarted(boot) => {
                self.state.driver_runs = None;
                self.state.boot = Some(boot);
                Did::Crashed(self.link.collect(&mut self.state, name)?)
            }
        })
    }
}

fn crashed(crash: &Crash) -> Outcome {
    let dumps = match crash.dumps.len() + crash.missing.len() {
        0 => "and left no dump".to_owned(),
        1 => "and left a dump".to_owned(),
        count => format!("and left {count} dumps"),
    };
    Outcome::Failed(format!("the guest crashed or restarted by itself {dumps}"))
}

const fn result(outcome: Outcome, code: Option<i32>, seconds: f64) -> StepResult {
    StepResult { outcome, code, seconds, crash: None }
}
