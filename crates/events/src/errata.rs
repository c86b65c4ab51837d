//! Errata of events, as Intel's event files name them (perfmon of 13 August 2026, field "Errata").

use crate::database::Table;

/// A line for each event with errata: its table, its name, and the numbers with bars between them.
const ERRATA: &str = include_str!("errata.csv");

/// Returns the numbers of the errata that make an event of a table count wrongly. The name is in any case of letters.
pub fn errata(table: Table, name: &str) -> impl Iterator<Item = &'static str> + use<> {
    let numbers_of = |line: &'static str| {
        let (place, numbers) = line.rsplit_once(',')?;
        let (of, event) = place.split_once(',')?;
        (of == table.name() && event.eq_ignore_ascii_case(name)).then_some(numbers)
    };
    ERRATA.lines().find_map(numbers_of).into_iter().flat_map(|numbers| numbers.split('|'))
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
            assert_eq!(errata(table, &event.name.to_lowercase()).collect::<Vec<_>>().join("|"), fields[2], "{line}");
        }
    }
}
