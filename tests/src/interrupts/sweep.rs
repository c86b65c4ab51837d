//! A sweep: one scenario, interrupted at every instruction.

use std::time::{Duration, Instant};

use anyhow::Result;
use bench_protocol::{Random, StepReport};

use super::scenario::Scenario;
use super::stage::Stage;
use crate::lab::Lab;

/// What to do in a sweep.
#[derive(Debug, Clone, Copy)]
pub struct Sweep {
    /// The scenario.
    pub scenario: Scenario,
    /// Whether the processor is Intel's.
    pub is_intel: bool,
    /// The seed of what is chosen at random.
    pub seed: u64,
    /// Instructions to interrupt, chosen at random; None for every one.
    pub single: Option<usize>,
    /// Number of pairs of interrupts, at instructions chosen at random.
    pub pairs: usize,
    /// Number of instructions, chosen at random, at which the other processor is interrupted.
    pub elsewhere: Option<usize>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Instructions of the call.
    pub instructions: u64,
    /// Instructions that were not interrupted: they repeat earlier ones of a long call, or were not chosen.
    pub skipped: u64,
    /// Instructions before which a counter overflowed and the handler ran at once.
    pub delivered: u64,
    /// Instructions before which a counter overflowed, and whose IRQL masked the interrupt.
    pub masked: u64,
    /// Instructions before which no counter ran.
    pub idle: u64,
    /// Pairs of interrupts.
    pub pairs: u64,
    /// Interrupts of the other processor.
    pub elsewhere: u64,
    /// Calls.
    pub runs: u64,
    /// Calls that were repeated by single steps, because breakpoints missed an instruction.
    pub stepped: u64,
    /// What was wrong, with the plan that showed it.
    pub failures: Vec<String>,
    /// The time it took.
    pub time: Duration,
}

impl Row {
    /// Adds another row, except for its time.
    pub fn add(&mut self, row: &Self) {
        let numbers = [
            (&mut self.instructions, row.instructions),
            (&mut self.skipped, row.skipped),
            (&mut self.delivered, row.delivered),
            (&mut self.masked, row.masked),
            (&mut self.idle, row.idle),
            (&mut self.pairs, row.pairs),
            (&mut self.elsewhere, row.elsewhere),
            (&mut self.runs, row.runs),
            (&mut self.stepped, row.stepped),
        ];
        for (sum, number) in numbers {
            *sum += number;
        }
        self.failures.extend_from_slice(&row.failures);
    }
}

/// The greatest number of instructions of which each is interrupted, which no call exceeds today. Of a longer call,
/// each instruction of the driver would be interrupted when it is executed for the first time.
pub const MAX_INSTRUCTIONS: usize = 24_000;

/// Failures after which a sweep ends.
const MAX_FAILURES: usize = 20;

/// Interrupts a scenario at every instruction, or at some.
///
/// # Errors
/// The driver or the lab refuses a request. What the driver did wrong is in the result.
pub fn sweep(lab: &mut Lab, sweep: Sweep) -> Result<Row> {
    let started = Instant::now();
    let mut stage = Stage::new(lab, sweep.scenario, sweep.is_intel)?;
    let mut row = Row::default();
    // Counted twice: the first call finds memory and registers that later ones do not.
    let mut first_executions = Vec::new();
    for _ in 0..2 {
        let counted = call(&mut stage, &mut row, &[], false)?;
        (row.instructions, first_executions) = (counted.instructions, counted.first_executions);
    }
    let mut random = Random::new(sweep.seed, 0);
    let every = || match usize::try_from(row.instructions) {
        Ok(count) if count <= MAX_INSTRUCTIONS => (0..row.instructions).collect(),
        _ => first_executions,
    };
    let single = match sweep.single {
        None => every(),
        some => chosen(&mut random, row.instructions, some),
    };
    row.skipped = row.instructions.saturating_sub(single.len().try_into()?);
    for instruction in single {
        let report = call(&mut stage, &mut row, &[instruction], false)?;
        for overflow in &report.overflows {
            let kind = match overflow.delivered {
                _ if !overflow.overflowed => &mut row.idle,
                Some(at) if at == overflow.instruction => &mut row.delivered,
                _ => &mut row.masked,
            };
            *kind += 1;
        }
        if row.failures.len() >= MAX_FAILURES {
            break;
        }
    }
    for _ in 0..sweep.pairs {
        let mut pair = [(); 2].map(|()| random.up_to(row.instructions.saturating_sub(1)));
        pair.sort_unstable();
        call(&mut stage, &mut row, &pair, false)?;
        row.pairs += 1;
    }
    for instruction in chosen(&mut random, row.instructions, sweep.elsewhere) {
        let report = call(&mut stage, &mut row, &[instruction], true)?;
        row.elsewhere += u64::from(report.overflows.iter().any(|overflow| overflow.overflowed));
    }
    row.failures.extend(stage.finish()?);
    row.time = started.elapsed();
    Ok(row)
}

/// Returns `count` of the instructions, or every one.
fn chosen(random: &mut Random, instructions: u64, count: Option<usize>) -> Vec<u64> {
    match count {
        None => (0..instructions).collect(),
        Some(count) => (0..count).map(|_| random.up_to(instructions.saturating_sub(1))).collect(),
    }
}

/// Makes one call and checks what came of it.
fn call(stage: &mut Stage<'_>, row: &mut Row, overflow_at: &[u64], elsewhere: bool) -> Result<StepReport> {
    row.runs += 1;
    let (mut report, mut counts) = stage.step(overflow_at, elsewhere, true)?;
    let mut wrong = stage.check(&counts)?;
    if wrong.is_empty() && report.overflows.len() < overflow_at.len() {
        // The call has reached the instructions in another way.
        row.stepped += 1;
        (report, counts) = stage.step(overflow_at, elsewhere, false)?;
        wrong = stage.check(&counts)?;
    }
    if !wrong.is_empty() {
        row.failures.push(format!("{report:?}, elsewhere {elsewhere}: {}", wrong.join("; ")));
        stage.restart()?;
    }
    Ok(report)
}
