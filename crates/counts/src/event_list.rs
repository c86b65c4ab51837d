//! Events separated by commas, with groups in braces: `A,{B,C}:u`.

use std::slice;
use std::str::FromStr;

use halprof::event::label::labelled;
use halprof::event::{EventName, Malformed, Modifiers, each};

use super::names::split;

/// The events in one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventList(Vec<Member>);

/// Events whose terms can name the rows of their counts: `cpu/event=0xC0,name=retired/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledEventList(pub EventList);

/// Parses an event, and the name of its row if it has one.
type ParseEvent = fn(&str) -> Result<(EventName, Option<String>), Malformed>;

/// An event of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The event.
    pub event: EventName,
    /// Number of the braces around it, from 1 in this list; 0 if there are none.
    pub group: u32,
    /// The name of its row, if the user gave one.
    pub label: Option<String>,
}

impl FromStr for LabelledEventList {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        EventList::parse(text, |event| labelled(event, str::parse)).map(Self)
    }
}

impl FromStr for EventList {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text, |event| Ok((event.parse()?, None)))
    }
}

impl EventList {
    fn parse(text: &str, parse_event: ParseEvent) -> Result<Self, Malformed> {
        let (mut members, mut groups, mut rest) = (Vec::new(), 0, text);
        loop {
            let before = text.get(..text.len() - rest.len()).unwrap_or_default();
            let behind = next(rest, &mut members, &mut groups, parse_event).map_err(|error| error.behind(before))?;
            match behind {
                Some(behind) => rest = behind,
                None => return Ok(Self(members)),
            }
        }
    }
}

/// Adds the first event or group of a list, and returns what follows its comma.
fn next<'a>(
    rest: &'a str,
    members: &mut Vec<Member>,
    groups: &mut u32,
    parse_event: ParseEvent,
) -> Result<Option<&'a str>, Malformed> {
    let (item, behind) = if rest.starts_with('{') { split_group(rest)? } else { split_event(rest)? };
    if let Some(inside) = item.strip_prefix('{') {
        *groups += 1;
        let events = group(inside, parse_event).map_err(|error| error.behind("{"))?;
        members.extend(events.into_iter().map(|(event, label)| Member { event, group: *groups, label }));
    } else {
        let (event, label) = parse_event(item)?;
        members.push(Member { event, group: 0, label });
    }
    Ok(behind)
}

/// Splits a list that begins with a group behind the modifiers of the group.
fn split_group(text: &str) -> Result<(&str, Option<&str>), Malformed> {
    let open = || Malformed::from(format!("\"{text}\" has no closing brace")).behind(text);
    let end = text.find('}').ok_or_else(open)?;
    let comma = text.split_at(end).1.find(',').map(|comma| end + comma);
    Ok(comma.map_or((text, None), |comma| (text.split_at(comma).0, text.get(comma + 1..))))
}

/// Splits a list behind its first event.
fn split_event(text: &str) -> Result<(&str, Option<&str>), Malformed> {
    let first = split(text).next().unwrap_or(text);
    if let Some((before, _)) = first.split_once(['{', '}']) {
        let why = format!("\"{first}\" has a brace in the wrong place; write {{A,B}} or {{A,B}}:u");
        return Err(Malformed::from(why).behind(before));
    }
    Ok((first, text.get(first.len() + 1..)))
}

/// Parses a group behind its opening brace.
fn group(text: &str, parse_event: ParseEvent) -> Result<Vec<(EventName, Option<String>)>, Malformed> {
    let (inside, behind) = text.split_once('}').unwrap_or((text, ""));
    if let Some((before, _)) = inside.split_once('{') {
        return Err(Malformed::from(format!("\"{{{inside}\" has a group within a group")).behind(before));
    }
    let modifiers = match behind.strip_prefix(':') {
        Some(letters) => letters.parse(),
        None if behind.is_empty() => Ok(Modifiers::default()),
        None => Err(format!("\"{behind}\" stands behind a group; write a comma, or a colon and u, k or D")),
    };
    let modifiers = modifiers.map_err(|why| Malformed::from(why).behind(inside).behind("}"))?;
    each(split(inside), |event| {
        let (event, label) = parse_event(event)?;
        Ok::<_, Malformed>((event.with(modifiers)?, label))
    })
}

impl EventList {
    /// Returns the events in the order in which they were named.
    pub fn iter(&self) -> slice::Iter<'_, Member> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a EventList {
    type Item = &'a Member;
    type IntoIter = slice::Iter<'a, Member>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use halprof::protocol::event_flags;

    use super::*;

    fn parsed(text: &str) -> Vec<(String, u32, u32, bool)> {
        let list: EventList = text.parse().unwrap();
        let member = |member: &Member| {
            let EventName { source, modes, flags, .. } = &member.event;
            (source.to_string(), member.group, *modes, flags & event_flags::PINNED != 0)
        };
        list.into_iter().map(member).collect()
    }

    #[test]
    fn an_event_can_name_its_row_in_and_outside_of_groups() {
        let list: LabelledEventList = "{cpu/event=1,name=a/,B},cpu/name=c,event=2/u".parse().unwrap();
        let labels: Vec<_> = list.0.into_iter().map(|member| (member.group, member.label.as_deref())).collect();
        assert_eq!(labels, [(1, Some("a")), (1, None), (0, Some("c"))]);
        let error = "A,{B,cpu/event=1,name=x,umask=z/}".parse::<LabelledEventList>().unwrap_err().to_string();
        assert!(error.starts_with("at character 25: umask is from 0"), "{error}");
    }

    #[test]
    fn braces_make_groups_whose_modifiers_are_those_of_every_member() {
        let of = |name: &str, group, modes, pinned| (name.to_owned(), group, modes, pinned);
        assert_eq!(parsed("A"), [of("A", 0, 3, false)]);
        assert_eq!(parsed("{A}"), [of("A", 1, 3, false)]);
        assert_eq!(
            parsed("A:u,{B,C:k},{D,E}:uD,F:D"),
            [
                of("A", 0, 1, false),
                of("B", 1, 3, false),
                of("C", 1, 2, false),
                of("D", 2, 1, true),
                of("E", 2, 1, true),
                of("F", 0, 3, true),
            ]
        );
        let raw = parsed("{cpu/event=1,umask=2/,cpu/event=2,umask=3/k},cpu/event=3,umask=4/");
        assert_eq!(
            raw.iter().map(|(_, group, modes, _)| (*group, *modes)).collect::<Vec<_>>(),
            [(1, 3), (1, 2), (0, 3)]
        );
    }

    #[test]
    fn each_malformed_list_is_refused() {
        for text in [
            "", "{", "}", "{}", "{A", "A}", "{A,}", "{,A}", "{A},", ",{A}", "{A}{B}", "{A}B", "{{A}}", "{A,{B}}",
            "A{B}", "{A}:", "{A}:x", "{A}:p", "{A}u", "{A}:uu", "{A:u}:k", "{A:p}", "A,,B", "{A};{B}", "{A} ,B:",
            "{A}:D:u",
        ] {
            assert!(text.parse::<EventList>().is_err(), "{text:?}");
        }
    }
}
