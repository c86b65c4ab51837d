//! Arguments of `agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub const HELP: &str = "\
The agent counts at a bounded cost, which its configuration sets. When another
session of halprof needs the counters, it gives them away at once, and takes
them again later; its data show the gap.

EXAMPLES
  .\\client agent example > agent.toml
  .\\client agent check --config agent.toml
  .\\client agent run --config agent.toml
  .\\client agent install --config C:\\halprof\\agent.toml
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
    #[command(flatten)]
    pub config: AgentArgs,
    /// Windows has started this process as the service
    #[arg(long, hide = true)]
    pub service: bool,
}
