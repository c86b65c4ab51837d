//! Events as users type them.

use halprof::event::raw_event::narrowed;
use halprof::event::{EventName, Malformed, SampledEvent, SourceName, suffix};
use halprof::protocol::{event_flags, modes};

/// An event is parsed as it is printed, alone and with modes, interval and counters. An error names a position in the
/// text.
pub fn event_name(bytes: &[u8]) {
    let text = crate::text(bytes);
    let source = text.parse::<SourceName>();
    match &source {
        Ok(source) => assert_eq!(spelled(source).parse().as_ref(), Ok(source), "a source printed and parsed again"),
        Err(error) => check_error(text, error),
    }
    match text.parse::<EventName>() {
        Ok(event) => {
            let again = event_text(&event);
            assert_eq!(EventName::parse(&again, modes::USER).as_ref(), Ok(&event), "{again}");
        }
        Err(error) => check_error(text, &error),
    }
    match text.parse::<SampledEvent>() {
        Ok(event) => {
            let interval = event.interval.map(|interval| format!("@{interval}")).unwrap_or_default();
            let again = event_text(&event.event) + &interval;
            assert_eq!(again.parse().as_ref(), Ok(&event), "{again}");
        }
        Err(error) => check_error(text, &error),
    }
}

/// Returns a source as a user can type it. Where numbers are shown to people, both notations of them are.
fn spelled(source: &SourceName) -> String {
    match source {
        SourceName::Number(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// Returns an event as a user can type it, with its modes in any case.
fn event_text(event: &EventName) -> String {
    let EventName { source, modes: bits, counters, flags } = event;
    let letters = if *bits == modes::BOTH { ":uk" } else { suffix(*bits) };
    let pinned = if flags & event_flags::PINNED == 0 { "" } else { "D" };
    if flags & event_flags::FETCHES != 0 {
        return format!("ibs_fetch//{letters}{pinned}");
    }
    let choices = [(event_flags::LOADS, "loads"), (event_flags::STORES, "stores")];
    let mut terms: Vec<&str> = choices.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, term)| term).collect();
    if terms.is_empty() {
        return format!("{}{letters}{pinned}", narrowed(&spelled(source), *counters));
    }
    if spelled(source).contains("0xc1") {
        terms.push("cnt_ctl=1");
    }
    format!("ibs_op/{}/{letters}{pinned}", terms.join(","))
}

fn check_error(text: &str, error: &Malformed) {
    let message = error.to_string();
    let position = message.strip_prefix("at character ").and_then(|rest| rest.split_once(": "));
    let (position, why) = position.expect("an error names its position");
    let position: usize = position.parse().expect("a position is a number");
    assert!((1..=text.chars().count() + 1).contains(&position), "{message}, in \"{text}\"");
    assert!(!why.is_empty());
}
