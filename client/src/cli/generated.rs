//! The files that are made from the definition of the command line: completions for shells, and the manual page.
//! `cargo xtask package` runs the test that writes them.

mod clink;
mod manual;

use std::path::Path;
use std::{env, fs};

use clap::CommandFactory;
use clap_complete::aot::{Bash, Generator, PowerShell};

use super::Cli;

/// The variable with the folder of the package.
const FOLDER: &str = "HALPROF_COMMAND_LINE_FILES";

/// The names of the program.
const NAMES: [&str; 2] = ["client", "halprof"];

fn command() -> clap::Command {
    let mut command = Cli::command();
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

fn write_to(folder: &Path) {
    for (name, text) in files() {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
#[ignore = "`cargo xtask package` runs it, with the folder of the package"]
fn write_the_files_of_the_package() {
    write_to(Path::new(&env::var_os(FOLDER).expect(FOLDER)));
}

/// Returns every verb, and the verbs of verbs.
fn verbs(command: &clap::Command) -> Vec<String> {
    let verbs = command.get_subcommands().filter(|verb| verb.get_name() != "help");
    verbs.flat_map(|verb| [vec![verb.get_name().to_owned()], self::verbs(verb)].concat()).collect()
}

#[test]
fn every_file_has_every_verb_and_the_completions_have_both_names_of_the_program() {
    let verbs = verbs(&command());
    assert!(verbs.len() > 30, "{verbs:?}");
    for (name, text) in files() {
        let written = |verb: &str| match name {
            "client-completion.bash" => format!("subcmd__{})\n", verb.replace('-', "__subcmd__")),
            "client-completion.ps1" => format!("CompletionResult]::new('{verb}',"),
            "client-completion.lua" => format!("\"{verb}\" .. words()"),
            _ => format!(" {}\"\n", verb.to_uppercase()),
        };
        let missing: Vec<&String> = verbs.iter().filter(|verb| !text.contains(&written(verb))).collect();
        assert!(missing.is_empty(), "{name} lacks {missing:?}");
        assert!(name == "client.1" || NAMES.iter().all(|program| text.contains(program)), "{name}");
    }
}

/// Returns what bash offers for the last of some words.
#[cfg(target_os = "linux")]
fn offered(line: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    write_to(folder.path());
    let file = folder.path().join("client-completion.bash");
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
