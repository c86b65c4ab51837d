//! `record`: samples to a file, in the manner of perf record.

use std::process::{Child, ExitStatus};
use std::time::{Instant, SystemTime};

use protocol::{EventRequest, InfoReply, PROCESSOR_WORDS, ProcessorSet, StartHeader, USUAL_BUDGET, modes};
use recording::{Process, Session, Summary};

use super::{Context, command};
use crate::cli::RecordArgs;
use crate::connection::{Connection, Started};
use crate::error::Error;
use crate::event::SampledEvent;
use crate::exit::Exit;
use crate::format::{bytes, grouped, seconds};
use crate::identity::Identity;
use crate::metric::Role;
use crate::processes::Processes;
use crate::recorder::{self, Recorder, Samples};
use crate::source::{Source, Sources};
use crate::system::System;
use crate::tally::Tally;

/// What is sampled without `-e`: the first of these that the machine has.
const DEFAULT_ROLES: [Role; 2] = [Role::Cycles, Role::Instructions];

/// How often it is looked whether the command has ended after Ctrl-C; with the pauses about a second.
const LOOKS: u32 = 20;

/// A unit of the summary's time.
const NANOSECONDS_PER_TICK: u128 = 100;

/// Why a recording ended.
enum End {
    /// The command did.
    Command(ExitStatus),
    /// Ctrl-C.
    Interrupted,
    /// The time was up, or the driver has no more.
    Over,
}

/// What a recording came to.
struct Outcome {
    summary: Summary,
    tally: Tally,
    length: u64,
    exit_code: i32,
}

/// An event as the user wants it.
struct Wanted {
    source: Source,
    modes: u32,
    interval: Option<u32>,
}

pub fn run(args: &RecordArgs, context: &mut Context) -> Result<i32, Error> {
    let system = context.system()?;
    let connection = Connection::open(system)?;
    let sources = connection.sources()?;
    let mut events = Vec::new();
    for wanted in wanted(args, sources)? {
        let request = request(&wanted, args.freq);
        if let Some(asked) = wanted.interval.filter(|asked| *asked != request.interval) {
            let Source { name, minimum, maximum, .. } = wanted.source;
            let used = request.interval;
            context
                .warn(&format!("{name}: {asked} is out of the range from {minimum} to {maximum}; {used} is used"))?;
        }
        if !events.contains(&request) {
            events.push(request);
        }
    }
    let info = connection.info()?;
    system.note_interrupts()?;
    // The kernel has many modules, and while their files are read no samples are fetched.
    let mut processes = Processes::default();
    let kernel = processes.kernel(system, Instant::now());

    let started = connection.start(&header(args), &events)?;
    let session = describe(args, &events, &info, started.clock, &connection)?;
    let recording = Recording { args, system, connection: &connection, started, session, processes };
    let outcome = recording.make(kernel).inspect_err(|_| {
        // What went wrong first is what is told; a session that can not be stopped ends with the handle.
        let _ = connection.stop_all(started.session);
    })?;
    conclude(args, &outcome, context)?;
    Ok(outcome.exit_code)
}

/// A recording that is about to be made.
struct Recording<'a> {
    args: &'a RecordArgs,
    system: &'a dyn System,
    connection: &'a Connection,
    started: Started,
    session: Session,
    processes: Processes,
}

impl Recording<'_> {
    /// Samples, from the beginning of the file to its end.
    fn make(self, kernel: Option<Process>) -> Result<Outcome, Error> {
        let Self { args, system, connection, started, session, processes } = self;
        // What was recorded before is only lost when there is something new.
        let file = recorder::open(&args.output)?;
        let begin = Instant::now();
        let command = (!args.all).then(|| command::start(&args.command)).transpose();
        let mut child = command.inspect_err(|_| recorder::abandon(&file, &args.output))?;
        let mut recorder = Recorder::begin(file, &args.output, &session, system, processes)?;
        recorder.tell(kernel)?;
        if let Some(child) = &child {
            recorder.watch(child.id())?;
        }
        let samples = Samples { connection, session: started.session };
        let until = args.duration.map(|duration| begin + duration);
        let end = sample(&mut recorder, samples, child.as_mut(), until, system)?;
        let elapsed = begin.elapsed();
        let records = connection.stop_all(started.session)?;
        // Beside its records a ring can tell of as many that were lost.
        recorder.drain(samples, 2 * u64::from(args.ring) * session.processors.len() as u64)?;

        let status = match (&end, &mut child) {
            (End::Command(status), _) => Some(*status),
            (End::Interrupted | End::Over, Some(child)) => await_end(child, system),
            (End::Interrupted | End::Over, None) => None,
        };
        let summary = Summary {
            elapsed: u64::try_from(elapsed.as_nanos() / NANOSECONDS_PER_TICK).unwrap_or(u64::MAX),
            counts: recorder::counts(&records),
            interrupted_by_user: matches!(end, End::Interrupted),
            exit_code: status.and_then(|status| status.code()),
        };
        let (tally, length) = recorder.finish(&summary)?;
        let exit_code = match (&child, status) {
            (None, _) => Exit::Done.code(),
            (Some(_), Some(status)) => command::exit_code(status),
            (Some(_), None) => Exit::Failure.code(),
        };
        Ok(Outcome { summary, tally, length, exit_code })
    }
}

fn sample(
    recorder: &mut Recorder,
    samples: Samples,
    mut child: Option<&mut Child>,
    until: Option<Instant>,
    system: &dyn System,
) -> Result<End, Error> {
    loop {
        let is_last = recorder.go_on(samples, until)?;
        if let Some(child) = &mut child
            && let Ok(Some(status)) = child.try_wait()
        {
            return Ok(End::Command(status));
        }
        if system.interrupted() {
            return Ok(End::Interrupted);
        }
        if is_last || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(End::Over);
        }
    }
}

/// Ctrl-C reached the command, too. One that lives on is left alone.
fn await_end(child: &mut Child, system: &dyn System) -> Option<ExitStatus> {
    for _ in 0..LOOKS {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        system.pause();
    }
    None
}

/// What the user named, or what is sampled when nothing is named.
fn wanted(args: &RecordArgs, sources: &Sources) -> Result<Vec<Wanted>, Error> {
    if args.events.is_empty() {
        let source = DEFAULT_ROLES.into_iter().find_map(|role| sources.with_role(role));
        return Ok(vec![Wanted {
            source: source.cloned().ok_or(Error::NoDefaultEvents)?,
            modes: modes::BOTH,
            interval: None,
        }]);
    }
    let wanted = |SampledEvent { event, interval }: &SampledEvent| {
        Ok(Wanted { source: sources.find(&event.source)?, modes: event.modes, interval: *interval })
    };
    args.events.iter().flatten().map(wanted).collect()
}

/// An interval that is named stays; another one is moved towards the frequency, where one is wanted.
fn request(Wanted { source, modes, interval }: &Wanted, frequency: Option<u32>) -> EventRequest {
    let (interval, frequency) = match interval {
        Some(interval) => ((*interval).max(source.minimum).min(source.maximum), 0),
        None => (source.interval, frequency.unwrap_or_default()),
    };
    EventRequest { source: source.id, modes: *modes, interval, frequency }
}

fn header(args: &RecordArgs) -> StartHeader {
    StartHeader {
        flags: args.force.flags(),
        ring: args.ring,
        budget: args.budget.map_or(0, |percent| percent * 10),
        batch: 0,
        processors: args.processors.map_or(ProcessorSet::EMPTY, |list| list.0),
    }
}

fn describe(
    args: &RecordArgs,
    events: &[EventRequest],
    info: &InfoReply,
    clock: u64,
    connection: &Connection,
) -> Result<Session, Error> {
    let sources = connection.sources()?;
    let identity = Identity::new(&info.vendor, &info.brand, info.signature);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let event = |event: &EventRequest| recording::Event {
        source: event.source,
        name: sources.name(event.source),
        modes: event.modes,
        interval: event.interval,
        frequency: event.frequency,
    };
    Ok(Session {
        created_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or_default(),
        client: env!("CARGO_PKG_VERSION").to_owned(),
        driver: connection.driver_version(),
        processor: identity.brand.unwrap_or(identity.vendor),
        computer: std::env::var("COMPUTERNAME").ok(),
        command: command::words(&args.command),
        clock,
        processors: match &args.processors {
            Some(list) => list.0.iter().collect(),
            None => (0..info.processors).take(PROCESSOR_WORDS * 64).collect(),
        },
        batch: 0,
        events: events.iter().map(event).collect(),
    })
}

/// The last words: how much there is, and what there is not.
fn conclude(args: &RecordArgs, outcome: &Outcome, context: &mut Context) -> Result<(), Error> {
    let Outcome { summary, tally, length, .. } = outcome;
    let sum = |part: fn(&recording::Count) -> u64| summary.counts.iter().map(part).fold(0, u64::saturating_add);
    let (lost, throttled) = (sum(|count| count.lost), sum(|count| count.throttled));
    context.warn(&format!(
        "[ recorded {} samples ({} lost) in {:.1} s to {}, {} ]",
        grouped(tally.samples),
        grouped(lost),
        seconds(summary.elapsed),
        args.output.display(),
        bytes(*length)
    ))?;
    // A stop can come between the last overflow of a counter and its interrupt, whatever there is room for.
    if summary.counts.iter().any(|count| count.lost > 1) {
        let larger =
            if args.ring < *protocol::RING.end() { format!("--ring {}, ", args.ring * 2) } else { String::new() };
        context.warn(&format!(
            "warning: {} samples were lost, and the shares in the report are of the others\n  \
             try: {larger}a larger interval (-e SOURCE@INTERVAL) or a lower -F",
            grouped(lost)
        ))?;
    }
    if throttled > 0 {
        let percent = args.budget.unwrap_or(USUAL_BUDGET / 10);
        context.warn(&format!(
            "warning: {} samples were not taken: interrupts had {percent} % of a processor's time\n  \
             try: a larger interval (-e SOURCE@INTERVAL), a lower -F, or a larger --budget",
            grouped(throttled)
        ))?;
    }
    Ok(())
}
