//! Names separated by commas. Commas inside a raw event do not separate names.

use std::slice;
use std::str::FromStr;

use halprof::event::{Malformed, each};

/// The names in one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names<T>(Vec<T>);

impl<T: FromStr<Err = Malformed>> FromStr for Names<T> {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        each(split(text), str::parse).map(Self)
    }
}

/// Splits a text at the commas that separate names.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut slashes = 0;
    text.split(move |letter| {
        slashes += usize::from(letter == '/');
        letter == ',' && slashes % 2 == 0
    })
}

impl<T> Names<T> {
    /// Returns the names in their order.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a Names<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halprof::event::SampledEvent;

    #[test]
    fn commas_separate_names_but_not_the_terms_of_a_raw_event() {
        for (text, number) in [
            ("A", 1),
            ("A,B", 2),
            ("cpu/event=1,umask=2/", 1),
            ("A:u@100k,cpu/event=1,umask=2/u@1M,cpu/event=2/:k,B", 4),
        ] {
            let names: Names<SampledEvent> = text.parse().unwrap();
            assert_eq!(names.into_iter().count(), number, "{text}");
        }
        for text in ["", "A,", ",A", "cpu/event=1,umask=2", "cpu/event=1//", "A,cpu/"] {
            assert!(text.parse::<Names<SampledEvent>>().is_err(), "{text:?}");
        }
    }
}
