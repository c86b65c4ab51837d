//! A fuzzer of the driver: threads of a program send random requests at the same time, while the machine is disturbed.

mod disturb;
mod observer;

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bench_protocol::Random;
use protocol::ErrorCode;
use request_generator::{Restrictions, StormPlan, StormReport};

use crate::lab::Lab;
use crate::probe::Probe;
use disturb::{Allowed, Disturber, Happened};
use observer::Observer;

/// Time limit for a step of the program. Requests that wait for samples are cancelled within a few steps.
const STEP_LIMIT: Duration = crate::HANG_LIMIT;

/// Active processors at first, and most processors.
const PROCESSORS: (u32, u32) = (2, 4);

/// Number of disturbances between two looks at the program.
const DISTURBANCES: u32 = 10;

/// A round: the driver is loaded, one program sends its requests, and the driver is unloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StormRound {
    /// The seed of everything that happens.
    pub seed: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of threads that send them.
    pub threads: u32,
}

/// The kind of a round, from its seed.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// Each overflow belongs to one session, and no other program writes registers: the ledger must be exact.
    exact: bool,
    /// Events occur as time passes.
    real_time: bool,
    /// The program is killed after this share of the requests, in percent.
    killed_after: Option<u64>,
}

impl Kind {
    fn of(seed: u64) -> Self {
        const SUBJECT: u64 = 1 << 33;
        let mut random = Random::new(seed, SUBJECT);
        let exact = random.percent(50);
        let real_time = random.percent(30) && !exact;
        Self { exact, real_time, killed_after: random.percent(25).then(|| random.up_to(90)) }
    }
}

/// Numbers of several rounds.
#[derive(Debug, Clone, Default)]
pub struct StormTotals {
    /// Number of rounds.
    pub rounds: u64,
    /// What the programs reported.
    pub report: StormReport,
    /// Number of rounds whose ledger was compared.
    pub exact: u64,
    /// Number of overflows in these rounds.
    pub overflows: u64,
    /// Number of counts that were compared with the model.
    pub counts: u64,
    /// Number of programs that were killed.
    pub kills: u64,
    /// Number of interrupts that the driver served.
    pub interrupts: u64,
    happened: Happened,
    time: Duration,
}

impl StormRound {
    /// Runs the round on a machine that has its identity, and on which the driver is not installed. Adds its numbers to
    /// the totals.
    ///
    /// # Errors
    /// The driver broke a rule, a request hangs, a reply is wrong, something is left behind, or the ledger is wrong.
    pub fn run(self, lab: &mut Lab, totals: &mut StormTotals) -> Result<()> {
        let start = Instant::now();
        let ran = self.storm(lab, totals);
        let time = start.elapsed();
        totals.time += time;
        ran.with_context(|| format!("seed {:#x}, after {:.1} s", self.seed, time.as_secs_f64()))
    }

    fn storm(self, lab: &mut Lab, totals: &mut StormTotals) -> Result<()> {
        let kind = Kind::of(self.seed);
        let (active, maximum) = PROCESSORS;
        lab.wire.set_processors(active, maximum)?;
        lab.install()?;
        lab.wire.clear_ledger()?;
        let mut observer = Observer::start(lab)?;
        observer.start_witness(lab)?;
        if kind.real_time {
            lab.run_in_real_time()?;
        }
        let allowed = Allowed { by_script: !kind.real_time, foreign_writes: !kind.exact };
        let mut disturber = Disturber::new(self.seed, allowed);
        let mut probe = lab.probe()?;
        let restrictions = Restrictions { exact: kind.exact, slow: kind.real_time };
        let plan = StormPlan { seed: self.seed, requests: self.requests, threads: self.threads, restrictions };
        let answer = probe.command(&format!("storm {}", serde_json::to_string(&plan)?))?;
        ensure!(answer == "ok", "the storm does not begin: {answer}");
        let killed_after = kind.killed_after.map(|share| self.requests * share / 100);
        let report = loop {
            for _ in 0..DISTURBANCES {
                disturber.disturb(lab)?;
            }
            let report = state(&mut probe)?;
            let is_time = killed_after.is_some_and(|requests| report.requests() >= requests);
            if report.ended || is_time {
                break report;
            }
        };
        let killed = !report.ended;
        if killed {
            probe.kill()?;
            totals.kills += 1;
        } else {
            drop(probe);
        }
        disturber.wake(lab)?;
        lab.wire.cancel_at(None)?;
        lab.run_by_script()?;
        totals.report.add(&report);
        ensure!(report.wrong.is_empty(), "wrong replies: {:#?}", report.wrong);
        if kind.exact
            && let Some(counts) = observer.stop_witness(lab, &disturber)?
        {
            totals.counts += counts;
        }
        let info = observer.end_sessions()?;
        totals.interrupts += info.interrupts;
        if !killed {
            ensure!(
                info.delivered == report.samples,
                "the driver delivered {} samples, and the program received {}",
                info.delivered,
                report.samples
            );
        }
        if kind.exact {
            let ledger = lab.wire.ledger()?;
            let overflows: u64 = ledger.iter().flatten().map(|entry| entry.overflows).sum();
            let accounted = info.delivered + info.discarded + info.lost + info.throttled;
            ensure!(
                overflows == accounted,
                "{overflows} overflows, but {} delivered, {} discarded, {} lost and {} throttled samples: {accounted}",
                info.delivered,
                info.discarded,
                info.lost,
                info.throttled
            );
            totals.exact += 1;
            totals.overflows += overflows;
        }
        drop(observer);
        lab.uninstall()?;
        disturber.undo_foreign_writes(lab)?;
        ensure!(lab.wire.pending_requests()? == 0, "a request is still pending");
        lab.check_clean()?;
        totals.rounds += 1;
        totals.happened.add(disturber.happened);
        Ok(())
    }
}

impl StormTotals {
    /// Returns a line about the rounds after an earlier state.
    #[must_use]
    pub fn since(&self, before: &Self) -> String {
        let requests = self.report.requests() - before.report.requests();
        let seconds = self.time.saturating_sub(before.time).as_secs_f64();
        format!(
            "{requests:>8} requests, {:>8} interrupts, {:>3} kills, {seconds:>6.1} s",
            self.interrupts - before.interrupts,
            self.kills - before.kills
        )
    }
}

/// Returns the state of a storm.
fn state(probe: &mut Probe) -> Result<StormReport> {
    let answer = probe.command("storming")?;
    let report: StormReport = serde_json::from_str(&answer).with_context(|| answer.clone())?;
    if Duration::from_millis(report.longest_step) > STEP_LIMIT {
        bail!("a request hangs for {} ms: {}", report.longest_step, report.step);
    }
    Ok(report)
}

impl Happened {
    const fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.sleeps += other.sleeps;
        self.added += other.added;
        self.foreign_writes += other.foreign_writes;
    }
}

impl fmt::Display for StormTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, report, exact, overflows, counts, kills, interrupts, happened, time } = self;
        let (requests, seconds) = (report.requests(), time.as_secs().max(1));
        writeln!(f, "{:16}{:>12}{:>12}{:>12}", "request", "accepted", "refused", "failed")?;
        for (name, codes) in &report.codes {
            writeln!(f, "{name:16}{:>12}{:>12}{:>12}", codes.accepted, codes.refused, codes.failed)?;
        }
        for (cause, times) in &report.refusals {
            let name = ErrorCode::from_number(*cause).map_or_else(|| cause.to_string(), |cause| format!("{cause:?}"));
            writeln!(f, "refused with {name}: {times}")?;
        }
        writeln!(
            f,
            "{requests} requests in {rounds} rounds and {seconds} s, {} per second; {} handles opened, {} \
             closed, {} cancellations, {} requests cancelled; {} samples received",
            requests / seconds,
            report.opened,
            report.closed,
            report.cancels,
            report.cancelled,
            report.samples
        )?;
        write!(
            f,
            "{interrupts} interrupts, {} runs of events, {} sleeps, {} processors added, {} foreign writes, {kills} \
             kills; {overflows} overflows of {exact} rounds are in the ledger, {counts} counts are those of the model",
            happened.runs, happened.sleeps, happened.added, happened.foreign_writes
        )
    }
}
