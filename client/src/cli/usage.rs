//! Errors of the command line, in the form of all other errors.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::{Cli, perf, powershell};

/// Length of a word in which two slips can be recognized.
const LONG: usize = 7;

/// Maximum number of suggestions.
const MOST: usize = 4;

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
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    let has_no_command = |(_, verb): (_, &ArgMatches)| matches!(verb.try_get_many::<OsString>("command"), Ok(None));
    if matches.subcommand().is_some_and(has_no_command) && words.last().is_some_and(|word| word == "--") {
        let mut error = clap::Error::new(ErrorKind::MissingRequiredArgument);
        error.insert(ContextKind::InvalidArg, ContextValue::Strings(vec!["COMMAND".to_owned()]));
        return Err(error);
    }
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns the command line, with the spellings of perf.
fn command() -> clap::Command {
    perf::with_spellings(Cli::command())
}

/// Returns the report of a wrong command line, and `None` if help or the version is requested.
pub fn report(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.use_stderr()
        && let Some(report) = powershell::report(words)
    {
        return Some(report);
    }
    let unknown = text(error, ContextKind::InvalidSubcommand);
    let before = words.iter().take_while(|word| unknown.as_deref().is_none_or(|unknown| *word != unknown));
    let (name, command) = verb(before);
    let line = if name.is_empty() { ".\\client".to_owned() } else { format!(".\\client {name}") };
    let help = format!("{line} --help");
    let all_options = |near: &[String]| match near {
        [] => format!("{help}   (lists all options)"),
        near => format!("{}   ({help} lists all options)", near.join(" or ")),
    };
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let in_perf = |spelling: &str| {
        let (why, remedy) = perf::instead(&name, spelling)?;
        Some((Some(why.to_owned()), remedy.to_owned()))
    };
    let (what, why, remedy) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::DisplayVersion => {
            return None;
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let near = || (None, all_options(&nearest(&argument, options(&command))));
            let (why, remedy) = in_perf(&argument).unwrap_or_else(near);
            (format!("unknown option {argument}"), why, remedy)
        }
        ErrorKind::UnknownArgument => (format!("{argument} is one argument too many"), None, usage(error, &help)),
        ErrorKind::InvalidSubcommand => {
            let word = unknown.unwrap_or_default();
            let near = || match &nearest(&word, command.get_subcommands().map(|verb| verb.get_name().to_owned()))[..] {
                [] => (None, format!("{help}   (lists all verbs)")),
                near => (None, format!("{line} {}   ({help} lists all verbs)", near.join(&format!(" or {line} ")))),
            };
            let (why, remedy) = in_perf(&word).unwrap_or_else(near);
            (format!("unknown verb {word}"), why, remedy)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            let line = powershell::with_list(words, plain(&argument));
            let why = line.as_ref().map(|_| "PowerShell passes nothing for a variable without a value".to_owned());
            let remedy = all_options(line.as_slice());
            (format!("{} needs a value", plain(&argument)), values(error).or(why), remedy)
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let near = || {
                let near = nearest(&value, texts(error, ContextKind::ValidValue).into_iter());
                let why = values(error).or_else(|| error.source().map(ToString::to_string));
                (why, all_options(&near))
            };
            let spelling = format!("{}={}", plain(&argument), value.split(',').next().unwrap_or_default());
            let (why, remedy) = in_perf(&spelling).unwrap_or_else(near);
            (cannot_be(&argument, &value), why, remedy)
        }
        ErrorKind::ArgumentConflict => (conflict(error, &argument), None, format!("one of them   ({help})")),
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(error, ContextKind::InvalidArg);
            let missing: Vec<&str> = missing.iter().map(|name| plain(name)).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            let remedy = match &missing[..] {
                ["COMMAND"] => format!("{line} -- app.exe, or --duration 5s   ({help})"),
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
            (line.strip_prefix("error: ").unwrap_or(line).to_owned(), None, all_options(&[]))
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

/// Returns the verb that the words name, with the verb of a verb, and its definition.
fn verb<'a>(words: impl Iterator<Item = &'a OsString>) -> (String, clap::Command) {
    let mut command = command();
    command.build();
    words.skip(1).fold((String::new(), command), |(name, command), word| match command.find_subcommand(word) {
        Some(verb) if verb.get_name() != "help" => {
            (format!("{name} {}", verb.get_name()).trim_start().to_owned(), verb.clone())
        }
        _ => (name, command),
    })
}

/// Returns the long options of a verb, with perf's names of them.
fn options(verb: &clap::Command) -> impl Iterator<Item = String> + use<'_> {
    let names = |arg: &clap::Arg| {
        let aliases = arg.get_aliases().unwrap_or_default();
        arg.get_long().into_iter().chain(aliases).map(|name| format!("--{name}")).collect::<Vec<_>>()
    };
    verb.get_arguments().flat_map(names)
}

/// Returns the names that a word is a slip of: the fewest edits away, at most one, or two in a long word, or begun.
fn nearest(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let edits = |name: &str| {
        let is_begun = word.len() > 2 && name.starts_with(word);
        if is_begun { 1 } else { strsim::osa_distance(word, name) }
    };
    let mut near: Vec<(usize, String)> = names.map(|name| (edits(&name), name)).collect();
    near.sort_by_key(|(edits, name)| (*edits, !word.starts_with(name.as_str())));
    let least = near.first().map_or(0, |(edits, _)| *edits);
    near.retain(|(edits, _)| *edits == least && least <= 1 + usize::from(word.len() > LONG));
    near.into_iter().map(|(_, name)| name).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
            ("record -Z", "error: unknown option -Z\n  try: .\\client record --help   (lists all options)"),
            ("record -Z -- app", "error: unknown option -Z\n  try: .\\client record --help   (lists all options)"),
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

    /// Returns each text that is one edit away: a letter less, another, one more, or two that changed places.
    fn edited(name: &str) -> Vec<String> {
        let letters: Vec<char> = name.chars().collect();
        let first = letters.iter().take_while(|letter| **letter == '-').count();
        let with = |at: usize, removed: usize, added: &[char]| {
            [&letters[..at], added, &letters[at + removed..]].concat().into_iter().collect::<String>()
        };
        let alphabet = || ('a'..='z').chain(['-']);
        let at = |at: usize| {
            let more = alphabet().map(move |letter| (at, 0, vec![letter]));
            let other = alphabet().filter(move |_| at < name.len()).map(move |letter| (at, 1, vec![letter]));
            let less = (at < name.len()).then_some((at, 1, Vec::new()));
            let swapped = name.chars().skip(at).take(2).collect::<Vec<_>>();
            let swapped = (swapped.len() == 2).then(|| (at, 2, swapped.into_iter().rev().collect()));
            more.chain(other).chain(less).chain(swapped).collect::<Vec<_>>()
        };
        let edits = (first..=letters.len()).flat_map(at);
        edits.map(|(at, removed, added)| with(at, removed, &added)).collect()
    }

    /// Asserts that each near miss of some names suggests the name, and no name that is further away. One edit never
    /// makes of an option the one that means the opposite, `--no-NAME`.
    fn check_near_misses(names: &[String]) -> usize {
        let misses = names.iter().flat_map(|name| edited(name).into_iter().map(move |miss| (name, miss)));
        let misses = misses.filter(|(_, miss)| !names.contains(miss)).collect::<Vec<_>>();
        for (name, miss) in &misses {
            let near = nearest(miss, names.iter().cloned());
            assert!(near.contains(name), "{miss} suggests {near:?}, not {name}");
            for one in &near {
                assert!(strsim::osa_distance(miss, one) == 1 || one.starts_with(miss), "{miss} suggests {one}");
            }
        }
        misses.len()
    }

    #[test]
    fn every_near_miss_of_a_verb_or_an_option_suggests_it_and_nothing_further_away() {
        let mut all = command();
        all.build();
        let mut missed = 0;
        let mut verbs = vec![all];
        while let Some(verb) = verbs.pop() {
            missed += check_near_misses(&options(&verb).collect::<Vec<_>>());
            missed +=
                check_near_misses(&verb.get_subcommands().map(|one| one.get_name().to_owned()).collect::<Vec<_>>());
            verbs.extend(verb.get_subcommands().filter(|one| one.get_name() != "help").cloned());
        }
        assert!(missed > 100_000, "{missed}");
    }

    #[test]
    fn a_slip_is_reported_with_what_was_meant_first() {
        for (line, wanted) in [
            ("stats -- app", ".\\client stat or .\\client status   (.\\client --help lists all verbs)"),
            ("star", ".\\client start or .\\client stat   (.\\client --help lists all verbs)"),
            ("report --no-childen", "--no-children   (.\\client report --help lists all options)"),
            ("report --sort overhead", "--fields overhead,symbol"),
            ("report --sort modul", "module   (.\\client report --help lists all options)"),
            ("agent chek --config x", ".\\client agent check   (.\\client agent --help lists all verbs)"),
            ("agent check --confg x", "--config   (.\\client agent check --help lists all options)"),
            ("lock stat", "Windows Performance Recorder"),
            ("top --batc", "--batch   (.\\client top --help lists all options)"),
        ] {
            let found = report(line).unwrap();
            assert!(found.ends_with(&format!("\n  try: {wanted}")), "{line}\n{found}");
        }
        assert!(report("report --no-children").is_none(), "it is the default");
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
                 because: its values are process, module, symbol, address, thread, processor, parallelism\n  \
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
