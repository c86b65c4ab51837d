//! `stat`: counts while a command runs or for some time, like perf stat.

mod blocks;
mod csv;
mod measure;
mod repeated;
mod text;
mod unsupported;

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use halprof::counting::EventNames;
use halprof::event::raw_event;
use halprof::event::role::Role;
use halprof::source::SourceInfo;
use halprof::{Driver, Refusal};
use protocol::{CountRecord, ErrorCode, EventRequest, InfoReply, ProcessorSet, StartHeader, flags, modes};
use serde::Serialize;

use crate::cli::{FailAbove, StatArgs};
use crate::verb::diff;
use crate::verb::diff::SavedStat;
use blocks::{Block, Counted, Set, blocks, sets, whole};
use counts::event_list::EventList;
use counts::movement::scope_note;
use counts::requested_metrics::{MetricValue, Metrics, Refused, concerns};
use counts::requests::labelled_events;
use counts::{EventCount, by_event, mark_notes};
use measure::{Measured, Plan, Way};
use recorder::command;
use recorder::tasks::Tasks;
use recording::RecordedTasks;
use repeated::Spread;
use system::connection::Connection;
use terminal::color;
use terminal::context::Context;
use terminal::document::{Document, write_json, write_json_line};
use terminal::output::Painted;
use unsupported::Unsupported;
use user_error::Error;
use user_error::exit::Exit;
use user_error::output_error::OutputError;

#[cfg(test)]
pub use {blocks::TopologyError, measure::EndedInDelay, measure::Unestimated};

/// Roles of the events that are counted without `-e`, in this order.
const DEFAULT_ROLES: [Role; 4] = [Role::Cycles, Role::Instructions, Role::Branches, Role::BranchMisses];

/// The same by their generic names, of which the reasons tell if the machine has none of them.
const DEFAULT_NAMES: &str = "cycles,instructions,branches,branch-misses";

/// All that was counted.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stat {
    command: Vec<String>,
    exit_code: i32,
    elapsed_seconds: f64,
    /// The time of each run, if they were repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed: Option<Spread<f64>>,
    /// Time of the command's own process in user mode; absent without a command, and if it was repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_seconds: Option<f64>,
    /// The same in kernel mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_seconds: Option<f64>,
    processors: Vec<u32>,
    events: Vec<Counted>,
    /// The events that the machine does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsupported: Vec<Unsupported>,
    /// What the counts of different events do not have in common: VMware.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope_note: Option<&'static str>,
    /// Whether the counts are of the command, or of the processes and threads of `-p` and `-t`; all counts are of the
    /// whole machine otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_processes: bool,
    /// The command, or the processes and threads, in words.
    #[serde(skip)]
    tasks: Option<String>,
    /// How the counts of processes came about, and what is missing in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<String>,
    /// The metrics that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MetricValue>,
    /// The events by sets of processors, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<Block>>,
}

impl Document for Stat {
    const SCHEMA: &'static str = "halprof.stat/1";
}

/// What was counted in an interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// End of the interval: time since the start.
    time_seconds: f64,
    events: Vec<Counted>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsupported: Vec<Unsupported>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MetricValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<Vec<Block>>,
}

impl Document for Interval {
    const SCHEMA: &'static str = "halprof.stat-interval/1";
}

pub fn run(args: &StatArgs, context: &mut Context) -> Result<i32, Error> {
    let system = context.system()?;
    let connection = connect(args, context)?;
    let processors = args.processors.map_or(ProcessorSet::EMPTY, |list| list.0);
    let mut unsupported: Vec<Unsupported> = Vec::new();
    let mut own = if args.counts_defaults() { default_events(&connection)? } else { Vec::new() };
    let mut labels = vec![None; own.len()];
    if own.is_empty() {
        let defaults: Option<EventList> = args.counts_defaults().then(|| DEFAULT_NAMES.parse().ok()).flatten();
        let lists = args.events.iter().map(|list| &list.0).chain(&defaults);
        (own, labels) = labelled_events(lists, &processors, &connection, |name, error| {
            unsupported.push(Unsupported::of(name, error, args.strict)?);
            Ok(())
        })?;
    }
    for note in own.iter().filter_map(|request| raw_event::note(request.event)) {
        context.warn(&format!("note: {note}"))?;
    }
    let mut refused = Refused::default();
    let mut requested = own.clone();
    let metrics = Metrics::new(&args.metrics, &mut requested, &processors, &refused, &connection, system)?;
    if args.strict {
        metrics.check(&requested)?;
    }
    let sets = sets(&args.aggregation, &processors, &connection, system)?;
    // The file is created before the command runs, so an error is reported early.
    let mut file = args.output.as_deref().filter(|path| *path != Path::new("-")).map(create).transpose()?;

    let baseline = args.baseline.as_deref().map(diff::read_counts).transpose()?;
    system.note_interrupts()?;
    let header = StartHeader { flags: flags::MULTIPLEX | args.force.flags(), processors, ..StartHeader::EMPTY };
    let tasks = args.tasks.open_beside(args.all, context)?;
    let way = Way::of(args, tasks.as_ref(), &connection)?;
    let of = (way != Way::Whole).then(|| tasks_text(tasks.as_ref(), way));
    let plan = Plan { args, connection: &connection, system, tasks, header, way };
    let info = connection.info()?;
    let (names, groups, words) = Default::default();
    let mut remarks = Vec::new();
    let mut printer =
        Printer { args, info, metrics, sets, labels, unsupported, names, groups, words, of, way, shown: 0 };
    let mut runs = Vec::new();
    for _ in 0..args.repeat.unwrap_or(1) {
        let begun = plan.begin(&mut requested, |refusal, requested| {
            if args.counts_defaults() && omit_default(refusal, &mut own) {
                requested.clone_from(&own);
                return Ok(true);
            }
            let before = requested.clone();
            let of_metrics = requested.get(own.len()..).unwrap_or_default();
            let mut is_known = refused.add(refusal, of_metrics);
            while let Some(index) = own.iter().position(|event| !args.strict && concerns(refusal, event)) {
                let (event, label) = (own.remove(index), printer.labels.remove(index));
                let name = label.map_or_else(|| Ok(connection.sources()?.label(&event)), Ok::<_, Error>)?;
                printer.unsupported.push(Unsupported::refused(name, refusal));
                is_known = true;
            }
            requested.clone_from(&own);
            printer.metrics = Metrics::new(&args.metrics, requested, &processors, &refused, &connection, system)?;
            // There are fewer counters than before if the start has shown that some do not work.
            Ok(is_known || *requested != before)
        })?;
        let sources = connection.sources()?;
        printer.groups = requested.iter().map(|event| event.group).collect();
        printer.names = EventNames::of(&requested, sources);
        printer.words = requested.iter().map(|event| sources.word_of(&event.event)).collect();
        let measured = plan.count(begun, |time, records| {
            let out = output(&mut file, args, context);
            printer.interval(time, records, out)
        })?;
        let was_interrupted = measured.was_interrupted;
        context.command_code = measured.status.map(command::exit_code);
        remarks.extend(measured.remarks.iter().cloned());
        runs.push(measured);
        if was_interrupted {
            break;
        }
    }
    let exit_code = context.command_code.unwrap_or(Exit::Done.code());
    remarks.splice(0..0, measure::sampled_note(&runs));
    let stat = Stat { remarks, ..printer.stat(&runs, exit_code) };
    if args.interval.is_none() || args.summary {
        printer.total(&stat, output(&mut file, args, context))?;
    }
    if args.separator().is_some() {
        for note in &stat.remarks {
            context.warn(note)?;
        }
        for note in mark_notes(stat.events.iter().map(|counted| &counted.event)) {
            context.warn(&note)?; // the columns have no room for it
        }
    }
    if args.separator().is_some() || args.interval.is_some() && !args.summary && !args.json {
        for note in unsupported::notes(&stat.unsupported) {
            context.warn(&note)?;
        }
    }
    let Some(baseline) = baseline else { return Ok(exit_code) };
    let fail = FailAbove { fail_above: args.fail_above };
    let comparison = diff::compare_counts(&baseline, &SavedStat::of(&stat)?, fail, None)?;
    let text = diff::text(&comparison, usize::MAX, context.width(file.is_some()));
    writeln!(output(&mut file, args, context), "\n{text}")?;
    Ok(if exit_code == Exit::Done.code() { comparison.exit().code() } else { exit_code })
}

/// Opens what counts, and checks that it can do what is asked.
fn connect(args: &StatArgs, context: &mut Context) -> Result<Connection, Error> {
    let connection = args.backend.open(context)?;
    if args.interval.is_some() {
        connection.check_driver("a count at any moment")?;
    }
    Ok(connection)
}

/// Returns what is counted, in words.
fn tasks_text(tasks: Option<&Tasks>, way: Way) -> String {
    let command = || "the command and what it started".to_owned();
    tasks.map_or_else(command, |tasks| {
        RecordedTasks { with_children: way == Way::Followed, ..tasks.recorded.clone() }.text().unwrap_or_default()
    })
}

fn create(path: &Path) -> Result<File, Error> {
    Ok(File::create(path).map_err(|cause| OutputError::File { path: path.to_owned(), cause })?)
}

/// Returns where the counts are written.
fn output<'a>(file: &'a mut Option<File>, args: &StatArgs, context: &'a mut Context) -> &'a mut dyn Painted {
    match (file, &args.output) {
        (Some(file), _) => file,
        (None, Some(_)) => &mut context.out,
        (None, None) => &mut context.err,
    }
}

/// Omits the refused event from the default events, if no counter is free for it. The last event stays in any case: its
/// refusal names the sessions that hold the counters.
fn omit_default(refusal: &Refusal, events: &mut Vec<EventRequest>) -> bool {
    let can_omit = events.len() > 1 && refusal.cause() == Some(ErrorCode::NoFreeCounter);
    if can_omit {
        let refused = events.iter().position(|event| event.event.source == refusal.header.source);
        events.remove(refused.unwrap_or(events.len() - 1));
    }
    can_omit
}

/// Returns the default events that the machine supports.
fn default_events(connection: &Driver) -> Result<Vec<EventRequest>, Error> {
    let sources = connection.sources()?;
    let found = DEFAULT_ROLES.into_iter().filter_map(|role| sources.with_role(role));
    let request = |source: &SourceInfo| EventRequest { event: source.event, modes: modes::BOTH, ..EventRequest::EMPTY };
    Ok(found.map(request).collect())
}

/// Prints counts in the format that the user asked for.
struct Printer<'a> {
    args: &'a StatArgs,
    info: InfoReply,
    metrics: Metrics,
    /// The sets of processors that have rows; `None` for the whole machine.
    sets: Option<Vec<Set>>,
    /// Names of the rows of the first events of the request, if the user gave them.
    labels: Vec<Option<String>>,
    /// The events that are not counted.
    unsupported: Vec<Unsupported>,
    /// Names of the events of the request.
    names: EventNames,
    /// What the user calls each.
    words: Vec<String>,
    /// Group of each event of the request.
    groups: Vec<u32>,
    /// What is counted, if it is not all that runs on the processors.
    of: Option<String>,
    /// How it is counted.
    way: Way,
    /// Number of intervals so far.
    shown: u64,
}

impl Printer<'_> {
    /// Returns the events in the order of the command line.
    fn events(&self, records: &[CountRecord]) -> Vec<EventCount> {
        let mut events = by_event(records, |record| self.names.of_count(record));
        events.sort_by_key(|event| event.index);
        for event in &mut events {
            event.add_errata(&self.info);
            let Ok(index) = usize::try_from(event.index) else { continue };
            event.group = self.groups.get(index).copied().unwrap_or_default();
            if let Some(label) = self.labels.get(index).and_then(Option::as_deref) {
                event.set_label(label);
            } else if let Some(word) = self.words.get(index) {
                event.set_word(word);
            }
        }
        if self.args.no_scale {
            events.iter_mut().for_each(EventCount::unscale);
        }
        events
    }

    /// Returns the counts of all processors, and those of the sets.
    fn blocks(&self, events: &[EventCount], runs: &[Vec<EventCount>]) -> (Block, Option<Vec<Block>>) {
        let sets = self.sets.as_ref().map(|sets| blocks(events, sets, runs, &self.metrics));
        (whole(events, runs, &self.metrics), sets)
    }

    fn interval(&mut self, time: Duration, records: &[CountRecord], out: &mut dyn Painted) -> Result<(), Error> {
        let events = self.events(records);
        let (Block { events, metrics, .. }, blocks) = self.blocks(&events, &[]);
        let (time_seconds, unsupported) = (time.as_secs_f64(), self.unsupported.clone());
        let interval = Interval { time_seconds, events, unsupported, metrics, blocks };
        if self.args.json {
            write_json_line(out, &interval)?;
        } else if let Some(separator) = self.args.separator() {
            csv::interval(&interval, self.args, separator, out)?;
        } else {
            out.write_painted(&color::counts(&text::interval(&interval, self.args, self.shown == 0)))?;
        }
        self.shown += 1;
        Ok(out.flush()?)
    }

    fn stat(&self, runs: &[Measured], exit_code: i32) -> Stat {
        let all: Vec<Vec<CountRecord>> = runs.iter().map(|run| run.records.clone()).collect();
        let mut events = self.events(&repeated::mean(&all));
        let estimates = runs.last().map(|run| &run.estimates).filter(|estimates| !estimates.is_empty());
        let tasks = self.of.clone().filter(|_| estimates.is_some() || self.way == Way::Followed);
        if let (Some(estimates), None) = (estimates, self.args.repeat) {
            for event in &mut events {
                let index = event.index;
                event.set_estimates(|processor| estimates.get(&(index, processor)).copied());
            }
        }
        let of_runs = if self.args.repeat.is_some() { all.as_slice() } else { &[] };
        let of_runs: Vec<_> = of_runs.iter().map(|records| self.events(records)).collect();
        let elapsed = Spread::of(runs.iter().map(|run| run.elapsed.as_secs_f64()).collect(), |seconds| seconds);
        let (Block { processors, events, metrics, .. }, blocks) = self.blocks(&events, &of_runs);
        let times = runs.last().and_then(|run| run.times).filter(|_| self.args.repeat.is_none());
        Stat {
            command: command::words(&self.args.command),
            exit_code,
            elapsed_seconds: elapsed.mean,
            elapsed: self.args.repeat.map(|_| elapsed),
            user_seconds: times.map(|(user, _)| user.as_secs_f64()),
            system_seconds: times.map(|(_, system)| system.as_secs_f64()),
            processors,
            events,
            unsupported: self.unsupported.clone(),
            scope_note: scope_note(&self.info),
            of_processes: tasks.is_some(),
            tasks,
            remarks: Vec::new(),
            metrics,
            blocks,
        }
    }

    fn total(&self, stat: &Stat, out: &mut dyn Painted) -> Result<(), Error> {
        if self.args.json {
            return if self.args.interval.is_some() { write_json_line(out, stat) } else { write_json(out, stat) };
        }
        match self.args.separator() {
            Some(separator) => csv::total(stat, self.args, separator, out),
            None => Ok(out.write_painted(&text::total(stat, self.args))?),
        }
    }
}
