//! The command that `stat`, `record` and `branches` run.

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use halprof::events::Generic;
use halprof::text::argument::argument;
use thiserror::Error;

use user_error::UserError;
use user_error::exit::Exit;

/// The command cannot be run.
#[derive(Debug, Error)]
#[error("the command {program} could not be run")]
pub struct CommandError {
    /// First word of the command.
    pub program: String,
    /// The list and the command that were meant, if the words look like the end of a list that PowerShell has split.
    pub meant: Option<String>,
    /// Error of the system.
    #[source]
    pub cause: io::Error,
}

impl UserError for CommandError {
    fn exit(&self) -> Exit {
        Exit::Command
    }

    fn remedy(&self) -> Option<String> {
        let meant = self.meant.as_ref().map(|line| format!("quotation marks, if these are events: -e {line}"));
        meant.or_else(|| Some("a command of the shell itself runs as: ... -- cmd /c COMMAND".to_owned()))
    }
}

/// Starts the command.
///
/// # Errors
/// If there is no such program, or Windows does not run it.
pub fn start(words: &[OsString]) -> Result<Child, CommandError> {
    command(words).spawn().map_err(|cause| failure(words, cause))
}

/// Processor time of a command that has ended, in user mode and in kernel mode.
pub type CpuTimes = (Duration, Duration);

/// Waits for the end of the command, and returns how it ended and the processor time of its own process.
///
/// # Errors
/// If Windows does not tell.
pub fn wait(mut child: Child) -> io::Result<(ExitStatus, Option<CpuTimes>)> {
    let status = child.wait()?;
    Ok((status, times(&child)))
}

/// Returns the processor time of the command's own process, if Windows tells it.
#[cfg(windows)]
#[must_use]
pub fn times(child: &Child) -> Option<CpuTimes> {
    system::windows::times_of_child(child)
}

/// Returns nothing: only Windows is asked.
#[cfg(not(windows))]
#[must_use]
pub const fn times(_child: &Child) -> Option<CpuTimes> {
    None
}

/// Returns the exit code of the command. A command that was ended by a signal has none.
#[must_use]
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(Exit::Failure.code())
}

/// Returns the words of the command as text.
#[must_use]
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
#[must_use]
pub fn failure(words: &[OsString], cause: io::Error) -> CommandError {
    let program = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let meant = if cause.kind() == io::ErrorKind::NotFound { meant(&self::words(words)) } else { None };
    CommandError { program, meant, cause }
}

/// Returns the list and the command if a second `--` stands in the command, or if it begins with perf's names of
/// events: a list with blanks, `-e A, B -- COMMAND`, is several arguments, and those behind its first look like a
/// command.
fn meant(words: &[String]) -> Option<String> {
    let is_event = |word: &&String| Generic::from_name(word.trim_matches(',')).is_some();
    let end = words.iter().position(|word| word == "--");
    let end = end.unwrap_or_else(|| words.iter().take_while(is_event).count());
    if end == 0 {
        return None;
    }
    let (list, command) = words.split_at_checked(end)?;
    let list = list.iter().map(|part| part.trim_matches(',')).filter(|part| !part.is_empty());
    let list = ["..."].into_iter().chain(list).collect::<Vec<_>>().join(",");
    let command: Vec<_> =
        command.strip_prefix(&["--".to_owned()][..]).unwrap_or(command).iter().map(|word| argument(word)).collect();
    Some(format!("{} -- {}", argument(&list), command.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_split_list_is_shown_in_quotation_marks() {
        for (line, wanted) in [
            ("instructions -- app.exe", Some(r#"...,instructions" -- app.exe"#)),
            (",b , c -- app.exe -x ;", Some(r#"...,b,c" -- app.exe -x ";""#)),
            ("instructions branches, app.exe -x", Some(r#"...,instructions,branches" -- app.exe -x"#)),
            ("app.exe cycles", None),
            ("app.exe -x", None),
            ("-- app.exe", None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = failure(&words, io::ErrorKind::NotFound.into());
            assert_eq!(error.meant, wanted.map(|wanted| format!("\"{wanted}")), "{line}");
            assert_eq!(failure(&words, io::ErrorKind::PermissionDenied.into()).meant, None);
        }
    }
}
