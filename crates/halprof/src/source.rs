//! The sources of the driver, and the search for one by name or number.

use std::cell::RefCell;
use std::collections::BTreeMap;

use events::nearest;
use pmu::Kind;
use pmu::interval::IntervalRange;
use pmu::source::RawEvent;
use protocol::{BRANCHES, Event, EventRequest, InfoReply, SourceRecord};
use serde::Serialize;
use thiserror::Error;

use crate::core_types::{SourceOnType, numbers, qualified};
use crate::errata::{self, SourceErratum};
use crate::error_kind::ErrorKind;
use crate::event::raw_event::{self, Notation};
use crate::event::role::{self, Role};
use crate::event::suggestions;
use crate::event::{SourceName, ibs, suffix};
use crate::text::format;
use crate::text::support;

/// Name of [`BRANCHES`], which is not an event of a counter.
pub const BRANCHES_NAME: &str = "Branches";

/// Why a name does not select a source.
#[derive(Debug, Error)]
pub enum SourceError {
    /// No source has this name.
    #[error("no source is called {given}{}", suggestions::elsewhere(.given, .near))]
    Unknown {
        /// The name, as the user typed it.
        given: String,
        /// The most similar names, best first.
        near: Vec<String>,
    },
    /// Only another profile interface has this source.
    #[error("{name} is not supported on this machine")]
    OtherInterface {
        /// Name of the source.
        name: String,
        /// The other interface.
        #[source]
        cause: OtherInterface,
    },
}

/// The profile interface that has a source, unlike that of this machine.
#[derive(Debug, Error)]
#[error("the {0} profile interface has it, and that of this machine does not")]
pub struct OtherInterface(pub &'static str);

impl SourceError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } => ErrorKind::UnknownSource,
            Self::OtherInterface { .. } => ErrorKind::UnsupportedSource,
        }
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Unknown { given, .. } => events::other_of_perf(given).map_or(".\\client list --all", |(_, who)| who),
            Self::OtherInterface { .. } => ".\\client list   (lists what is supported)",
        };
        Some(text.to_owned())
    }
}

/// A source, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct SourceInfo {
    /// KPROFILE_SOURCE; `None` for an event that the HAL has no number for.
    pub id: Option<u32>,
    /// Name in the HAL without `Profile`, a raw event in the notation of perf, or the number.
    pub name: String,
    /// Whether this machine supports it.
    pub supported: bool,
    /// Why it is not supported.
    pub reason: Option<String>,
    /// Current interval.
    pub interval: u32,
    /// Minimum interval.
    pub minimum: u32,
    /// Maximum interval.
    pub maximum: u32,
    /// Value of the event select register without enable and interrupt bits, in hexadecimal.
    pub select: String,
    /// The counters of a processor that can count it; empty if a timer counts.
    pub counters: Vec<u32>,
    /// Whether no table of the driver lists the event, so that it may count nothing on some of these counters.
    pub unlisted: bool,
    /// The counters of a processor that record it precisely, if it has PEBS.
    pub precise_counters: Vec<u32>,
    /// What it is on each core type of a hybrid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub core_types: Vec<SourceOnType>,
    /// Number of processors on which it currently runs.
    pub running: u32,
    /// Errata of the processor that make it count wrongly.
    pub errata: Vec<SourceErratum>,
    /// A [`pmu::Support`].
    #[serde(skip)]
    pub support: u32,
    /// `select` as a number.
    #[serde(skip)]
    pub select_number: u64,
    /// The event: restricted to a core type if the name of the source is, and to counters if the driver does not know
    /// those that count it.
    #[serde(skip)]
    pub event: Event,
}

impl From<&SourceRecord> for SourceInfo {
    fn from(record: &SourceRecord) -> Self {
        let supported = support::is_supported(record.support);
        Self {
            id: pmu::Source(record.source).number(),
            name: name(record),
            supported,
            reason: (!supported).then(|| support::sentence(record.support)),
            interval: record.interval,
            minimum: record.minimum,
            maximum: record.maximum,
            select: format::select(record.select),
            counters: numbers(record.counters),
            unlisted: record.unlisted != 0,
            precise_counters: numbers(record.precise),
            core_types: Vec::new(),
            running: record.running,
            errata: Vec::new(),
            support: record.support,
            select_number: record.select,
            event: Event::of(record.source),
        }
    }
}

impl SourceInfo {
    /// Adds the errata of the processor, of its cores of a type or, for 0, of all.
    #[must_use]
    pub fn with_errata(self, info: &InfoReply, core_type: u32) -> Self {
        Self { errata: errata::of_event(info, self.event.source, &self.name, core_type), ..self }
    }
}

/// A raw event, with the properties that are known without the driver. The driver checks at the start whether it
/// supports the event.
impl From<Event> for SourceInfo {
    fn from(event: Event) -> Self {
        let source = pmu::Source(event.source);
        let range = IntervalRange::of(source);
        Self {
            id: source.number(),
            name: Notation(event).to_string(),
            supported: true,
            reason: None,
            interval: range.default,
            minimum: range.minimum,
            maximum: range.maximum,
            select: format::select(source.raw().map_or(0, RawEvent::select)),
            counters: Vec::new(),
            unlisted: false,
            precise_counters: Vec::new(),
            core_types: Vec::new(),
            running: 0,
            errata: Vec::new(),
            support: 0,
            select_number: source.raw().map_or(0, RawEvent::select),
            event,
        }
    }
}

fn name(record: &SourceRecord) -> String {
    if pmu::Source(record.source).is_raw() {
        return Notation(Event::of(record.source)).to_string();
    }
    let name = record.name();
    // Other characters could corrupt a table, a terminal or a line of CSV.
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain { name.to_owned() } else { number_as_name(record.source) }
}

fn number_as_name(source: u64) -> String {
    format!("{source:#04x}")
}

/// What is remembered of a raw event that the user named.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    /// Whether no other event may have a general counter at the same time.
    alone: bool,
}

/// The sources of the driver.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    list: Vec<SourceInfo>,
    /// The raw events that the user named, on any counters.
    named: RefCell<BTreeMap<Event, Named>>,
    /// The events that the user named otherwise than the driver and their maker do, with these words.
    words: RefCell<BTreeMap<Event, String>>,
}

impl Sources {
    /// Creates the list from the reply of the driver.
    pub fn new(records: &[SourceRecord]) -> Self {
        Self { list: records.iter().map(SourceInfo::from).collect(), ..Self::default() }
    }

    /// Returns all sources in the order of the driver.
    pub fn iter(&self) -> impl Iterator<Item = &SourceInfo> {
        self.list.iter()
    }

    /// Returns the source that the user named.
    ///
    /// # Errors
    /// If no source has this name, or only another profile interface has it.
    pub fn find(&self, wanted: &SourceName) -> Result<SourceInfo, SourceError> {
        let (wanted, core_type) = (wanted.source(), wanted.core_type());
        let on_core_type = |source: SourceInfo| {
            let event = Event { core_type, ..source.event };
            SourceInfo { event, ..source }
        };
        if let SourceName::Raw(event) = wanted {
            return Ok(on_core_type(SourceInfo::from(*event)));
        }
        let matches = |source: &&SourceInfo| is_named(wanted, source.event.source, &source.name);
        // Two interfaces can use the same number: the supported source is preferred.
        let found = self.list.iter().filter(matches).max_by_key(|source| source.supported);
        found.cloned().map(on_core_type).ok_or_else(|| {
            let near = self.suggestions(wanted);
            in_other_interface(wanted).unwrap_or_else(|| SourceError::Unknown { given: wanted.to_string(), near })
        })
    }

    /// Returns the source of an event; `None` if the driver does not list its number.
    #[must_use]
    pub fn of_event(&self, event: Event) -> Option<SourceInfo> {
        if pmu::Source(event.source).is_raw() {
            return Some(SourceInfo::from(event));
        }
        // Two interfaces can use the same number: the supported source is preferred.
        let of_number = self.list.iter().filter(|source| source.event.source == event.source);
        of_number.max_by_key(|source| source.supported).map(|source| SourceInfo { event, ..source.clone() })
    }

    /// Returns the supported source with this role.
    pub fn with_role(&self, role: Role) -> Option<&SourceInfo> {
        self.list.iter().find(|source| source.supported && role::of(&source.name) == Some(role))
    }

    /// Remembers the name by which the user named a raw event, and whether no other event may have a general counter at
    /// the same time.
    pub fn remember(&self, source: &SourceInfo, alone: bool) {
        self.named.borrow_mut().insert(on_any_counter(source.event), Named { name: source.name.clone(), alone });
    }

    /// Gives an event the name by which the user calls it, unless that is its own in other letters.
    pub(crate) fn rename(&self, source: &mut SourceInfo, word: &str) {
        if normalized(&source.name) != normalized(word) {
            word.clone_into(&mut source.name);
            self.words.borrow_mut().insert(on_any_counter(source.event), word.to_owned());
        }
    }

    /// Returns the name by which the user called an event, or else its name.
    #[must_use]
    pub fn word_of(&self, event: &Event) -> String {
        self.words.borrow().get(&on_any_counter(*event)).cloned().unwrap_or_else(|| self.name_of(event))
    }

    /// The same of an event that is sampled: of IBS the name that says what is sampled.
    #[must_use]
    pub fn word_of_sampled(&self, request: &EventRequest) -> String {
        ibs::word_of(request).unwrap_or_else(|| self.word_of(&request.event))
    }

    fn remembered(&self, event: &Event) -> Option<String> {
        let (named, event) = (self.named.borrow(), on_any_counter(*event));
        let found = named.get(&event).or_else(|| named.get(&Event { core_type: 0, ..event }));
        found.map(|found| found.name.clone())
    }

    /// Returns whether no other event may have a general counter while this one counts.
    pub fn is_alone(&self, event: &Event) -> bool {
        self.named.borrow().get(&on_any_counter(*event)).is_some_and(|named| named.alone)
    }

    /// Returns the name of a source that was refused. A refusal has no value of an extra register, so the name is that
    /// of the only event of this source that the user named, if there is one.
    pub fn refused_name(&self, source: u64) -> String {
        let named = self.named.borrow();
        let mut of_source = named.iter().filter(|(event, _)| event.source == source).map(|(_, named)| &named.name);
        match (of_source.next(), of_source.all(|_| false)) {
            (Some(name), true) => name.clone(),
            _ => self.word_of(&Event::of(source)),
        }
    }

    /// Returns the name of an event, or its number if the driver does not list it. [`BRANCHES`] is never listed. On
    /// another core type the same encoding can be another event.
    pub fn name_of(&self, event: &Event) -> String {
        if event.source == BRANCHES {
            return BRANCHES_NAME.to_owned();
        }
        if pmu::Source(event.source).is_raw() {
            return self.remembered(event).unwrap_or_else(|| Notation(*event).to_string());
        }
        self.of_event(*event).map_or_else(|| number_as_name(event.source), |source| source.name)
    }

    /// Returns the name of an event, with its core type if it names one.
    #[must_use]
    pub fn event_name(&self, event: &Event) -> String {
        qualified(&self.word_of(event), event.core_type)
    }

    /// Returns the name, the modes and the counters of an event, as the user can type it: `BranchInstructions:u`.
    #[must_use]
    pub fn label(&self, request: &EventRequest) -> String {
        let EventRequest { event, modes, .. } = request;
        format!("{}{}", raw_event::narrowed(&self.event_name(event), event.counters), suffix(*modes))
    }

    /// Returns the names of the supported sources.
    pub fn names(&self) -> Vec<&str> {
        self.list.iter().filter(|source| source.supported).map(|source| source.name.as_str()).collect()
    }

    fn suggestions(&self, wanted: &SourceName) -> Vec<String> {
        let SourceName::Name(wanted) = wanted else { return Vec::new() };
        nearest(wanted, self.list.iter().map(|source| source.name.as_str()), suggestions::MOST)
    }
}

/// Returns whether the user named this source, which has this name.
#[must_use]
pub fn is_named(wanted: &SourceName, source: u64, name: &str) -> bool {
    match wanted.source() {
        SourceName::Number(number) => source == u64::from(*number),
        SourceName::Name(wanted) => normalized(name) == normalized(wanted),
        SourceName::Raw(event) => event.source == source,
        // No source of the HAL has an extra register, and a core type does not stand before another.
        SourceName::Valued(..) | SourceName::OnCoreType(..) => false,
    }
}

/// Returns the event without the counters that it is restricted to.
const fn on_any_counter(event: Event) -> Event {
    Event { counters: 0, ..event }
}

/// Returns the error for a source that only another profile interface has.
fn in_other_interface(wanted: &SourceName) -> Option<SourceError> {
    Kind::ALL.into_iter().find_map(|kind| {
        let source = kind.sources().iter().find(|source| is_named(wanted, source.source.0, source.name))?;
        Some(SourceError::OtherInterface { name: source.name.to_owned(), cause: OtherInterface(kind.name()) })
    })
}

/// Normalizes a name: lower case, without `Profile`. ProfileTime has two names.
fn normalized(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("profile").filter(|rest| !rest.is_empty()).unwrap_or(&name);
    if name == "time" { "timer".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use protocol::NAME_LENGTH;
    use zerocopy::FromZeros;

    use super::*;

    /// Returns the record of a source as the driver returns it.
    fn record(source: u64, name: &str, support: u32) -> SourceRecord {
        let mut bytes = [0; NAME_LENGTH];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let name_length = u32::try_from(name.len()).unwrap();
        SourceRecord { source, support, name_length, name: bytes, ..SourceRecord::new_zeroed() }
    }

    /// Returns a few sources, some of them unsupported.
    fn sources() -> Vec<SourceRecord> {
        vec![
            record(0, "Time", 4),
            record(2, "TotalIssues", 0),
            record(6, "BranchInstructions", 0),
            record(8, "DcacheMisses", 1),
            record(10, "CacheMisses", 3),
            record(11, "BranchMispredictions", 0),
            record(0x13, "TotalCycles", 0),
        ]
    }

    fn find(text: &str) -> Option<u64> {
        let wanted = text.parse().ok()?;
        Sources::new(&sources()).find(&wanted).ok().map(|source| source.event.source)
    }

    #[test]
    fn a_source_is_found_by_its_hal_name_and_by_its_number() {
        for name in ["TotalIssues", "totalissues", "ProfileTotalIssues", "PROFILETOTALISSUES", "2", "0x2", "0x02"] {
            assert_eq!(find(name), Some(2), "{name}");
        }
        for name in ["", "Profile", "Total", "TotalIssues ", "0x99", "ProfileProfileTotalIssues"] {
            assert_eq!(find(name), None, "{name:?}");
        }
    }

    #[test]
    fn the_name_branches_is_reserved_for_branches() {
        assert_eq!(Sources::new(&sources()).name_of(&Event::of(BRANCHES)), BRANCHES_NAME);
        assert_eq!(find(BRANCHES_NAME), None);
    }

    #[test]
    fn profile_time_is_also_found_by_its_name_in_wpr() {
        for name in ["Time", "Timer", "ProfileTime", "ProfileTimer", "0"] {
            assert_eq!(find(name), Some(0), "{name}");
        }
        assert_eq!(Sources::new(&sources()).name_of(&Event::of(0)), "Time");
    }

    #[test]
    fn a_number_of_two_interfaces_means_the_supported_source() {
        let both = [record(25, "FPDispatchedFPUOps", 1), record(25, "UnhaltedCoreCycles", 0)];
        assert_eq!(Sources::new(&both).name_of(&Event::of(25)), "UnhaltedCoreCycles");
        let swapped = [both[1], both[0]];
        assert_eq!(Sources::new(&swapped).name_of(&Event::of(25)), "UnhaltedCoreCycles");
    }

    #[test]
    fn an_unknown_name_has_suggestions_and_an_unknown_number_has_none() {
        let near = |text: &str| {
            let wanted = text.parse().unwrap();
            Sources::new(&sources()).suggestions(&wanted)
        };
        assert_eq!(near("BranchInstruction"), ["BranchInstructions"]);
        assert_eq!(near("branch"), ["BranchInstructions", "BranchMispredictions"]);
        assert_eq!(near("ProfileTotalIsues").first().map(String::as_str), Some("TotalIssues"));
        assert!(near("xyzzy").is_empty() && near("77").is_empty());
    }

    #[test]
    fn a_source_of_another_interface_is_reported_as_such() {
        let sources = Sources::new(&sources());
        for name in ["FpInstructions", "ProfileFpInstructions", "13", "0xd"] {
            let wanted = name.parse().unwrap();
            let error = sources.find(&wanted).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnsupportedSource);
            assert_eq!(error.to_string(), "FpInstructions is not supported on this machine");
            assert_eq!(
                error.source().unwrap().to_string(),
                "the Amd64 profile interface has it, and that of this machine does not"
            );
            assert_eq!(error.remedy().unwrap(), ".\\client list   (lists what is supported)");
        }
    }

    #[test]
    fn a_name_with_special_characters_is_replaced_by_the_number() {
        for name in ["", "a,b", "a b", "\x1b[31m", "a\"b"] {
            assert_eq!(Sources::new(&[record(9, name, 0)]).name_of(&Event::of(9)), "0x09", "{name:?}");
        }
    }
}
