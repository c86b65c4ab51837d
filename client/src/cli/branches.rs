//! The command line of `branches`.

use std::path::PathBuf;

use clap::Args;
use protocol::{BRANCH_BUFFER, RING, modes};
use thiserror::Error;

use super::record::file;
use super::report::ReportFormat;
use super::session::SessionArgs;
use crate::cli::number;
use user_error::UserError;
use user_error::exit::Exit;

/// Text after the options in `--help`.
pub const HELP: &str = "\
Shows which branches the chosen processors took most often, and their targets:
not samples, but a record of each branch (Intel's Branch Trace Store) of
everything that runs there, for a time or while COMMAND runs. Jumps, calls,
returns, interrupts and returns from them are branches; jumps that are not taken
are not. When a processor has spent its --budget, recording pauses: \"Paused\"
shows how often and for how long. \"Lost\" counts branches that did not fit into
the --ring.

WARNING
  Every branch costs time: the processor writes a record of it to memory, and
  runs many times slower while it is traced; there are millions per second. Use
  one processor (-C), a short time, and not a machine that must respond.

TABLE
  The records have no process, so user code is shown by address, and only the
  kernel by function. \"Predicted\" is the share that the processor reports as
  predicted; for processors that never report it, it is \"-\".

EXIT CODE
  The exit code of COMMAND. If the client itself fails: see .\\client --help.

EXAMPLES
  .\\client branches -C 0 --duration 0.1s
  .\\client branches -C 2 --duration 1s --kernel --top 50
  .\\client branches -C 0 --duration 0.1s --csv > branches.csv
  .\\client branches -C 0 -o app.rec -- app.exe
  .\\client report app.rec
";

/// Help of `--ring` for this verb.
const RING_HELP: &str = "Capacity of the ring of each processor in records: a power of two [default: 8 buffers]";

/// Default capacity of a ring in buffers.
const DEFAULT_BUFFERS: u32 = 8;

/// Minimum capacity of a ring in buffers: one can arrive while the previous one is fetched.
const MIN_BUFFERS: u32 = 2;

/// The ring is shorter than two buffers.
#[derive(Debug, Error)]
#[error(
    "a ring of {ring} records is too small for a buffer of {buffer}\n  \
     because: one interrupt delivers a whole buffer, and the next can come before\n  \
     that is fetched"
)]
pub struct ShortRing {
    /// Records in the ring.
    pub ring: u32,
    /// Records in a buffer.
    pub buffer: u32,
    /// Minimum number of records in the ring.
    pub least: u32,
}

impl UserError for ShortRing {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some(format!("--ring {}, or a smaller --buffer", self.least))
    }
}

/// Arguments of `branches`.
#[derive(Debug, Args)]
#[command(
    mut_arg("ring", |ring| ring.help(RING_HELP)),
    mut_arg("command", |command| command.required_unless_present_any(["all", "duration"]))
)]
pub struct BranchesArgs {
    /// Branches in user mode only
    #[arg(long)]
    pub user: bool,
    /// Branches in kernel mode only
    #[arg(long, conflicts_with = "user")]
    pub kernel: bool,
    /// Records that a processor writes before it interrupts
    #[arg(long, value_name = "N", default_value = "4096", value_parser = buffer)]
    pub buffer: u32,
    /// Write the records to FILE as well, for `report` and `export`
    #[arg(short, long, value_name = "FILE", value_parser = file)]
    pub output: Option<PathBuf>,
    /// Show the N branches that were taken most often
    #[arg(long, value_name = "N", default_value = "20", value_parser = number::rows)]
    pub top: usize,
    #[command(flatten)]
    pub format: ReportFormat,
    #[command(flatten)]
    pub session: SessionArgs,
}

impl BranchesArgs {
    /// Returns the bits of [`protocol::modes`].
    pub fn modes(&self) -> u32 {
        match (self.user, self.kernel) {
            (true, _) => modes::USER,
            (_, true) => modes::KERNEL,
            _ => modes::BOTH,
        }
    }

    /// Returns the capacity of the ring of each processor in records.
    ///
    /// # Errors
    /// If the ring that the user requested is too small.
    pub fn ring(&self) -> Result<u32, ShortRing> {
        let room = |buffers: u32| (buffers * self.buffer).next_power_of_two().clamp(*RING.start(), *RING.end());
        let least = room(MIN_BUFFERS);
        match self.session.ring {
            Some(ring) if ring < least => Err(ShortRing { ring, buffer: self.buffer, least }),
            Some(ring) => Ok(ring),
            None => Ok(room(DEFAULT_BUFFERS)),
        }
    }
}

fn buffer(text: &str) -> Result<u32, String> {
    match number::parse(text)? {
        number if BRANCH_BUFFER.contains(&number) => Ok(number),
        _ => Err(format!("a buffer has room for {} to {} records", BRANCH_BUFFER.start(), BRANCH_BUFFER.end())),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Verb};

    fn parse(line: &str) -> Result<BranchesArgs, clap::Error> {
        let cli = Cli::try_parse_from(["client", "branches"].into_iter().chain(line.split_whitespace()))?;
        let Verb::Branches(args) = cli.verb else { panic!("{line}") };
        Ok(args)
    }

    #[test]
    fn branches_runs_for_a_time_until_ctrl_c_or_while_a_command_runs() {
        for (line, command, modes) in
            [("--duration 1s", 0, 3), ("-a --user", 0, 1), ("--kernel -- app --user", 2, 2), ("app -o x", 3, 3)]
        {
            let args = parse(line).unwrap();
            assert_eq!(
                (args.session.command.len(), args.modes(), args.output.is_some()),
                (command, modes, false),
                "{line}"
            );
            assert_eq!((args.buffer, args.top), (4_096, 20), "{line}");
        }
    }

    #[test]
    fn the_ring_has_eight_buffers_by_default_and_at_least_two() {
        for (line, ring) in [
            ("-a", Ok(32_768)),
            ("-a --buffer 64", Ok(512)),
            ("-a --buffer 65", Ok(1_024)),
            ("-a --buffer 65536", Ok(524_288)),
            ("-a --ring 8192", Ok(8_192)),
            ("-a --ring 4096", Err((4_096, 4_096, 8_192))),
            ("-a --buffer 64 --ring 128", Ok(128)),
            ("-a --buffer 64 --ring 64", Err((64, 64, 128))),
            ("-a --buffer 65 --ring 128", Err((128, 65, 256))),
            ("-a --buffer 65536 --ring 1048576", Ok(1_048_576)),
        ] {
            let found = parse(line).unwrap().ring().map_err(|ShortRing { ring, buffer, least }| (ring, buffer, least));
            assert_eq!(found, ring, "{line}");
        }
    }

    #[test]
    fn invalid_command_lines_have_the_usage_exit_code() {
        for line in
            ["", "-C 0", "-a --user --kernel", "-a --buffer 63", "-a --buffer 65537", "-a --json --csv", "-a --top x"]
        {
            assert_eq!(parse(line).unwrap_err().exit_code(), Exit::Usage.code(), "{line}");
        }
    }
}
