//! `events import` and `events update`: the makers' own files of events.

use std::path::{Path, PathBuf};

use events::import::{ImportError, Imported, read};
use halprof::event::event_cache::Stored;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::{EventsAction, EventsArgs};
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped};
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Number of causes of a warning of which text tells the places.
const MAX_CAUSES: usize = 20;

/// A folder cannot be imported.
#[derive(Debug, ThisError)]
#[error("{} cannot be imported; nothing was changed", folder.display())]
struct CannotImport {
    folder: PathBuf,
    #[source]
    cause: ImportError,
}

impl UserError for CannotImport {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn remedy(&self) -> Option<String> {
        let is_missing = matches!(self.cause, ImportError::Read { .. } | ImportError::Empty { .. });
        is_missing.then(|| ".\\client events update   (says what the folder has to be)".to_owned())
    }
}

/// What is imported, as `--json` shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Contents {
    files: usize,
    events: usize,
    metrics: usize,
    /// The file of the cache; `None` if it was not written now.
    cache: Option<String>,
    /// What was left out because it is malformed, with its file, its line and the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
    /// Columns of events that are not known, for each file. The events are imported without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_columns: Vec<String>,
}

impl Document for Contents {
    const SCHEMA: &'static str = "halprof.imports/1";
}

impl Contents {
    fn of(imported: Option<&Imported>, cache: Option<&Path>) -> Self {
        Self {
            files: imported.map_or(0, |imported| imported.files.len()),
            events: imported.map_or(0, Imported::events),
            metrics: imported.map_or(0, Imported::metrics),
            cache: cache.map(|path| path.display().to_string()),
            skipped: imported.map(|imported| imported.skipped.clone()).unwrap_or_default(),
            unknown_columns: imported.map(|imported| imported.unknown_columns.clone()).unwrap_or_default(),
        }
    }

    fn text(&self) -> String {
        let [files, events, metrics] = [(self.files, "file"), (self.events, "event"), (self.metrics, "metric")]
            .map(|(number, noun)| counted(number as u64, noun));
        format!("{events} and {metrics} of {files}")
    }
}

const UPDATE: &str = "\
For newer events and their descriptions:
  git clone --depth 1 https://github.com/intel/perfmon
  .\\client events import perfmon
For AMD and others, tools/perf/pmu-events/arch/x86 of Linux in the same way.";

pub fn run(args: &EventsArgs, context: &mut Context) -> Result<(), Error> {
    match &args.action {
        EventsAction::Import { folder, format } => {
            let imported = read(folder).map_err(|cause| CannotImport { folder: folder.clone(), cause })?;
            let stored = context.cache.store(&imported)?;
            for line in notes(&stored).into_iter().chain(skipped(&imported)).chain(unknown_columns(&imported)) {
                context.warn(&line)?;
            }
            let contents = Contents::of(Some(&imported), Some(&stored.path));
            if format.json {
                return context.json(&contents);
            }
            let users = if stored.is_for_machine { "every account" } else { "this account" };
            context.say(&format!("imported {} for {users} into\n{}", contents.text(), stored.path.display()))
        }
        EventsAction::Update(format) => {
            let imported = context.cache.load()?;
            let contents = Contents::of(imported.as_ref(), None);
            if format.json {
                return context.json(&contents);
            }
            let built_in: usize = events::tables().map(events::Table::len).sum();
            context.say(&format!(
                "built in: {} events of {} tables",
                grouped(built_in as u64),
                events::tables().count()
            ))?;
            context.say(&format!("imported: {}\n\n{UPDATE}", contents.text()))
        }
    }
}

/// Returns what was left out.
fn skipped(imported: &Imported) -> Option<String> {
    let number = counted(imported.skipped.len() as u64, "malformed part");
    warning(&format!("{number} left out"), &imported.skipped)
}

/// Returns the columns that are not known.
fn unknown_columns(imported: &Imported) -> Option<String> {
    let what = "events were imported without columns that are not known, and may count something else";
    warning(what, &imported.unknown_columns)
}

/// Returns a warning with its first causes; `None` without any.
fn warning(what: &str, causes: &[String]) -> Option<String> {
    let rest = causes.len().saturating_sub(MAX_CAUSES);
    let mut lines: Vec<String> = causes.iter().take(MAX_CAUSES).map(|one| format!("  because: {one}")).collect();
    lines.extend((rest > 0).then(|| format!("  and {} more; --json has all", grouped(rest as u64))));
    (!causes.is_empty()).then(|| format!("warning: {what}\n{}", lines.join("\n")))
}

/// Returns what the user did not ask for.
fn notes(stored: &Stored) -> Vec<String> {
    let unprotected = stored.unprotected.as_ref().map(|cause| {
        format!(
            "warning: imported for this account only, so the agent's service does not find it\n  because: {cause}\n  \
             try: let Administrators own that folder, and no one else change it; then repeat the command"
        )
    });
    let hidden = stored.hidden_by.as_ref().map(|path| {
        format!(
            "warning: the events of the whole machine are used instead: {}\n  \
             try: repeat the command from an elevated prompt, or delete that file",
            path.display()
        )
    });
    unprotected.into_iter().chain(hidden).collect()
}
