//! Text that other programs wrote: names of processes, files, functions and events.
//!
//! A name can hold anything: a just-in-time compiler, a linker or a damaged file chooses it. Control characters in it
//! would move the cursor or change the title of a terminal, end a line of a text format, and make one row look like
//! two. Therefore every text is cleaned where it is read, so that no output has to think of it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};

/// Returns the text with a space instead of each character that a terminal does not print but executes, of each that
/// reorders the text around it (Unicode Standard Annex 9, 2.1 to 2.3), and of the two that XML cannot contain.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_unprintable) { text.replace(is_unprintable, " ").into() } else { text.into() }
}

/// Returns whether [`printable`] replaces the character. Marks of direction (U+200E, U+200F) stay: they reorder nothing
/// beyond their neighbors, and are in the names of files in right-to-left scripts.
fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Deserializes a text and makes it [printable].
pub(crate) fn one<'de, D: Deserializer<'de>>(source: D) -> Result<String, D::Error> {
    let text = String::deserialize(source)?;
    Ok(match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cleaned) => cleaned,
    })
}

/// A text that is [printable] once it is deserialized.
#[derive(Deserialize)]
struct Printable(#[serde(deserialize_with = "one")] String);

/// Deserializes a text that can be missing.
pub(crate) fn optional<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Printable>::deserialize(source)?.map(|Printable(text)| text))
}

/// Deserializes several texts.
pub(crate) fn several<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Printable>::deserialize(source)?.into_iter().map(|Printable(text)| text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_execute_is_a_space() {
        for (text, wanted) in [
            ("std::vec<a, b>::at()", "std::vec<a, b>::at()"),
            ("\u{1b}[2Jcleared", " [2Jcleared"),
            ("\u{1b}]0;title\u{7}", " ]0;title "),
            ("\u{9b}31mred", " 31mred"),
            ("two\r\nlines\tand\u{7f}", "two  lines and "),
            ("a\u{202E}b\u{2066}c\u{200F}\u{FFFE}", "a b c\u{200F} "),
            ("Gr\u{f6}\u{df}e \u{1f600} \u{200d}", "Gr\u{f6}\u{df}e \u{1f600} \u{200d}"),
            ("", ""),
        ] {
            assert_eq!(printable(text), wanted, "{text:?}");
        }
    }
}
