//! `export`: converts a recording for other programs.

use std::io::Write;
use std::path::Path;

use report::{Column, Detail, ExportError, firefox, samples_csv};

use super::aggregate::{Aggregate, Limits, loss_warnings};
use super::context::Context;
use super::load::LoadedRecording;
use crate::cli::{ExportArgs, ExportFormat};
use crate::document::write_json;
use crate::error::Error;
use crate::output::OutputError;

/// The columns of `--format json`.
const COLUMNS: [Column; 4] = [Column::Process, Column::Module, Column::Symbol, Column::Address];

pub fn run(args: &ExportArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail::default())?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let mut file = loaded.create(path)?;
            write(args.format, &loaded, &mut file, Some(path))?;
            file.flush().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?;
        }
        None => write(args.format, &loaded, &mut context.out, None)?,
    }
    for warning in loss_warnings(&loaded) {
        context.warn(&warning)?;
    }
    loaded.finish(context)
}

fn write(
    format: ExportFormat,
    loaded: &LoadedRecording,
    out: &mut dyn Write,
    path: Option<&Path>,
) -> Result<(), Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    match format {
        ExportFormat::Firefox => firefox(contents, symbol_index, filter, loaded.reopen()?, out),
        ExportFormat::Csv => samples_csv(contents, symbol_index, filter, loaded.reopen()?, out),
        ExportFormat::Folded => {
            loaded.folded()?.iter().try_for_each(|line| writeln!(out, "{line}")).map_err(ExportError::Write)
        }
        ExportFormat::Json => return write_json(out, &Aggregate::new(loaded, &COLUMNS, Limits::default())),
    }
    .map_err(|error| loaded.export_error(error, path))
}
