//! `script`: prints single samples in the format of perf script.

use report::{Detail, LastBranchStats, script, script_with_branches};

use crate::cli::ScriptArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::export::to;
use terminal::context::Context;
use terminal::format::{counted, grouped};
use user_error::Error;

pub fn run(args: &ScriptArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail { stacks: true, ..Detail::default() })?;
    let mut stats = LastBranchStats::default();
    if args.fields.is_some() {
        loaded.require_branches()?;
    }
    to(args.output.as_deref(), &loaded, context, |out, path| {
        let LoadedRecording { contents, symbol_index, filter, .. } = &loaded;
        let mut input = loaded.reopen(path)?;
        let written = match args.fields {
            Some(_) => script_with_branches(contents, symbol_index, filter, &mut input, out),
            None => script(contents, symbol_index, filter, &mut input, out).map(|()| LastBranchStats::default()),
        };
        stats = written.map_err(|error| loaded.export_error(error, path))?;
        Ok(())
    })?;
    if stats.cut > 0 {
        let (cut, samples) = (grouped(stats.cut), counted(stats.cut_samples, "sample"));
        context.warn(&format!("[ {cut} branches: of {samples} other processes can have them ]"))?;
    }
    finish_export(&loaded, context)
}
