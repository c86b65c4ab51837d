//! Errors of the command line. Unknown options are reported in the form of all other errors, and clap reports the rest.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::Cli;

/// Parses the command line of this process. Returns the report of an unknown option as an error; for every other error
/// of the command line, clap prints its own report and ends the process.
pub fn parse() -> Result<Cli, String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    Cli::try_parse_from(&words).map_err(|error| unknown_option(&error, &words).unwrap_or_else(|| error.exit()))
}

/// Returns the report of an unknown option, and `None` for every other error.
fn unknown_option(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    if !option.starts_with('-') {
        return None;
    }
    let help = match verb(words) {
        Some(verb) => format!("client {verb} --help"),
        None => "client --help".to_owned(),
    };
    let remedy = match text(ContextKind::SuggestedArg) {
        Some(near) => format!("{near}   ({help} lists all options)"),
        None => format!("{help}   (lists all options)"),
    };
    Some(format!("error: unknown option {option}\n  try: {remedy}"))
}

/// Returns the first word that names a verb.
fn verb(words: &[OsString]) -> Option<String> {
    let verbs = Cli::command();
    let found = words.iter().skip(1).find_map(|word| verbs.find_subcommand(word));
    found.map(|verb| verb.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of an unknown option, and `None` if there is no error or clap reports it.
    fn report(line: &str) -> Option<String> {
        let words: Vec<OsString> = ["client"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        unknown_option(&Cli::try_parse_from(&words).err()?, &words)
    }

    #[test]
    fn an_unknown_option_is_reported_with_the_most_similar_one() {
        for (line, wanted) in [
            (
                "stat --per-cup app",
                "error: unknown option --per-cup\n  try: --per-cpu   (client stat --help lists all options)",
            ),
            (
                "stat -e 2 --per-cup -- app",
                "error: unknown option --per-cup\n  try: --per-cpu   (client stat --help lists all options)",
            ),
            ("record -g", "error: unknown option -g\n  try: client record --help   (lists all options)"),
            ("record -g -- app", "error: unknown option -g\n  try: client record --help   (lists all options)"),
            (
                "record --duraton=5",
                "error: unknown option --duraton\n  try: --duration   (client record --help lists all options)",
            ),
            (
                "branches --kernal app",
                "error: unknown option --kernal\n  try: --kernel   (client branches --help lists all options)",
            ),
            ("list --al", "error: unknown option --al\n  try: --all   (client list --help lists all options)"),
            ("--per-cpu", "error: unknown option --per-cpu\n  try: client --help   (lists all options)"),
        ] {
            assert_eq!(report(line).as_deref(), Some(wanted), "{line}");
        }
    }

    #[test]
    fn other_errors_and_the_options_of_the_command_are_left_alone() {
        for line in [
            "stat app --per-cup",
            "stat -- --per-cup",
            "record -a -- app",
            "report a.rec b.rec",
            "report --sort colour",
            "frobnicate",
            "stat",
        ] {
            assert_eq!(report(line), None, "{line}");
        }
    }
}
