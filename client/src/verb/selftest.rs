//! `selftest`: counts and samples work whose numbers are known, on this machine.
//!
//! A count has events of the code around the work as well. Each test executes the work once and twice, and the
//! difference has none of them. Interrupts and other programs only add events, so each of both is the minimum of
//! several rounds.
//!
//! | module | tests |
//! |---|---|
//! | `tester` | counts and samples |
//! | `own_hal` | counts of Windows' own HAL |
//! | `stacks` | call stacks |
//! | `threads` | counts of threads |

mod own_hal;
mod stacks;
mod tester;
mod threads;

use std::collections::BTreeSet;
use std::io;

use halprof::text::processors::named;
use halprof::verification::{self, ThreadReading, Verification};
use halprof::{Backend, Driver, HalError, Machine};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::SelftestArgs;
use system::System;
use system::connection::{self, BackendChoice};
use system::trace::TraceError;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{rounded, table};
use tester::Tester;
use threads::ThreadChecks;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Rounds of each count.
const ROUNDS: u32 = 10;

/// Names of the tests of call stacks.
const WITH_STACK: &str = "samples with a stack";
const EQUAL_STACKS: &str = "stacks equal to the calls";

/// Names of the tests of Windows' own HAL.
const INSTRUCTIONS_OF_HAL: &str = "instructions, own HAL";
const BRANCHES_OF_HAL: &str = "branches, own HAL";

/// Names of the tests of counts of threads.
const OF_THREAD: &str = "instructions, thread";
const OF_SWITCHED_THREAD: &str = "instructions, switched";
const OF_LONG_SLICE: &str = "instructions, long slice";

/// How counts of threads are read where programs cannot execute RDPMC.
const WITHOUT_RDPMC: &str = "Programs cannot execute RDPMC on this machine; the library counts without it.";

/// What follows from the long slice.
const KEEPS_ALL: &str = "Windows keeps every bit of long regions.";
const KEEPS_32_BITS: &str =
    "Windows may keep only 32 bits of what is counted between two context switches: long regions need checkpoints.";

/// Why a test could not be done.
#[derive(Debug, ThisError)]
pub enum SelftestError {
    /// The thread cannot be moved to a processor.
    #[error("cannot run on CPU {processor}")]
    Processor {
        /// The processor.
        processor: u32,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// The nested calls cannot be executed on a processor, or their return addresses cannot be captured.
    #[error("cannot execute nested calls on CPU {processor}")]
    Calls {
        /// The processor.
        processor: u32,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// Windows delivers no call stacks.
    #[error("Windows refuses the trace session")]
    Trace(#[source] TraceError),
    /// The record of the tests of threads cannot be written.
    #[error("cannot save the record, so counts of threads stay unverified")]
    Save(#[source] io::Error),
    /// The record of earlier tests of threads cannot be removed.
    #[error("cannot remove the record, so wrong counts of threads stay verified")]
    Remove(#[source] io::Error),
}

impl UserError for SelftestError {
    fn exit(&self) -> Exit {
        match self {
            Self::Processor { .. } | Self::Calls { .. } => Exit::NoProcessor,
            Self::Trace(_) | Self::Save(_) | Self::Remove(_) => Exit::Failure,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Save(_) | Self::Remove(_) => {
                Some(r"run as administrator, and let administrators own %ProgramData%\halprof".to_owned())
            }
            Self::Processor { .. } | Self::Calls { .. } | Self::Trace(_) => None,
        }
    }
}

/// The result of a test, and of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Verdict {
    Passed,
    Failed,
    /// The machine does not have the event.
    Untested,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Untested => "not tested",
        }
    }
}

/// What a test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Unit {
    Events,
    Samples,
    Percent,
}

/// What a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Counters,
    Stacks,
    Threads,
    Hal,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Check {
    processor: u32,
    name: &'static str,
    /// The source with its modes; nothing if the machine has none.
    event: Option<String>,
    unit: Unit,
    expected: f64,
    /// Nothing if it could not be measured.
    measured: Option<f64>,
    /// Largest deviation, in the same unit.
    tolerance: f64,
    verdict: Verdict,
    /// Why it could not be measured, or why it failed if that is known.
    reason: Option<String>,
}

impl Check {
    /// Adds what was measured, or why it could not be.
    fn with(self, measured: Result<f64, Error>) -> Self {
        match measured {
            Ok(measured) => {
                let is_close = (measured - self.expected).abs() <= self.tolerance;
                let verdict = if is_close { Verdict::Passed } else { Verdict::Failed };
                Self { measured: Some(measured), verdict, ..self }
            }
            Err(error) if error.exit() == Exit::UnsupportedSource => self.untested(error.in_one_line()),
            Err(error) => self.failed(error.in_one_line()),
        }
    }

    fn untested(self, reason: String) -> Self {
        Self { reason: Some(reason), verdict: Verdict::Untested, ..self }
    }

    fn failed(self, reason: String) -> Self {
        Self { reason: Some(reason), verdict: Verdict::Failed, ..self }
    }

    /// Adds why the check failed, if it did.
    fn because(self, reason: impl FnOnce() -> String) -> Self {
        if self.verdict == Verdict::Failed { self.failed(reason()) } else { self }
    }

    fn subject(&self) -> Subject {
        match self.name {
            WITH_STACK | EQUAL_STACKS => Subject::Stacks,
            INSTRUCTIONS_OF_HAL | BRANCHES_OF_HAL => Subject::Hal,
            OF_THREAD | OF_SWITCHED_THREAD | OF_LONG_SLICE => Subject::Threads,
            _ => Subject::Counters,
        }
    }

    fn row(&self) -> Vec<String> {
        let number = |number: f64| match self.unit {
            Unit::Percent => format!("{number:.1} %"),
            Unit::Events | Unit::Samples => rounded(Some(number)),
        };
        vec![
            self.processor.to_string(),
            self.name.to_owned(),
            number(self.expected),
            self.measured.map_or_else(|| "-".to_owned(), number),
            number(self.tolerance),
            self.verdict.text().to_owned(),
        ]
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Selftest {
    driver_version: String,
    rounds: u32,
    checks: Vec<Check>,
    verdict: Verdict,
    /// What was saved of the tests of threads; nothing if they were not done, or not passed.
    verified_threads: Option<VerifiedThreads>,
}

/// The record that makes counts of threads verified on this machine.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerifiedThreads {
    /// The file with the record.
    file: String,
    /// How the counters were read.
    reading: ThreadReading,
    /// Whether Windows keeps more than 32 bits of what a counter counts between two context switches; false if that
    /// is unknown.
    keeps_64_bits: bool,
}

impl Document for Selftest {
    const SCHEMA: &'static str = "halprof.selftest/1";
}

pub fn run(args: &SelftestArgs, context: &mut Context) -> Result<i32, Error> {
    let system = context.system()?;
    if args.backend.estimates() {
        return Err(halprof::Error::from(HalError::NeedsElevation { what: "a self-test" }).into());
    }
    let driver = || connection::choose(system, BackendChoice::Driver);
    let opened = if args.compare { driver()? } else { args.backend.open(context)? };
    if args.stacks || args.threads {
        opened.check_driver("a test of call stacks or of threads")?;
    }
    let hal = args.compare.then(|| connection::choose(system, BackendChoice::Hal)).transpose()?;
    let machine = Machine::over(opened.into_driver(), system.thread_system());
    let connection = machine.driver();
    let (mut checks, mut is_interrupted, mut keeps_64_bits) = (Vec::new(), false, args.threads);
    let mut readings = BTreeSet::new();
    if args.stacks {
        // Ctrl-C would end the client, and its trace session would remain.
        system.note_interrupts()?;
    }
    let chosen = processors(args, connection)?;
    for (done, processor) in (0..).zip(chosen.iter().copied()) {
        if args.stacks && system.interrupted() {
            let left = named(chosen.iter().copied().skip(done));
            context.warn(&format!("warning: Ctrl-C was pressed: {left} not tested"))?;
            is_interrupted = true;
            break;
        }
        let tester = Tester { system, connection, flags: args.force.flags(), processor };
        let mut of_processor = match connection.backend() {
            Backend::DRIVER => tester.checks(args.stacks)?,
            _ => tester.own_hal(&[])?,
        };
        if let Some(hal) = &hal {
            let of_hal = Tester { connection: hal, ..tester }.own_hal(&of_processor)?;
            of_processor.extend(of_hal);
        }
        checks.extend(of_processor);
        if args.threads {
            let ThreadChecks { checks: of_threads, reading, keeps_64_bits: keeps } = tester.threads(&machine)?;
            checks.extend(of_threads);
            readings.extend(reading);
            keeps_64_bits &= keeps;
        }
    }
    let (is_complete, reading) = (!is_interrupted && readings.len() == 1, readings.first().copied());
    let passed = reading.filter(|_| is_complete).map(|reading| (reading, keeps_64_bits));
    let (saved, not_saved) = match verify(system, &machine, &checks, passed) {
        Ok(saved) => (saved, None),
        Err(error) => (None, Some(error)),
    };
    let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
    let verdict = match (has(Verdict::Failed), has(Verdict::Passed)) {
        (true, _) => Verdict::Failed,
        (false, true) => Verdict::Passed,
        (false, false) => Verdict::Untested,
    };
    let driver_version = connection.driver_version();
    let selftest = Selftest { driver_version, rounds: ROUNDS, checks, verdict, verified_threads: saved };
    if args.format.json {
        context.json(&selftest)?;
    } else {
        context.say(&text(&selftest))?;
    }
    not_saved.map_or(Ok(()), Err)?;
    Ok(if verdict == Verdict::Passed && !is_interrupted { Exit::Done } else { Exit::Selftest }.code())
}

/// Saves that counts of threads are verified, if each test that compares them with work has passed on each processor.
/// If one has failed, removes what was saved before. `tested` has how the counters of every processor were read, and
/// whether Windows keeps 64 bits.
fn verify(
    system: &dyn System,
    machine: &Machine,
    checks: &[Check],
    tested: Option<(ThreadReading, bool)>,
) -> Result<Option<VerifiedThreads>, Error> {
    let of_threads: Vec<_> = checks.iter().filter(|check| check.subject() == Subject::Threads).collect();
    let windows = system.thread_system();
    if of_threads.iter().any(|check| check.verdict == Verdict::Failed) {
        verification::remove(&*windows).map_err(SelftestError::Remove)?;
        return Ok(None);
    }
    // Without a long slice, the record says that Windows may keep 32 bits, which is always safe.
    let is_enough = |check: &&Check| check.verdict == Verdict::Passed || check.name == OF_LONG_SLICE;
    let Some((reading, keeps_64_bits)) = tested.filter(|_| of_threads.iter().all(is_enough)) else { return Ok(None) };
    let identity = machine.identity()?;
    if identity.windows_build.is_empty() {
        return Err(SelftestError::Save(io::Error::other("the build of Windows is unknown")).into());
    }
    verification::write(&*windows, &Verification::new(identity, reading, keeps_64_bits))
        .map_err(SelftestError::Save)?;
    let file = windows.verification_file().map(|file| file.display().to_string()).unwrap_or_default();
    Ok(Some(VerifiedThreads { file, reading, keeps_64_bits }))
}

/// Returns the processors to test: the chosen ones, or the first of each core type.
fn processors(args: &SelftestArgs, connection: &Driver) -> Result<Vec<u32>, Error> {
    if let Some(list) = &args.processors {
        return Ok(list.0.iter().collect());
    }
    let first: Vec<u32> = connection.core_types()?.iter().filter_map(|one| one.processors.first().copied()).collect();
    Ok(if first.is_empty() { vec![0] } else { first })
}

/// Formats the checks as a table, with what could not be measured below it.
fn text(selftest: &Selftest) -> String {
    let rows: Vec<Vec<String>> = selftest.checks.iter().map(Check::row).collect();
    let headings = ["CPU", "Test", "Expected", "Measured", "Tolerance", "Verdict"];
    let mut text = table(&headings, &["CPU", "Expected", "Measured", "Tolerance"], &rows);
    let reason = |check: &Check| Some(format!("CPU {}: {}", check.processor, check.reason.as_ref()?));
    let mut reasons: Vec<String> = selftest.checks.iter().filter_map(reason).collect();
    reasons.dedup();
    for reason in reasons {
        text.push('\n');
        text.push_str(&reason);
    }
    text.push_str("\n\n");
    text.push_str(&conclusion(selftest));
    text
}

/// Returns the sentences that say what all checks mean.
fn conclusion(selftest: &Selftest) -> String {
    let has =
        |subject, verdict| selftest.checks.iter().any(|check| check.subject() == subject && check.verdict == verdict);
    let subjects = [
        (
            Subject::Counters,
            "The counters of this machine do not count as expected, or other programs disturbed them.",
            "The counters of this machine count as expected.",
        ),
        (Subject::Stacks, "Call stacks are missing or wrong.", "The call stacks are those of the calls."),
        (
            Subject::Hal,
            "Windows' own HAL does not count what was executed.",
            "Windows' own HAL counts what was executed.",
        ),
        (Subject::Threads, "Counts of threads are not those of the work.", "Counts of threads are those of the work."),
    ];
    let result = |(subject, failed, passed)| {
        if has(subject, Verdict::Failed) { Some(failed) } else { has(subject, Verdict::Passed).then_some(passed) }
    };
    let mut sentences: Vec<String> = subjects.into_iter().filter_map(result).map(str::to_owned).collect();
    if sentences.is_empty() {
        return "This machine has no counters to test; `.\\client info` says why.".to_owned();
    }
    match &selftest.verified_threads {
        Some(VerifiedThreads { file, reading, keeps_64_bits }) => {
            sentences.push(format!("They are verified on this machine from now on: {file}"));
            if *reading == ThreadReading::Memory {
                sentences.push(WITHOUT_RDPMC.to_owned());
            }
            sentences.push(if *keeps_64_bits { KEEPS_ALL } else { KEEPS_32_BITS }.to_owned());
        }
        None if has(Subject::Threads, Verdict::Untested) && !has(Subject::Threads, Verdict::Failed) => {
            sentences.push("Not every test of threads was done, so nothing was saved.".to_owned());
        }
        None => {}
    }
    sentences.join("\n")
}
