//! Compiles many mutants into one program, which has one of them active as an environment variable says.
//!
//! A build for each mutant would take most of a run. Each mutant becomes a branch beside the original code; a mutant
//! for which that does not compile is left to a build of its own.

use std::{collections::BTreeSet, ops::Range};

use anyhow::{Context, Result, anyhow};
use syn::{
    Arm, BinOp, Expr, ExprBinary, ExprMatch, ExprStruct, ExprUnary, Member,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::mutant::{Genre, Mutant};

const IS_ACTIVE: &str = "::mutation_switch::is_active";

/// Text around a part of the source. Of two with the same part, the later one is inside.
struct Wrap {
    number: u32,
    part: Range<usize>,
    prefix: String,
    suffix: String,
}

/// A mutant in an instrumented text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SwitchPlace {
    number: u32,
    /// The mutated code.
    prefix: Range<usize>,
    /// The mutated code and the original.
    whole: Range<usize>,
}

/// The mutant that an error of the compiler is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blamed {
    pub number: u32,
    /// Whether the error is in the mutated code, not only around it.
    pub is_in_mutated: bool,
}

/// A source file with branches for mutants.
pub struct Instrumented {
    pub text: String,
    places: Vec<SwitchPlace>,
}

impl Instrumented {
    /// Adds branches for numbered mutants. Mutants without a branch are those that [`numbers`](Self::numbers) lacks.
    pub fn new(text: &str, mutants: &[(u32, &Mutant)]) -> Result<Self> {
        let file = syn::parse_file(text).map_err(|error| anyhow!("{error}"))?;
        let mut finder = Finder { text, wanted: Vec::new(), wraps: Vec::new() };
        for &(number, mutant) in mutants {
            let range = mutant.range(text).with_context(|| format!("the file does not contain {}", mutant.name()))?;
            let replacement = &mutant.replacement;
            match mutant.genre {
                Genre::FnValue => {
                    let prefix = format!("if {IS_ACTIVE}({number}) {{ return {replacement}; }} ");
                    finder.wrap(number, range.start..range.start, prefix, "");
                }
                Genre::MatchArmGuard => finder.choose(number, range, replacement),
                Genre::BinaryOperator | Genre::UnaryOperator | Genre::MatchArm | Genre::StructField => {
                    finder.wanted.push((number, mutant, range));
                }
            }
        }
        finder.visit_file(&file);
        Ok(render(text, &finder.wraps))
    }

    /// Returns the numbers of the mutants that have a branch.
    pub fn numbers(&self) -> BTreeSet<u32> {
        self.places.iter().map(|place| place.number).collect()
    }

    /// Returns the mutant that an error at a byte of the text is about: the one with the mutated code there, or else
    /// the innermost around it.
    pub fn blamed(&self, byte: usize) -> Option<Blamed> {
        let mutated = self.places.iter().filter(|place| place.prefix.contains(&byte));
        let around = self.places.iter().filter(|place| place.whole.contains(&byte));
        let innermost = mutated.min_by_key(|place| place.whole.len()).or(around.min_by_key(|place| place.whole.len()));
        innermost.map(|place| Blamed { number: place.number, is_in_mutated: place.prefix.contains(&byte) })
    }
}

struct Finder<'a> {
    text: &'a str,
    wanted: Vec<(u32, &'a Mutant, Range<usize>)>,
    wraps: Vec<Wrap>,
}

impl<'a> Finder<'a> {
    fn wrap(&mut self, number: u32, part: Range<usize>, prefix: String, suffix: &str) {
        self.wraps.push(Wrap { number, part, prefix, suffix: suffix.to_owned() });
    }

    /// Makes an expression a choice between mutated code and itself.
    fn choose(&mut self, number: u32, part: Range<usize>, mutated: &str) {
        self.wrap(number, part, format!("(if {IS_ACTIVE}({number}) {{ {mutated} }} else {{ "), " })");
    }

    fn at(&self, genre: Genre, start: usize) -> Vec<(u32, &'a Mutant)> {
        let here = self.wanted.iter().filter(|(_, mutant, range)| mutant.genre == genre && range.start == start);
        here.map(|(number, mutant, _)| (*number, *mutant)).collect()
    }

    fn source(&self, node: &impl Spanned) -> &'a str {
        self.text.get(node.span().byte_range()).unwrap_or_default()
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        // A `let` in a chain cannot be in a branch.
        let has_let = matches!(binary.op, BinOp::And(_)) && (has_let(&binary.left) || has_let(&binary.right));
        for (number, mutant) in self.at(Genre::BinaryOperator, binary.op.span().byte_range().start) {
            if !has_let {
                let (left, right) = (self.source(&binary.left), self.source(&binary.right));
                self.choose(number, binary.span().byte_range(), &format!("{left} {} {right}", mutant.replacement));
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        for (number, _) in self.at(Genre::UnaryOperator, unary.op.span().byte_range().start) {
            self.choose(number, unary.span().byte_range(), self.source(&unary.expr));
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_struct(&mut self, expression: &'ast ExprStruct) {
        for field in &expression.fields {
            for (number, _) in self.at(Genre::StructField, field.span().byte_range().start) {
                let (Some(base), Member::Named(name)) = (&expression.rest, &field.member) else { continue };
                // `{ name }` is short for `{ name: name }`.
                let label = if field.colon_token.is_none() { format!("{name}: ") } else { String::new() };
                let prefix = format!("{label}(if {IS_ACTIVE}({number}) {{ ({}).{name} }} else {{ ", self.source(base));
                self.wrap(number, field.expr.span().byte_range(), prefix, " })");
            }
        }
        visit::visit_expr_struct(self, expression);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        for arm in &expression.arms {
            for (number, _) in self.at(Genre::MatchArm, arm.span().byte_range().start) {
                // Without the arm the match may not be exhaustive, which is an error of the match.
                self.wrap(number, expression.span().byte_range(), String::new(), "");
            }
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        for (number, _) in self.at(Genre::MatchArm, arm.span().byte_range().start) {
            let guard = format!("!{IS_ACTIVE}({number})");
            match &arm.guard {
                None => {
                    let end = arm.pat.span().byte_range().end;
                    self.wrap(number, end..end, format!(" if {guard}"), "");
                }
                Some((_, expression)) if has_let(expression) => {}
                Some((_, expression)) => {
                    self.wrap(number, expression.span().byte_range(), format!("({guard} && ("), "))");
                }
            }
        }
        visit::visit_arm(self, arm);
    }
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Inserts the prefixes and suffixes.
fn render(text: &str, wraps: &[Wrap]) -> Instrumented {
    let mut places: Vec<SwitchPlace> =
        wraps.iter().map(|wrap| SwitchPlace { number: wrap.number, prefix: 0..0, whole: 0..0 }).collect();
    let mut output = String::new();
    let mut written = 0;
    for (at, class, _, _, index) in events(wraps) {
        output.push_str(text.get(written..at).unwrap_or_default());
        written = at;
        let (Some(wrap), Some(place)) = (wraps.get(index), places.get_mut(index)) else { continue };
        if class == CLOSING {
            output.push_str(&wrap.suffix);
        } else {
            place.whole.start = output.len();
            output.push_str(&wrap.prefix);
            place.prefix = place.whole.start..output.len();
        }
        if class != OPENING {
            place.whole.end = output.len();
        }
    }
    output.push_str(text.get(written..).unwrap_or_default());
    Instrumented { text: output, places }
}

const CLOSING: u8 = 0;
const INSERTED: u8 = 1;
const OPENING: u8 = 2;

/// Returns the insertions in their order: at one place, what ends there precedes what starts there, inner parts end
/// first and outer parts start first. Each is a position, a class, two keys for the order, and the index of the wrap.
fn events(wraps: &[Wrap]) -> Vec<(usize, u8, usize, usize, usize)> {
    let mut events = Vec::new();
    for (index, wrap) in wraps.iter().enumerate() {
        let Range { start, end } = wrap.part;
        if start == end {
            events.push((start, INSERTED, index, 0, index));
        } else {
            events.push((start, OPENING, usize::MAX - end, index, index));
            events.push((end, CLOSING, usize::MAX - start, usize::MAX - index, index));
        }
    }
    events.sort_unstable();
    events
}

#[cfg(test)]
mod tests {
    use super::{super::mutant::tests::mutant_of, *};

    fn instrumented(text: &str, mutants: &[Mutant]) -> String {
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(mutants).collect();
        Instrumented::new(text, &numbered).unwrap().text.replace(IS_ACTIVE, "on")
    }

    #[test]
    fn an_operator_becomes_a_choice_with_nested_choices_in_the_original() {
        let text = "fn f() -> bool { a + 1 == b }";
        let all = [mutant_of(text, "==", "BinaryOperator", "!="), mutant_of(text, "+", "BinaryOperator", "-")];
        assert_eq!(
            instrumented(text, &all),
            "fn f() -> bool { (if on(1) { a + 1 != b } else { (if on(2) { a - 1 } else { a + 1 }) == b }) }"
        );
    }

    #[test]
    fn two_mutants_of_one_operator_are_nested() {
        let text = "fn f() -> u8 { a + b }";
        let all = ["-", "*"].map(|operator| mutant_of(text, "+", "BinaryOperator", operator));
        assert_eq!(
            instrumented(text, &all),
            "fn f() -> u8 { (if on(1) { a - b } else { (if on(2) { a * b } else { a + b }) }) }"
        );
    }

    #[test]
    fn a_body_returns_early_before_the_choices_in_it() {
        let text = "fn f() -> bool { !b }";
        let all = [mutant_of(text, "!", "UnaryOperator", ""), mutant_of(text, "!b", "FnValue", "true")];
        assert_eq!(
            instrumented(text, &all),
            "fn f() -> bool { if on(2) { return true; } (if on(1) { b } else { !b }) }"
        );
    }

    #[test]
    fn an_arm_gets_a_guard() {
        let text = "fn f() { match a { 1 => b, 2 if x => d, _ => e } }";
        let all = [
            mutant_of(text, "1 => b,", "MatchArm", ""),
            mutant_of(text, "2 if x => d,", "MatchArm", ""),
            mutant_of(text, "x", "MatchArmGuard", "true"),
        ];
        assert_eq!(
            instrumented(text, &all),
            "fn f() { match a { 1 if !on(1) => b, 2 if (if on(3) { true } else { (!on(2) && (x)) }) => d, _ => e } }"
        );
    }

    #[test]
    fn a_chain_with_let_gets_no_branch() {
        let text = "fn f() { if let Some(a) = b && c {} }";
        assert_eq!(instrumented(text, &[mutant_of(text, "&&", "BinaryOperator", "||")]), text);
    }

    #[test]
    fn a_field_becomes_that_of_the_base() {
        let text = "fn f() { S { a: 1, ..b() } }";
        let all = [mutant_of(text, "a: 1,", "StructField", "")];
        assert_eq!(instrumented(text, &all), "fn f() { S { a: (if on(1) { (b()).a } else { 1 }), ..b() } }");
        let text = "fn f() { S { a, ..b } }";
        let all = [mutant_of(text, "a,", "StructField", "")];
        assert_eq!(instrumented(text, &all), "fn f() { S { a: (if on(1) { (b).a } else { a }), ..b } }");
    }

    #[test]
    fn an_arm_is_blamed_for_a_match_that_is_not_exhaustive() {
        let text = "fn f() { match a() { 1 => b, c => d, } }";
        let result = Instrumented::new(text, &[(7, &mutant_of(text, "c => d,", "MatchArm", ""))]).unwrap();
        let blamed = result.blamed(result.text.find("a()").unwrap());
        assert_eq!(blamed, Some(Blamed { number: 7, is_in_mutated: false }));
        assert_eq!(result.numbers(), BTreeSet::from([7]));
    }

    #[test]
    fn an_error_is_blamed_on_the_mutated_code_or_the_innermost_around_it() {
        let text = "fn f() -> bool { a + 1 == b }";
        let all = [mutant_of(text, "==", "BinaryOperator", "!="), mutant_of(text, "+", "BinaryOperator", "-")];
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&all).collect();
        let result = Instrumented::new(text, &numbered).unwrap();
        for (part, wanted) in [
            ("1 != b", Some((1, true))),
            ("a - 1", Some((2, true))),
            ("+ 1 })", Some((2, false))),
            ("== b", Some((1, false))),
            ("fn f", None),
        ] {
            let blamed = result.blamed(result.text.find(part).unwrap());
            assert_eq!(blamed.map(|blamed| (blamed.number, blamed.is_in_mutated)), wanted, "{part}");
        }
        assert_eq!(result.numbers(), BTreeSet::from([1, 2]));
    }
}
