//! The arguments of the agent: `halprof-agent` parses them, and `client agent` hands them on.

pub mod color;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What follows the help.
pub const HELP: &str = "\
The agent counts at a bounded cost, which its configuration sets. When another
session of halprof needs the counters, it gives them away at once, and takes
them again later; its data show the gap.

EXAMPLES
  .\\client agent example > agent.toml
  .\\client agent check --config agent.toml
  .\\client agent run --config agent.toml
  .\\client agent install --config C:\\halprof\\agent.toml
  .\\client agent status
  .\\client agent uninstall";

/// The verbs of the agent.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Run until Ctrl-C
    Run(AgentRunArgs),
    /// Run as a service of Windows that starts with it; needs an elevated prompt
    Install(AgentArgs),
    /// Stop and delete the service; needs an elevated prompt
    Uninstall,
    /// Start the service; needs an elevated prompt
    Start,
    /// Stop the service until the next start of Windows; needs an elevated prompt
    Stop,
    /// Show whether the service runs
    Status,
    /// Check a configuration; needs no driver
    Check(AgentArgs),
    /// Print a configuration with every option; needs no driver
    Example,
}

/// The configuration.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
}

/// Arguments of `agent run`.
#[derive(Debug, Args)]
pub struct AgentRunArgs {
    /// The configuration.
    #[command(flatten)]
    pub config: AgentArgs,
    /// Windows has started this process as the service
    #[arg(long, hide = true)]
    pub service: bool,
}

impl AgentVerb {
    /// Returns the words that are parsed to this verb.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let with_config =
            |verb: &str, args: &AgentArgs| vec![verb.into(), "--config".into(), args.config.clone().into_os_string()];
        match self {
            Self::Run(args) => {
                let mut words = with_config("run", &args.config);
                words.extend(args.service.then(|| "--service".into()));
                words
            }
            Self::Install(args) => with_config("install", args),
            Self::Uninstall => vec!["uninstall".into()],
            Self::Start => vec!["start".into()],
            Self::Stop => vec!["stop".into()],
            Self::Status => vec!["status".into()],
            Self::Check(args) => with_config("check", args),
            Self::Example => vec!["example".into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(subcommand)]
        verb: AgentVerb,
    }

    #[test]
    fn the_words_of_a_verb_are_parsed_to_it() {
        for line in [
            "run --config a.toml",
            "run --config a.toml --service",
            "install --config C:\\halprof\\agent.toml",
            "uninstall",
            "start",
            "stop",
            "status",
            "check --config a.toml",
            "example",
        ] {
            let parsed = Cli::try_parse_from(["agent"].into_iter().chain(line.split(' '))).unwrap();
            assert_eq!(parsed.verb.words().join(OsString::from(" ").as_os_str()), line);
        }
    }
}
