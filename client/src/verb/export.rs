//! `export`: a recording for other programs.

use std::io::Write;
use std::path::Path;

use report::{Column, Detail, ExportError, firefox, lines};

use super::context::{Context, write_json};
use super::recorded::Recorded;
use super::summed::{Limits, Summed};
use crate::cli::{ExportArgs, ExportFormat};
use crate::error::Error;
use crate::output::OutputError;

/// The columns of `--format json`.
const COLUMNS: [Column; 4] = [Column::Process, Column::Module, Column::Symbol, Column::Address];

pub fn run(args: &ExportArgs, context: &mut Context) -> Result<i32, Error> {
    let recorded = Recorded::open(&args.recording, Detail::default())?;
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let mut file = recorded.create(path)?;
            write(args.format, &recorded, &mut file, Some(path))?;
            file.flush().map_err(|cause| OutputError::File { path: path.to_owned(), cause })?;
        }
        None => write(args.format, &recorded, &mut context.out, None)?,
    }
    recorded.finish(context)
}

fn write(format: ExportFormat, recorded: &Recorded, out: &mut dyn Write, path: Option<&Path>) -> Result<(), Error> {
    let Recorded { contents, atlas, filter, .. } = recorded;
    match format {
        ExportFormat::Firefox => firefox(contents, atlas, filter, recorded.again()?, out),
        ExportFormat::Csv => lines(contents, atlas, filter, recorded.again()?, out),
        ExportFormat::Folded => {
            recorded.folded()?.iter().try_for_each(|line| writeln!(out, "{line}")).map_err(ExportError::Write)
        }
        ExportFormat::Json => return write_json(out, &Summed::new(recorded, &COLUMNS, Limits::default())),
    }
    .map_err(|error| recorded.export_error(error, path))
}
