//! One measurement: a session from its start to its end, while a command runs or for some time.
//!
//! What processes and threads execute is counted by the HAL, or estimated from samples of the driver.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use halprof::counting::{Scaled, difference};
use halprof::{Driver, Refusal, Task};
use protocol::{CountRecord, EventRequest, StartHeader, flags};
use recording::Limits;
use thiserror::Error as ThisError;

use crate::cli::StatArgs;
use counts::requested_metrics::why_refused;
use recorder::command::{self, CpuTimes};
use recorder::sampled_event;
use recorder::sampling::{self, Outcome, SamplingPlan, StartedSampling};
use recorder::tasks::{Scope, Tasks};
use system::System;
use terminal::format::{grouped, seconds};
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Longest time until Ctrl-C is noticed, if no command runs that ends with it.
const ATTENTION: Duration = Duration::from_millis(50);

/// The command ended before the delay.
#[derive(Debug, ThisError)]
#[error("nothing was counted: the command ended within the delay of {} ms", .delay.as_millis())]
pub struct EndedInDelay {
    /// The delay.
    pub delay: Duration,
}

impl UserError for EndedInDelay {
    fn exit(&self) -> Exit {
        Exit::NotRunning
    }

    fn remedy(&self) -> Option<String> {
        Some("a shorter delay (-D)".to_owned())
    }
}

/// Processes and threads cannot be counted in this way: an estimate is known at its end, and begins with the command.
#[derive(Debug, ThisError)]
#[error("{option} needs counts: of processes and threads the driver has estimates")]
pub struct Unestimated {
    /// The option.
    pub option: &'static str,
}

impl UserError for Unestimated {
    fn exit(&self) -> Exit {
        Exit::UnsupportedSource
    }

    fn remedy(&self) -> Option<String> {
        Some(format!("without {}, or -a instead of -p and -t", self.option))
    }
}

/// Samples of each event that are taken of a processor in a second, for the counts of processes: as many as perf takes.
const FREQUENCY: u32 = 4_000;

/// How the counts of processes and threads come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Everything that runs on the processors is counted.
    Whole,
    /// The HAL counts at each context switch.
    Followed,
    /// Their share of the driver's samples is their share of what the processors count.
    Estimated,
}

impl Way {
    /// Returns how the counts of this command line come about.
    pub fn of(args: &StatArgs, tasks: Option<&Tasks>, driver: &Driver) -> Result<Self, Error> {
        let has_command = !args.command.is_empty();
        if tasks.is_none() && (args.all || !has_command) {
            return Ok(Self::Whole);
        }
        if driver.backend().counts_processes {
            return Ok(Self::Followed);
        }
        let refused = if args.interval.is_some() {
            Some("-I")
        } else if args.delay.is_some() && has_command {
            Some("-D")
        } else {
            None
        };
        match (tasks, refused) {
            (_, None) => Ok(Self::Estimated),
            (None, Some(_)) => Ok(Self::Whole),
            (Some(_), Some(option)) => Err(Unestimated { option }.into()),
        }
    }
}

/// What is measured.
pub struct Plan<'a> {
    /// Interval, delay, duration and command.
    pub args: &'a StatArgs,
    /// The driver.
    pub connection: &'a Driver,
    /// The machine.
    pub system: &'a dyn System,
    /// The processes and threads of the arguments.
    pub tasks: Option<Tasks>,
    /// Processors and flags.
    pub header: StartHeader,
    /// What is counted; of the whole machine instead of the command, if its events cannot all be sampled at once.
    pub way: Way,
}

/// A session that has started.
pub struct Begun {
    session: BegunSession,
    /// The command, if it was started before.
    delayed: Option<Running>,
    /// Why the events are not sampled to tell what is of the command.
    unsampled: Option<String>,
}

enum BegunSession {
    /// No event is counted.
    None,
    /// It counts.
    Counting(u64),
    /// It samples these.
    Sampling(Box<StartedSampling>, Vec<EventRequest>),
}

/// A measurement that has ended.
pub struct Measured {
    /// The counts.
    pub records: Vec<CountRecord>,
    /// The same by event and processor with their errors, if they were estimated.
    pub estimates: Estimates,
    /// Number of samples of what was chosen, and of all, if they were estimated.
    pub sampled: (u64, u64),
    /// What is to be said of them, in sentences.
    pub remarks: Vec<String>,
    /// Time for which was counted.
    pub elapsed: Duration,
    /// How the command ended; `None` without a command.
    pub status: Option<ExitStatus>,
    /// The processor time of the command, if Windows tells it.
    pub times: Option<CpuTimes>,
    /// Ctrl-C ended it.
    pub was_interrupted: bool,
}

/// Estimates by the index of the event in the request, and by processor.
pub type Estimates = BTreeMap<(u32, u32), Scaled>;

/// Why a wait is over.
enum Woken {
    /// The time is over.
    Due,
    /// The command has ended.
    Ended(ExitStatus, Option<CpuTimes>),
    /// Ctrl-C was pressed.
    Interrupted,
}

/// A command that runs.
struct Command {
    /// Process ID.
    process: u32,
    /// Tells its end.
    ended: Receiver<Ended>,
}

/// A command; nothing without one.
type Running = Option<Command>;

/// How a command ended, with its processor time.
type Ended = io::Result<(ExitStatus, Option<CpuTimes>)>;

impl Plan<'_> {
    /// Starts the session, after the command and its delay if there is one. If the driver refuses, `omit` can change
    /// the events and return true; they are requested again then. Without events there is no session.
    pub fn begin(
        &self,
        events: &mut Vec<EventRequest>,
        mut omit: impl FnMut(&Refusal, &mut Vec<EventRequest>) -> Result<bool, Error>,
    ) -> Result<Begun, Error> {
        let delayed = self.args.delay.map(|delay| self.start_delayed(delay)).transpose()?;
        let (mut way, mut unsampled) = (self.way, None);
        loop {
            let started = match way {
                _ if events.is_empty() => Ok(BegunSession::None),
                Way::Estimated => self.start_sampling(events)?,
                Way::Whole | Way::Followed => {
                    self.connection.start(&self.header, events).map(|started| BegunSession::Counting(started.session))
                }
            };
            let refused = match started {
                Ok(session) => return Ok(Begun { session, delayed, unsampled }),
                Err(error) => error,
            };
            match refused.refusal() {
                Some(refusal) if way == Way::Estimated && self.tasks.is_none() => {
                    (way, unsampled) = (Way::Whole, Some(why_refused(refusal)));
                }
                Some(refusal) if omit(refusal, events)? => {}
                _ => return Err(refused.into()),
            }
        }
    }

    fn start_sampling(&self, events: &[EventRequest]) -> Result<Result<BegunSession, halprof::Error>, Error> {
        let sampled = sampled_event::sampling(events, FREQUENCY, self.system.tsc_frequency(), self.connection)?;
        let started = sampling::start(&self.sampling_plan(&sampled), self.connection);
        Ok(started.map(|started| BegunSession::Sampling(Box::new(started), sampled)))
    }

    fn sampling_plan<'b>(&'b self, events: &'b [EventRequest]) -> SamplingPlan<'b> {
        SamplingPlan {
            header: StartHeader { flags: self.header.flags & !flags::MULTIPLEX, ..self.header },
            events,
            condition: None,
            scope: self.tasks.as_ref().map_or(Scope::Command, Scope::Tasks),
            duration: self.args.duration(),
            command: &self.args.command,
            output: None,
            limits: Limits::default(),
        }
    }

    /// Counts until the end, and calls `show` for each interval with the time since the start and the counts of the
    /// interval.
    pub fn count(
        &self,
        Begun { session, delayed, unsampled }: Begun,
        mut show: impl FnMut(Duration, &[CountRecord]) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let session = match session {
            BegunSession::None => None,
            BegunSession::Counting(session) => Some(session),
            BegunSession::Sampling(started, events) => {
                let plan = self.sampling_plan(&events);
                return Ok(estimated(sampling::count_shares(&plan, *started, self.connection, self.system)?));
            }
        };
        let counted = self.count_in(session, delayed, &mut show);
        if counted.is_err() {
            // The first error is reported. A session that cannot be stopped ends when the handle is closed.
            let _ = session.map(|session| self.connection.stop_all(session));
        }
        let mut counted = counted?;
        counted.remarks.extend(unsampled.map(|why| {
            format!(
                "Everything that ran was counted: the command alone is estimated from samples,\n\
                 which the driver refuses for these events:\n  {}\n\
                 Without this note: -a, or -e with fewer events.",
                why.replacen(": ", ":\n  ", 1)
            )
        }));
        Ok(counted)
    }

    /// Starts the command and waits for the delay.
    fn start_delayed(&self, delay: Duration) -> Result<Running, Error> {
        let running = self.start_command()?;
        match self.wait(running.as_ref(), Some(Instant::now() + delay))? {
            Woken::Due => Ok(running),
            Woken::Ended(..) | Woken::Interrupted => Err(EndedInDelay { delay }.into()),
        }
    }

    fn start_command(&self) -> Result<Running, Error> {
        if self.args.command.is_empty() {
            return Ok(None);
        }
        let child = command::start(&self.args.command)?;
        let process = child.id();
        let (sender, ended) = mpsc::channel();
        // If the receiver is gone, so is the interest in the end.
        thread::spawn(move || sender.send(command::wait(child)));
        Ok(Some(Command { process, ended }))
    }

    fn count_in(
        &self,
        session: Option<u64>,
        delayed: Option<Running>,
        show: &mut impl FnMut(Duration, &[CountRecord]) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let begin = Instant::now();
        let running = delayed.map_or_else(|| self.start_command(), Ok)?;
        if let (Some(session), Way::Followed) = (session, self.way) {
            let command = running.as_ref().map(|command| Task::Process(command.process));
            let followed = self.tasks.as_ref().map_or_else(|| command.into_iter().collect(), Tasks::list);
            for task in followed {
                self.connection.follow(session, task)?;
            }
        }
        let end = self.args.duration().map(|duration| begin + duration);
        let mut schedule = self.args.interval.map(|interval| Schedule::new(begin, interval));
        let mut before: Vec<CountRecord> = Vec::new();
        let woken = loop {
            let due = schedule.as_ref().map(|schedule| schedule.due);
            let woken = self.wait(running.as_ref(), due.into_iter().chain(end).min())?;
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            match (&woken, &mut schedule) {
                (Woken::Due, Some(schedule)) if !is_over => {
                    let records = session.map(|session| self.connection.read(session)).transpose()?.unwrap_or_default();
                    show(begin.elapsed(), &difference(&records, &before))?;
                    before = records;
                    schedule.advance(Instant::now());
                }
                _ => break woken,
            }
        };
        let elapsed = begin.elapsed();
        let records = session.map(|session| self.connection.stop_all(session)).transpose()?.unwrap_or_default();
        if schedule.is_some() {
            show(elapsed, &difference(&records, &before))?;
        }
        let was_interrupted = matches!(woken, Woken::Interrupted);
        let (status, times) =
            if let Woken::Ended(status, times) = woken { (Some(status), times) } else { (None, None) };
        let remarks = self.connection.remarks();
        Ok(Measured {
            records,
            estimates: Estimates::new(),
            sampled: (0, 0),
            remarks,
            elapsed,
            status,
            times,
            was_interrupted,
        })
    }

    /// Waits for the end of the command or, without one, for that of the process or Ctrl-C, at most until
    /// `due`. Ctrl-C ends a command.
    fn wait(&self, running: Option<&Command>, due: Option<Instant>) -> Result<Woken, Error> {
        let left = || due.map(|due| due.saturating_duration_since(Instant::now()));
        let Some(Command { ended, .. }) = running else {
            let is_over = || self.tasks.as_ref().is_some_and(Tasks::have_ended);
            while left().is_none_or(|left| !left.is_zero()) && !is_over() {
                if self.system.interrupted() {
                    return Ok(Woken::Interrupted);
                }
                thread::sleep(left().map_or(ATTENTION, |left| left.min(ATTENTION)));
            }
            return Ok(Woken::Due);
        };
        let ended = match left() {
            Some(left) => ended.recv_timeout(left),
            None => ended.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match ended {
            Ok(ended) => {
                let (status, times) = ended.map_err(|cause| command::failure(&self.args.command, cause))?;
                Ok(Woken::Ended(status, times))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Woken::Due),
            Err(RecvTimeoutError::Disconnected) => {
                let cause = io::Error::other("the thread that waits for it has ended");
                Err(command::failure(&self.args.command, cause).into())
            }
        }
    }
}

/// Says from how many samples the counts of all runs were estimated; `None` if they were counted.
pub fn sampled_note(runs: &[Measured]) -> Option<String> {
    let (own, all) = runs.iter().fold((0, 0), |(own, all), run| (own + run.sampled.0, all + run.sampled.1));
    (all > 0).then(|| {
        let (own, all) = (grouped(own), grouped(all));
        format!("Estimated from {own} of {all} samples: the share of these in what the CPUs counted.")
    })
}

/// Returns the share of what the processors counted that is of what was chosen.
fn estimated(outcome: Outcome) -> Measured {
    let sampled = outcome
        .shares
        .values()
        .fold((0, 0), |(own, all), share| (own + share.own.samples, all + share.own.samples + share.others.samples));
    let mut remarks = Vec::new();
    let missing = outcome.lost().saturating_add(outcome.throttled());
    // One lost sample per counter is normal: a counter can be stopped between its last overflow and the interrupt.
    if missing > outcome.records.len() as u64 {
        remarks.push(format!("{} samples are missing; the shares are those of the others.", grouped(missing)));
    }
    remarks.extend(outcome.notes());
    let Outcome { records, shares, summary, status, times, .. } = outcome;
    if sampled.1 == 0 {
        remarks
            .push("Everything that ran was counted: it was too short for a sample that tells whose it is.".to_owned());
    }
    let estimate = |record: &CountRecord| {
        let key = (record.index, record.processor);
        (key, shares.get(&key).copied().unwrap_or_default().of(record.count))
    };
    let estimates: Estimates = records.iter().filter(|_| sampled.1 > 0).map(estimate).collect();
    let own = |record: CountRecord| {
        let estimate = estimates.get(&(record.index, record.processor));
        CountRecord { count: estimate.map_or(record.count, |estimate| estimate.count), ..record }
    };
    let records = records.into_iter().map(own).collect();
    let elapsed = Duration::from_secs_f64(seconds(summary.elapsed));
    Measured {
        records,
        estimates,
        sampled,
        remarks,
        elapsed,
        status,
        times,
        was_interrupted: summary.interrupted_by_user,
    }
}

/// The ends of intervals, at multiples of the interval after the start: a late end makes the next interval shorter, and
/// the ends do not drift.
struct Schedule {
    begin: Instant,
    interval: Duration,
    due: Instant,
}

impl Schedule {
    fn new(begin: Instant, interval: Duration) -> Self {
        Self { begin, interval, due: begin + interval }
    }

    /// Moves on to the next end after `now`. Ends that have passed are left out.
    fn advance(&mut self, now: Instant) {
        let nanoseconds = self.interval.as_nanos().max(1);
        let passed = now.saturating_duration_since(self.begin).as_nanos() / nanoseconds;
        self.due = self.begin + Duration::from_nanos(u64::try_from((passed + 1) * nanoseconds).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_end_at_multiples_however_late_each_is_noticed() {
        const MS: Duration = Duration::from_millis(1);
        let begin = Instant::now();
        let mut schedule = Schedule::new(begin, 100 * MS);
        let mut ends = vec![schedule.due.duration_since(begin)];
        for late in [0, 99, 30, 250, 0] {
            schedule.advance(schedule.due + late * MS);
            ends.push(schedule.due.duration_since(begin));
        }
        assert_eq!(ends, [100, 200, 300, 400, 700, 800].map(|end| end * MS));
    }
}
