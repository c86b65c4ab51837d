//! Names with `*` and `?`, and names that were shortened.

use recording::printable;

/// Replaces the middle of a shortened name.
const ELLIPSIS: &str = "..";

/// A name in which `*` stands for any number of characters and `?` for one. Two or more dots and the ellipsis stand for
/// any number too: tables print dots instead of the middle of a [long name](shortened).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    /// The text with `*` instead of dots.
    pattern: String,
    way: Way,
}

/// How a pattern matches names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// Only this name, and those that were [shortened] to it.
    Exactly(String),
    /// All of a name, in the same case.
    Whole,
    /// All of a name. The case of ASCII letters is ignored.
    InAnyCase,
    /// Any part of a name. The case of ASCII letters is ignored.
    Part,
}

impl NamePattern {
    /// Creates a pattern that matches all of a name, in the same case.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut pattern = text.replace('\u{2026}', ELLIPSIS);
        while pattern.contains("...") {
            pattern = pattern.replace("...", ELLIPSIS);
        }
        Self { text, pattern: pattern.replace(ELLIPSIS, "*"), way: Way::Whole }
    }

    /// Creates a pattern that matches any part of a name, or all of it if it has a `*` or `?`. The case of ASCII
    /// letters is ignored.
    #[must_use]
    pub fn part(text: impl Into<String>) -> Self {
        let whole = Self::new(text);
        Self { way: if whole.has_wildcards() { Way::InAnyCase } else { Way::Part }, ..whole }
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern can be a part of a name, or was found to be one by [`resolve`](Self::resolve).
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.way == Way::Part
    }

    fn has_wildcards(&self) -> bool {
        self.pattern.contains(['*', '?'])
    }

    /// Takes the first way in which the pattern matches any of `all`: exactly, in the same case, in any case, or as
    /// [a part](Self::part). Returns what it then matches. `matches` compares one of `all` to a pattern.
    pub fn resolve<T: Copy>(&mut self, all: &[T], matches: impl Fn(&Self, T) -> bool) -> Vec<T> {
        let part = (!self.has_wildcards()).then_some(Way::Part);
        for way in [Way::Exactly(self.text.clone()), Way::Whole, Way::InAnyCase].into_iter().chain(part) {
            self.way = way;
            let found: Vec<T> = all.iter().copied().filter(|one| matches(self, *one)).collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Lets the pattern match this name only.
    pub fn choose(&mut self, name: &str) {
        self.way = Way::Exactly(name.to_owned());
    }

    /// Returns the name that was [chosen](Self::choose) and differs from what was written.
    #[must_use]
    pub fn chosen(&self) -> Option<&str> {
        match &self.way {
            Way::Exactly(name) if *name != self.text => Some(name),
            _ => None,
        }
    }

    /// Returns whether the pattern matches `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.way {
            Way::Exactly(exact) => {
                printable(name) == *exact
                    || exact.contains(ELLIPSIS) && shortened(name, exact.chars().count()) == *exact
            }
            Way::Whole => is_match(&self.pattern, name, |one, other| one == other),
            Way::InAnyCase => matches_in_any_case(&self.pattern, name),
            Way::Part => matches_in_any_case(&format!("*{}*", self.pattern), name),
        }
    }

    /// Returns whether the pattern matches the file name of a module, with or without its extension, in any case:
    /// `ntdll` and `NTDLL.DLL` are the same module on Windows.
    #[must_use]
    pub fn matches_file(&self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map(|(stem, _)| stem);
        [Some(name), stem].into_iter().flatten().any(|name| matches_in_any_case(&self.pattern, name))
    }
}

fn matches_in_any_case(pattern: &str, name: &str) -> bool {
    is_match(pattern, name, |one, other| one.eq_ignore_ascii_case(&other))
}

/// Returns the [printable] name, without its middle if it has more than `max` characters. Both ends of a name are more
/// informative.
#[must_use]
pub fn shortened(name: &str, max: usize) -> String {
    let characters: Vec<char> = printable(name).chars().collect();
    if characters.len() <= max {
        return characters.into_iter().collect();
    }
    let kept = max.saturating_sub(ELLIPSIS.len());
    let (head, tail) = (kept - kept / 2, kept / 2);
    let head: String = characters.iter().take(head).collect();
    let tail: String = characters.iter().skip(characters.len() - tail).collect();
    format!("{head}{ELLIPSIS}{tail}")
}

/// Returns whether `pattern` matches all of `name`, whose characters are compared by `same`.
fn is_match(pattern: &str, name: &str, same: impl Fn(char, char) -> bool) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // The pattern behind the last star, and the name behind what the star stands for.
    let mut star = None;
    loop {
        let at = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = at;
                star = Some((pattern.clone(), name.clone()));
            }
            (Some(wanted), Some(letter)) if wanted == '?' || same(wanted, letter) => {}
            (_, None) => return false,
            (_, Some(_)) => {
                let Some((behind, mut until)) = star else { return false };
                until.next();
                pattern = behind.clone();
                name = until.clone();
                star = Some((behind, until));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_name_keeps_both_its_ends() {
        for (name, max, wanted) in [
            ("short", 8, "short"),
            ("exactly8", 8, "exactly8"),
            ("ntoskrnl.exe+0x1234", 13, "ntoskr..x1234"),
            ("two\nlines", 20, "two lines"),
        ] {
            assert_eq!(shortened(name, max), wanted);
        }
    }

    #[test]
    fn a_star_matches_any_number_of_characters_and_a_question_mark_one() {
        for (pattern, name, matches) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("main", "Main", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("?", "", false),
            ("m?in", "main", true),
            ("mem*", "memcpy", true),
            ("*cpy", "memcpy", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXbX", false),
            ("**a", "a", true),
            ("?*", "\u{e9}", true),
            ("std::vector<int,*>::push_back", "std::vector<int,std::allocator<int>>::push_back", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_module_matches_in_any_case_with_or_without_its_extension() {
        for (pattern, name, matches) in [
            ("ntdll", "ntdll.dll", true),
            ("NTDLL.DLL", "ntdll.dll", true),
            ("nt*", "ntoskrnl.exe", true),
            ("nt", "ntdll.dll", false),
            ("[kernel]", "[kernel]", true),
            ("a.b", "a.b.dll", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches_file(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_part_matches_in_any_case_and_with_stars_the_whole() {
        for (pattern, name, matches) in [
            ("l3_miss", "MEM_LOAD_RETIRED.L3_MISS", true),
            ("MEM_LOAD*miss", "MEM_LOAD_RETIRED.L3_MISS", true),
            ("MEM_LOAD*HIT", "MEM_LOAD_RETIRED.L3_MISS", false),
            ("*L?_MISS*", "MEM_LOAD_RETIRED.L3_MISS", true),
            ("L?_MISS", "MEM_LOAD_RETIRED.L3_MISS", false),
            ("mem..miss", "MEM_LOAD_RETIRED.L3_MISS", true),
            ("?", "", false),
            ("", "A", true),
        ] {
            assert_eq!(NamePattern::part(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_means_the_first_of_what_it_can_mean() {
        for (given, wanted) in [
            ("alpha", &["alpha"][..]),
            ("Alph", &["Alphabet", "a::alpha()", "alpha"]),
            ("ALPHABET", &["Alphabet"]),
            ("Alph*", &["Alphabet"]),
            ("ALPH*", &["Alphabet", "alpha"]),
            ("f(int*)", &["f(int*)"]),
            ("f(int..)", &["f(int**)", "f(int*)"]),
            ("f(...)", &["f(...)"]),
            ("A..bet", &["Alphabet"]),
            ("a...\u{2026}..()", &["a::alpha()"]),
            ("gamma", &[]),
        ] {
            let all = ["Alphabet", "a::alpha()", "alpha", "f(...)", "f(int**)", "f(int*)"];
            let found = NamePattern::new(given).resolve(&all, NamePattern::matches);
            assert_eq!(found, wanted, "{given}");
        }
    }

    /// The definition, in exponential time.
    fn defined(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|length| defined(rest, &name[length..])),
            Some((wanted, rest)) => name
                .split_first()
                .is_some_and(|(letter, name)| (*wanted == '?' || wanted == letter) && defined(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn a_match_is_as_defined(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let (letters, of_name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(NamePattern::new(pattern).matches(&name), defined(&letters, &of_name));
        }
    }
}
