//! `flamegraph`: draws a recording.

use std::io::Write;
use std::path::Path;

use report::{Detail, flamegraph};

use super::context::Context;
use super::load::LoadedRecording;
use crate::cli::FlamegraphArgs;
use crate::error::Error;
use crate::output::OutputError;

pub fn run(args: &FlamegraphArgs, context: &mut Context) -> Result<i32, Error> {
    let loaded = LoadedRecording::open(&args.recording, Detail::default())?;
    let lines = loaded.folded()?;
    let title = loaded.contents.source_name(loaded.one_source()?).into_owned();
    let subtitle = loaded.contents.session.command.join(" ");
    if args.output == Path::new("-") {
        flamegraph(&lines, &title, &subtitle, &mut context.out)?;
    } else {
        let path = &args.output;
        let mut file = loaded.create(path)?;
        let written = flamegraph(&lines, &title, &subtitle, &mut file).and_then(|()| file.flush());
        written.map_err(|cause| OutputError::File { path: path.clone(), cause })?;
    }
    loaded.finish(context)
}
