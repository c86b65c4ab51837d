//! Patterns of processors in the maps: texts with alternatives `(a|b)` and sets of characters `[0-9AF]`.

use crate::identity::Identity;

/// Longest pattern, in bytes. It also bounds the time of a match.
const MAX: usize = 120;

/// Returns the text of a processor, against which patterns are matched.
pub fn text(identity: Identity) -> String {
    let Identity { vendor, family, model, stepping } = identity;
    format!("{}-{family}-{model:X}-{stepping:X}", vendor.name())
}

/// Returns a pattern with the classes of characters of Linux's map as sets; models have at most two digits.
pub fn without_classes(pattern: &str) -> String {
    pattern.replace("[[:xdigit:]]+", "([0-9A-F]|[0-9A-F][0-9A-F])").replace("[[:xdigit:]]", "[0-9A-F]")
}

/// Returns whether a pattern has only the characters that one can have, and no nested alternatives.
pub fn is_valid(pattern: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-()[]|".contains(&byte);
    let depth = |byte: u8| pattern.bytes().filter(|other| *other == byte).count();
    !pattern.is_empty()
        && pattern.len() <= MAX
        && pattern.bytes().all(is_known)
        && depth(b'(') == depth(b')')
        && depth(b'[') == depth(b']')
        && depth(b'(') <= 2
}

/// Returns whether a processor matches: as a whole, or without its stepping.
pub fn matches(pattern: &str, text: &str) -> bool {
    let without = text.rsplit_once('-').map_or(text, |(rest, _)| rest);
    expanded(pattern).iter().any(|pattern| is_match(pattern, text) || is_match(pattern, without))
}

/// Returns the patterns without alternatives that one stands for.
fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('(') else { return vec![pattern.to_owned()] };
    let Some((choices, behind)) = rest.split_once(')') else { return Vec::new() };
    choices.split('|').flat_map(|choice| expanded(&format!("{before}{choice}{behind}"))).collect()
}

/// Matches a pattern of characters and sets of characters.
fn is_match(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text.chars());
    while let Some(first) = pattern.chars().next() {
        let Some(letter) = text.next() else { return false };
        let rest = pattern.get(first.len_utf8()..).unwrap_or_default();
        if first == '[' {
            let Some((set, behind)) = rest.split_once(']') else { return false };
            if !is_in(set, letter) {
                return false;
            }
            pattern = behind;
        } else if first.eq_ignore_ascii_case(&letter) {
            pattern = rest;
        } else {
            return false;
        }
    }
    text.next().is_none()
}

/// Returns whether a set such as `0-9AF` has a letter.
fn is_in(set: &str, letter: char) -> bool {
    let letters: Vec<char> = set.to_ascii_uppercase().chars().collect();
    let letter = letter.to_ascii_uppercase();
    let mut rest = letters.as_slice();
    loop {
        match rest {
            [first, '-', last, tail @ ..] => {
                if (*first..=*last).contains(&letter) {
                    return true;
                }
                rest = tail;
            }
            [first, tail @ ..] => {
                if *first == letter {
                    return true;
                }
                rest = tail;
            }
            [] => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Vendor;

    #[test]
    fn patterns_of_both_maps_match_their_processors() {
        let intel = |model, stepping| text(Identity { vendor: Vendor::Intel, family: 6, model, stepping });
        for (pattern, text, is_it) in [
            ("GenuineIntel-6-5E", intel(0x5E, 3), true),
            ("GenuineIntel-6-5E", intel(0x55, 3), false),
            ("GenuineIntel-6-55-[01234]", intel(0x55, 4), true),
            ("GenuineIntel-6-55-[01234]", intel(0x55, 7), false),
            ("GenuineIntel-6-55-[56789ABCDEF]", intel(0x55, 11), true),
            ("GenuineIntel-6-(97|9A|B7|BA|BF)", intel(0xB7, 1), true),
            ("GenuineIntel-6-(97|9A|B7|BA|BF)", intel(0xB8, 1), false),
            ("GenuineIntel-6-[4589]E", intel(0x9E, 1), true),
            ("GenuineIntel-6-1[AEF]", intel(0x1F, 1), true),
            ("GenuineIntel-6-5", intel(0x5E, 1), false),
        ] {
            assert_eq!(matches(pattern, &text), is_it, "{pattern} {text}");
        }
        let zen2 = text(Identity { vendor: Vendor::Amd, family: 23, model: 0x71, stepping: 0 });
        assert!(
            matches("AuthenticAMD-23-([3-9A-F][0-9A-F])", &zen2) || matches("AuthenticAMD-23-[3-9A-F][0-9A-F]", &zen2)
        );
        assert!(!matches("AuthenticAMD-23-([12][0-9A-F]|[0-9A-F])", &zen2));
        let any = without_classes("AuthenticAMD-23-[[:xdigit:]]+");
        assert!(is_valid(&any) && matches(&any, &zen2));
        for bad in ["", "A(", "A.*", "[0", "((a|b)|(c|d)|(e|f))", &"A".repeat(200)] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
