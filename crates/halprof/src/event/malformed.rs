//! What is wrong with a text that the user typed, and where.

use thiserror::Error;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("at character {}: {why}", .before + 1)]
pub struct Malformed {
    /// Number of characters before the position.
    before: usize,
    /// What is wrong.
    why: String,
}

impl Malformed {
    /// Returns the error of a text that follows `prefix`.
    #[must_use]
    pub fn behind(self, prefix: &str) -> Self {
        Self { before: self.before + prefix.chars().count(), ..self }
    }

    /// Returns the error in the whole text if it was found in one without `count` characters at `position`.
    pub(crate) fn with_removed(self, position: usize, count: usize) -> Self {
        Self { before: if self.before < position { self.before } else { self.before + count }, ..self }
    }
}

/// An error at the beginning of the text.
impl From<String> for Malformed {
    fn from(why: String) -> Self {
        Self { before: 0, why }
    }
}

/// Parses the parts of a text, and returns the position of the first error in the whole text.
///
/// The parts are separated by one character each.
///
/// # Errors
/// The first error, with its position in the whole text.
pub fn each<'a, T, E: Into<Malformed>>(
    parts: impl Iterator<Item = &'a str>,
    mut parse: impl FnMut(&'a str) -> Result<T, E>,
) -> Result<Vec<T>, Malformed> {
    let mut before = 0;
    let part = |part: &'a str| {
        let parsed = parse(part).map_err(|error| {
            let error: Malformed = error.into();
            Malformed { before: error.before + before, ..error }
        });
        before += part.chars().count() + 1;
        parsed
    };
    parts.map(part).collect()
}
