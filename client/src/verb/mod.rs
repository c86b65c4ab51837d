//! The verbs of the client, one file for each.

mod agent;
mod annotate;
mod branch_end;
mod branches;
mod c2c;
mod control_area;
mod diagnose;
mod diff;
mod encode;
mod events;
pub mod export;
mod flamegraph;
mod html;
mod info;
mod install;
mod interval;
mod list;
mod mem;
mod query;
mod read;
mod record;
mod report;
mod sched;
mod script;
mod selftest;
mod spgo;
mod start;
pub mod stat;
mod status;
mod stop;
mod top;
mod uninstall;

use crate::cli::Verb;
use terminal::context::Context;
use user_error::Error;
use user_error::exit::Exit;

#[cfg(test)]
use {crate::reading::aggregate::Aggregate, counts::requests::Counts};
#[cfg(test)]
pub use {
    annotate::AnnotateError,
    install::{InstallError, Undone},
    mem::record::MemError,
    selftest::SelftestError,
    spgo::SpgoError,
    stat::{EndedInDelay, TopologyError, Unestimated},
};
#[cfg(test)]
use {
    annotate::Annotated,
    branches::BranchReport,
    c2c::SharedLines,
    control_area::ControlAreas,
    diagnose::{Diagnosis, Live},
    diff::Comparison,
    encode::Encodings,
    events::Contents,
    info::Info,
    interval::Answer,
    list::List,
    list::metrics::Metrics,
    list::search::Matches,
    list::tables::InterfaceTable,
    mem::report::MemoryReport,
    report::blocks::BlockReport,
    report::last_branches::LastBranches,
    report::timeline::Timeline,
    sched::Sched,
    selftest::Selftest,
    start::Started,
    stat::{Interval, Stat},
    status::Status,
};

/// Runs a verb and returns the exit code. If the reader of the output closes the pipe, the verb ends without an error.
pub fn run(verb: &Verb, context: &mut Context) -> Result<i32, Error> {
    let ended = run_verb(verb, context);
    context.finish(ended)
}

fn run_verb(verb: &Verb, context: &mut Context) -> Result<i32, Error> {
    match verb {
        Verb::Agent(args) => return agent::run(args, context),
        Verb::Stat(args) => return stat::run(args, context),
        Verb::Record(args) => return record::run(args, context),
        Verb::Top(args) => return top::run(args, context),
        Verb::Branches(args) => return branches::run(args, context),
        Verb::Report(args) => return report::run(args, context),
        Verb::Mem(args) => return mem::run(args, context),
        Verb::C2c(args) => return c2c::run(args, context),
        Verb::Diff(args) => return diff::run(args, context),
        Verb::Annotate(args) => return annotate::run(args, context),
        Verb::Export(args) => return export::run(args, context),
        Verb::Script(args) => return script::run(args, context),
        Verb::Sched(args) => return sched::run(args, context),
        Verb::Spgo(args) => return spgo::run(args, context),
        Verb::Flamegraph(args) => return flamegraph::run(args, context),
        Verb::Selftest(args) => return selftest::run(args, context),
        Verb::Status(args) => return status::run(args, context).map(Exit::code),
        Verb::Install(args) => install::run(args, context),
        Verb::Uninstall => uninstall::run(context),
        Verb::Info(args) => info::run(args, context),
        Verb::List(args) => list::run(args, context),
        Verb::Diagnose(args) => diagnose::run(args, context),
        Verb::Encode(args) => encode::run(args, context),
        Verb::Events(args) => events::run(args, context),
        Verb::Query(args) => query::run(args, context),
        Verb::Interval(args) => interval::run(args, context),
        Verb::ControlArea(args) => control_area::run(args, context),
        Verb::Start(args) => start::run(args, context),
        Verb::Stop(args) => stop::run(args, context),
        Verb::Read(args) => read::run(args, context),
    }?;
    Ok(Exit::Done.code())
}

#[cfg(test)]
mod tests;
