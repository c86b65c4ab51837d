//! `record`: writes samples to a file, like perf record.

mod call_stacks;

pub use self::call_stacks::explained;
use halprof::Driver;
use halprof::event::raw_event;
use halprof::event::role::Role;
use halprof::source::{SourceInfo, Sources};
use halprof::text::processors;
use pmu::Source;
use protocol::{DEFAULT_BUDGET, EventRequest, ProcessorSet, StartHeader, modes};
use recording::Kept;

use crate::cli::RecordArgs;
use crate::verb::interval;
use counts::condition::add_condition;
use counts::requests::add;
use counts::share::{self, percent};
use recorder::sampled_event::{RequestedEvent, TIME_UNITS};
use recorder::sampling::{self, Outcome, SamplingPlan, is_precise};
use recorder::tasks::Scope;
use system::connection::Connection;
use terminal::context::Context;
use terminal::format::{bytes, grouped, seconds};
use user_error::Error;
use user_error::event_error::EventError;

/// Roles of the event that is sampled without `-e`: the first that the machine supports.
const DEFAULT_ROLES: [Role; 2] = [Role::Cycles, Role::Instructions];

/// Share of the time that the counters may pause without a warning.
const LONG_PAUSES: f64 = 0.25;

pub fn run(args: &RecordArgs, context: &mut Context) -> Result<i32, Error> {
    let connection = args.backend.open(context)?;
    run_on(args, context, &connection)
}

/// Records from this connection.
pub fn run_on(args: &RecordArgs, context: &mut Context, connection: &Connection) -> Result<i32, Error> {
    let outcome = take(args, context, connection)?;
    context.command_code = Some(outcome.exit_code);
    for note in outcome.notes() {
        context.warn(&note)?;
    }
    print_summary(args, &outcome, context)?;
    for remark in connection.remarks() {
        context.warn(&format!("note: {remark}"))?;
    }
    Ok(outcome.exit_code)
}

fn take(args: &RecordArgs, context: &mut Context, connection: &Connection) -> Result<Outcome, Error> {
    if args.branches.bits() != 0 {
        connection.check_driver("samples with last branches")?;
    }
    let system = context.system()?;
    let tasks = args.tasks.open_beside(args.session.all, context)?;
    let mut events = events(args, context, connection)?;
    let has_processes = args.batch.is_none_or(|batch| batch <= 1);
    let scope = match &tasks {
        Some(tasks) => Scope::Tasks(tasks),
        None if args.session.all || args.session.command.is_empty() => Scope::All,
        None if has_processes => Scope::Command,
        None => {
            context.warn("note: with --batch, samples have no process: all processes are recorded, as with -a")?;
            Scope::All
        }
    };
    if args.session.command.is_empty() && args.session.duration.is_none() {
        let on = || args.session.processors.map_or("all CPUs".to_owned(), |list| processors::named(list.0.iter()));
        let (what, end) = match tasks.as_ref().and_then(|tasks| tasks.recorded.text()) {
            Some(tasks) => (tasks, "their end or Ctrl-C ends"),
            None => (on(), "Ctrl-C ends"),
        };
        context.warn(&format!("[ recording {what} to {}; {end} it ]", args.output.display()))?;
    }
    let (batch, last_branches) = (args.batch.unwrap_or_default(), args.branches.bits());
    let header = StartHeader { batch, last_branches, ..args.session.header() };
    let condition = args.when.as_ref().map(|condition| {
        let beside = add_condition(condition, &mut events, &header.processors, connection)?;
        Ok::<_, Error>((condition.text(), beside))
    });
    let condition = condition.transpose()?;
    let plan = SamplingPlan {
        header,
        events: &events,
        condition: condition.as_ref().map(|(text, beside)| (*text, beside.as_slice())),
        scope,
        duration: args.session.duration,
        command: &args.session.command,
        output: Some(&args.output),
        limits: args.limits(),
    };
    let tracing = call_stacks::start(args, &events, connection, context)?;
    sampling::run(&plan, tracing, None, connection, system)
}

/// Returns the requests for the events that the user named, or for the default event. Tells the user where an interval
/// differs.
pub fn events(args: &RecordArgs, context: &mut Context, connection: &Driver) -> Result<Vec<EventRequest>, Error> {
    let sources = connection.sources()?;
    let mut events = Vec::new();
    let requested = requested(args, connection)?;
    if args.freq.is_some() && requested.iter().all(|event| event.interval.is_some()) {
        return Err(EventError::NoFrequency.into());
    }
    let clock = context.system()?.tsc_frequency();
    for mut requested in requested {
        requested.interval = requested.interval.or(args.count);
        let request = requested.request(args.frequency(), clock);
        if let Some(asked) = requested.interval.filter(|asked| *asked != request.interval) {
            let SourceInfo { name, minimum, maximum, .. } = requested.source;
            let used = request.interval;
            context.warn(&interval::clamped(&name, request.event.source, (asked, used), minimum..=maximum))?;
        }
        add(&mut events, request, sources)?;
    }
    if args.events.is_empty() {
        for event in &events {
            context.warn(&default_line(event, sources, connection)?)?;
        }
    }
    for note in events.iter().filter_map(|request| raw_event::note(request.event)) {
        context.warn(&format!("note: {note}"))?;
    }
    if args.stacks.graph().is_some() && events.iter().all(is_precise) {
        return Err(EventError::NothingInterrupts.into());
    }
    if args.branches.bits() != 0 && events.iter().all(|event| is_precise(event) || is_time(event)) {
        return Err(EventError::NoBranches.into());
    }
    if args.batch.is_some() && !events.iter().any(is_precise) {
        return Err(EventError::NothingPrecise.into());
    }
    Ok(events)
}

/// Returns the events that the user named, or the default event.
fn requested(args: &RecordArgs, connection: &Driver) -> Result<Vec<RequestedEvent>, Error> {
    let sources = connection.sources()?;
    if args.events.is_empty() {
        let source = DEFAULT_ROLES.into_iter().find_map(|role| sources.with_role(role));
        let source =
            source.or_else(|| sources.iter().find(|source| source.event.source == Source::TIME.0 && source.supported));
        return Ok(vec![RequestedEvent {
            source: source.cloned().ok_or(EventError::NoDefault)?,
            modes: modes::BOTH,
            flags: 0,
            interval: None,
            follows_clock: true,
        }]);
    }
    let processors = args.session.processors.map_or(ProcessorSet::EMPTY, |list| list.0);
    let mut requested = Vec::new();
    for event in args.events.iter().flatten() {
        requested.extend(RequestedEvent::of(event, &processors, connection)?);
    }
    Ok(requested)
}

/// Returns the line that says what is sampled if the user named no event.
fn default_line(event: &EventRequest, sources: &Sources, connection: &Driver) -> Result<String, Error> {
    if !is_time(event) {
        let (name, frequency) = (sources.word_of(&event.event), grouped(event.frequency.into()));
        return Ok(format!("[ sampling {name}, about {frequency} samples a second on each CPU ]"));
    }
    let reason =
        connection.unavailable()?.map_or("this machine has no counter of cycles or instructions", |reason| reason.what);
    let frequency = grouped((TIME_UNITS / event.interval.max(1)).into());
    Ok(format!("[ sampling by time, {frequency} times a second on each CPU at most:\n  {reason} ]"))
}

fn is_time(event: &EventRequest) -> bool {
    event.event.source == Source::TIME.0
}

/// Prints how many samples were recorded and how many were not.
fn print_summary(args: &RecordArgs, outcome: &Outcome, context: &mut Context) -> Result<(), Error> {
    let Outcome { summary, record_counts, length, ring, .. } = outcome;
    let lost = outcome.lost();
    let throttled = outcome.throttled();
    let lost_share = match lost {
        0 => ",".to_owned(),
        _ => format!(", {};", percent(share::lost(lost, outcome.windows()))),
    };
    context.warn(&format!(
        "[ recorded {} samples ({} lost{lost_share} paused {} of the time) in {:.1} s to {}, {}, {:.0} wakeups/s ]",
        grouped(record_counts.samples),
        grouped(lost),
        percent(outcome.paused_share()),
        seconds(summary.elapsed),
        args.output.display(),
        bytes(*length),
        outcome.wakeup_rate(),
    ))?;
    if let filtered @ 1.. = outcome.filtered() {
        context.warn(&format!("[ filtered {} samples of other processes and threads ]", grouped(filtered)))?;
    }
    if let Some(condition) = &args.when {
        let (met, windows, text) = (grouped(outcome.met()), grouped(outcome.windows()), condition.text());
        context.warn(&if outcome.counters_chose() {
            format!("[ {met} windows met {text}; counters chose them, and tell of no others ]")
        } else {
            format!("[ {met} of {windows} windows met {text} ]")
        })?;
    }
    if let Some(trace) = &outcome.trace {
        for line in call_stacks::summary(trace) {
            context.warn(&line)?;
        }
    }
    if let Some(Kept { elapsed, removed }) = summary.kept {
        let (time, removed) = (seconds(elapsed), grouped(removed));
        context.warn(&format!("[ kept the last {time:.1} s; {removed} samples before them were removed ]"))?;
    }
    // One lost sample per counter is normal: a counter can be stopped between its last overflow and the interrupt.
    if outcome.full > 0 || summary.counts.iter().any(|count| count.lost > 1) {
        let is_ring = outcome.full > 0 && ring < protocol::RING.end();
        let larger = if is_ring { format!("--ring {}, ", ring * 2) } else { String::new() };
        context.warn(&format!(
            "warning: {} samples were lost{}, and the shares in the report are of the others\n  \
             try: {larger}a larger interval (-e SOURCE@INTERVAL) or a lower -F",
            grouped(lost),
            outcome.because_full(),
        ))?;
    }
    let paused = outcome.paused_share();
    if throttled > 0 || paused >= LONG_PAUSES {
        let what = match throttled {
            0 => format!("the counters paused {} of the time", percent(paused)),
            _ => format!("{} samples were not taken", grouped(throttled)),
        };
        let budget = args.session.budget.unwrap_or(DEFAULT_BUDGET / 10);
        context.warn(&format!(
            "warning: {what}: interrupts had {budget} % of a processor's time\n  \
             try: a larger interval (-e SOURCE@INTERVAL), a lower -F, or a larger --budget"
        ))?;
    }
    let kernel = outcome.kernel_warning();
    for warning in kernel.into_iter().chain(record_counts.warnings()).chain(outcome.disturbance_warning()) {
        context.warn(&warning)?;
    }
    Ok(())
}
