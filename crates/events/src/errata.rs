//! Errata of events, as Intel's event files name them (field "Errata").

use std::collections::BTreeSet;

use crate::database::Table;

/// USR and OS of a select register: an event is the same in all modes.
const MODES: u64 = 3 << 16;

/// A line for each event with errata: its table, its name, and the numbers with bars between them.
const ERRATA: &str = include_str!("../facts/errata.csv");

/// Returns the numbers of the errata that make an event of a table count wrongly, in alphabetical order. The event has
/// this name, in any case of letters, or this [select register](crate::Encoding::select), if it was given by number:
/// the value of a second register does not matter.
#[must_use]
pub fn errata(table: Table, name: &str, select: Option<u64>) -> BTreeSet<&'static str> {
    let numbers_of = |line: &'static str| {
        let (place, numbers) = line.rsplit_once(',')?;
        let event = place.strip_prefix(table.name())?.strip_prefix(',')?;
        let is_it = event.eq_ignore_ascii_case(name)
            || select.is_some_and(|select| {
                table.find(event).is_some_and(|known| known.encoding.select() == select & !MODES)
            });
        is_it.then_some(numbers)
    };
    ERRATA.lines().filter_map(numbers_of).flat_map(|numbers| numbers.split('|')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_an_event() {
        for line in ERRATA.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let table = Table::all().find(|table| Some(table.name()) == fields.first().copied());
            let found = table.and_then(|table| Some((table, table.find(fields.get(1)?)?)));
            let (table, event) = found.unwrap_or_else(|| panic!("{line}"));
            let wanted: BTreeSet<_> = fields[2].split('|').collect();
            assert_eq!(errata(table, &event.name.to_lowercase(), None), wanted, "{line}");
            assert!(errata(table, "", Some(event.encoding.select())).is_superset(&wanted), "{line}");
        }
    }
}
