//! One measurement: a session from its start to its end, while a command runs or for some time.

use std::io;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use halprof::counting::difference;
use halprof::{Driver, Refusal};
use protocol::{CountRecord, EventRequest, StartHeader};
use thiserror::Error as ThisError;

use crate::cli::StatArgs;
use recorder::command::{self, CpuTimes};
use recorder::tasks::Tasks;
use system::System;
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

/// What is measured.
pub struct Plan<'a> {
    /// Interval, delay, duration and command.
    pub args: &'a StatArgs,
    /// The driver.
    pub connection: &'a Driver,
    /// The machine.
    pub system: &'a dyn System,
    /// The process of the arguments.
    pub process: Option<Tasks>,
    /// Processors and flags.
    pub header: StartHeader,
    /// The session counts the process of the arguments or the command, not all that runs.
    pub follows: bool,
}

/// A session that has started.
pub struct Begun {
    /// The session, if any event is counted.
    session: Option<u64>,
    /// The command, if it was started before.
    delayed: Option<Running>,
}

/// A measurement that has ended.
pub struct Measured {
    /// The counts.
    pub records: Vec<CountRecord>,
    /// Time for which was counted.
    pub elapsed: Duration,
    /// How the command ended; `None` without a command.
    pub status: Option<ExitStatus>,
    /// The processor time of the command, if Windows tells it.
    pub times: Option<CpuTimes>,
    /// Ctrl-C ended it.
    pub was_interrupted: bool,
}

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
        loop {
            if events.is_empty() {
                return Ok(Begun { session: None, delayed });
            }
            let refused = match self.connection.start(&self.header, events) {
                Ok(started) => return Ok(Begun { session: Some(started.session), delayed }),
                Err(error) => error,
            };
            match refused.refusal() {
                Some(refusal) if omit(refusal, events)? => {}
                _ => return Err(refused.into()),
            }
        }
    }

    /// Counts until the end, and calls `show` for each interval with the time since the start and the counts of the
    /// interval.
    pub fn count(
        &self,
        Begun { session, delayed }: Begun,
        mut show: impl FnMut(Duration, &[CountRecord]) -> Result<(), Error>,
    ) -> Result<Measured, Error> {
        let counted = self.count_in(session, delayed, &mut show);
        if counted.is_err() {
            // The first error is reported. A session that cannot be stopped ends when the handle is closed.
            let _ = session.map(|session| self.connection.stop_all(session));
        }
        counted
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
        let followed = running.as_ref().map(|command| command.process).or(self.args.process);
        if let (Some(session), Some(process), true) = (session, followed, self.follows) {
            self.connection.follow(session, process)?;
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
        Ok(Measured { records, elapsed, status, times, was_interrupted })
    }

    /// Waits for the end of the command or, without one, for that of the process or Ctrl-C, at most until
    /// `due`. Ctrl-C ends a command.
    fn wait(&self, running: Option<&Command>, due: Option<Instant>) -> Result<Woken, Error> {
        let left = || due.map(|due| due.saturating_duration_since(Instant::now()));
        let Some(Command { ended, .. }) = running else {
            let is_over = || self.process.as_ref().is_some_and(Tasks::have_ended);
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
