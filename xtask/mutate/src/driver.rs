//! Mutations of what only the real driver shows, each with the end-to-end tests that must notice it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::{
    report::Report,
    results::{Judged, Outcome, Results},
    tree::{Tree, folder},
};
use xtask::{artifacts, demo, files, package, workspace::Workspace};

use crate::tree::sha256;

const LIST: &str = include_str!("driver.toml");

/// Seconds after which tests of a mutated driver are ended. A driver that hangs is noticed.
const LIMIT: &str = "600";

/// An entry of the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutation {
    name: String,
    file: String,
    /// Text that the file contains exactly once.
    old: String,
    new: String,
    /// End-to-end tests, as `module::test`. At least one must fail.
    tests: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    mutation: Vec<Mutation>,
}

impl Mutation {
    fn all() -> Result<Vec<Self>> {
        Ok(toml::from_str::<List>(LIST)?.mutation)
    }

    /// Returns the text of the file with the mutation.
    fn apply(&self, text: &str) -> Result<String> {
        let count = text.matches(&self.old).count();
        ensure!(count == 1, "{}: {} contains the text {count} times: {}", self.name, self.file, self.old);
        Ok(text.replace(&self.old, &self.new))
    }
}

/// Tries the mutations with `part` in their name. Fails unless the tests notice each.
pub fn run(workspace: &Workspace, part: &str) -> Result<()> {
    let all = Mutation::all()?;
    let chosen: Vec<&Mutation> = all.iter().filter(|mutation| mutation.name.contains(part)).collect();
    let results = folder(workspace).join("driver");
    files::make_folder(&results)?;
    let tree = Tree::refresh(workspace, folder(workspace).join("driver-tree"))?;
    let scratch = Workspace::at(tree.folder.clone());
    let mut known = Results::open(results.join("results.jsonl"));
    let mut pending = Vec::new();
    for mutation in &chosen {
        let digest = digest(workspace, mutation)?;
        if known.get(&mutation.name, &digest, &tree.sources).is_none() {
            pending.push((*mutation, digest));
        }
    }
    println!("{} mutations of the driver, {} chosen, {} to try", all.len(), chosen.len(), pending.len());
    if !pending.is_empty() {
        build(&scratch)?;
        let mut tests: Vec<&str> =
            pending.iter().flat_map(|(mutation, _)| &mutation.tests).map(String::as_str).collect();
        tests.sort_unstable();
        tests.dedup();
        test(&scratch, &tests).context("the tests fail without a mutation")?;
    }
    for (mutation, file) in pending {
        let path = scratch.root().join(&mutation.file);
        let text = files::read_text(&path)?;
        files::write(&path, mutation.apply(&text)?)?;
        let tests: Vec<&str> = mutation.tests.iter().map(String::as_str).collect();
        println!("\n== {} ==", mutation.name);
        let outcome = match build(&scratch) {
            Err(_) => Outcome::Unviable,
            Ok(()) if test(&scratch, &tests).is_err() => Outcome::Caught,
            Ok(()) => Outcome::Survived,
        };
        println!("{}: {outcome:?}", mutation.name);
        files::write(&path, text)?;
        let by = tests.join(", ");
        let (key, sources) = (mutation.name.clone(), tree.sources.digest.clone());
        known.add(Judged { key, outcome, by, test: String::new(), file, sources })?;
    }
    let mut report = Report { area: "driver".into(), all: all.len(), sampled: chosen.len(), ..Report::default() };
    for mutation in chosen {
        if let Some(judged) = known.get(&mutation.name, &digest(workspace, mutation)?, &tree.sources) {
            report.count(&mutation.name, judged.outcome);
        }
    }
    println!("{report}");
    files::write(&results.join("report.txt"), format!("{report}\n"))?;
    ensure!(report.unviable == 0, "{} mutations of the driver do not compile", report.unviable);
    ensure!(report.survivors.is_empty() && report.is_good(), "the end-to-end tests must notice every mutation");
    Ok(())
}

/// Returns a digest of a mutation and the file that it changes.
fn digest(workspace: &Workspace, mutation: &Mutation) -> Result<String> {
    let mutated = mutation.apply(&files::read_text(&workspace.root().join(&mutation.file))?)?;
    Ok(sha256(mutated.as_bytes()))
}

fn build(scratch: &Workspace) -> Result<()> {
    artifacts::build(scratch)?;
    package::make(scratch)?;
    Ok(())
}

/// Runs end-to-end tests by their names.
fn test(scratch: &Workspace, tests: &[&str]) -> Result<()> {
    let cargo = scratch.cargo("test");
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(cargo.get_program()).args(cargo.get_args()).current_dir(scratch.root());
    for (name, value) in cargo.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["--quiet", "--locked", "--package", "tests", "--test", "end_to_end", "--", "--test-threads=1"]);
    command.arg("--exact").args(tests).env("RUST_BACKTRACE", "0");
    demo::on_bench(scratch, &mut command)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_mutation_is_of_a_text_that_its_file_contains_once_and_has_tests_that_exist() {
        let root = Workspace::find().unwrap().root().to_owned();
        let all = Mutation::all().unwrap();
        assert!(all.len() >= 25);
        assert_eq!(all.iter().map(|mutation| &mutation.name).collect::<BTreeSet<_>>().len(), all.len());
        let mut stale = Vec::new();
        for mutation in &all {
            let text = std::fs::read_to_string(root.join(&mutation.file)).unwrap();
            match mutation.apply(&text) {
                Ok(mutated) => assert_ne!(mutated, text, "{mutation:?}"),
                Err(error) => stale.push(error.to_string()),
            }
            assert!(!mutation.tests.is_empty(), "{mutation:?}");
            for test in &mutation.tests {
                let (module, name) = test.rsplit_once("::").unwrap();
                let file = module.replace("::", "/");
                let path = root.join("tests/tests/end_to_end").join(file).with_extension("rs");
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(text.contains(&format!("fn {name}()")), "{test}");
            }
        }
        assert!(stale.is_empty(), "{stale:#?}");
    }

    #[test]
    fn a_text_that_is_missing_or_there_twice_is_an_error() {
        let mutation =
            Mutation { name: "n".into(), file: "f".into(), old: "a".into(), new: "b".into(), tests: Vec::new() };
        assert_eq!(mutation.apply("cac").unwrap(), "cbc");
        assert_eq!(mutation.apply("").unwrap_err().to_string(), "n: f contains the text 0 times: a");
        assert!(mutation.apply("aa").is_err());
    }
}
