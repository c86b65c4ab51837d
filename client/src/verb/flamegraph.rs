//! `flamegraph`: draws a recording.

use std::io::Write;
use std::path::Path;

use report::{Detail, Table, flamegraph, folded_for_graph};

use crate::cli::FlamegraphArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use counts::share;
use terminal::context::Context;
use user_error::Error;
use user_error::output_error::OutputError;

pub fn run(args: &FlamegraphArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail { stacks: true, ..Detail::default() })?;
    let lines = loaded.folded(folded_for_graph)?;
    let title = loaded.contents.source_name(loaded.one_source()?).into_owned();
    let subtitle = subtitle(&loaded)?;
    if args.output == Path::new("-") {
        flamegraph(&lines, &title, &subtitle, &mut context.out)?;
    } else {
        let path = &args.output;
        let mut file = loaded.create(path)?;
        let written = flamegraph(&lines, &title, &subtitle, &mut file).and_then(|()| file.flush());
        written.map_err(|cause| OutputError::File { path: path.clone(), cause })?;
    }
    finish_export(&loaded, context)
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
