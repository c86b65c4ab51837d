//! client.exe: installs and starts halprof.sys, and asks it for hardware performance counters.
//!
//! All calls to Windows are behind [`system::System`] and [`halprof::Device`]. The rest of the code is tested on any
//! system, and verbs that need no driver also run there.

mod cli;
mod machine;
mod reading;
#[cfg(test)]
mod tests;
mod verb;

use std::io::{self, IsTerminal};

use terminal::context::Context;
use user_error::Error;
use user_error::exit::Exit;

fn main() {
    #[cfg(windows)]
    system::windows::libraries::restrict();
    let cli = cli::usage::parse().unwrap_or_else(|report| {
        terminal::color::print_error(&report);
        std::process::exit(Exit::Usage.code());
    });
    cli.color.write_global();
    let code = run(&cli).unwrap_or_else(|error| {
        terminal::color::print_error(&error.report());
        error.exit().code()
    });
    std::process::exit(code);
}

fn run(cli: &cli::Cli) -> Result<i32, Error> {
    let system = system::this_system();
    let (mut input, mut out, mut err) = (io::stdin().lock(), io::stdout().lock(), io::stderr().lock());
    let mut context = Context::new(system.as_deref(), &mut input, &mut out, &mut err);
    context.cache = halprof::event::event_cache::EventCache::of_this_account();
    context.columns = io::stdout().is_terminal().then(terminal::columns::of_terminal);
    context.out.has_colors = terminal::color::is_wanted(io::stdout());
    context.err.has_colors = terminal::color::is_wanted(io::stderr());
    verb::run(&cli.verb, &mut context)
}
