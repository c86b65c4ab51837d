//! The tests of a processor.

use std::time::Duration;

use halprof::event::role::Role;
use halprof::event::suffix;
use halprof::{Driver, Started};
use protocol::{CountRecord, Event, EventRequest, ProcessorSet, Record, StartHeader, modes};

use super::{Check, ROUNDS, SelftestError, Unit, Verdict};
use recorder::Buffers;
use system::System;
use system::known_work::{BRANCHES, Function, INSTRUCTIONS, KnownWork};
use terminal::format::real;
use user_error::Error;

/// Iterations of the work that is counted.
pub const ITERATIONS: u64 = 250_000;

/// Largest deviation of a count, as a part of what is expected. A count of 0 has that of the instructions.
pub const TOLERANCE: f64 = 0.005;

/// Instructions between two samples.
const INTERVAL: u32 = 400_000;

/// What is sampled: three parts of the first function for one of the second, often enough for 400 samples.
const PARTS: [Function; 4] = [Function::First, Function::First, Function::First, Function::Second];
const REPETITIONS: usize = 50;
const PART_ITERATIONS: u64 = 100_000;

/// Records in the ring while sampling, and the largest budget: a pause would lose samples.
pub const RING: u32 = 4_096;
const BUDGET: u32 = 900;

/// Largest deviations while sampling: of the samples in both functions, as a part, and of a share, in percent. A pause
/// of the driver or a samples' skid takes some.
const SAMPLES_TOLERANCE: f64 = 0.1;
const SHARE_TOLERANCE: f64 = 5.0;

/// Why a test of samples fails without any.
pub const NO_SAMPLE: &str = "no sample is in the functions";

/// Why an event is not tested.
pub const NO_SOURCE: &str = "no source of this machine counts this";

/// Tests one processor.
pub struct Tester<'a> {
    /// The machine.
    pub system: &'a dyn System,
    /// The driver.
    pub connection: &'a Driver,
    /// Flags of start requests.
    pub flags: u32,
    /// The processor.
    pub processor: u32,
}

impl Tester<'_> {
    /// Does all tests, also those of call stacks `with_stacks`.
    pub fn checks(&self, with_stacks: bool) -> Result<Vec<Check>, Error> {
        let (instructions, branches) = (real(ITERATIONS * INSTRUCTIONS), real(ITERATIONS * BRANCHES));
        let mut checks = Vec::new();
        for (name, role, modes, expected, tolerance) in [
            ("instructions, user mode", Role::Instructions, modes::USER, instructions, instructions * TOLERANCE),
            ("branches, user mode", Role::Branches, modes::USER, branches, branches * TOLERANCE),
            ("instructions, kernel mode", Role::Instructions, modes::KERNEL, 0.0, instructions * TOLERANCE),
        ] {
            let source = self.source(role)?;
            let (event, unit) = (source.as_ref().map(|(_, name)| format!("{name}{}", suffix(modes))), Unit::Events);
            let check = Check { event, ..self.check(name, unit, expected, tolerance) };
            checks.push(match source {
                Some((source, _)) => {
                    check.with(self.count(EventRequest { event: source, modes, ..EventRequest::EMPTY }).map(real))
                }
                None => check.untested(NO_SOURCE.to_owned()),
            });
        }
        let [samples, share] = self.sampled()?;
        let stacks = with_stacks.then(|| self.stacks(&samples)).transpose()?;
        checks.extend([samples, share]);
        checks.extend(stacks.into_iter().flatten());
        Ok(checks)
    }

    /// Returns a check that has not been done.
    pub fn check(&self, name: &'static str, unit: Unit, expected: f64, tolerance: f64) -> Check {
        let (measured, reason, verdict) = (None, None, Verdict::Untested);
        Check { processor: self.processor, name, event: None, unit, expected, measured, tolerance, verdict, reason }
    }

    /// Returns the event of the supported source with a role, and its name.
    pub fn source(&self, role: Role) -> Result<Option<(Event, String)>, Error> {
        Ok(self.connection.sources()?.with_role(role).map(|source| (source.event, source.name.clone())))
    }

    fn header(&self, ring: u32) -> StartHeader {
        let mut processors = ProcessorSet::EMPTY;
        processors.insert(self.processor); // the list has only numbers that a set can hold
        StartHeader {
            flags: self.flags,
            ring,
            budget: if ring > 0 { BUDGET } else { 0 },
            processors,
            ..StartHeader::EMPTY
        }
    }

    /// Executes work on the processor.
    pub fn execute(&self, work: &[KnownWork]) -> Result<(), Error> {
        let processor = self.processor;
        let moved = self.system.execute(processor, work);
        Ok(moved.map_err(|cause| SelftestError::Processor { processor, cause })?)
    }

    /// Starts a session, runs `work` with it, and stops it in any case. Returns its final counts as well.
    pub fn session<T>(
        &self,
        ring: u32,
        events: &[EventRequest],
        work: impl FnOnce(Started) -> Result<T, Error>,
    ) -> Result<(T, Vec<CountRecord>), Error> {
        let started = self.connection.start(&self.header(ring), events)?;
        let result = work(started);
        let stopped = self.connection.stop_all(started.session);
        Ok((result?, stopped?))
    }

    /// Counts an event of the work.
    fn count(&self, event: EventRequest) -> Result<u64, Error> {
        let counted = self.session(0, &[event], |Started { session, .. }| {
            let total = || -> Result<u64, Error> {
                Ok(self.connection.read(session)?.iter().fold(0, |sum, record| record.count.saturating_add(sum)))
            };
            let mut least = [u64::MAX; 2];
            for _ in 0..ROUNDS {
                for (least, times) in least.iter_mut().zip(1..) {
                    let before = total()?;
                    self.execute(&[KnownWork { function: Function::First, iterations: times * ITERATIONS }])?;
                    *least = (*least).min(total()?.saturating_sub(before));
                }
            }
            let [once, twice] = least;
            Ok(twice.saturating_sub(once))
        });
        counted.map(|(count, _)| count)
    }

    /// Samples the instructions of both functions.
    fn sampled(&self) -> Result<[Check; 2], Error> {
        let part = |function| KnownWork { function, iterations: PART_ITERATIONS };
        let work: Vec<KnownWork> = PARTS.repeat(REPETITIONS).into_iter().map(part).collect();
        let expected = real(work.len() as u64 * PART_ITERATIONS * INSTRUCTIONS) / f64::from(INTERVAL);
        let of_first = PARTS.iter().filter(|function| **function == Function::First).count();
        let share = 100.0 * real(of_first as u64) / real(PARTS.len() as u64);
        let source = self.source(Role::Instructions)?;
        let event = source.as_ref().map(|(_, name)| format!("{name}{}@{INTERVAL}", suffix(modes::USER)));
        let samples = self.check("samples of two functions", Unit::Samples, expected, expected * SAMPLES_TOLERANCE);
        let share = self.check("share of the first", Unit::Percent, share, SHARE_TOLERANCE);
        let [samples, share] = [samples, share].map(|check| Check { event: event.clone(), ..check });
        let Some((source, _)) = source else {
            return Ok([samples, share].map(|check| check.untested(NO_SOURCE.to_owned())));
        };
        let event = EventRequest { event: source, modes: modes::USER, interval: INTERVAL, ..EventRequest::EMPTY };
        Ok(match self.sample(event, &work) {
            Ok([0, 0]) => [samples.with(Ok(0.0)), share.failed(NO_SAMPLE.to_owned())],
            Ok([first, second]) => {
                let total = real(first + second);
                [samples.with(Ok(total)), share.with(Ok(100.0 * real(first) / total))]
            }
            Err(error) => {
                let samples = samples.with(Err(error));
                let reason = samples.reason.clone();
                [samples, Check { reason, ..share }]
            }
        })
    }

    /// Samples an event during the work. Returns the samples in each function.
    fn sample(&self, event: EventRequest, work: &[KnownWork]) -> Result<[u64; 2], Error> {
        let addresses = [Function::First, Function::Second].map(|function| self.system.addresses_of(function));
        // A stopped session still has its samples.
        let (session, _) = self.session(RING, &[event], |started| self.execute(work).map(|()| started.session))?;
        let mut stream = self.connection.sample_stream(session);
        let (buffers, mut found) = (Buffers::new(), [0; 2]);
        loop {
            let (batch, is_last) = buffers.fetch(&mut stream, Duration::ZERO, |_| true)?;
            for record in batch.records() {
                let Ok(Record::Sample(sample)) = record.parse() else { continue };
                for (found, addresses) in found.iter_mut().zip(&addresses) {
                    *found += u64::from(addresses.contains(&sample.ip));
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }
}
