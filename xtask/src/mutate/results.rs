//! Outcomes of mutants, kept in a file so that a stopped run goes on where it was.

use std::{collections::BTreeMap, fs, io::Write, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What the tests said about a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end.
    Timeout,
    /// Every test passed.
    Survived,
    /// The mutant does not compile.
    Unviable,
}

/// The outcome of one mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// [`Mutant::key`](super::mutant::Mutant::key).
    pub key: String,
    pub outcome: Outcome,
    /// The test program that decided, or an empty text.
    pub by: String,
    /// Digest of the mutated file.
    pub file: String,
    /// Digest of all sources, tests among them.
    pub sources: String,
}

impl Judged {
    /// Returns whether the outcome still holds. A changed test may catch what survived.
    fn holds(&self, file: &str, sources: &str) -> bool {
        self.file == file && (self.outcome != Outcome::Survived || self.sources == sources)
    }
}

/// The outcomes of an area: one line of JSON each.
pub struct Results {
    path: PathBuf,
    all: BTreeMap<String, Judged>,
}

impl Results {
    /// Reads the outcomes of earlier runs. A line that was cut off is ignored.
    pub fn open(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Judged>(line).ok());
        let all = lines.map(|judged| (judged.key.clone(), judged)).collect();
        Self { path, all }
    }

    /// Returns the outcome of a mutant, if it was judged and still holds.
    pub fn get(&self, key: &str, file: &str, sources: &str) -> Option<&Judged> {
        self.all.get(key).filter(|judged| judged.holds(file, sources))
    }

    /// Adds an outcome and writes it.
    pub fn add(&mut self, judged: Judged) -> Result<()> {
        let line = serde_json::to_string(&judged)?;
        let file = fs::File::options().create(true).append(true).open(&self.path);
        // The first line break ends a line that was cut off.
        let written = file.and_then(|mut file| file.write_all(format!("\n{line}\n").as_bytes()));
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.all.insert(judged.key.clone(), judged);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(key: &str, outcome: Outcome) -> Judged {
        Judged { key: key.into(), outcome, by: "t".into(), file: "f".into(), sources: "s".into() }
    }

    #[test]
    fn outcomes_outlive_a_run_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mut results = Results::open(path.clone());
        results.add(judged("a", Outcome::Survived)).unwrap();
        fs::write(&path, format!("{}{{\"key\":", fs::read_to_string(&path).unwrap())).unwrap();
        let mut results = Results::open(path.clone());
        results.add(judged("b", Outcome::Caught)).unwrap();
        results.add(judged("a", Outcome::Caught)).unwrap();
        let results = Results::open(path);
        assert_eq!(results.get("a", "f", "s").unwrap().outcome, Outcome::Caught);
        assert_eq!(results.get("b", "f", "s").unwrap().outcome, Outcome::Caught);
    }

    #[test]
    fn a_survivor_is_judged_again_after_any_change_and_a_caught_mutant_after_one_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(folder.path().join("results"));
        results.add(judged("a", Outcome::Survived)).unwrap();
        results.add(judged("b", Outcome::Caught)).unwrap();
        assert!(results.get("a", "f", "s").is_some() && results.get("a", "f", "new").is_none());
        assert!(results.get("b", "f", "new").is_some() && results.get("b", "new", "s").is_none());
    }
}
