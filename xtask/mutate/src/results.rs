//! Outcomes of mutants, kept in a file so that a stopped run goes on where it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    path::PathBuf,
};

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
    /// Name of the test that failed, or an empty text.
    #[serde(default)]
    pub test: String,
    /// Digest of the mutated code: the file without its tests.
    pub file: String,
    /// Digest of all sources, tests among them.
    pub sources: String,
}

/// The sources of today, against which an outcome holds or does not.
#[derive(Debug, Default)]
pub struct Sources {
    /// Digest of all sources, tests among them.
    pub digest: String,
    /// Names of the functions in them.
    pub functions: BTreeSet<String>,
}

impl Judged {
    /// Returns whether the outcome still holds.
    ///
    /// Every outcome needs the same code in the mutated file. A survivor is judged again after any change, because a
    /// new test may catch it. A caught mutant stays caught while the test that failed exists: tests are added all the
    /// time, and a run of the whole sample for each would be too long. A test that lost its assertions and code in
    /// other files that hides a mutant go unnoticed; delete `target/mutants/AREA` before a measurement that is
    /// published.
    fn holds(&self, file: &str, sources: &Sources) -> bool {
        let test = self.test.rsplit("::").next().unwrap_or_default();
        let has_decided = match self.outcome {
            Outcome::Survived => self.sources == sources.digest,
            Outcome::Caught => test.is_empty() || sources.functions.contains(test),
            Outcome::Timeout | Outcome::Unviable => true,
        };
        self.file == file && has_decided
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
    pub fn get(&self, key: &str, file: &str, sources: &Sources) -> Option<&Judged> {
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
        let (by, test) = ("p".into(), "a::t".into());
        Judged { key: key.into(), outcome, by, test, file: "f".into(), sources: "s".into() }
    }

    fn sources(digest: &str, functions: &[&str]) -> Sources {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        Sources { digest: digest.into(), functions }
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
        let sources = sources("s", &["t"]);
        assert_eq!(results.get("a", "f", &sources).unwrap().outcome, Outcome::Caught);
        assert_eq!(results.get("b", "f", &sources).unwrap().outcome, Outcome::Caught);
    }

    #[test]
    fn an_outcome_holds_while_its_file_and_what_decided_it_are_the_same() {
        for (outcome, file, digest, functions, wanted) in [
            (Outcome::Survived, "f", "s", &[][..], true),
            (Outcome::Survived, "f", "new", &["t"], false),
            (Outcome::Caught, "f", "new", &["t", "u"], true),
            (Outcome::Caught, "f", "s", &["u"], false),
            (Outcome::Caught, "new", "s", &["t"], false),
            (Outcome::Timeout, "f", "new", &[], true),
            (Outcome::Unviable, "f", "new", &[], true),
            (Outcome::Unviable, "new", "s", &["t"], false),
        ] {
            let holds = judged("a", outcome).holds(file, &sources(digest, functions));
            assert_eq!(holds, wanted, "{outcome:?} {file} {digest} {functions:?}");
        }
        let without_a_name = Judged { test: String::new(), ..judged("a", Outcome::Caught) };
        assert!(without_a_name.holds("f", &sources("new", &[])));
    }
}
