//! Groups of events for metrics.

/// Returns groups of events so that the events of each metric run together where they fit.
///
/// `inputs` has the events of each metric, `fits` says whether events can be counted at the same time. The events of a
/// metric that do not fit are in several groups. Groups are joined while they fit, so that metrics of which one is
/// what others leave have the same times.
#[must_use]
pub fn groups<'a>(inputs: &[Vec<&'a str>], fits: &dyn Fn(&[&'a str]) -> bool) -> Vec<Vec<&'a str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for events in inputs {
        let mut whole: Vec<&str> = Vec::new();
        for event in events.iter().filter(|event| !event.is_empty()) {
            if !whole.contains(event) {
                whole.push(event);
            }
        }
        let mut rest = whole;
        while !rest.is_empty() {
            // The longest beginning that fits, and at least one event, whose refusal then has a reason.
            let count = (1..=rest.len()).rev().find(|count| rest.get(..*count).is_some_and(fits)).unwrap_or(1);
            let behind = rest.split_off(count);
            add(&mut groups, rest, fits);
            rest = behind;
        }
    }
    groups
}

/// Adds events to the first group with which they fit.
fn add<'a>(groups: &mut Vec<Vec<&'a str>>, events: Vec<&'a str>, fits: &dyn Fn(&[&'a str]) -> bool) {
    for group in groups.iter_mut() {
        let mut joined = group.clone();
        joined.extend(events.iter().filter(|event| !group.contains(event)));
        if joined.len() == group.len() || fits(&joined) {
            *group = joined;
            return;
        }
    }
    groups.push(events);
}
