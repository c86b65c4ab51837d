//! Checks that the client accepts every command line in the documents.

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

const DOCUMENTS: [(&str, &str); 5] = [
    ("README.md", include_str!("../../../README.md")),
    ("BENCHMARKS.md", include_str!("../../../BENCHMARKS.md")),
    ("docs/windows.md", include_str!("../../../docs/windows.md")),
    ("docs/security.md", include_str!("../../../docs/security.md")),
    ("docs/etw.md", include_str!("../../../docs/etw.md")),
];

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

/// Texts before the verb.
const CALLS: [&str; 3] = [".\\client ", "> .\\client ", "cargo run -p client -- "];

/// Returns the command lines in a document, without the name of the client, from code blocks and inline code.
fn lines(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let spans = text.lines().flat_map(|line| {
        is_code ^= line.trim().starts_with("```");
        let (whole, parts) =
            if is_code { (Some(line), None) } else { (None, Some(line.split('`').skip(1).step_by(2))) };
        whole.into_iter().chain(parts.into_iter().flatten())
    });
    spans.filter_map(|span| CALLS.iter().find_map(|call| span.trim().strip_prefix(call))).collect()
}

/// Returns the words of a command line with placeholders replaced, optional parts included and the remark removed.
fn typed(line: &str) -> Vec<String> {
    let line = line.split("  ").next().unwrap_or(line).replace('"', "");
    let words = line.split_whitespace();
    words
        .map(|word| {
            let word = word.trim_start_matches('[').trim_end_matches([']', ',', ';', '.']);
            let stands_for = PLACEHOLDERS.iter().find(|(name, _)| *name == word);
            stands_for.map_or(word, |(_, something)| something).to_owned()
        })
        .collect()
}

#[test]
fn the_client_accepts_every_command_line_in_the_documents() {
    for (document, text) in DOCUMENTS {
        for line in lines(text) {
            let words = typed(line);
            let names_a_verb = words.len() == 1;
            if let Err(error) = Cli::try_parse_from(["client".to_owned()].into_iter().chain(words)) {
                let unfinished = names_a_verb && error.kind() == ErrorKind::MissingRequiredArgument;
                let is_fine = unfinished || error.kind() == ErrorKind::DisplayHelp;
                assert!(is_fine, "{document}: client {line}\n{error}");
            }
        }
    }
    let found =
        |name: &str| DOCUMENTS.iter().find(|(document, _)| *document == name).map(|(_, text)| lines(text).len());
    assert!(found("README.md") > Some(15) && found("docs/windows.md") > Some(12), "lines are not found any more");
}

#[test]
fn an_invalid_command_line_in_a_document_is_found() {
    for line in
        ["`.\\client instal`", "see `.\\client list --al` there", "```\n> .\\client read --percpu\n```\nclient x"]
    {
        let [line] = lines(line)[..] else { panic!("{line}") };
        assert!(Cli::try_parse_from(["client".to_owned()].into_iter().chain(typed(line))).is_err(), "{line}");
    }
}
