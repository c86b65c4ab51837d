//! halprof-agent.exe: counts and samples all the time, at a bounded cost, for the systems that many machines report to.
//!
//! | module | contents |
//! |---|---|
//! | `verb` | what the command line asks for: the service, the configuration, the run |
//! | `costs` | what counting costs, and the intervals that stay within a budget |
//! | `counting` | the session: it starts, yields, and starts again |
//! | `gap` | the times without counters |
//! | `profiling` | a profile, from its session to pprof |
//! | `run` | the loop |
//! | `log` | the log of the service |
//! | `outputs` | where numbers and profiles go, and the thread that takes profiles |
//! | `points` | the numbers of a moment, for the crate `agent` to publish |

mod costs;
mod counting;
mod gap;
mod log;
mod outputs;
mod points;
mod profiling;
mod run;
#[cfg(test)]
mod tests;
mod verb;

use std::io;
use std::process;

use agent_arguments::color::ColorArgs;
use agent_arguments::{AgentVerb, HELP};
use clap::Parser;
use halprof::event::event_cache::EventCache;
use terminal::color;
use terminal::context::Context;
use user_error::Error;

/// Counts hardware events and takes profiles all the time, at a bounded cost. `.\\client agent` calls this program.
#[derive(Debug, Parser)]
#[command(name = "halprof-agent", version, after_help = HELP)]
struct Cli {
    #[command(subcommand)]
    verb: AgentVerb,
    #[command(flatten)]
    color: ColorArgs,
}

fn main() {
    #[cfg(windows)]
    system::windows::libraries::restrict();
    let cli = Cli::parse();
    cli.color.write_global();
    let code = run(&cli.verb).unwrap_or_else(|error| {
        color::print_error(&error.report());
        error.exit().code()
    });
    process::exit(code);
}

fn run(verb: &AgentVerb) -> Result<i32, Error> {
    let system = system::this_system();
    let (mut input, mut out, mut err) = (io::empty(), io::stdout().lock(), io::stderr().lock());
    let mut context = Context::new(system.as_deref(), &mut input, &mut out, &mut err);
    context.cache = EventCache::of_this_account();
    let ended = verb::run(verb, &mut context);
    context.finish(ended)
}
