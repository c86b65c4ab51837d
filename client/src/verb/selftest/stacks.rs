//! The tests of call stacks: work whose calls are known is sampled.

use std::io;
use std::time::Duration;

use halprof::event::role::Role;
use halprof::event::suffix;
use protocol::{EventRequest, Record, modes};
use recording::{CallStack, MissingStack, SampleStack, StackEnd};
use stacks::{CallGraph, StackCounts};

use super::tester::{NO_SAMPLE, RING, Tester};
use super::{Check, EQUAL_STACKS, SelftestError, Unit, Verdict, WITH_STACK};
use crate::verb::record::explained;
use counts::share::{self, percent};
use recorder::{Buffers, StackCollector, Tracing};
use system::known_work::{CALLS, Function, KnownWork};
use system::trace::{TraceLosses, TracePlan};
use terminal::format::{address, counted, real};
use user_error::Error;

/// What is sampled: often enough for 200 samples.
const PIECES: usize = 50;
const PIECE_ITERATIONS: u64 = 1_000_000;

/// Instructions between two samples: a few thousand samples per second.
const INTERVAL: u32 = 2_000_000;

/// Samples per second for which the trace session has room.
const RATE: u64 = 10_000;

/// Largest deviation of the samples with a call stack, in percent. A trace session that has just started takes some.
const TOLERANCE: f64 = 5.0;

/// Call stacks of samples in a function whose callers are known.
struct SampledStacks {
    stacks: Vec<SampleStack>,
    /// Return addresses of the calls, from the innermost to the outermost.
    calls: [u64; CALLS],
    /// What the trace session lost, for the end of a line.
    losses: String,
}

impl Tester<'_> {
    /// Tests call stacks. `sampled` is a test of samples without call stacks.
    pub fn stacks(&self, sampled: &Check) -> Result<[Check; 2], Error> {
        let source = self.source(Role::Instructions)?;
        let event = source.as_ref().map(|(_, name)| format!("{name}{}@{INTERVAL}", suffix(modes::USER)));
        let checks = [(WITH_STACK, TOLERANCE), (EQUAL_STACKS, 0.0)];
        let checks = checks.map(|(name, tolerance)| Check {
            event: event.clone(),
            ..self.check(name, Unit::Percent, 100.0, tolerance)
        });
        let Some((source, _)) = source.filter(|_| sampled.verdict != Verdict::Untested) else {
            return Ok(checks.map(|check| Check { reason: sampled.reason.clone(), ..check }));
        };
        let event = EventRequest { event: source, modes: modes::USER, interval: INTERVAL, ..EventRequest::EMPTY };
        Ok(match self.sample_stacks(event) {
            Ok(sampled) => sampled.judge(checks),
            Err(error) => {
                let reason = error.in_one_line();
                checks.map(|check| check.failed(reason.clone()))
            }
        })
    }

    /// Samples an event during the work. Returns the call stacks of the samples in the function.
    fn sample_stacks(&self, event: EventRequest) -> Result<SampledStacks, Error> {
        let function = Function::First;
        let work = [KnownWork { function, iterations: PIECE_ITERATIONS }; PIECES];
        let processors = self.connection.info()?.processors;
        let plan = TracePlan { samples_per_second: RATE, processors, off_cpu: false, file: None };
        // The driver writes events only if a trace session wants them.
        let tracing = Tracing::start(|plan, sink| self.system.trace(plan, sink), &plan, CallGraph::Both, &[event])
            .map_err(SelftestError::Trace)?;
        let ((started, calls), _) = self.session(RING, &[event], |started| {
            let processor = self.processor;
            let calls = self.system.execute_in_calls(processor, &work);
            Ok((started, calls.map_err(|cause| SelftestError::Calls { processor, cause })?))
        })?;
        // It keeps events for a few seconds, so it begins when the samples are there. Until then, they wait for it.
        let collector = StackCollector::begin(tracing, started.clock);
        let mut stream = self.connection.sample_stream(started.session);
        let buffers = Buffers::new();
        loop {
            let (batch, is_last) = buffers.fetch(&mut stream, Duration::ZERO, |_| true)?;
            collector.add(batch);
            if is_last {
                break;
            }
        }
        let (records, result) = collector.finish();
        let addresses = self.system.addresses_of(function);
        let is_sampled = |record: Record| record.sample().is_some_and(|sample| addresses.contains(&sample.ip));
        let of_function = records.into_iter().filter(|(record, _)| record.parse().is_ok_and(is_sampled));
        let stacks = of_function.map(|(_, stack)| stack).collect();
        Ok(SampledStacks { stacks, calls, losses: lost(result.losses) })
    }
}

impl SampledStacks {
    /// Adds to the checks what was measured.
    fn judge(&self, [with_stack, equal]: [Check; 2]) -> [Check; 2] {
        let mut counts = StackCounts::default();
        self.stacks.iter().for_each(|stack| counts.add(stack));
        if counts.samples() == 0 {
            return [with_stack, equal].map(|check| check.failed(NO_SAMPLE.to_owned()));
        }
        let found = self.found();
        let share = |part: u64, whole: u64| 100.0 * real(part) / real(whole);
        let number = found.len() as u64;
        let with_stack = with_stack.with(Ok(share(number, counts.samples())));
        let with_stack = with_stack.because(|| format!("{}{}", missing(&counts), self.losses));
        if found.is_empty() {
            return [with_stack, equal.failed("no sample has a call stack".to_owned())];
        }
        let differences: Vec<String> = found.iter().filter_map(|stack| self.difference(stack)).collect();
        let different = differences.len() as u64;
        let equal = equal.with(Ok(share(number - different, number))).because(|| {
            let first = differences.first().map_or("", String::as_str);
            format!("{different} of {} differ; in the first, {first}", counted(number, "call stack"))
        });
        [with_stack, equal]
    }

    /// Returns the call stacks that are complete, or that Windows cut at the outermost end.
    fn found(&self) -> Vec<&CallStack> {
        let stacks = self.stacks.iter().filter_map(|stack| match stack {
            SampleStack::Stack(stack) => Some(stack),
            SampleStack::Missing(_) | SampleStack::NotRecorded => None,
        });
        stacks.filter(|stack| stack.end != StackEnd::UserLost).collect()
    }

    /// Returns how a call stack differs from the calls, if it does.
    fn difference(&self, stack: &CallStack) -> Option<String> {
        let place = (0..CALLS).find(|place| stack.callers.get(*place) != self.calls.get(*place))?;
        let call = address(*self.calls.get(place)?);
        let number = place + 1;
        Some(match stack.callers.get(place) {
            Some(caller) => format!("caller {number} is {}, but the call returns to {call}", address(*caller)),
            None => format!("there is no caller {number}, but a call returns to {call}"),
        })
    }
}

/// Returns what the trace session lost, for the end of a line; nothing if that is nothing.
fn lost(losses: io::Result<TraceLosses>) -> String {
    match losses {
        Ok(TraceLosses { events: 0, buffers: 0 }) => String::new(),
        Ok(TraceLosses { events, buffers }) => {
            format!("; Windows lost {} and {}", counted(events, "event"), counted(buffers, "buffer"))
        }
        Err(cause) => format!("; the trace session could not be stopped: {cause}"),
    }
}

/// Returns why samples have no call stack.
fn missing(counts: &StackCounts) -> String {
    let share = |number| percent(share::of(number, counts.samples()));
    let reasons = MissingStack::ALL.iter().map(|reason| (counts.missing_for(*reason), explained(*reason).0));
    let reasons: Vec<_> = reasons.filter(|(count, _)| *count > 0).collect();
    let reasons: Vec<_> = reasons.into_iter().map(|(count, why)| format!("{}: {why}", share(count))).collect();
    format!("samples without a call stack: {}", reasons.join(", "))
}
