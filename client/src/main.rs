//! client.exe: installs and starts halprof.sys, and asks it for hardware performance counters.
//!
//! All calls to Windows are behind [`system::System`] and [`halprof::Device`]. The rest of the code is tested on any
//! system, and verbs that need no driver also run there.

mod agent;
mod cli;
mod context;
mod counts;
mod error;
mod exit;
#[cfg(test)]
mod fake;
mod machine;
mod processes;
#[cfg(test)]
mod quotations;
mod reading;
mod recorder;
mod requests;
mod system;
mod terminal;
mod trace;
mod verb;
#[cfg(windows)]
mod windows;

use std::io;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::system::System;

fn main() {
    #[cfg(windows)]
    windows::libraries::restrict();
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
    let system = this_system();
    let (mut input, mut out, mut err) = (io::stdin().lock(), io::stdout().lock(), io::stderr().lock());
    let mut context = Context::new(system.as_deref(), &mut input, &mut out, &mut err);
    context.cache = halprof::event::event_cache::EventCache::of_this_account();
    context.colors = terminal::color::stdout_has_colors();
    verb::run(&cli.verb, &mut context)
}

#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "returns `None` on other systems")]
pub(crate) fn this_system() -> Option<Box<dyn System>> {
    Some(Box::new(windows::Windows))
}

#[cfg(not(windows))]
pub(crate) fn this_system() -> Option<Box<dyn System>> {
    None
}
