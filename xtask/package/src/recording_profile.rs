//! Tests of halprof.wprp, the recording profile for Windows Performance Recorder, against the elements that Microsoft
//! documents ("EventProvider", "Profile", "2. System and Event Provider Definitions", "3. Profile Definitions" of the
//! Windows Performance Toolkit) and against the driver's events.

use std::collections::BTreeSet;

use protocol::trace::{EventId, LEVEL, PROVIDER_ID};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The file in the repository.
const PROFILE: &str = include_str!("../../../wpr/halprof.wprp");

/// Children of `Profiles`, in the order in which their definitions must come.
const ORDER: [&str; 5] = ["SystemCollector", "EventCollector", "SystemProvider", "EventProvider", "Profile"];

/// Largest buffer of a trace session in KiB (EVENT_TRACE_PROPERTIES).
const MAX_BUFFER: u32 = 1_024;

/// An element with its attributes and children.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Self>,
}

impl Element {
    fn of(start: &BytesStart) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let attributes = start.attributes().map(|attribute| {
            let attribute = attribute.unwrap();
            (text(attribute.key.as_ref()), text(&attribute.value))
        });
        Self { name: text(start.name().as_ref()), attributes: attributes.collect(), children: Vec::new() }
    }

    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("{} has no {name}: {self:?}", self.name)).1
    }

    fn named(&self, name: &str) -> Vec<&Self> {
        self.children.iter().filter(|child| child.name == name).collect()
    }

    /// Returns the only child with this name.
    fn only(&self, name: &str) -> &Self {
        let [child] = self.named(name)[..] else { panic!("{} has not one {name}: {self:?}", self.name) };
        child
    }

    /// Returns the attribute `Value` of each child with this name.
    fn values(&self, name: &str) -> Vec<&str> {
        self.named(name).into_iter().map(|child| child.attribute("Value")).collect()
    }
}

/// Parses the file, and returns the element `Profiles`.
fn profiles() -> Element {
    let mut reader = Reader::from_str(PROFILE);
    let mut open = vec![Element { name: String::new(), attributes: Vec::new(), children: Vec::new() }];
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => open.push(Element::of(&start)),
            Event::Empty(start) => open.last_mut().unwrap().children.push(Element::of(&start)),
            Event::End(_) => {
                let closed = open.pop().unwrap();
                open.last_mut().unwrap().children.push(closed);
            }
            Event::Text(text) => assert!(text.iter().all(u8::is_ascii_whitespace), "{text:?}"),
            Event::Decl(_) | Event::Comment(_) => {}
            Event::Eof => break,
            other => panic!("{other:?}"),
        }
    }
    let [file] = &open[..] else { panic!("{} elements are not closed", open.len() - 1) };
    let root = file.only("WindowsPerformanceRecorder");
    assert_eq!(root.attribute("Version"), "1.0");
    assert_eq!((file.children.len(), root.children.len()), (1, 1));
    open.remove(0).children.remove(0).children.remove(0)
}

/// Places of the bytes of a GUID in memory, by the groups of its text: the first three groups are little-endian.
const GROUPS: [&[usize]; 5] = [&[3, 2, 1, 0], &[5, 4], &[7, 6], &[8, 9], &[10, 11, 12, 13, 14, 15]];

/// Returns the GUID of the provider as text.
fn provider() -> String {
    let group =
        |places: &[usize]| places.iter().map(|place| format!("{:02x}", PROVIDER_ID[*place])).collect::<Vec<_>>();
    GROUPS.map(|places| group(places).concat()).join("-")
}

#[test]
fn definitions_are_in_the_documented_order_and_each_has_its_own_identifier() {
    let profiles = profiles();
    let places: Vec<usize> = profiles
        .children
        .iter()
        .map(|child| ORDER.iter().position(|name| *name == child.name).unwrap_or_else(|| panic!("{}", child.name)))
        .collect();
    assert!(places.is_sorted() && places.iter().collect::<BTreeSet<_>>().len() == ORDER.len(), "{places:?}");
    let ids: Vec<&str> = profiles.children.iter().map(|child| child.attribute("Id")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert!(ids.iter().all(|id| !id.is_empty() && !id.contains([':', ' '])), "{ids:?}");
}

#[test]
fn the_provider_is_that_of_the_driver_with_the_stacks_of_all_its_events() {
    let profiles = profiles();
    let provider_element = profiles.only("EventProvider");
    assert_eq!(provider_element.attribute("Name"), provider());
    assert_eq!(provider_element.attribute("Level"), LEVEL.to_string());
    assert_eq!(provider_element.attribute("Stack"), "true");
    assert_eq!(provider_element.attribute("NonPagedMemory"), "true", "a driver cannot write to paged buffers");
    let keywords = provider_element.only("Keywords");
    let all = EventId::ALL.into_iter().fold(0, |all, event| all | event.keyword());
    assert_eq!(keywords.values("Keyword"), [format!("{all:#x}")]);
    let system = profiles.only("SystemProvider").only("Keywords").values("Keyword");
    assert_eq!(system, ["ProcessThread", "Loader"], "what symbols need");
}

#[test]
fn collectors_have_buffers_of_an_allowed_size() {
    let profiles = profiles();
    for name in ["SystemCollector", "EventCollector"] {
        let collector = profiles.only(name);
        let number = |child: &str| -> u32 { collector.only(child).attribute("Value").parse().unwrap() };
        assert!((4..=MAX_BUFFER).contains(&number("BufferSize")), "{name}");
        assert!(number("Buffers") >= 16, "{name}");
        assert!(!collector.attribute("Name").is_empty());
    }
}

#[test]
fn there_is_a_profile_for_a_file_and_one_for_memory_and_they_refer_to_what_is_defined() {
    let profiles = profiles();
    let of_mode = |mode: &str| {
        let mut found = profiles.named("Profile");
        found.retain(|profile| profile.attribute("LoggingMode") == mode);
        let [profile] = found[..] else { panic!("{mode}: {}", found.len()) };
        profile
    };
    let (file, memory) = (of_mode("File"), of_mode("Memory"));
    for profile in [file, memory] {
        let parts = ["Name", "DetailLevel", "LoggingMode"].map(|part| profile.attribute(part));
        assert_eq!(profile.attribute("Id"), parts.join("."));
        assert!(!profile.attribute("Description").is_empty());
    }
    assert_eq!(memory.attribute("Base"), file.attribute("Id"));

    let _ = file.only("ProblemCategories").only("ProblemCategory");
    let collectors = file.only("Collectors");
    let (system, events) = (collectors.only("SystemCollectorId"), collectors.only("EventCollectorId"));
    let id = |name: &str| profiles.only(name).attribute("Id");
    assert_eq!(system.attribute("Value"), id("SystemCollector"));
    assert_eq!(system.values("SystemProviderId"), [id("SystemProvider")]);
    assert_eq!(events.attribute("Value"), id("EventCollector"));
    assert_eq!(events.only("EventProviders").values("EventProviderId"), [id("EventProvider")]);
}

/// The document that describes the provider.
mod document {
    use protocol::trace::{PROVIDER_NAME, keywords};

    use super::*;

    const DOCUMENT: &str = include_str!("../../../docs/etw.md");

    /// Returns the name of an event and those of its fields from its metadata: the size, the tags, and each name with a
    /// zero and a type, which can have a second byte.
    fn names(event: EventId) -> (String, Vec<String>) {
        let mut rest = &event.metadata()[3..];
        let mut name = |types: bool| {
            let end = rest.iter().position(|byte| *byte == 0).unwrap();
            let name = String::from_utf8(rest[..end].to_vec()).unwrap();
            rest = &rest[end + 1..];
            if types {
                let has_second = rest[0] & 0x80 != 0;
                rest = &rest[1 + usize::from(has_second)..];
            }
            (name, rest.is_empty())
        };
        let (event, _) = name(false);
        let mut fields = Vec::new();
        loop {
            let (field, is_last) = name(true);
            fields.push(field);
            if is_last {
                return (event, fields);
            }
        }
    }

    /// Returns the first cells of the rows of the table after a text.
    fn rows(text: &str) -> Vec<&'static str> {
        let (_, after) = DOCUMENT.split_once(text).unwrap_or_else(|| panic!("no {text}"));
        let table = after.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        table.skip(2).map(|line| line.trim_start_matches("| ").split(" | ").next().unwrap().trim_matches('`')).collect()
    }

    #[test]
    fn each_event_has_a_table_of_its_fields() {
        for event in EventId::ALL {
            let (name, fields) = names(event);
            let heading = match event {
                EventId::Lost | EventId::Throttled => "### Lost and Throttled".to_owned(),
                _ => format!("### {name}"),
            };
            assert_eq!(rows(&format!("\n{heading}\n")), fields, "{name}");
            let keyword = event.keyword();
            let row = format!("| {} | `{name}` | {keyword:#x} |", event as u16);
            assert!(DOCUMENT.contains(&row), "no row {row}");
        }
    }

    #[test]
    fn the_provider_has_the_name_guid_level_and_keywords_of_the_code() {
        for text in [
            format!("| name | `{PROVIDER_NAME}` |"),
            format!("`{{{}}}`", provider()),
            format!("| level | {LEVEL}, "),
            format!("| {:#x} | ", keywords::SAMPLES),
            format!("| {:#x} | ", keywords::LOSSES),
            format!("| {:#x} | ", keywords::SESSIONS),
        ] {
            assert!(DOCUMENT.contains(&text), "docs/etw.md has no {text}");
        }
    }
}
