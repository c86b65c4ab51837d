//! `agent`: hands its arguments on to `halprof-agent`, which is a program of its own.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use agent_arguments::AgentVerb;
use agent_arguments::color::ColorArgs;
use system::AGENT_PROGRAM;
use terminal::context::Context;
use thiserror::Error as ThisError;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// The program of the agent cannot be run.
#[derive(Debug, ThisError)]
#[error("cannot run the agent, {}", path.display())]
pub struct NoAgent {
    /// Its program.
    path: PathBuf,
    /// Error of the system.
    #[source]
    cause: io::Error,
}

impl UserError for NoAgent {
    fn exit(&self) -> Exit {
        Exit::Command
    }

    fn remedy(&self) -> Option<String> {
        let is_missing = self.cause.kind() == io::ErrorKind::NotFound;
        is_missing.then(|| format!("put {AGENT_PROGRAM} of the same package beside this program"))
    }
}

/// Runs the program of the agent, and returns its exit code.
pub fn run(verb: &AgentVerb, context: &mut Context) -> Result<i32, Error> {
    let program = env::current_exe().map(|this| this.with_file_name(AGENT_PROGRAM));
    let program = program.map_err(|cause| NoAgent { path: AGENT_PROGRAM.into(), cause })?;
    if let Some(system) = context.system {
        // Ctrl-C ends the agent, whose exit code this program returns.
        system.note_interrupts()?;
        system.end_children_with_this()?;
    }
    Ok(hand_on(&program, verb)?)
}

fn hand_on(program: &Path, verb: &AgentVerb) -> Result<i32, NoAgent> {
    let ran = Command::new(program).args(ColorArgs::global_words()).args(verb.words()).status();
    let status = ran.map_err(|cause| NoAgent { path: program.to_owned(), cause })?;
    Ok(status.code().unwrap_or(Exit::Failure.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_program_the_error_says_where_to_put_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(AGENT_PROGRAM);
        let error = Error::from(hand_on(&path, &AgentVerb::Example).unwrap_err());
        assert_eq!(error.exit(), Exit::Command);
        let report = error.report();
        assert!(
            report.starts_with(&format!("error: cannot run the agent, {}\n  because: ", path.display())),
            "{report}"
        );
        let remedy = format!("\n  try: put {AGENT_PROGRAM} of the same package beside this program");
        assert!(report.ends_with(&remedy), "{report}");
    }

    #[cfg(unix)]
    #[test]
    fn the_program_gets_the_words_and_its_exit_code_is_returned() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (path, words) = (folder.path().join(AGENT_PROGRAM), folder.path().join("words"));
        fs::write(&path, format!("#!/bin/sh\necho \"$@\" > {}\nexit 21\n", words.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let args = agent_arguments::AgentArgs { config: "a b/agent.toml".into() };
        assert_eq!(hand_on(&path, &AgentVerb::Check(args)).unwrap(), 21);
        assert_eq!(fs::read_to_string(words).unwrap(), "--color auto check --config a b/agent.toml\n");
    }
}
