//! `script`: prints single samples in the format of perf script.

use report::{Detail, script};

use crate::cli::ScriptArgs;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::export::to;
use terminal::context::Context;
use user_error::Error;

pub fn run(args: &ScriptArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail { stacks: true, ..Detail::default() })?;
    to(args.output.as_deref(), &loaded, context, |out, path| {
        let LoadedRecording { contents, symbol_index, filter, .. } = &loaded;
        let written = script(contents, symbol_index, filter, &mut loaded.reopen(path)?, out);
        written.map_err(|error| loaded.export_error(error, path))
    })?;
    finish_export(&loaded, context)
}
