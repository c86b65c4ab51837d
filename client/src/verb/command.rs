//! The command that `stat`, `record` and `branches` run.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus};

use thiserror::Error;

use crate::error::UserError;
use crate::exit::Exit;

/// The command cannot be run.
#[derive(Debug, Error)]
#[error("the command {program} could not be run")]
pub struct CommandError {
    /// First word of the command.
    pub program: String,
    /// Error of the system.
    #[source]
    pub cause: io::Error,
}

impl UserError for CommandError {
    fn exit(&self) -> Exit {
        Exit::Command
    }

    fn remedy(&self) -> Option<String> {
        Some("a command of the shell itself runs as: ... -- cmd /c COMMAND".to_owned())
    }
}

/// Starts the command.
pub fn start(words: &[OsString]) -> Result<Child, CommandError> {
    command(words).spawn().map_err(|cause| failure(words, cause))
}

/// Returns the exit code of the command. A command that was ended by a signal has none.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(Exit::Failure.code())
}

/// Returns the words of the command as text.
pub fn words(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn command(words: &[OsString]) -> Command {
    let (program, arguments) = words.split_first().map_or_else(Default::default, |(first, rest)| (first.clone(), rest));
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Returns the error of a command.
pub fn failure(words: &[OsString], cause: io::Error) -> CommandError {
    let program = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    CommandError { program, cause }
}
