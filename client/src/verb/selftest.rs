//! `selftest`: counts and samples work whose numbers are known, on this machine.
//!
//! A count has events of the code around the work as well. Each test executes the work once and twice, and the
//! difference has none of them. Interrupts and other programs only add events, so each of both is the minimum of
//! several rounds.
//!
//! | module | tests |
//! |---|---|
//! | `tester` | counts and samples |
//! | `stacks` | call stacks |

mod stacks;
mod tester;

use std::io;

use halprof::Driver;
use halprof::text::processors::named;
use serde::Serialize;
use thiserror::Error as ThisError;

use super::context::Context;
use crate::cli::SelftestArgs;
use crate::connection;
use crate::document::Document;
use crate::error::{Error, UserError};
use crate::exit::Exit;
use crate::format::{rounded, table};
use crate::trace::TraceError;
use tester::Tester;

/// Rounds of each count.
const ROUNDS: u32 = 10;

/// Names of the tests of call stacks.
const WITH_STACK: &str = "samples with a stack";
const EQUAL_STACKS: &str = "stacks equal to the calls";

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
}

impl UserError for SelftestError {
    fn exit(&self) -> Exit {
        match self {
            Self::Processor { .. } | Self::Calls { .. } => Exit::NoProcessor,
            Self::Trace(_) => Exit::Failure,
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

    fn is_of_stacks(&self) -> bool {
        [WITH_STACK, EQUAL_STACKS].contains(&self.name)
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
}

impl Document for Selftest {
    const SCHEMA: &'static str = "halprof.selftest/1";
}

pub fn run(args: &SelftestArgs, context: &mut Context) -> Result<i32, Error> {
    let system = context.system()?;
    let connection = connection::open(system)?;
    let (mut checks, mut is_interrupted) = (Vec::new(), false);
    if args.stacks {
        // Ctrl-C would end the client, and its trace session would remain.
        system.note_interrupts()?;
    }
    let chosen = processors(args, &connection)?;
    for (done, processor) in (0..).zip(chosen.iter().copied()) {
        if args.stacks && system.interrupted() {
            let left = named(chosen.iter().copied().skip(done));
            context.warn(&format!("warning: Ctrl-C was pressed: {left} not tested"))?;
            is_interrupted = true;
            break;
        }
        let tester = Tester { system, connection: &connection, flags: args.force.flags(), processor };
        checks.extend(tester.checks(args.stacks)?);
    }
    let has = |verdict| checks.iter().any(|check| check.verdict == verdict);
    let verdict = match (has(Verdict::Failed), has(Verdict::Passed)) {
        (true, _) => Verdict::Failed,
        (false, true) => Verdict::Passed,
        (false, false) => Verdict::Untested,
    };
    let selftest = Selftest { driver_version: connection.driver_version(), rounds: ROUNDS, checks, verdict };
    if args.format.json {
        context.json(&selftest)?;
    } else {
        context.say(&text(&selftest))?;
    }
    Ok(if verdict == Verdict::Passed && !is_interrupted { Exit::Done } else { Exit::Selftest }.code())
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
    let has = |is_of_stacks, verdict| {
        selftest.checks.iter().any(|check| check.is_of_stacks() == is_of_stacks && check.verdict == verdict)
    };
    let result = |is_of_stacks, [failed, passed]: [&'static str; 2]| match (
        has(is_of_stacks, Verdict::Failed),
        has(is_of_stacks, Verdict::Passed),
    ) {
        (true, _) => Some(failed),
        (false, true) => Some(passed),
        (false, false) => None,
    };
    let of_counters = [
        "The counters of this machine do not count as expected, or other programs disturbed them.",
        "The counters of this machine count as expected.",
    ];
    let of_stacks = ["Call stacks are missing or wrong.", "The call stacks are those of the calls."];
    let sentences: Vec<&str> = [result(false, of_counters), result(true, of_stacks)].into_iter().flatten().collect();
    if sentences.is_empty() {
        return "This machine has no counters to test; `client info` says why.".to_owned();
    }
    sentences.join("\n")
}
