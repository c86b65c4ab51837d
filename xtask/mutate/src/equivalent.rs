//! Mutants that no test can catch, with the reason of each.

use anyhow::{Result, bail};
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
    /// Which of the mutants of that description in the file these are, from 1.
    #[serde(default = "first")]
    numbers: Vec<usize>,
    /// Why the mutated program behaves the same.
    reason: String,
}

fn first() -> Vec<usize> {
    vec![1]
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
        self.is_about(mutant) && self.numbers.contains(&mutant.number)
    }

    fn is_about(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file && self.mutation == mutant.description()
    }

    /// Returns the first of the numbers that no mutant has.
    fn missing(&self, mutants: &[Mutant]) -> Option<usize> {
        let has = |number| mutants.iter().any(|mutant| self.is_about(mutant) && mutant.number == number);
        self.numbers.iter().copied().find(|number| !has(*number))
    }
}

/// Checks that every entry of the files in `folder` names a mutant.
pub fn check(entries: &[Equivalent], folder: &str, mutants: &[Mutant]) -> Result<()> {
    for entry in entries.iter().filter(|entry| entry.file.starts_with(folder)) {
        if let Some(number) = entry.missing(mutants) {
            bail!(
                "xtask/mutate/src/equivalent.toml names a mutant that does not exist: {}: {} (number {number}): {}",
                entry.file,
                entry.mutation,
                entry.reason
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use xtask::workspace::Workspace;

    use super::{super::mutant::tests::mutant_of, *};

    #[test]
    fn every_entry_has_a_reason_a_file_and_a_function_that_the_file_contains() {
        let root = Workspace::find().unwrap().root().to_owned();
        for entry in Equivalent::all().unwrap() {
            assert!(entry.reason.len() > 20 && !entry.numbers.is_empty(), "{entry:?}");
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
            numbers: first(),
            reason: "r".into(),
        };
        let all = [mutant];
        check(&[entry("replace == with != in f")], "a", &all).unwrap();
        check(&[entry("replace == with < in f")], "b/", &all).unwrap();
        let error = check(&[entry("replace == with < in f")], "a", &all).unwrap_err().to_string();
        assert!(error.ends_with("does not exist: a.rs: replace == with < in f (number 1): r"), "{error}");
        let error = check(&[Equivalent { numbers: vec![1, 2], ..entry("replace == with != in f") }], "a", &all);
        assert!(error.unwrap_err().to_string().contains("(number 2)"));
    }
}
