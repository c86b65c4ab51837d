//! Tests of the tracked text: its wording, the files that documents name, and the length of files.

use std::{fs, path::Path, process::Command};

use crate::workspace::Workspace;

/// Wordings that slow a reader down, matched as whole words in lower case.
const UNCLEAR: [&str; 14] = [
    "can not",
    "to be had",
    "can be had",
    "is had",
    "in the place of",
    "but for",
    "has to be told",
    "is told",
    "are told",
    "nobody",
    "somebody",
    "he",
    "his",
    "him",
];

/// Files that are data, licenses or quotations, and this list itself.
const EXCEPT: [&str; 6] =
    [".cpuid", "LICENSE-", "Cargo.lock", ".snap", "cpuid-dumps/src/table.rs", "xtask/src/documents.rs"];

fn tracked_files() -> Vec<String> {
    let workspace = Workspace::find().unwrap();
    let output = Command::new("git").arg("-C").arg(workspace.root()).arg("ls-files").output().unwrap();
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().filter(|file| !EXCEPT.iter().any(|except| file.contains(except))).map(str::to_owned).collect()
}

/// Returns the text of a tracked file; `None` if it is not text or was deleted in the working tree.
fn text(file: &str) -> Option<String> {
    fs::read_to_string(Workspace::find().unwrap().root().join(file)).ok()
}

fn has_words(line: &str, words: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(words)
        .any(|(begin, _)| !line[..begin].ends_with(is_part) && !line[begin + words.len()..].starts_with(is_part))
}

#[test]
fn words_are_found_as_words_alone() {
    assert!(has_words("/// It can not work.", "can not"));
    assert!(!has_words("this is the history of the ring", "his"));
    assert!(!has_words("let nobody_else = 1;", "nobody"));
}

#[test]
fn no_text_has_an_unclear_wording() {
    let mut found = Vec::new();
    for file in tracked_files() {
        for (number, line) in (1..).zip(text(&file).unwrap_or_default().lines()) {
            let unclear = UNCLEAR.iter().filter(|words| has_words(&line.to_lowercase(), words));
            found.extend(unclear.map(|words| format!("{file}:{number}: {words:?}: {}", line.trim())));
        }
    }
    assert!(found.is_empty(), "{} lines:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_path_that_a_document_names_exists() {
    const ROOTS: [&str; 10] =
        ["agent/", "crates/", "lab/", "driver/", "client/", "tests/", "xtask/", "docs/", "inf/", "wpr/"];
    let root = Workspace::find().unwrap().root().to_owned();
    let mut named = 0;
    for file in
        tracked_files().iter().filter(|file| Path::new(file).extension().is_some_and(|extension| extension == "md"))
    {
        let text = text(file).unwrap_or_default();
        let spans = text.split('`').skip(1).step_by(2);
        for path in spans.filter(|span| ROOTS.iter().any(|root| span.starts_with(root)) && !span.contains([' ', '*'])) {
            if !path.contains("NAME") {
                named += 1;
                assert!(root.join(path.trim_end_matches('/')).exists(), "{file} names {path}");
            }
        }
    }
    assert!(named > 50, "{named}");
}

/// Returns the files that the table of a document names and that do not exist. A name without a folder of the
/// repository follows the path of a file that is beside it, or in a folder above it.
fn missing_in_table(document: &str, root: &Path) -> (usize, Vec<String>) {
    let (mut named, mut missing) = (0, Vec::new());
    for row in document.lines().filter(|line| line.starts_with("| ")) {
        let mut before = root.to_owned();
        let is_path = |span: &&str| {
            (Path::new(span).extension().is_some_and(|extension| extension == "rs") || span.contains('/'))
                && !span.contains("NAME")
                && !span.contains('=')
        };
        for name in row.split('`').skip(1).step_by(2).filter(is_path) {
            named += 1;
            let folders = before.ancestors().take_while(|folder| folder.starts_with(root));
            match folders.map(|folder| folder.join(name)).find(|path| path.exists()) {
                Some(path) => before = path,
                None => missing.push(format!("{name} in the row {row}")),
            }
        }
    }
    (named, missing)
}

#[test]
fn every_file_in_the_table_of_the_architecture_exists() {
    let root = Workspace::find().unwrap().root().to_owned();
    let (named, missing) = missing_in_table(&text("ARCHITECTURE.md").unwrap(), &root);
    assert!(named > 100 && missing.is_empty(), "{named} files, of which are missing:\n{}", missing.join("\n"));
    let wrong = "| of nothing | `xtask/src/documents.rs`, `walks.rs`, `no_such.rs`; `src/run.rs`, `src/walk.rs` |";
    let (named, missing) = missing_in_table(wrong, &root);
    let of_row = |name: &str| format!("{name} in the row {wrong}");
    assert_eq!((named, missing), (5, vec![of_row("no_such.rs"), of_row("src/walk.rs")]));
}

/// Tables, which may be longer than 600 lines.
const TABLES: [&str; 1] = ["crates/pmu/src/constraints/tables.rs"];

#[test]
fn no_file_is_longer_than_600_lines_except_tests() {
    const MAX: usize = 600;
    const EXTENSIONS: [&str; 6] = [".rs", ".md", ".toml", ".h", ".inf", ".yml"];
    let is_limited = |file: &&String| {
        let is_test = file.contains("tests/") || file.ends_with("tests.rs");
        EXTENSIONS.iter().any(|extension| file.ends_with(extension)) && !is_test
    };
    let files = tracked_files();
    let lengths = files.iter().filter(is_limited).map(|file| (file, text(file).unwrap_or_default().lines().count()));
    let long: Vec<_> = lengths.filter(|(file, lines)| *lines > MAX && !TABLES.contains(&file.as_str())).collect();
    assert!(long.is_empty(), "longer than {MAX} lines: {long:?}");
}

#[test]
fn no_comment_is_wider_than_the_code_except_tables() {
    const MAX: usize = 120; // `max_width` of rustfmt.toml
    let mut wide = Vec::new();
    let is_source = |file: &&String| Path::new(file.as_str()).extension().is_some_and(|extension| extension == "rs");
    for file in tracked_files().iter().filter(is_source) {
        for (line, number) in text(file).unwrap_or_default().lines().zip(1..) {
            let comment = line.trim_start().starts_with("//") && !line.contains("//! |");
            if comment && line.chars().count() > MAX {
                wide.push(format!("{file}:{number}"));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {MAX} columns: {wide:?}");
}

/// The one table from model to processor is `crates/x86-defs/src/cpuid/models.rs`; `signature.rs` computes the number,
/// and `processor_identity.rs` shows it. The tables of events are of finer kinds, by `map.csv`, which a test compares
/// with the table (`crates/events/tests/models.rs`).
#[test]
fn no_product_code_but_the_one_table_decides_by_the_number_of_a_model() {
    const FREE: [&str; 4] = [
        "crates/x86-defs/src/cpuid/signature.rs",
        "crates/x86-defs/src/cpuid/models.rs",
        "crates/events/src/identity.rs",
        "crates/counts/src/processor_identity.rs",
    ];
    const NUMBERS: [&str; 3] = [".model()", ".base_model()", "matches!(model"];
    let mut found = Vec::new();
    let mut read = 0;
    for file in tracked_files() {
        let is_product =
            ["agent/src/", "crates/", "client/src/", "driver/src/"].iter().any(|root| file.starts_with(root));
        let is_tested = file.contains("/tests/") || file.ends_with("tests.rs");
        let is_source = Path::new(&file).extension().is_some_and(|extension| extension == "rs");
        if !is_product || is_tested || !is_source || FREE.contains(&file.as_str()) {
            continue;
        }
        read += 1;
        for (line, number) in text(&file).unwrap_or_default().lines().zip(1..) {
            // The machine of a test has a model of the hardware.
            let is_machine = line.contains(".model().") || line.contains("self.model()");
            if NUMBERS.iter().any(|text| line.contains(text)) && !is_machine {
                found.push(format!("{file}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(read > 300 && found.is_empty(), "{read} files:\n{}", found.join("\n"));
}
