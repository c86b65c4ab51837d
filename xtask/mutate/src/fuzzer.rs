//! Defects of the engine that were mended. Each is put back, and a fuzzer of requests must find it again.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tree::{Tree, folder};
use xtask::{files, run, workspace::Workspace};

const LIST: &str = include_str!("fuzzer.toml");

/// Minutes after which a defect counts as not found.
const MINUTES: u64 = 20;

/// Time limit for a build, beside the fuzzing itself.
const BUILD_LIMIT: Duration = Duration::from_mins(20);

/// An entry of the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defect {
    name: String,
    /// Subject of the commit that mended it.
    mended_by: String,
    file: String,
    /// Text that the file contains exactly once, and what it was.
    old: String,
    new: String,
    /// Part of the message of the check that finds it.
    message: String,
}

#[derive(Deserialize)]
struct List {
    defect: Vec<Defect>,
}

impl Defect {
    fn all() -> Result<Vec<Self>> {
        Ok(toml::from_str::<List>(LIST)?.defect)
    }

    /// Returns the text of the file with the defect.
    fn apply(&self, text: &str) -> Result<String> {
        let count = text.matches(&self.old).count();
        ensure!(count == 1, "{}: {} contains the text {count} times: {}", self.name, self.file, self.old);
        Ok(text.replace(&self.old, &self.new))
    }
}

/// Puts back the defects with `part` in their names, one after the other, and prints how long the fuzzer took to find
/// each.
pub fn run(workspace: &Workspace, part: &str) -> Result<()> {
    let all = Defect::all()?;
    let tree = Tree::refresh(workspace, folder(workspace).join("fuzzer-tree"))?;
    let scratch = Workspace::at(tree.folder);
    let mut rows = Vec::new();
    for (number, defect) in all.iter().filter(|defect| defect.name.contains(part)).enumerate() {
        let path = scratch.root().join(&defect.file);
        let text = files::read_text(&path)?;
        files::write(&path, defect.apply(&text)?)?;
        let log = workspace.log(&format!("fuzzer-defect-{number}"));
        let found = search(&scratch, defect, &log);
        files::write(&path, text)?;
        rows.push(format!("{}, mended by \"{}\": found after {}", defect.name, defect.mended_by, found?));
    }
    println!("\n{}", rows.join("\n"));
    Ok(())
}

/// Runs the fuzzer until it finds the defect. Returns what it says of the run.
fn search(scratch: &Workspace, defect: &Defect, log: &std::path::Path) -> Result<String> {
    let mut command = scratch.cargo("run");
    command.args(["--quiet", "--locked", "--profile", "fuzzer", "--package", "request-fuzzer", "--"]);
    command.args(["--requests", &u64::MAX.to_string(), "--threads", "1", "--minutes", &MINUTES.to_string()]);
    let outcome = run::logged(&defect.name, &mut command, log, Duration::from_mins(MINUTES) + BUILD_LIMIT);
    ensure!(outcome.is_err(), "the fuzzer did not find in {MINUTES} minutes: {}", defect.name);
    let text = fs::read_to_string(log).unwrap_or_default();
    ensure!(text.contains(&defect.message), "{}: another failure, see {}", defect.name, log.display());
    let found = text.lines().find_map(|line| line.strip_prefix("found after "));
    Ok(found.with_context(|| format!("{} does not say after how much", log.display()))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_defect_is_of_a_text_that_its_file_contains_once() {
        let root = Workspace::find().unwrap().root().to_owned();
        let all = Defect::all().unwrap();
        assert!(all.len() >= 3);
        for defect in &all {
            let text = fs::read_to_string(root.join(&defect.file)).unwrap();
            assert_ne!(defect.apply(&text).unwrap(), text, "{defect:?}");
            assert!(!defect.message.is_empty(), "{defect:?}");
        }
    }
}
