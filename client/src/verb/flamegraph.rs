//! `flamegraph`: draws a recording.

use std::io::Write;
use std::path::Path;

use recording::RecordedEvent;
use report::{
    Accesses, SampledSource, Table, flamegraph, folded_for_graph, folded_latency, schedule, wall_clock_for_graph,
};

use crate::cli::FlamegraphArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::sched::NoSchedule;
use counts::share;
use terminal::context::Context;
use user_error::Error;
use user_error::output_error::OutputError;

pub fn run(args: &FlamegraphArgs, context: &mut Context) -> Result<i32, Error> {
    let (loaded, accesses) = if args.latency {
        LoadedRecording::with_accesses(&args.recording)?
    } else {
        (LoadedRecording::with_stacks(&args.recording, args.branch_history)?, Accesses::default())
    };
    let (lines, title, unit) = if args.latency {
        let (lines, name) = loads(&loaded, &accesses)?;
        (lines, format!("latency of {name}"), "cycles")
    } else if args.wall_clock {
        let (on, off) = running_and_waiting(&loaded)?;
        let title = format!("wall clock: {}, and waits", loaded.contents.source_name(on));
        (wall_clock(&loaded, on, off)?, title, "ns")
    } else {
        let source = loaded.one_source()?;
        let unit = if is_off_cpu(&loaded, source) { "ns" } else { "events" };
        (loaded.folded(folded_for_graph)?, loaded.contents.source_name(source).into_owned(), unit)
    };
    let subtitle = subtitle(&loaded)?;
    if args.output == Path::new("-") {
        flamegraph(&lines, (&title, unit), &subtitle, &mut context.out)?;
    } else {
        let path = &args.output;
        let mut file = loaded.create(path)?;
        let written = flamegraph(&lines, (&title, unit), &subtitle, &mut file).and_then(|()| file.flush());
        written.map_err(|cause| OutputError::File { path: path.clone(), cause })?;
    }
    finish_export(&loaded, context)
}

fn is_off_cpu(loaded: &LoadedRecording, source: SampledSource) -> bool {
    let event = usize::try_from(source.event).ok().and_then(|index| loaded.contents.session.events.get(index));
    event.is_some_and(RecordedEvent::is_off_cpu)
}

/// Returns the loads of the first event with latencies, and its name.
fn loads(loaded: &LoadedRecording, accesses: &Accesses) -> Result<(Vec<String>, String), Error> {
    let LoadedRecording { contents, symbol_index, .. } = loaded;
    let of = |source| (folded_latency(contents, symbol_index, source, accesses), source);
    let found = accesses.sources().into_iter().map(of).find(|(lines, _)| !lines.is_empty());
    let (lines, source) = found.ok_or_else(|| loaded.no_samples())?;
    Ok((lines, contents.source_name(source).into_owned()))
}

/// Returns the first event that was sampled while threads ran, and that of their waits.
fn running_and_waiting(loaded: &LoadedRecording) -> Result<(SampledSource, SampledSource), Error> {
    let sources = loaded.sources();
    let find = |is_off: bool| sources.iter().copied().find(|source| is_off_cpu(loaded, *source) == is_off);
    Ok(find(false).zip(find(true)).ok_or(NoSchedule)?)
}

/// Returns the stacks by wall clock, in which the samples share the time in which the threads ran.
fn wall_clock(loaded: &LoadedRecording, on: SampledSource, off: SampledSource) -> Result<Vec<String>, Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    let threads = schedule(contents, symbol_index, filter, &mut loaded.reopen(None)?);
    let threads = threads.map_err(|error| loaded.export_error(error, None))?;
    let run = threads.values().map(|thread| thread.run).sum();
    Ok(wall_clock_for_graph(contents, symbol_index, (on, run), off, filter))
}

/// Returns the command, the selected time and processors, and the share of the selected events, because the shares in
/// the graph refer to those.
fn subtitle(loaded: &LoadedRecording) -> Result<String, Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    let command = contents.command_text();
    if !filter.narrows() {
        return Ok(command);
    }
    let Table { total, selected, .. } = Table::new(contents, symbol_index, loaded.one_source()?, &[], filter);
    let share = share::percent(share::of(selected.events, total.weight.events));
    let part = contents.slice_text(&filter.slice).map_or_else(String::new, |text| format!("{text}: "));
    Ok(format!("{command} ({part}{share} of all events are selected)"))
}
