//! client.exe: installs and starts halprof.sys, and asks it for hardware performance counters.
//!
//! All calls to Windows are behind [`system::System`] and [`halprof::Device`]. The rest of the code is tested on any
//! system, and verbs that need no driver also run there.

mod agent;
mod cli;
mod color;
mod columns;
mod command;
mod connection;
mod core_types;
mod counts;
mod cpuid;
mod disturbance;
mod document;
mod driver_file;
mod dump;
mod duration;
mod encoding;
mod error;
mod event_error;
mod exit;
#[cfg(test)]
mod fake;
mod format;
mod id;
mod image;
mod installed_driver;
mod known_work;
#[cfg(any(windows, test))]
mod loader_list;
mod metric;
mod metrics;
mod movement;
#[cfg(any(windows, test))]
mod nt_modules;
#[cfg(any(windows, test))]
mod nt_processes;
mod number;
mod output;
mod processes;
mod processor_identity;
mod progress;
mod provider_security;
#[cfg(test)]
mod quotations;
mod read_progress;
mod reason;
mod record_counts;
mod recorder;
mod refusal;
mod ring;
mod sampled_event;
mod sampling;
mod share;
mod system;
mod system_error;
mod topology;
mod totals;
mod trace;
mod verb;
#[cfg(windows)]
mod windows;
mod workarounds;

use std::io;

use crate::error::Error;
use crate::exit::Exit;
use crate::system::System;
use crate::verb::Context;

fn main() {
    #[cfg(windows)]
    windows::libraries::restrict();
    let cli = cli::usage::parse().unwrap_or_else(|report| {
        color::print_error(&report);
        std::process::exit(Exit::Usage.code());
    });
    cli.color.write_global();
    let code = run(&cli).unwrap_or_else(|error| {
        color::print_error(&error.report());
        error.exit().code()
    });
    std::process::exit(code);
}

fn run(cli: &cli::Cli) -> Result<i32, Error> {
    let system = this_system();
    let (mut input, mut out, mut err) = (io::stdin().lock(), io::stdout().lock(), io::stderr().lock());
    let mut context = Context::new(system.as_deref(), &mut input, &mut out, &mut err);
    context.cache = halprof::event::event_cache::EventCache::of_this_account();
    context.colors = color::stdout_has_colors();
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
