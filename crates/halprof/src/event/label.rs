//! The name of a row that a user gives an event among its terms, as in perf: `cpu/event=0xC0,name=retired/`.

use std::ops::Range;

use crate::event::Malformed;

/// Parses an event without the term of the name, and returns the name if there is one.
///
/// # Errors
/// If the name is malformed or given twice, and those of `parse`, with the position in `text`.
pub fn labelled<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, Malformed>,
) -> Result<(T, Option<String>), Malformed> {
    let Some((before, term, behind)) = split(text) else { return Ok((parse(text)?, None)) };
    let label = term.strip_prefix("name=").filter(|label| is_label(label)).ok_or_else(|| {
        let why = "name begins with a letter and goes on with letters, digits, _, ., - and :";
        Malformed::from(format!("{why}, unlike \"{term}\"")).behind(before)
    })?;
    let (kept, rest) = match before.strip_suffix(',') {
        Some(kept) => (kept, behind),
        None => (before, behind.strip_prefix(',').unwrap_or(behind)),
    };
    let others = format!("{kept}{rest}");
    let parsed = match split(&others) {
        Some((before, ..)) => Err(Malformed::from("name is given twice".to_owned()).behind(before)),
        None => parse(&others),
    };
    let removed = text.chars().count() - others.chars().count();
    let parsed = parsed.map_err(|error| error.with_removed(kept.chars().count(), removed))?;
    Ok((parsed, Some(label.to_owned())))
}

/// Returns an error if an event has the term of a name, where it would have no effect.
///
/// # Errors
/// That the term is there, with its position.
pub(crate) fn refuse(text: &str) -> Result<(), Malformed> {
    split(text).map_or(Ok(()), |(before, ..)| {
        let why = "name= is for the rows of .\\client stat; leave it out here";
        Err(Malformed::from(why.to_owned()).behind(before))
    })
}

/// Splits an event around the term of the name.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find('/')? + 1;
    let terms = text.get(begin..)?.split_once('/')?.0;
    let mut next = begin;
    let ranges = terms.split(',').map(|term| {
        let range = next..next + term.len();
        next = range.end + 1;
        (range, term)
    });
    let is_name = |term: &str| term == "name" || term.starts_with("name=");
    let Range { start, end } = ranges.into_iter().find(|(_, term)| is_name(term))?.0;
    Some((text.get(..start)?, text.get(start..end)?, text.get(end..)?))
}

/// Returns whether a text can be a name. It is a part of lines and tables of text, so that it has no other characters.
fn is_label(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventName;

    fn parsed(text: &str) -> Result<(EventName, Option<String>), String> {
        labelled(text, str::parse).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_stands_anywhere_among_the_terms() {
        for (text, plain) in [
            ("cpu/event=0xc0,name=x.1/", "cpu/event=0xc0/"),
            ("cpu/name=x.1,event=0xc0/u", "cpu/event=0xc0/u"),
            ("cpu/event=0xc0,name=x.1,umask=1/:k", "cpu/event=0xc0,umask=1/:k"),
            ("cpu/INST_RETIRED.ANY,name=x.1/", "cpu/INST_RETIRED.ANY/"),
            ("cpu_core/TotalCycles,name=x.1/", "cpu_core/TotalCycles/"),
            ("cpu/NAME,ldlat=30,name=x.1/", "cpu/NAME,ldlat=30/"),
        ] {
            assert_eq!(parsed(text), Ok((plain.parse().unwrap(), Some("x.1".to_owned()))), "{text}");
        }
        assert_eq!(parsed("TotalCycles:u"), Ok(("TotalCycles:u".parse().unwrap(), None)));
    }

    #[test]
    fn a_malformed_event_with_a_name_is_reported_where_it_is() {
        for (text, position, part) in [
            ("cpu/event=1,name=/", 13, "unlike \"name=\""),
            ("cpu/event=1,name/", 13, "unlike \"name\""),
            ("cpu/event=1,name==1/", 13, "begins with a letter"),
            ("cpu/event=1,name=a b/", 13, "unlike \"name=a b\""),
            ("cpu/event=1,name=x,name=y/", 20, "name is given twice"),
            ("cpu/event=1,name=x,umask=z/", 20, "umask is from 0 to 0xffff"),
            ("cpu/name=x,event=z/", 12, "event is from 0 to 0xfff"),
            ("cpu/event=z,name=x/", 5, "event is from 0 to 0xfff"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(
                error.starts_with(&format!("at character {position}: ")) && error.contains(part),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_name_is_refused_where_it_would_have_no_effect() {
        for text in ["cpu/event=1,name=x/", "cpu/NAME,name=x/u", "cpu_core/TotalCycles,name=x/"] {
            let error = text.parse::<EventName>().unwrap_err().to_string();
            assert!(error.ends_with("name= is for the rows of .\\client stat; leave it out here"), "{text}: {error}");
        }
    }
}
