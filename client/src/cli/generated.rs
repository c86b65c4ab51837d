//! The files that are made from the definition of the command line: completions for shells, and the manual page. They
//! are kept in `client/generated`, so that the package needs no further step.

mod clink;
mod manual;

use std::path::Path;
use std::{env, fs};

use clap::CommandFactory;
use clap_complete::aot::{Bash, Generator, PowerShell};

use super::Cli;

/// What rewrites the files, if it is set.
const UPDATE: &str = "HALPROF_UPDATE_GENERATED";

/// The names of the program.
const NAMES: [&str; 2] = ["client", "halprof"];

fn command() -> clap::Command {
    let mut command = Cli::command().bin_name(NAMES[0]);
    command.build();
    command
}

/// Returns the completion of a shell, with `registered`, the place at which it names the program, for both names.
fn completion(shell: &impl Generator, registered: &str, both: &str) -> String {
    let mut bytes = Vec::new();
    shell.generate(&command(), &mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(registered), "{text}");
    text.replace(registered, both)
}

fn files() -> [(&'static str, String); 4] {
    let bash = completion(&Bash, "-o default client\n", "-o default client halprof\n");
    let powershell = completion(&PowerShell, "-CommandName 'client'", "-CommandName 'client', 'halprof'");
    [
        ("client-completion.bash", bash),
        ("client-completion.ps1", powershell),
        ("client-completion.lua", clink::completion(&command())),
        ("client.1", manual::page(&command())),
    ]
}

#[test]
fn the_generated_files_are_those_of_the_command_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated");
    for (name, text) in files() {
        let path = folder.join(name);
        if env::var_os(UPDATE).is_some() {
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is outdated: run the test with {UPDATE}=1", path.display());
    }
}

/// Returns what bash offers for the last of some words.
#[cfg(target_os = "linux")]
fn offered(line: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated/client-completion.bash");
    let words: Vec<&str> = line.split(' ').collect();
    let script = format!(
        "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _client client '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = std::process::Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn bash_completes_verbs_options_and_values() {
    assert_eq!(offered("client unin"), ["uninstall"]);
    assert_eq!(offered("client export --form"), ["--format"]);
    assert_eq!(offered("client export --format fi"), ["firefox"]);
    assert!(offered("client stat --per-").contains(&"--per-core".to_owned()));
}
