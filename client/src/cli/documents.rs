//! Checks that each command line that people are shown does the same in Windows PowerShell, PowerShell 7 and cmd, and
//! that the client accepts it: in documents, in help, and in what errors tell to try.

mod shells;

use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Cli;

/// Folders without documents for people who type commands.
const SKIPPED: [&str; 4] = ["target", ".git", "findings", "node_modules"];

/// Returns the Markdown files, the templates of issues, the rules for Prometheus and the INF, with their paths.
fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut folders, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                folders.extend((!SKIPPED.contains(&name.as_str())).then_some(path));
            } else if is_document(&path) {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

fn is(document: impl AsRef<Path>, ending: &str) -> bool {
    document.as_ref().extension().is_some_and(|found| found == ending)
}

fn is_document(path: &Path) -> bool {
    let is_below = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    is(path, "md") || is(path, "inf") || (is(path, "yml") && (is_below("ISSUE_TEMPLATE") || is_below("prometheus")))
}

/// Placeholders in the documents, with a value for each.
const PLACEHOLDERS: [(&str, &str); 9] = [
    ("DIR", "perfmon"),
    ("PATTERN", "l3_miss"),
    ("EVENT", "TotalIssues"),
    ("SOURCE", "TotalIssues"),
    ("SOURCE...", "TotalIssues"),
    ("N", "100000"),
    ("COMMAND", "app"),
    ("A,B", "TotalIssues,TotalCycles"),
    ("A@100k", "TotalIssues@100k"),
];

/// Languages of code blocks that people type into a shell.
const TYPED: [&str; 3] = ["", "powershell", "bat"];

/// Returns the pieces of code in Markdown: the lines of code blocks that are typed, and what stands between backticks.
fn markdown(text: &str) -> Vec<&str> {
    let mut block = None;
    text.lines()
        .flat_map(|line| {
            if let Some(language) = line.trim().strip_prefix("```") {
                block = if block.is_some() { None } else { Some(language.trim()) };
                return Vec::new();
            }
            match block {
                None => line.split('`').skip(1).step_by(2).collect(),
                Some(language) if TYPED.contains(&language) => vec![line.trim_start_matches([' ', '>'])],
                Some(_) => Vec::new(),
            }
        })
        .collect()
}

/// Returns the pieces of code in comments and in the help: the columns of its examples, and what stands between
/// backticks.
fn columns(text: &str) -> Vec<&str> {
    let mut is_example = true;
    text.lines()
        .flat_map(|line| {
            let heading = line.chars().all(|letter| letter.is_ascii_uppercase() || letter == ' ');
            is_example = if heading && !line.is_empty() { line == "EXAMPLES" } else { is_example };
            let columns = line.split("  ").filter(|_| is_example).map(str::trim);
            columns.chain(line.split('`').skip(1).step_by(2)).collect::<Vec<_>>()
        })
        .filter(|piece| !piece.contains('`'))
        .collect()
}

/// Returns the command lines among pieces of code, without the remarks behind them.
fn lines(code: Vec<&str>) -> Vec<&str> {
    let verbs = Cli::command();
    let is_command = |first: &str, second: &str| {
        let is_verb_of_client = first == "client" && verbs.find_subcommand(second).is_some();
        is_verb_of_client || [r".\client", "sc"].contains(&first) || shells::PROGRAMS.contains(&first)
    };
    code.into_iter()
        .map(|code| code.trim().split("  ").next().unwrap_or(code))
        .filter(|line| {
            let mut words = line.split(' ');
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            !second.is_empty() && is_command(first, second)
        })
        .collect()
}

/// Returns the arguments of the client in a command line, with placeholders replaced and optional parts included;
/// `None` if it runs another program.
fn typed(line: &str) -> Result<Option<Vec<String>>, String> {
    let words = shells::commands(line)?.swap_remove(0);
    if words.first().is_none_or(|name| name != r".\client") {
        return Ok(None);
    }
    let meant = |word: &str| {
        let word = word.trim_start_matches('[').trim_end_matches([']', ',', ';', '.']);
        let stands_for = PLACEHOLDERS.iter().find(|(name, _)| *name == word);
        stands_for.map_or(word, |(_, something)| something).to_owned()
    };
    Ok(Some(words.iter().skip(1).map(|word| meant(word)).collect()))
}

/// Returns why a line does not work in one of the shells, or in the client.
fn fault(line: &str) -> Option<String> {
    let words = match typed(line) {
        Err(fault) => return Some(fault),
        Ok(None) => return None,
        Ok(Some(words)) => words,
    };
    // Texts speak of `.\client stat` and of `.\client stat -e`.
    let (names_a_verb, names_an_option) = (words.len() <= 2, words.last().is_some_and(|word| word.starts_with('-')));
    let error = Cli::try_parse_from(["client".to_owned()].into_iter().chain(words)).err()?;
    let is_unfinished = match error.kind() {
        ErrorKind::MissingRequiredArgument => names_a_verb,
        ErrorKind::InvalidValue => names_an_option,
        _ => false,
    };
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_unfinished && !is_help).then(|| error.to_string())
}

/// Returns the help of the client and of each verb.
fn help(command: &clap::Command) -> Vec<String> {
    let mut command = command.clone();
    let own = command.render_long_help().to_string();
    let verbs: Vec<_> = command.get_subcommands().flat_map(help).collect();
    [vec![own], verbs].concat()
}

/// Returns what the errors in the transcripts tell to try.
fn remedies() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verb/tests/transcript/snapshots");
    let texts = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let tries = |text: String| -> Vec<String> {
        let remedies = text.lines().filter_map(|line| line.trim_start_matches([' ', '!']).strip_prefix("try: "));
        let parts = remedies.flat_map(|line| line.split([';', '(', ')']).flat_map(|part| part.split(" or ")));
        let parts = parts.flat_map(|part| part.split(", ")).map(|part| part.trim().trim_end_matches([',', '.']));
        parts.filter(|part| part.starts_with(r".\") || part.starts_with("sc")).map(str::to_owned).collect()
    };
    texts.flat_map(tries).collect()
}

#[test]
fn every_command_line_of_the_documents_is_the_same_in_every_shell_and_the_client_accepts_it() {
    let mut count = 0;
    let faults: Vec<String> = documents()
        .iter()
        .flat_map(|(document, text)| {
            let code = if is(document, "md") { markdown(text) } else { columns(text) };
            lines(code).into_iter().map(move |line| (document, line))
        })
        .inspect(|_| count += 1)
        .filter_map(|(document, line)| fault(line).map(|fault| format!("{document}: {line}\n    {fault}")))
        .collect();
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
    assert!(count > 200, "only {count} lines are found");
}

#[test]
fn every_command_line_of_the_help_is_the_same_in_every_shell_and_the_client_accepts_it() {
    let help = help(&Cli::command());
    let lines: Vec<&str> = help.iter().flat_map(|text| lines(columns(text))).collect();
    let faults: Vec<String> =
        lines.iter().filter_map(|line| fault(line).map(|fault| format!("{line}\n    {fault}"))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(lines.len() > 60, "only {} lines are found", lines.len());
}

#[test]
fn every_command_line_to_try_is_the_same_in_every_shell() {
    let remedies = remedies();
    let faults: Vec<String> =
        remedies.iter().filter_map(|line| typed(line).err().map(|fault| format!("{line}\n    {fault}"))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(remedies.len() > 30, "only {} lines are found", remedies.len());
}

#[test]
fn a_wrong_command_line_in_a_document_is_found() {
    for (code, expected) in [
        (markdown("`.\\client instal`"), 1),
        (markdown("see `.\\client list --al` there\n```\n```"), 1),
        (markdown("```\n> .\\client read --percpu\n```\nclient x"), 1),
        (markdown("`client list`"), 1),
        (markdown("```\nsc stop halprof\n```"), 1),
        (markdown("```bat\n.\\client stat -e {A,B} -- app\n```"), 1),
        (columns(";  Count:  .\\client stat -e A, B -- app"), 1),
        (columns("EXAMPLES\n  .\\client stat -e A\n\nOPTIONS\n  .\\client stat -e A"), 1),
        (markdown("```yaml\n- run: client list\n```\n`client` and `sc`\n```rust\nclient list\n```"), 0),
    ] {
        let lines = lines(code);
        assert_eq!(lines.len(), expected, "{lines:?}");
        assert!(lines.iter().all(|line| fault(line).is_some()), "{lines:?}");
    }
}
