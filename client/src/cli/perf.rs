//! What the options and verbs of perf are here: the same under another name, or another way to what they do.
//!
//! The names of perf that halprof has itself (`-e`, `-C`, `-F`, `-g`, `-I`, `-r`, `-x`) are in the definitions of the
//! verbs.
//!
//! # References
//! The manual pages of perf-stat, perf-record, perf-report, perf-annotate, perf-script, perf-top, perf-mem and
//! perf-c2c, Linux 6.12.

#[rustfmt::skip]
mod rows;
#[cfg(test)]
mod tests;

use clap::{Arg, ArgAction, Command};

/// What an option or a verb of perf is here.
#[derive(Debug, Clone, Copy)]
pub enum Here {
    /// Another name of this option.
    Is(&'static str),
    /// What the verb does in any case.
    Always,
    /// Nothing: why, and what to type.
    Other(&'static str, &'static str),
}

use Here::{Always, Is, Other};
use rows::ROWS;

/// Verbs, `mem-record` for one below another, and empty for perf's own verbs; the spellings in perf, with a value if
/// others of the option are known here; and what they are here.
type Row = (&'static str, &'static str, Here);

/// Returns each spelling of perf that a verb has here, with what it is.
pub fn of_verb(verb: &str) -> impl Iterator<Item = (&'static str, Here)> + use<'_> {
    let is_of = move |verbs: &str| {
        if verbs.is_empty() { verb.is_empty() } else { verbs.split(' ').any(|one| one.split('-').eq(verb.split(' '))) }
    };
    let rows = ROWS.iter().filter(move |(verbs, ..)| is_of(verbs));
    rows.flat_map(|(_, spellings, here)| spellings.split(' ').map(|spelling| (spelling, *here)))
}

/// Returns why perf's option or verb is none here, and what to type instead.
pub fn instead(verb: &str, spelling: &str) -> Option<(&'static str, &'static str)> {
    of_verb(verb).find_map(|(known, here)| match here {
        Other(why, remedy) if known == spelling => Some((why, remedy)),
        _ => None,
    })
}

/// Adds the spellings of perf to the verbs.
pub fn with_spellings(command: Command) -> Command {
    command.mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        let verb = verb.mut_subcommands(|below| {
            let name = format!("{name} {}", below.get_name());
            spelled_in(below, &name)
        });
        spelled_in(verb, &name)
    })
}

/// Adds the spellings of perf to a verb.
fn spelled_in(verb: Command, name: &str) -> Command {
    of_verb(name).fold(verb, |verb, (spelling, here)| match here {
        Is(long) => verb.mut_args(|arg| if arg.get_long() == Some(long) { also(arg, spelling) } else { arg }),
        Always => verb.arg(spelled(Arg::new(spelling), spelling).hide(true).action(ArgAction::Count)),
        Other(..) => verb,
    })
}

/// Adds another spelling to an option.
fn also(arg: Arg, spelling: &'static str) -> Arg {
    match spelling.strip_prefix("--") {
        Some(long) => arg.alias(long),
        None => arg.short_aliases(spelling.chars().nth(1)),
    }
}

/// Sets the spelling of an option.
fn spelled(arg: Arg, spelling: &'static str) -> Arg {
    match spelling.strip_prefix("--") {
        Some(long) => arg.long(long),
        None => arg.short(spelling.chars().nth(1)),
    }
}
