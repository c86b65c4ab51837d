//! Errors of the command line, in the form of all other errors.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::{Cli, powershell};

/// Parses the command line of this process. Returns the report of a wrong one as an error. If help or the version is
/// requested, clap prints it and ends the process.
pub fn parse() -> Result<Cli, String> {
    let words: Vec<OsString> = std::env::args_os().collect();
    parse_words(&words).map_err(|error| report(&error, &words).unwrap_or_else(|| error.exit()))
}

/// Parses a command line.
///
/// # Errors
/// If it is wrong, or requests help or the version.
pub fn parse_words(words: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(words)?;
    if cli.verb.command().is_some_and(<[_]>::is_empty) && words.last().is_some_and(|word| word == "--") {
        let mut error = clap::Error::new(ErrorKind::MissingRequiredArgument);
        error.insert(ContextKind::InvalidArg, ContextValue::Strings(vec!["COMMAND".to_owned()]));
        return Err(error);
    }
    Ok(cli)
}

/// Returns the report of a wrong command line, and `None` if help or the version is requested.
pub fn report(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.use_stderr()
        && let Some(report) = powershell::report(words)
    {
        return Some(report);
    }
    let help = match verb(words) {
        Some(verb) => format!(".\\client {verb} --help"),
        None => ".\\client --help".to_owned(),
    };
    let all_options = |remedy: Option<&str>| match remedy {
        Some(near) => format!("{near}   ({help} lists all options)"),
        None => format!("{help}   (lists all options)"),
    };
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let (what, why, remedy) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::DisplayVersion => {
            return None;
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let near = text(error, ContextKind::SuggestedArg);
            (format!("unknown option {argument}"), None, all_options(near.as_deref()))
        }
        ErrorKind::UnknownArgument => (format!("{argument} is one argument too many"), None, usage(error, &help)),
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            // The most similar one is the last.
            let remedy = match texts(error, ContextKind::SuggestedSubcommand).last() {
                None => ".\\client --help   (lists all verbs)".to_owned(),
                Some(near) => format!(".\\client {near}   (.\\client --help lists all verbs)"),
            };
            (format!("unknown verb {word}"), None, remedy)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            let line = powershell::with_list(words, plain(&argument));
            let why = line.as_ref().map(|_| "PowerShell passes nothing for a variable without a value".to_owned());
            let remedy = all_options(line.as_deref());
            (format!("{} needs a value", plain(&argument)), values(error).or(why), remedy)
        }
        ErrorKind::InvalidValue => {
            let near = text(error, ContextKind::SuggestedValue);
            (cannot_be(&argument, &value), values(error), all_options(near.as_deref()))
        }
        ErrorKind::ValueValidation => {
            (cannot_be(&argument, &value), error.source().map(ToString::to_string), all_options(None))
        }
        ErrorKind::ArgumentConflict => (conflict(error, &argument), None, format!("one of them   ({help})")),
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(error, ContextKind::InvalidArg);
            let missing: Vec<&str> = missing.iter().map(|name| plain(name)).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            let remedy = match (&missing[..], verb(words)) {
                (["COMMAND"], Some(verb)) => format!(".\\client {verb} -- app.exe, or --duration 5s   ({help})"),
                _ => usage(error, &help),
            };
            let why = words.last().filter(|last| *last == "--").map(|_| "nothing follows --".to_owned());
            (format!("{} {are} missing", missing.join(", ")), why, remedy)
        }
        ErrorKind::MissingSubcommand => {
            let verbs = texts(error, ContextKind::ValidSubcommand).join(" or ");
            ("a verb is missing".to_owned(), None, format!("{verbs}   ({help} explains them)"))
        }
        // The other kinds are rare. Their first line says what is wrong.
        _ => {
            let rendered = error.render().to_string();
            let line = rendered.lines().next().unwrap_or_default();
            (line.strip_prefix("error: ").unwrap_or(line).to_owned(), None, all_options(None))
        }
    };
    let why = why.map_or_else(String::new, |why| format!("\n  because: {why}"));
    Some(format!("error: {what}{why}\n  try: {remedy}"))
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    texts(error, kind).into_iter().next()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns an option without the name of its value, or the name of another argument without its brackets.
fn plain(argument: &str) -> &str {
    match argument.split_once(' ') {
        Some((option, _)) if option.starts_with('-') => option,
        _ => argument.trim_end_matches("...").trim_matches(['<', '>', '[', ']']),
    }
}

fn cannot_be(argument: &str, value: &str) -> String {
    format!("{} cannot be \"{value}\"", plain(argument))
}

/// Returns the sentence about the values of an argument that has few.
fn values(error: &clap::Error) -> Option<String> {
    let values = texts(error, ContextKind::ValidValue);
    (!values.is_empty()).then(|| format!("its values are {}", values.join(", ")))
}

fn conflict(error: &clap::Error, argument: &str) -> String {
    let prior = texts(error, ContextKind::PriorArg);
    if prior.iter().any(|prior| prior == argument) {
        return format!("{} is given twice", plain(argument));
    }
    let others: Vec<&str> = prior.iter().map(|prior| plain(prior)).collect();
    format!("{} cannot be used with {}", plain(argument), others.join(" and "))
}

/// Returns the usage of the verb as advice.
fn usage(error: &clap::Error, help: &str) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let lines: Vec<&str> = usage.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[..] {
        [line] => {
            // A shell takes < and > for redirections.
            let line = line.strip_prefix("Usage: client ").unwrap_or(line).replace(['<', '>'], "");
            format!(".\\client {line}   ({help})")
        }
        _ => help.to_owned(),
    }
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

    /// Returns the report of a wrong command line.
    fn report(line: &str) -> Option<String> {
        let words: Vec<OsString> = ["client"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
        super::report(&parse_words(&words).err()?, &words)
    }

    /// PowerShell passes the path of the file, a command prompt what was typed.
    #[test]
    fn the_usage_is_the_same_by_whatever_name_the_program_was_started() {
        let wanted = "error: x is one argument too many\n  try: .\\client info [OPTIONS]   (.\\client info --help)";
        for name in ["client", "client.exe", "/bin/client.exe", "/bin/halprof-client.exe"] {
            let words = [name, "info", "x"].map(OsString::from);
            let error = Cli::try_parse_from(&words).err();
            assert_eq!(error.and_then(|error| super::report(&error, &words)).as_deref(), Some(wanted), "{name}");
            let help = Cli::try_parse_from([name, "info", "--help"]).map_err(|help| help.to_string());
            assert!(help.is_err_and(|help| help.contains("\nUsage: client info [OPTIONS]\n")), "{name}");
        }
    }

    #[test]
    fn an_unknown_option_is_reported_with_the_most_similar_one() {
        for (line, wanted) in [
            (
                "stat --per-cup app",
                "error: unknown option --per-cup\n  try: --per-cpu   (.\\client stat --help lists all options)",
            ),
            (
                "stat -e 2 --per-cup -- app",
                "error: unknown option --per-cup\n  try: --per-cpu   (.\\client stat --help lists all options)",
            ),
            ("record -G", "error: unknown option -G\n  try: .\\client record --help   (lists all options)"),
            ("record -G -- app", "error: unknown option -G\n  try: .\\client record --help   (lists all options)"),
            (
                "record --duraton=5",
                "error: unknown option --duraton\n  try: --duration   (.\\client record --help lists all options)",
            ),
            (
                "branches --kernal app",
                "error: unknown option --kernal\n  try: --kernel   (.\\client branches --help lists all options)",
            ),
            ("list --al", "error: unknown option --al\n  try: --all   (.\\client list --help lists all options)"),
            ("--per-cpu", "error: unknown option --per-cpu\n  try: .\\client --help   (lists all options)"),
        ] {
            assert_eq!(report(line).as_deref(), Some(wanted), "{line}");
        }
    }

    #[test]
    fn other_errors_have_the_form_of_all_errors() {
        for (line, wanted) in [
            ("repot", "error: unknown verb repot\n  try: .\\client report   (.\\client --help lists all verbs)"),
            ("frobnicate", "error: unknown verb frobnicate\n  try: .\\client --help   (lists all verbs)"),
            (
                "report a b",
                "error: b is one argument too many\n  try: .\\client report [OPTIONS] [FILE]   (.\\client report --help)",
            ),
            (
                "report --sort colour",
                "error: --sort cannot be \"colour\"\n  \
                 because: its values are process, module, symbol, address, thread, processor\n  \
                 try: .\\client report --help   (lists all options)",
            ),
            (
                "record --ring 100",
                "error: --ring cannot be \"100\"\n  \
                 because: a ring has room for a power of two from 64 to 1048576 records\n  \
                 try: .\\client record --help   (lists all options)",
            ),
            ("report --limit", "error: --limit needs a value\n  try: .\\client report --help   (lists all options)"),
            ("record -a -a", "error: --all is given twice\n  try: one of them   (.\\client record --help)"),
            (
                "stat",
                "error: COMMAND is missing\n  try: .\\client stat -- app.exe, or --duration 5s   (.\\client stat --help)",
            ),
            (
                "record -a --",
                "error: COMMAND is missing\n  because: nothing follows --\n  try: .\\client record -- app.exe, or --duration 5s   (.\\client record --help)",
            ),
            ("start", "error: SOURCE is missing\n  try: .\\client start SOURCE...   (.\\client start --help)"),
            (
                "--color red list",
                "error: --color cannot be \"red\"\n  because: its values are auto, always, never\n  try: .\\client list --help   (lists all options)",
            ),
        ] {
            assert_eq!(report(line).as_deref(), Some(wanted), "{line}");
        }
    }

    #[test]
    fn the_options_of_the_command_are_left_alone() {
        for line in [
            "stat app --per-cup",
            "stat -- --per-cup",
            "record app -g",
            "record app --",
            "report --",
            "--help",
            "stat --help",
            "--version",
        ] {
            assert_eq!(report(line), None, "{line}");
        }
    }
}
