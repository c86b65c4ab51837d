//! Mutants that no test can catch, with the reason of each.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::mutant::Mutant;

const LIST: &str = include_str!("equivalent.toml");

/// An entry of the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    file: String,
    /// The description that cargo-mutants gives, without line and column: `replace == with != in Areas::find`.
    mutation: String,
    /// Which of the mutants of that description in the file it is, from 1.
    #[serde(default = "first")]
    number: usize,
    /// Why the mutated program behaves the same.
    reason: String,
}

const fn first() -> usize {
    1
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    equivalent: Vec<Equivalent>,
}

impl Equivalent {
    /// Reads the list in the repository.
    pub fn all() -> Result<Vec<Self>> {
        Ok(toml::from_str::<List>(LIST)?.equivalent)
    }

    /// Returns whether the entry names a mutant.
    pub fn is(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file && self.mutation == mutant.description() && self.number == mutant.number
    }
}

/// Checks that every entry of the files in `folder` names a mutant.
pub fn check(entries: &[Equivalent], folder: &str, mutants: &[Mutant]) -> Result<()> {
    for entry in entries.iter().filter(|entry| entry.file.starts_with(folder)) {
        ensure!(
            mutants.iter().any(|mutant| entry.is(mutant)),
            "xtask/src/mutate/equivalent.toml names a mutant that does not exist: {}: {} (number {}): {}",
            entry.file,
            entry.mutation,
            entry.number,
            entry.reason
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{super::mutant::tests::mutant_of, *};

    #[test]
    fn every_entry_has_a_reason_a_file_and_a_function_that_the_file_contains() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for entry in Equivalent::all().unwrap() {
            assert!(entry.reason.len() > 20, "{entry:?}");
            let text = std::fs::read_to_string(root.join(&entry.file)).unwrap();
            if let Some((_, function)) = entry.mutation.rsplit_once(" in ") {
                let name = function.rsplit("::").next().unwrap();
                assert!(text.contains(&format!("fn {name}")), "{entry:?}");
            }
        }
    }

    #[test]
    fn an_entry_without_a_mutant_is_an_error_if_it_is_in_the_folder() {
        let mutant = mutant_of("a == b", "==", "BinaryOperator", "!=");
        let entry = |mutation: &str| Equivalent {
            file: "a.rs".into(),
            mutation: mutation.into(),
            number: 1,
            reason: "r".into(),
        };
        let all = [mutant];
        check(&[entry("replace == with != in f")], "a", &all).unwrap();
        check(&[entry("replace == with < in f")], "b/", &all).unwrap();
        let error = check(&[entry("replace == with < in f")], "a", &all).unwrap_err().to_string();
        assert!(error.ends_with("does not exist: a.rs: replace == with < in f (number 1): r"), "{error}");
        assert!(check(&[Equivalent { number: 2, ..entry("replace == with != in f") }], "a", &all).is_err());
    }
}
