//! `export`: converts a recording for other programs.

use std::io::{BufWriter, Write};
use std::path::Path;

use report::{
    Column, Detail, ExportError, Limits, Thinned, firefox, folded, folded_with_numbers, samples_csv, speedscope,
};

use crate::cli::{ExportArgs, ExportFormat};
use crate::reading::aggregate::Aggregate;
use crate::reading::branch_profile::ModuleProfile;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::html;
use terminal::context::Context;
use terminal::document::write_json;
use terminal::format::grouped;
use user_error::Error;
use user_error::output_error::OutputError;

/// The columns of `--format json`.
const COLUMNS: [Column; 4] = [Column::Process, Column::Module, Column::Symbol, Column::Address];

pub fn run(args: &ExportArgs, context: &mut Context) -> Result<i32, Error> {
    args.check(context.columns.is_some())?;
    if args.format == ExportFormat::Autofdo {
        return autofdo(args, context);
    }
    let detail = Detail { stacks: true, parallelism: args.format == ExportFormat::Html, ..Detail::default() };
    let loaded = match args.format {
        ExportFormat::Csv => LoadedRecording::open_with_branches(&args.recording, detail),
        ExportFormat::Folded => LoadedRecording::with_stacks(&args.recording, args.branch_history),
        _ => LoadedRecording::open(&args.recording, detail),
    }?;
    let mut thinned = None;
    to(args.output.as_deref(), &loaded, context, |out, path| {
        thinned = write(args, &loaded, out, path)?;
        Ok(())
    })?;
    if let Some(thinned) = thinned.filter(|thinned| thinned.step > 1) {
        context.warn(&thinned_note(thinned))?;
    }
    let events = loaded.sources().len();
    if args.format == ExportFormat::Pprof && args.recording.selection.event.is_none() && events > 1 {
        context.warn(&sample_types_note(events))?;
    }
    finish_export(&loaded, context)
}

/// Writes the last branches of a module.
fn autofdo(args: &ExportArgs, context: &mut Context) -> Result<i32, Error> {
    let (loaded, module) = ModuleProfile::read(&args.recording)?;
    to(args.output.as_deref(), &loaded, context, |out, path| {
        module.profile.write(out).map_err(|cause| loaded.export_error(ExportError::Write(cause), path))
    })?;
    for note in module.notes() {
        context.warn(&note)?;
    }
    loaded.finish(context)
}

/// Writes to the file `output`, or to standard output if there is none or it is `-`.
pub fn to(
    output: Option<&Path>,
    loaded: &LoadedRecording,
    context: &mut Context,
    write: impl FnOnce(&mut dyn Write, Option<&Path>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(path) = output.filter(|path| *path != Path::new("-")) else {
        let mut out = BufWriter::new(&mut context.out);
        write(&mut out, None)?;
        return Ok(out.flush()?);
    };
    let mut file = loaded.create(path)?;
    write(&mut file, Some(path))?;
    Ok(file.flush().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?)
}

/// Writes the recording in a format. Returns how many samples are in it, if there is a maximum.
fn write(
    args: &ExportArgs,
    loaded: &LoadedRecording,
    out: &mut dyn Write,
    path: Option<&Path>,
) -> Result<Option<Thinned>, Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    let written = match args.format {
        ExportFormat::Firefox => {
            let thinned = firefox(contents, symbol_index, filter, args.max_samples(), &mut loaded.reopen(path)?, out);
            return Ok(Some(thinned.map_err(|error| loaded.export_error(error, path))?));
        }
        ExportFormat::Csv => samples_csv(contents, symbol_index, filter, &mut loaded.reopen(path)?, out),
        ExportFormat::Pprof => loaded.pprof(out),
        ExportFormat::Speedscope => speedscope(contents, symbol_index, filter, out),
        ExportFormat::Folded => {
            let fold = if args.pid { folded_with_numbers } else { folded };
            loaded.folded(fold)?.iter().try_for_each(|line| writeln!(out, "{line}")).map_err(ExportError::Write)
        }
        // Written before, because it needs no symbols.
        ExportFormat::Autofdo => Ok(()),
        ExportFormat::Html => return html::write(loaded, &args.recording.selection, out, path).map(|()| None),
        ExportFormat::Json => {
            return write_json(out, &Aggregate::new(loaded, &COLUMNS, Limits::default())).map(|()| None);
        }
    };
    written.map_err(|error| loaded.export_error(error, path))?;
    Ok(None)
}

/// Returns a note that a profile does not have all samples.
fn thinned_note(Thinned { selected, written, step }: Thinned) -> String {
    format!(
        "note: the profile has {} of {} samples, one of every {} of each CPU and event\n  because: browsers cannot show \
         them all; the weight of each is the events of all for which it stands\n  try: --time 0s-1s, which has all \
         samples of a part, or --max-samples {}",
        grouped(written),
        grouped(selected),
        grouped(step),
        selected
    )
}

/// Returns a note that pprof compares a profile only with those of the same events.
fn sample_types_note(events: usize) -> String {
    format!(
        "note: the profile has {events} events, each a sample type\n  because: go tool pprof -diff_base refuses a profile \
         whose sample types differ\n  try: -e EVENT for both profiles, which makes them comparable"
    )
}
