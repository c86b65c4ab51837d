//! Arguments of `events`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Json;

/// Text after the options of `events` in `--help`.
pub const HELP: &str = "\
DIR is a checkout of Intel's perfmon (https://github.com/intel/perfmon), or the
folder of an architecture in Linux's tools/perf/pmu-events/arch. Files that the
map names and that are not there are left out. So is what cannot be read: a
warning names the file and the line, and the column of a metric's formula. The
events and metrics are kept in one file: from an elevated prompt below
ProgramData, for every account and the service of the agent, otherwise below
LOCALAPPDATA, for this account. An import replaces the one before. The file for
every account is used if there is one.

Afterwards `list` and `encode` show the imported events, metrics and
descriptions with those of this client, and events that this client does not
have built in can be used by name.

EXAMPLES
  .\\client events import perfmon
  .\\client events update
";

/// Arguments of `events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// What to do
    #[command(subcommand)]
    pub action: EventsAction,
}

/// What `events` does.
#[derive(Debug, Subcommand)]
pub enum EventsAction {
    /// Import the makers' files of events, with descriptions
    Import {
        /// The folder with mapfile.csv
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        format: Json,
    },
    /// Show what is imported, and how to get newer files
    Update(Json),
}
