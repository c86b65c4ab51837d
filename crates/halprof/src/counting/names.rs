//! The names of the events of a session, by their index in its request.

use pmu::CoreType;
use protocol::{CountRecord, Event, EventRequest};

use crate::source::Sources;

/// The names of the events of a session. They are looked up once, when it starts: a later request that names the same
/// event otherwise renames no count of this one.
#[derive(Debug, Clone, Default)]
pub struct EventNames(Vec<NamesOfEvent>);

/// The names of an event on the processors of each core type: the same number can be two events.
#[derive(Debug, Clone)]
struct NamesOfEvent {
    everywhere: String,
    by_core_type: [(u32, String); CoreType::ALL.len()],
}

impl EventNames {
    /// Looks up the names of the events of a request.
    #[must_use]
    pub fn of(requested: &[EventRequest], sources: &Sources) -> Self {
        let names = |event: &EventRequest| {
            let on = |core_type| sources.name_of(&Event { core_type, ..event.event });
            let by_core_type = CoreType::ALL.map(CoreType::number).map(|number| (number, on(number)));
            NamesOfEvent { everywhere: on(0), by_core_type }
        };
        Self(requested.iter().map(names).collect())
    }

    /// Returns the name of the event with this index, on processors of a core type or, with 0, on all. An event that
    /// was not requested has none.
    #[must_use]
    pub fn get(&self, index: u32, core_type: u32) -> &str {
        let Some(names) = usize::try_from(index).ok().and_then(|index| self.0.get(index)) else { return "" };
        let on_core_type = names.by_core_type.iter().find(|(number, _)| *number == core_type);
        on_core_type.map_or(&names.everywhere, |(_, name)| name)
    }

    /// Returns the name of the event of a count.
    #[must_use]
    pub fn of_count(&self, record: &CountRecord) -> String {
        self.get(record.index, record.event.core_type).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use protocol::modes;

    use super::*;
    use crate::counting::count;
    use crate::event::SourceName;
    use crate::source::SourceInfo;

    #[test]
    fn the_names_of_a_session_are_those_of_its_start() {
        let sources = Sources::default();
        let source_of = |text: &str, name: &str| {
            let source = sources.find(&text.parse::<SourceName>().unwrap()).unwrap();
            SourceInfo { name: name.to_owned(), ..source }
        };
        let [core, atom] = CoreType::ALL.map(CoreType::number);
        let (one, two) = ("cpu/event=0xd1,umask=0x20/", "cpu/event=0xc2,umask=0x01/");
        for (core_type, name) in [(core, "OF_CORE"), (atom, "OF_ATOM")] {
            let source = source_of(one, name);
            sources.remember(&SourceInfo { event: Event { core_type, ..source.event }, ..source }, false);
        }
        let request =
            |text| EventRequest { event: source_of(text, "").event, modes: modes::BOTH, ..EventRequest::EMPTY };
        let names = EventNames::of(&[request(two), request(one)], &sources);
        sources.remember(&source_of(two, "LATER"), false);
        let given = [(0, 0), (0, core), (1, core), (1, atom), (1, 0), (2, 0)].map(|(index, on)| names.get(index, on));
        assert_eq!(given, [two, two, "OF_CORE", "OF_ATOM", one, ""]);
        let record =
            CountRecord { event: Event { core_type: atom, ..count(0, 1, 1).event }, index: 1, ..count(0, 1, 1) };
        assert_eq!(names.of_count(&record), "OF_ATOM");
    }
}
