//! The mutants that cargo-mutants lists, and the seeded choice among them.

use std::{collections::BTreeMap, ops::Range};

use serde::Deserialize;

use crate::tree::sha256;

/// A position in a text. Lines and columns start at 1, and columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Position {
    line: usize,
    column: usize,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Span {
    start: Position,
    end: Position,
}

/// The function that contains a mutant.
#[derive(Debug, Clone, Deserialize)]
pub struct Function {
    span: Span,
}

/// What a mutant replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Genre {
    /// The body of a function, by a value.
    FnValue,
    /// A binary operator, by another.
    BinaryOperator,
    /// A unary operator, which is deleted.
    UnaryOperator,
    /// An arm of a match, which is deleted.
    MatchArm,
    /// The guard of an arm, by true or false.
    MatchArmGuard,
    /// A field of a struct expression with a base, which is deleted.
    StructField,
}

/// A mutant, as `cargo mutants --list --json` prints it.
#[derive(Debug, Clone, Deserialize)]
pub struct Mutant {
    /// Source file, from the root of the workspace.
    pub file: String,
    name: String,
    pub genre: Genre,
    pub replacement: String,
    function: Option<Function>,
    span: Span,
    /// Which of the mutants with the same file and description this is, from 1.
    #[serde(skip)]
    pub number: usize,
}

impl Mutant {
    /// Parses the list, and numbers mutants with the same description.
    pub fn parse(json: &str) -> serde_json::Result<Vec<Self>> {
        let mut all: Vec<Self> = serde_json::from_str(json)?;
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for mutant in &mut all {
            let count = counts.entry((mutant.file.clone(), mutant.description().to_owned())).or_default();
            *count += 1;
            mutant.number = *count;
        }
        Ok(all)
    }

    /// Returns what is replaced by what: `replace == with != in Areas::find`.
    pub fn description(&self) -> &str {
        self.name.splitn(4, ':').nth(3).map_or(&self.name, str::trim_start)
    }

    /// Returns the name with file, line and column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an identity that does not change when lines are inserted above.
    pub fn key(&self) -> String {
        format!("{}: {} #{}", self.file, self.description(), self.number)
    }

    /// Returns the bytes of `text` that the mutant replaces, or `None` if the text has no such position.
    pub fn range(&self, text: &str) -> Option<Range<usize>> {
        Some(offset(text, self.span.start)?..offset(text, self.span.end)?)
    }

    /// Returns `text` with the mutant applied.
    pub fn apply(&self, text: &str) -> Option<String> {
        let range = self.range(text)?;
        let (before, after) = (text.get(..range.start)?, text.get(range.end..)?);
        Some(format!("{before}{}{after}", self.replacement))
    }

    /// Returns whether an error in the code of the branch is one of the mutant: a value of the wrong type is an error
    /// in every build. A second value of an opaque type is an error of the branch alone.
    pub fn fails_as_its_branch(&self, text: &str) -> bool {
        let is_opaque = |signature: &str| signature.split_once("->").is_some_and(|(_, rest)| rest.contains("impl "));
        self.genre == Genre::FnValue && self.signature(text).is_some_and(|signature| !is_opaque(signature))
    }

    /// Returns the text from the begin of the function to the mutated code.
    fn signature<'t>(&self, text: &'t str) -> Option<&'t str> {
        let start = offset(text, self.function.as_ref()?.span.start)?;
        text.get(start..offset(text, self.span.start)?)
    }

    /// Returns whether the compiler may evaluate the mutated code: it is outside a function, or in a const function.
    pub fn may_be_constant(&self, text: &str) -> bool {
        self.signature(text).is_none_or(|signature| signature.contains("const fn "))
    }
}

fn offset(text: &str, position: Position) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(position.line.checked_sub(1)?).map(str::len).sum();
    let line = text.get(before..)?;
    let column = position.column.checked_sub(1)?;
    Some(before + line.char_indices().nth(column).map_or(line.len(), |(index, _)| index))
}

/// Returns at most `most` of the mutants, chosen and ordered by `seed`. A smaller choice is the beginning of a larger
/// one, and the choice does not depend on line numbers.
pub fn sample(mutants: &[Mutant], seed: u64, most: usize) -> Vec<Mutant> {
    let mut keyed: Vec<(String, &Mutant)> =
        mutants.iter().map(|mutant| (sha256(format!("{seed} {}", mutant.key()).as_bytes()), mutant)).collect();
    keyed.sort_by(|left, right| left.0.cmp(&right.0));
    keyed.into_iter().take(most).map(|(_, mutant)| mutant.clone()).collect()
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the mutant that replaces the only occurrence of `old`.
    pub fn mutant_of(text: &str, old: &str, genre: &str, replacement: &str) -> Mutant {
        let start = text.find(old).unwrap();
        assert_eq!(text.matches(old).count(), 1, "{old}");
        let position = |at: usize| {
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            json!({ "line": line, "column": before.rsplit('\n').next().unwrap().chars().count() + 1 })
        };
        let span = json!({ "start": position(start), "end": position(start + old.len()) });
        let list = json!([{
            "file": "a.rs", "name": format!("a.rs:1:1: replace {old} with {replacement} in f"), "genre": genre,
            "replacement": replacement, "span": span,
            "function": { "span": { "start": { "line": 1, "column": 1 }, "end": { "line": 1, "column": 1 } } },
        }]);
        Mutant::parse(&list.to_string()).unwrap().remove(0)
    }

    fn many() -> Vec<Mutant> {
        let one = mutant_of("a == b", "==", "BinaryOperator", "!=");
        (1..=50).map(|number| Mutant { number, ..one.clone() }).collect()
    }

    #[test]
    fn a_mutant_replaces_exactly_its_characters() {
        let text = "// é\nfn f() { \"ü\" == b }";
        let mutant = mutant_of(text, "==", "BinaryOperator", "!=");
        assert_eq!(mutant.apply(text).unwrap(), "// é\nfn f() { \"ü\" != b }");
        assert_eq!(mutant.description(), "replace == with != in f");
    }

    #[test]
    fn a_position_outside_the_text_is_no_range() {
        let mutant = mutant_of("fn f() {\n a == b }", "==", "BinaryOperator", "!=");
        assert_eq!(mutant.range("").map(|range| range.len()), Some(0));
        assert!(mutant.apply("é").is_some());
    }

    #[test]
    fn a_smaller_sample_is_the_beginning_of_a_larger_one_of_the_same_seed() {
        let keys = |seed, most| sample(&many(), seed, most).iter().map(Mutant::key).collect::<Vec<_>>();
        assert_eq!(keys(1, 10), keys(1, 30)[..10]);
        assert_ne!(keys(1, 10), keys(2, 10));
        assert_eq!(keys(1, 100).len(), 50);
    }

    #[test]
    fn equal_descriptions_are_numbered() {
        let one = json!({ "line": 1, "column": 1 });
        let entry = json!({
            "file": "a.rs", "name": "a.rs:1:1: replace + with -", "genre": "BinaryOperator", "replacement": "-",
            "span": { "start": one, "end": one }, "function": null,
        });
        let all = Mutant::parse(&json!([entry, entry]).to_string()).unwrap();
        assert_eq!(all.iter().map(|mutant| mutant.number).collect::<Vec<_>>(), [1, 2]);
        assert!(all[0].may_be_constant(""));
    }

    #[test]
    fn only_a_value_of_a_type_with_a_name_fails_as_its_branch() {
        for (text, genre, fails) in [
            ("fn f() -> u8 { a }", "FnValue", true),
            ("fn f(b: impl B) { a }", "FnValue", true),
            ("fn f() -> impl B { a }", "FnValue", false),
            ("fn f() -> Option<impl B> { a }", "FnValue", false),
            ("fn f() -> u8 { a }", "BinaryOperator", false),
        ] {
            assert_eq!(mutant_of(text, "a", genre, "0").fails_as_its_branch(text), fails, "{text} {genre}");
        }
    }

    #[test]
    fn a_const_function_may_be_evaluated_by_the_compiler() {
        for (text, constant) in [("const fn f() { a == b }", true), ("fn f() { a == b }", false)] {
            assert_eq!(mutant_of(text, "==", "BinaryOperator", "!=").may_be_constant(text), constant);
        }
    }
}
