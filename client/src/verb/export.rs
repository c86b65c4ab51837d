//! `export`: converts a recording for other programs.

use std::io::Write;
use std::path::Path;

use report::{Column, Detail, ExportError, Limits, firefox, pprof, samples_csv, speedscope};

use super::aggregate::{Aggregate, finish_export};
use super::context::Context;
use super::html;
use super::load::LoadedRecording;
use crate::cli::{ExportArgs, ExportFormat};
use crate::document::write_json;
use crate::error::Error;
use crate::output::OutputError;

/// The columns of `--format json`.
const COLUMNS: [Column; 4] = [Column::Process, Column::Module, Column::Symbol, Column::Address];

pub fn run(args: &ExportArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail::default())?;
    to(args.output.as_deref(), &loaded, context, |out, path| write(args.format, &loaded, out, path))?;
    finish_export(&loaded, context)
}

/// Writes to the file `output`, or to standard output if there is none or it is `-`.
pub fn to(
    output: Option<&Path>,
    loaded: &LoadedRecording,
    context: &mut Context,
    write: impl FnOnce(&mut dyn Write, Option<&Path>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(path) = output.filter(|path| *path != Path::new("-")) else { return write(&mut context.out, None) };
    let mut file = loaded.create(path)?;
    write(&mut file, Some(path))?;
    Ok(file.flush().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?)
}

fn write(
    format: ExportFormat,
    loaded: &LoadedRecording,
    out: &mut dyn Write,
    path: Option<&Path>,
) -> Result<(), Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    match format {
        ExportFormat::Firefox => firefox(contents, symbol_index, filter, loaded.reopen(path)?, out),
        ExportFormat::Csv => samples_csv(contents, symbol_index, filter, loaded.reopen(path)?, out),
        ExportFormat::Pprof => pprof(contents, symbol_index, filter, out),
        ExportFormat::Speedscope => speedscope(contents, symbol_index, filter, out),
        ExportFormat::Folded => {
            loaded.folded()?.iter().try_for_each(|line| writeln!(out, "{line}")).map_err(ExportError::Write)
        }
        ExportFormat::Html => return html::write(loaded, out, path),
        ExportFormat::Json => return write_json(out, &Aggregate::new(loaded, &COLUMNS, Limits::default())),
    }
    .map_err(|error| loaded.export_error(error, path))
}
