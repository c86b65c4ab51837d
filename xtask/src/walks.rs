//! Test of the walks of ARCHITECTURE.md: every function is in the file that its step names, and calls the next one.

use std::fs;

use crate::workspace::Workspace;

/// A step of a walk.
#[derive(Debug, Default)]
struct Step {
    /// Type of the function, if it has one.
    owner: Option<String>,
    function: String,
    file: String,
    caller: Caller,
}

/// What calls the function of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Caller {
    /// The step before: nothing else is said.
    #[default]
    Before,
    /// An earlier step: "by step 3".
    Step(usize),
    /// What is no function of the walk: "by the HAL".
    Other,
}

impl Step {
    /// Parses a line of the form "1. `Type::function`, `file`, by something: what it does".
    fn parse(line: &str) -> Option<Self> {
        let mut spans = line.split('`');
        let (Some(_), Some(name), Some(", "), Some(file), Some(rest)) =
            (spans.next(), spans.next(), spans.next(), spans.next(), spans.next())
        else {
            return None;
        };
        let (owner, function) = name.split_once("::").map_or((None, name), |(owner, name)| (Some(owner), name));
        let caller = rest.strip_prefix(", by ").map_or(Caller::Before, |caller| {
            let step = caller.strip_prefix("step ").and_then(|step| step.split([':', ',', ' ']).next());
            step.map_or(Caller::Other, |number| Caller::Step(number.parse().expect("no number of a step")))
        });
        Some(Self { owner: owner.map(str::to_owned), function: function.to_owned(), file: file.to_owned(), caller })
    }

    fn name(&self) -> String {
        self.owner.as_ref().map_or(self.function.clone(), |owner| format!("{owner}::{}", self.function))
    }
}

/// Returns the walks of a document: the steps of each numbered list.
fn walks(document: &str) -> Vec<Vec<Step>> {
    let mut walks: Vec<Vec<Step>> = Vec::new();
    let (_, text) = document.split_once("\n## Four walks\n").expect("no walks");
    for line in text.lines().filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit())) {
        let step = Step::parse(line).unwrap_or_else(|| panic!("no function with its file: {line}"));
        match walks.last_mut() {
            Some(walk) if !line.starts_with("1. ") => walk.push(step),
            _ => walks.push(vec![step]),
        }
    }
    walks
}

/// Returns a source without comments and literals, whose braces and names are not code.
fn code(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let character = rest.strip_prefix('\'').and_then(|inside| match inside.strip_prefix('\\') {
            Some(escaped) => Some(escaped.find('\'').filter(|end| *end < 8)? + 3),
            None => inside
                .chars()
                .next()
                .filter(|one| inside[one.len_utf8()..].starts_with('\''))
                .map(|one| 2 + one.len_utf8()),
        });
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if letter == '"' {
            let mut is_escaped = false;
            let end = rest[1..].find(|letter| {
                let ends = letter == '"' && !is_escaped;
                is_escaped = letter == '\\' && !is_escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else {
            character.unwrap_or_default()
        };
        if skipped == 0 {
            code.push(letter);
        }
        rest = &rest[skipped.max(if skipped == 0 { letter.len_utf8() } else { 0 })..];
    }
    code
}

/// Returns the code from the first brace to the one that closes it.
fn block(code: &str) -> &str {
    let begin = code.find('{').expect("no body");
    let mut depth = 0;
    for (index, letter) in code.char_indices().skip_while(|(index, _)| *index < begin) {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if depth == 0 {
            return &code[begin..=index];
        }
    }
    panic!("a block without an end");
}

/// Returns what follows each place where `code` has `word` as a word.
fn after<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(word)
        .filter(move |(at, _)| !code[..*at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part))
        .map(move |(at, _)| &code[at + word.len()..])
}

/// Returns the bodies of the functions that a step can mean.
fn bodies<'a>(code: &'a str, step: &'a Step) -> Vec<&'a str> {
    let has_owner = |after: &&str| {
        let header = after.split('{').next().unwrap_or_default();
        step.owner.as_ref().is_none_or(|owner| self::after(header, owner).next().is_some())
    };
    let places = match &step.owner {
        Some(_) => after(code, "impl").filter(has_owner).map(block).collect(),
        None => vec![code],
    };
    let named = |after: &&str| {
        let name = after.strip_prefix(' ').and_then(|name| name.strip_prefix(step.function.as_str()));
        name.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    places.into_iter().flat_map(|place| after(place, "fn").filter(named).map(block)).collect()
}

/// Returns whether a body calls a function, also as `name::<T>(`.
fn calls(body: &str, function: &str) -> bool {
    after(body, function).any(|after| {
        let generic = after.strip_prefix("::<").and_then(|generic| generic.split_once('>'));
        generic.map_or(after, |(_, after)| after).starts_with('(')
    })
}

#[test]
fn every_function_of_a_walk_is_in_its_file_and_calls_the_next_one() {
    let root = Workspace::find().unwrap().root().to_owned();
    let walks = walks(&fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap());
    let mut wrong = Vec::new();
    for walk in &walks {
        assert_eq!(walk[0].caller, Caller::Other, "{}: nothing enters the walk", walk[0].name());
        let source = |step: &Step| fs::read_to_string(root.join(&step.file)).unwrap_or_default();
        let codes: Vec<String> = walk.iter().map(|step| code(&source(step))).collect();
        let bodies = |number: usize| bodies(&codes[number - 1], &walk[number - 1]);
        for (number, step) in (1..).zip(walk) {
            if bodies(number).is_empty() {
                wrong.push(format!("{number}. {} is not in {}", step.name(), step.file));
            }
            let caller = match step.caller {
                Caller::Before => number - 1,
                Caller::Step(earlier) => earlier,
                Caller::Other => continue,
            };
            if !bodies(caller).iter().any(|body| calls(body, &step.function)) {
                wrong.push(format!("{caller}. {} does not call {}", walk[caller - 1].name(), step.name()));
            }
        }
    }
    let steps: usize = walks.iter().map(Vec::len).sum();
    let called = walks.iter().flatten().filter(|step| step.caller != Caller::Other).count();
    assert!(walks.len() == 4 && steps > 50 && called * 4 > steps * 3, "{} walks, {called} of {steps}", walks.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_step_is_noticed() {
    let steps = "1. `A::one`, `a`, by all.\n2. `two`, `b`: x.\n3. `four`, `d`, by step 1: x.\n\n1. `three`, `c`, by x.";
    let found = walks(&format!("\n## Four walks\n{steps}\n"));
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    let callers: Vec<_> = found.iter().flatten().map(|step| (step.name(), step.caller)).collect();
    let wanted =
        [("A::one", Caller::Other), ("two", Caller::Before), ("four", Caller::Step(1)), ("three", Caller::Other)];
    assert_eq!(callers, wanted.map(|(name, caller)| (name.to_owned(), caller)));
    let source = "impl B { fn one() { other(); } }\nimpl<'a, T> A<'a, T> {\n    fn one() { if x('{') { two::<T>(\"}\"); } // it\n}\n}\nfn three() {}";
    let code = code(source);
    let of = |owner: Option<&str>, function: &str| {
        let step = Step { owner: owner.map(str::to_owned), function: function.to_owned(), ..Step::default() };
        bodies(&code, &step).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let one = of(Some("A"), "one");
    assert_eq!(one.len(), 1, "{code}");
    assert_eq!(["two", "other", "it"].map(|function| calls(&one[0], function)), [true, false, false]);
    assert_eq!([of(None, "one").len(), of(Some("B"), "three").len(), of(None, "on").len()], [2, 0, 0]);
}
