//! The completion for cmd.exe, which has none of its own, by clink (<https://chrisant996.github.io/clink>).

use std::fmt::Write;

use clap::{Arg, Command, ValueHint};

use super::NAMES;

/// Returns a Lua script that registers matchers of the words of a command line.
pub fn completion(command: &Command) -> String {
    let mut text =
        "-- Completion for cmd.exe with clink: copy this file into a folder of `clink info`, \"scripts\".\n\n\
                    local words = clink.argmatcher\n"
            .to_owned();
    let mut verbs = Vec::new();
    for verb in command.get_subcommands() {
        let name = verb.get_name();
        verbs.push(format!("    {} .. {}", quoted(name), matcher(verb)));
    }
    let names: Vec<String> = NAMES.iter().map(|name| quoted(name)).collect();
    // Writing to a `String` cannot fail.
    let _ = write!(text, "\nwords({})\n:addflags({})\n:addarg({{\n", names.join(", "), flags(command));
    let _ = write!(text, "{}\n}})\n", verbs.join(",\n"));
    text
}

/// Returns a matcher of what follows a verb.
fn matcher(command: &Command) -> String {
    let mut text = format!("words():addflags({})", flags(command));
    let subcommands: Vec<String> =
        command.get_subcommands().map(|verb| format!("{} .. {}", quoted(verb.get_name()), matcher(verb))).collect();
    if subcommands.is_empty() {
        for argument in command.get_positionals() {
            let _ = write!(text, ":addarg({})", values(argument));
        }
    } else {
        let _ = write!(text, ":addarg({{{}}})", subcommands.join(", "));
    }
    text
}

/// Returns the options of a command, each with a matcher of its value.
fn flags(command: &Command) -> String {
    let mut flags = Vec::new();
    for option in command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set()) {
        let long = option.get_long().map(|name| format!("--{name}"));
        for name in option.get_short().map(|name| format!("-{name}")).into_iter().chain(long) {
            let value = option.get_action().takes_values().then(|| format!(" .. words():addarg({})", values(option)));
            flags.push(format!("{}{}", quoted(&name), value.unwrap_or_default()));
        }
    }
    flags.join(", ")
}

/// Returns the values of an argument that can be completed.
fn values(argument: &Arg) -> String {
    let possible = argument.get_possible_values();
    let possible: Vec<String> =
        possible.iter().filter(|it| !it.is_hide_set()).map(|it| quoted(it.get_name())).collect();
    match argument.get_value_hint() {
        _ if argument.get_action().takes_values() && !possible.is_empty() => format!("{{{}}}", possible.join(", ")),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath => "clink.filematches".to_owned(),
        _ => "{}".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
