//! Command lines that PowerShell has changed before the client got them.
//!
//! PowerShell passes a list without blanks (`a,b`) as one argument, and three others in pieces:
//!
//! | typed | Windows PowerShell 5.1 passes | PowerShell 7 passes |
//! |---|---|---|
//! | `-e a, b` | `-e` `a` `b` | `-e` `a,` `b` |
//! | `-e $list`, an array | `-e` `a` `b` | `-e` `a` `b` |
//! | `-e {a,b}:u` | `-e` `-encodedCommand` BASE64 `:u` ... `-inputFormat` `xml` `-outputFormat` `text` | the same |
//!
//! A variable without a value is no argument. The functions here find the line that was meant, and say it with
//! quotation marks, which PowerShell and cmd leave alone.
//!
//! # References
//! `NativeCommandParameterBinder.cs`, `MinishellParameterBinderController.cs` and
//! `NativeCommandArguments.Tests.ps1` of PowerShell/PowerShell; about_Parsing and about_Script_Blocks of Microsoft.

use std::borrow::Cow;
use std::ffi::OsString;

use base64ct::{Base64, Encoding};
use clap::{Arg, CommandFactory, Parser};
use halprof::text::argument::argument;

use super::Cli;

/// The argument that PowerShell puts in front of an encoded script block.
const SCRIPT_BLOCK: &str = "-encodedCommand";

/// Returns the report of a line that PowerShell has changed, and `None` if it is wrong for another reason.
pub fn report(words: &[OsString]) -> Option<String> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    script_block(&words).or_else(|| pieces(&words))
}

/// Returns the line in which the value of `option` is missing, with a value in quotation marks.
pub fn with_list(words: &[OsString], option: &str) -> Option<String> {
    let mut words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let list = lists(&words).into_iter().find(|list| spellings(list).iter().any(|name| name == option))?;
    let names = list.get_value_names()?.first()?.trim_end_matches(",...").to_owned();
    let example = if names == "LIST" { "0,2-3".to_owned() } else { names };
    let position = words.iter().position(|word| spellings(&list).contains(word))?;
    words.insert(position + 1, example);
    Some(typed(&words))
}

/// Returns a command line as it can be typed in Windows PowerShell, PowerShell 7 and cmd.
pub fn typed(words: &[String]) -> String {
    let words = words.iter().skip(1).map(|word| argument(word));
    [Cow::Borrowed(r".\client")].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns the report of a line with a script block.
fn script_block(words: &[String]) -> Option<String> {
    let position = words.iter().position(|word| word == SCRIPT_BLOCK)?;
    let block = words.get(position + 1).and_then(|word| decoded(word))?;
    let behind: Vec<&String> = words.iter().skip(position + 2).collect();
    // PowerShell adds these at the end, and -noninteractive in front if it has no console.
    let added = behind.iter().rposition(|word| *word == "-inputFormat").unwrap_or(behind.len());
    let mut line: Vec<String> =
        words.iter().take(position).filter(|word| *word != "-noninteractive").cloned().collect();
    line.push(format!("{{{block}}}"));
    for word in behind.into_iter().take(added) {
        match line.last_mut() {
            // What stands directly behind the brace arrives as an argument of its own.
            Some(list) if list.ends_with('}') && word.starts_with([':', ',']) => list.push_str(word),
            _ => line.push(word.clone()),
        }
    }
    Some(format!(
        "error: PowerShell passed {{{block}}} as a script block\n  because: braces outside of quotation marks are \
         one, and arrive as {SCRIPT_BLOCK}\n  try: {}",
        typed(&line)
    ))
}

/// Returns the text of a script block: base64 of UTF-16, without its blanks.
fn decoded(word: &str) -> Option<String> {
    let bytes = Base64::decode_vec(word).ok()?;
    let (units, rest) = bytes.as_chunks::<2>();
    let text = String::from_utf16(&units.iter().map(|unit| u16::from_le_bytes(*unit)).collect::<Vec<_>>()).ok()?;
    rest.is_empty().then(|| text.split_whitespace().collect())
}

/// Returns the report of a line with a list in several arguments: joining some of them gives a line that is right.
fn pieces(words: &[String]) -> Option<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    for list in lists(words) {
        let names = spellings(&list);
        let Some(first) = words.iter().take(end).position(|word| names.contains(word)).map(|option| option + 1) else {
            continue;
        };
        let others = words.iter().take(end).skip(first + 1).take_while(|word| !word.starts_with('-')).count();
        for last in first + 1..=first + others {
            let (Some(parts), Some(before), Some(behind)) =
                (words.get(first..=last), words.get(..first), words.get(last + 1..))
            else {
                continue;
            };
            let continues = parts.last().is_some_and(|part| part.ends_with(','))
                || behind.first().is_some_and(|part| part.starts_with(','));
            if continues && last < first + others {
                continue;
            }
            let joined = parts.iter().map(|part| part.trim_matches(',')).filter(|part| !part.is_empty());
            let joined = joined.collect::<Vec<_>>().join(",");
            let line = [before, &[joined], behind].concat();
            if Cli::try_parse_from(&line).is_ok() {
                return Some(format!(
                    "error: the list of {} arrived in pieces: {}\n  because: PowerShell passes a list with blanks, or \
                     one from a variable, as several arguments\n  try: {}",
                    names.first().map_or("", String::as_str),
                    parts.join(" "),
                    typed(&line)
                ));
            }
        }
    }
    None
}

/// Returns the options of the verb that take a list.
fn lists(words: &[String]) -> Vec<Arg> {
    let cli = Cli::command();
    let verb = words.iter().skip(1).find_map(|word| cli.find_subcommand(word));
    let is_list = |arg: &&Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        !arg.is_positional() && names.iter().any(|name| name.ends_with(",...") || *name == "LIST")
    };
    verb.into_iter().flat_map(clap::Command::get_arguments).filter(is_list).cloned().collect()
}

/// Returns the spellings of an option, the long one first.
fn spellings(arg: &Arg) -> Vec<String> {
    let long = arg.get_long().map(|name| format!("--{name}"));
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    long.into_iter().chain(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of the client about a command line whose words are separated by single blanks.
    fn report(line: &str) -> String {
        let words: Vec<OsString> = ["client"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        let error = Cli::try_parse_from(&words).unwrap_err();
        crate::cli::usage::report(&error, &words).unwrap()
    }

    #[test]
    fn a_list_that_powershell_has_split_is_shown_in_quotation_marks() {
        for (line, wanted) in [
            ("stat -e cycles, instructions -- app.exe", r#".\client stat -e "cycles,instructions" -- app.exe"#),
            ("top -e cycles ,instructions", r#".\client top -e "cycles,instructions""#),
            ("top -e cycles , instructions", r#".\client top -e "cycles,instructions""#),
            ("stat -e a, b, c --duration 1s", r#".\client stat -e "a,b,c" --duration 1s"#),
            ("top -e cycles instructions", r#".\client top -e "cycles,instructions""#),
            ("report --sort process symbol app.rec", r#".\client report --sort "process,symbol" app.rec"#),
            ("report app.rec --thread 5 7", r#".\client report app.rec --thread "5,7""#),
            ("selftest -C 0 2-3", r#".\client selftest -C "0,2-3""#),
            ("stat -C 0, 2 -x ; -- app.exe", r#".\client stat -C "0,2" -x ";" -- app.exe"#),
        ] {
            let report = report(line);
            assert!(report.ends_with(&format!("\n  try: {wanted}")), "{line}\n{report}");
            assert!(report.contains("because: PowerShell passes a list with blanks"), "{line}\n{report}");
        }
    }

    #[test]
    fn a_script_block_is_shown_as_the_group_that_was_typed() {
        // `{A,B}` in UTF-16 without its braces, as PowerShell encodes it.
        let group = "QQAsAEIA";
        for (line, wanted) in [
            (
                format!("stat -e -encodedCommand {group} -- app.exe -inputFormat xml -outputFormat text"),
                r#".\client stat -e "{A,B}" -- app.exe"#,
            ),
            (
                format!(
                    "-noninteractive stat -e -encodedCommand {group} :u --duration 1s -inputFormat xml -outputFormat xml"
                ),
                r#".\client stat -e "{A,B}:u" --duration 1s"#,
            ),
            (format!("start -encodedCommand {group} -inputFormat xml -outputFormat text"), r#".\client start "{A,B}""#),
        ] {
            let report = report(&line);
            assert!(report.starts_with("error: PowerShell passed {A,B} as a script block\n  because: "), "{report}");
            assert!(report.ends_with(&format!("\n  try: {wanted}")), "{line}\n{report}");
        }
    }

    #[test]
    fn a_list_that_is_gone_is_asked_for_in_quotation_marks() {
        for (line, wanted) in [
            (
                "stat -e -- app.exe",
                r#"try: .\client stat -e "A,B" -- app.exe   (.\client stat --help lists all options)"#,
            ),
            ("selftest -C", r#"try: .\client selftest -C "0,2-3"   (.\client selftest --help lists all options)"#),
            ("stat -x", r"try: .\client stat --help   (lists all options)"),
        ] {
            assert!(report(line).ends_with(wanted), "{line}\n{}", report(line));
        }
        assert!(report("stat -e -- app.exe").contains("\n  because: PowerShell passes nothing for a variable without"));
    }

    #[test]
    fn other_mistakes_keep_their_message() {
        for (line, wanted) in [
            ("report a.rec b.rec", "error: b.rec is one argument too many"),
            ("report --sort process a.rec b.rec", "error: b.rec is one argument too many"),
            ("stat -e cycles: -- app.exe", "error: --event cannot be \"cycles:\""),
            ("stat -e -encodedCommand x -- app.exe", "error: --event needs a value"),
        ] {
            assert!(report(line).starts_with(wanted), "{line}\n{}", report(line));
        }
    }

    #[test]
    fn the_line_to_try_is_quoted_where_a_shell_would_change_it() {
        let typed = |words: &[&str]| typed(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            typed(&["client", "stat", "-x", ";", "-e", "a@4M", "--fail-above", "2%", "--", r"C:\a b.exe", "@x", ""]),
            r#".\client stat -x ";" -e a@4M --fail-above 2% -- "C:\a b.exe" "@x" """#
        );
    }
}
