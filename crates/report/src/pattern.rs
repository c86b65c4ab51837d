//! Names with `*` and `?`.

/// A name in which `*` stands for any number of characters and `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    /// Creates a pattern.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern matches all of `name`, in the same case.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        is_match(&self.0, name, |one, other| one == other)
    }

    /// Returns whether the pattern matches all of `name`. The case of ASCII letters is ignored.
    #[must_use]
    pub fn matches_in_any_case(&self, name: &str) -> bool {
        is_match(&self.0, name, |one, other| one.eq_ignore_ascii_case(&other))
    }

    /// Returns whether the pattern matches the file name of a module, with or without its extension, in any case:
    /// `ntdll` and `NTDLL.DLL` are the same module on Windows.
    #[must_use]
    pub fn matches_file(&self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map(|(stem, _)| stem);
        self.matches_in_any_case(name) || stem.is_some_and(|stem| self.matches_in_any_case(stem))
    }
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
