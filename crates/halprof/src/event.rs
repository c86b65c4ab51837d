//! Events by the names that users type: parsing them, and what they stand for on a machine.
//!
//! An event is a profile source of Windows (`TotalIssues`), a generic name of perf (`instructions`), an event by the
//! name that its maker gives it (`INST_RETIRED.ANY`), or an event in the notation of perf
//! (`cpu/event=0xc0,umask=0x01/`). Behind it can stand `:u` or `:k`, for user or kernel mode alone.

pub(crate) mod alone;
pub(crate) mod core_tables;
pub mod event_cache;
pub(crate) mod ibs;
pub mod label;
pub(crate) mod malformed;
pub(crate) mod named;
pub(crate) mod no_generic;
pub mod raw_event;
pub mod role;
pub mod suggestions;
pub mod vendor_event;

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use pmu::CoreType;
use pmu::extra::Extra;
pub use protocol::modes::suffix;
use protocol::{Event, event_flags, modes};

pub use self::alone::TogetherError;
pub use self::malformed::{Malformed, each};
pub use self::named::{NamedEvent, find, one, requests, resolve};
pub use self::no_generic::NoGeneric;
use self::raw_event::{ExtraTerm, Notation};
use crate::core_types::qualified;
use crate::text::argument::argument;
use crate::text::number;

const PRECISE_BOTH: u32 = modes::BOTH | modes::PRECISE;
const PRECISE_USER: u32 = modes::USER | modes::PRECISE;
const PRECISE_KERNEL: u32 = modes::KERNEL | modes::PRECISE;

/// A source, as users type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceName {
    /// A number, decimal or hexadecimal after `0x`.
    Number(u32),
    /// A name with or without `Profile`, in any case.
    Name(String),
    /// A maker's name with another value of its extra register: `MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4:ldlat=30`.
    Valued(String, Extra),
    /// An event in the notation of perf.
    Raw(Event),
    /// One of the others, on processors of one core type of a hybrid: `cpu_core/TotalCycles/`.
    OnCoreType(CoreType, Box<Self>),
}

impl SourceName {
    /// Returns the number of the core type that it names, or 0.
    #[must_use]
    pub fn core_type(&self) -> u32 {
        match self {
            Self::OnCoreType(core_type, _) => core_type.number(),
            Self::Number(_) | Self::Name(_) | Self::Valued(..) | Self::Raw(_) => 0,
        }
    }

    /// Returns the source without the core type.
    #[must_use]
    pub fn source(&self) -> &Self {
        match self {
            Self::OnCoreType(_, source) => source,
            Self::Number(_) | Self::Name(_) | Self::Valued(..) | Self::Raw(_) => self,
        }
    }

    /// Returns the source that the terms select, and the mask of the counters that it may take.
    const fn parsed(event: Event) -> (Self, u32) {
        (Self::Raw(Event { counters: 0, ..event }), event.counters)
    }

    /// Parses what stands between the slashes behind a core type: the terms of an event, or a source of a table.
    fn on_core_type(core_type: CoreType, text: &str) -> Result<(Self, u32), Malformed> {
        let (source, counters) = if let Some(valued) = Self::valued_term(text) {
            (valued?, 0)
        } else if text.contains(['=', ',']) {
            Self::parsed(raw_event::parse(text)?)
        } else if text.is_empty() || text.contains(['/', ':']) {
            return Err(format!("write {core_type}/SOURCE/ or {core_type}/event=0xC0,umask=0x00/").into());
        } else {
            (Self::named(text)?, 0)
        };
        Ok((Self::OnCoreType(core_type, Box::new(source)), counters))
    }
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits the beginning of a notation with slashes from the rest: `cpu/`, or the core type of a hybrid.
fn split_prefix(text: &str) -> Option<(Option<CoreType>, &str, &str)> {
    let (prefix, rest) = text.split_at(text.find('/')? + 1);
    if prefix == raw_event::PREFIX {
        return Some((None, prefix, rest));
    }
    let core_type = CoreType::ALL.into_iter().find(|core_type| prefix.strip_suffix('/') == Some(core_type.name()))?;
    Some((Some(core_type), prefix, rest))
}

impl FromStr for SourceName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        match narrowed(text)? {
            (source, 0) => Ok(source),
            _ => {
                Err(format!("\"{text}\" has counters=, which is for events that are counted or sampled; leave it out")
                    .into())
            }
        }
    }
}

/// Returns a source, and the mask of the counters that the user allows, or 0 for any.
fn narrowed(text: &str) -> Result<(SourceName, u32), Malformed> {
    if let Some((core_type, prefix, rest)) = split_prefix(text) {
        label::refuse(text)?;
        let open = || Malformed::from(format!("\"{text}\" has no closing slash")).behind(text);
        let terms = rest.strip_suffix('/').ok_or_else(open)?;
        let parsed = match core_type {
            None if SourceName::is_name(terms) => SourceName::named(terms).map(|name| (name, 0)),
            None => match SourceName::valued_term(terms) {
                Some(valued) => valued.map(|valued| (valued, 0)),
                None => raw_event::parse(terms).map(SourceName::parsed),
            },
            Some(core_type) => SourceName::on_core_type(core_type, terms),
        };
        return parsed.map_err(|error| error.behind(prefix));
    }
    Ok((SourceName::named(text)?, 0))
}

impl SourceName {
    /// Returns a name with the value of an extra register between slashes, as in perf: `NAME,ldlat=30`. `None` if the
    /// text is something else.
    fn valued_term(text: &str) -> Option<Result<Self, Malformed>> {
        let (name, term) = text.rsplit_once([',', ':'])?;
        let is_name = !name.is_empty() && !name.contains(['=', ',']);
        let value = raw_event::extra_term(term).filter(|_| is_name)?;
        Some(Self::valued(name, value))
    }

    /// Returns a name with the value of the term that follows a separator.
    fn valued(name: &str, value: Result<Extra, String>) -> Result<Self, Malformed> {
        let value = value.map_err(|why| Malformed::from(why).behind(name).behind(":"))?;
        if name.is_empty() {
            return Err("the name of a source is empty".to_owned().into());
        }
        Ok(Self::Valued(name.to_owned(), value))
    }

    /// Returns whether what stands between the slashes of `cpu/NAME/` is the name of an event, and no term.
    fn is_name(text: &str) -> bool {
        let is_empty = text.is_empty() || text.contains(['=', ',', '/', ':']);
        !is_empty && !raw_event::is_term(text) && raw_event::of_config(text).is_none()
    }

    /// Returns the source of a number or a name.
    fn named(text: &str) -> Result<Self, Malformed> {
        // Some names of Intel's have colons and equals signs too.
        if let Some((name, term)) = text.rsplit_once(':')
            && let Some(value) = raw_event::extra_term(term)
        {
            return Self::valued(name, value);
        }
        if let Some(event) = raw_event::of_config(text) {
            return Ok(Self::Raw(raw_event::event_of(event?, None)));
        }
        // Names can begin with a digit (Profile2Issue), so any text that is not a number is a name.
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u32::from_str_radix(digits, radix) {
            Ok(number) if plain => Ok(Self::Number(number)),
            Err(cause)
                if plain && *cause.kind() == IntErrorKind::PosOverflow && (radix == 16 || is_decimal(digits)) =>
            {
                Err(format!("no source has a number above {}", u32::MAX).into())
            }
            _ => Self::name(text),
        }
    }

    /// Returns a name. Characters that no name has are reported where they are.
    fn name(text: &str) -> Result<Self, Malformed> {
        let is_in_names = |letter: char| letter.is_ascii_alphanumeric() || "_.-:=/+".contains(letter);
        match text.char_indices().find(|(_, letter)| !is_in_names(*letter)) {
            Some((at, letter)) => {
                let why = format!("\"{}\" is in no name", letter.escape_debug());
                Err(Malformed::from(why).behind(text.get(..at).unwrap_or_default()))
            }
            None => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number} ({number:#04x})"),
            Self::Name(name) => f.write_str(name),
            Self::Valued(name, value) => write!(f, "{name}:{}", ExtraTerm(*value)),
            Self::Raw(event) => Notation(*event).fmt(f),
            Self::OnCoreType(core_type, source) => match &**source {
                Self::Number(number) => write!(f, "{core_type}/{number:#04x}/"),
                source => f.write_str(&qualified(&source.to_string(), core_type.number())),
            },
        }
    }
}

/// A source and the modes in which to count it: `BranchInstructions:u`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventName {
    /// The source.
    pub source: SourceName,
    /// Bits of [`modes`].
    pub modes: u32,
    /// Mask of the counters that it may take, or 0 for any.
    pub counters: u32,
    /// Bits of [`event_flags`]: that it has a counter all the time, `:D`, and which ops are sampled.
    pub flags: u32,
}

/// What stands behind the colon of a group, for every member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// Bits of [`modes`], or 0.
    modes: u32,
    /// `D`
    pinned: bool,
}

impl FromStr for Modifiers {
    type Err = String;

    fn from_str(letters: &str) -> Result<Self, String> {
        let (modes, pinned) = letters_of(letters)?;
        let modes = modes.unwrap_or(modes::BOTH);
        if modes & modes::PRECISE != 0 {
            return Err(format!("\":{letters}\" is for groups that are sampled, and groups are counted"));
        }
        let named = letters.contains(['u', 'k']);
        Ok(Self { modes: if named { modes } else { 0 }, pinned })
    }
}

impl FromStr for EventName {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::parse(text, modes::BOTH)
    }
}

impl EventName {
    /// Parses an event that is counted: in the modes that the text names, or else in those of `default_modes`, bits of
    /// [`modes`]. [`FromStr`] has [`modes::BOTH`] as the default.
    ///
    /// # Errors
    /// If the text is malformed, or the event is precise.
    pub fn parse(text: &str, default_modes: u32) -> Result<Self, Malformed> {
        let event = Self::sampled(text, default_modes)?;
        if event.modes & modes::PRECISE != 0 {
            let why =
                format!("precise events are sampled and not counted; write: .\\client record -e {}", argument(text));
            return Err(Malformed::from(why).behind(split_modes(text).0));
        }
        Ok(event)
    }

    /// Parses an event that can be precise.
    fn sampled(text: &str, default_modes: u32) -> Result<Self, Malformed> {
        if let Some(ops) = ibs::parse(text, default_modes) {
            return ops;
        }
        let (source, letters) = split_modes(text);
        if source.is_empty() {
            return Err("the name of a source is empty".to_owned().into());
        }
        let (modes, pinned) =
            letters.map_or(Ok((None, false)), letters_of).map_err(|why| Malformed::from(why).behind(source))?;
        let (source, counters) = narrowed(source)?;
        Ok(Self { source, modes: modes.unwrap_or(default_modes), counters, flags: flag_of(pinned) })
    }

    /// Returns the event with the modifiers of its group.
    ///
    /// # Errors
    /// If event and group name different modes.
    pub fn with(self, Modifiers { modes, pinned }: Modifiers) -> Result<Self, String> {
        if modes != 0 && self.modes != modes::BOTH && self.modes != modes {
            return Err(format!("{} is in one mode, and its group in another", self.source));
        }
        Ok(Self { modes: if modes == 0 { self.modes } else { modes }, flags: self.flags | flag_of(pinned), ..self })
    }
}

const fn flag_of(pinned: bool) -> u32 {
    if pinned { event_flags::PINNED } else { 0 }
}

/// Returns the modes of letters behind an event, `None` if they name none, and whether `D` pins it.
fn letters_of(letters: &str) -> Result<(Option<u32>, bool), String> {
    let rest = letters.replacen('D', "", 1);
    let pinned = rest.len() < letters.len();
    if pinned && rest.is_empty() {
        return Ok((None, true));
    }
    let modes = modes_of(&rest).ok_or_else(|| {
        format!(
            "\":{letters}\" is not a mode; :u is user mode, :k kernel mode, nothing is both; :p is precise, :D pinned"
        )
    })?;
    Ok((Some(modes), pinned))
}

/// Returns the modes of letters in any order. As in perf, `p` can be repeated; here this has no further meaning.
fn modes_of(letters: &str) -> Option<u32> {
    let mut bits = 0;
    let mut precise = 0;
    for letter in letters.chars() {
        match letter {
            'u' if bits & modes::USER == 0 => bits |= modes::USER,
            'k' if bits & modes::KERNEL == 0 => bits |= modes::KERNEL,
            'p' if precise < 3 => precise += 1,
            _ => return None,
        }
    }
    match (bits, precise) {
        (0, 0) => None,
        (bits, 0) => Some(bits),
        (0, _) => Some(PRECISE_BOTH),
        (bits, _) => Some(bits | modes::PRECISE),
    }
}

/// Splits an event into its source and the letters of its modes, which follow a colon or the final slash of a notation
/// with slashes.
fn split_modes(text: &str) -> (&str, Option<&str>) {
    let end = split_prefix(text).and_then(|(_, prefix, rest)| Some(prefix.len() + rest.find('/')? + 1));
    let behind = end.map(|end| text.split_at(end));
    match behind {
        // Tracepoints have a colon in their names.
        None if events::other_of_perf(text).is_some() => (text, None),
        Some((source, "")) => (source, None),
        Some((source, letters)) => (source, Some(letters.strip_prefix(':').unwrap_or(letters))),
        // Some names of Intel's have colons and equals signs.
        None if text.contains('=') => match text.rsplit_once(':') {
            Some((source, letters)) if letters_of(letters).is_ok() => (source, Some(letters)),
            _ => (text, None),
        },
        None => text.split_once(':').map_or((text, None), |(source, letters)| (source, Some(letters))),
    }
}

/// An event to be sampled and the number of events between two samples: `BranchInstructions:up@100k`. It can be
/// [precise](modes::PRECISE).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledEvent {
    /// The source.
    pub event: EventName,
    /// The interval, if the user named one; never 0.
    pub interval: Option<u32>,
}

impl FromStr for SampledEvent {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let Some((event, interval)) = text.split_once('@') else {
            return Ok(Self { event: EventName::sampled(text, modes::BOTH)?, interval: None });
        };
        let at_interval = |why: String| Malformed::from(why).behind(event).behind("@");
        match number::parse(interval).map_err(at_interval)? {
            0 => Err(at_interval("an interval of 0 gives no samples".to_owned())),
            interval => Ok(Self { event: EventName::sampled(event, modes::BOTH)?, interval: Some(interval) }),
        }
    }
}

/// Returns the letters of these modes.
#[must_use]
pub fn mode_letters(bits: u32) -> &'static str {
    match bits {
        modes::BOTH => "uk",
        modes::USER => "u",
        modes::KERNEL => "k",
        PRECISE_BOTH => "ukp",
        PRECISE_USER => "up",
        PRECISE_KERNEL => "kp",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use pmu::source::RawEvent;

    use super::*;

    #[test]
    fn a_source_is_a_number_only_if_all_characters_belong_to_it() {
        for (text, number) in
            [("0", Some(0)), ("25", Some(25)), ("0x19", Some(25)), ("0X1a", Some(26)), ("4294967295", Some(u32::MAX))]
                .into_iter()
                .chain(
                    ["2Issue", "0xg", "0x", "+1", "0x+1", "-1", "4294967296a", "TotalIssues"].map(|name| (name, None)),
                )
        {
            let wanted = number.map_or_else(|| SourceName::Name(text.to_owned()), SourceName::Number);
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn perfs_forms_of_an_event_are_accepted() {
        let raw = |event| SourceName::Raw(raw_event::event_of(RawEvent::new().with_event(event), None));
        let name = |name: &str| SourceName::Name(name.to_owned());
        for (text, source, bits) in [
            ("r00c0", raw(0xC0), 3),
            ("r00c0:u", raw(0xC0), 1),
            ("cpu/r3c/k", raw(0x3C), 2),
            ("cpu/INST_RETIRED.ANY/", name("INST_RETIRED.ANY"), 3),
            ("cpu/branch-misses/u", name("branch-misses"), 1),
        ] {
            let event: EventName = text.parse().unwrap();
            assert_eq!((event.source, event.modes), (source, bits), "{text}");
        }
        for text in ["cpu/inv/", "cpu//", "cpu/a:b/", "cpu/a b/", "r800c0"] {
            assert!(text.parse::<EventName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_raw_event_has_its_modes_after_the_slash() {
        for (text, bits) in [("", 3), ("u", 1), ("k", 2), (":u", 1), ("uk", 3), (":ku", 3)] {
            let event: EventName = format!("cpu/event=0xc0,umask=1/{text}").parse().unwrap();
            let wanted = SourceName::Raw(raw_event::event_of(RawEvent::new().with_event(0xC0).with_umask(1), None));
            assert_eq!((event.source, event.modes), (wanted, bits), "{text}");
        }
        let event: EventName = "cpu/event=0xc0,counters=0x3,umask=1/k".parse().unwrap();
        let wanted = SourceName::Raw(raw_event::event_of(RawEvent::new().with_event(0xC0).with_umask(1), None));
        assert_eq!((event.source, event.modes, event.counters), (wanted, 2, 3));
        assert!("cpu/event=0xc0,counters=3/".parse::<SourceName>().unwrap_err().to_string().contains("leave it out"));
        for text in ["cpu", "cpu/event=1", "cpu/event=1/x", "cpu/event=1/::u", "cpu/event=1/:", "CPU/event=1/"] {
            let parsed = text.parse::<EventName>();
            let is_raw = parsed.is_ok_and(|event| matches!(event.source, SourceName::Raw(_)));
            assert!(!is_raw, "{text}");
        }
    }

    #[test]
    fn a_core_type_stands_before_a_source_or_the_terms_of_an_event() {
        let raw = SourceName::Raw(raw_event::event_of(RawEvent::new().with_event(0xD1).with_umask(0x20), None));
        for (text, core_type, source, bits) in [
            ("cpu_core/TotalCycles/", CoreType::Core, SourceName::Name("TotalCycles".to_owned()), 3),
            ("cpu_atom/TotalCycles/u", CoreType::Atom, SourceName::Name("TotalCycles".to_owned()), 1),
            ("cpu_atom/0x13/:k", CoreType::Atom, SourceName::Number(0x13), 2),
            ("cpu_core/event=0xd1,umask=0x20/", CoreType::Core, raw.clone(), 3),
            ("cpu_atom/umask=0x20,event=209/:ku", CoreType::Atom, raw, 3),
        ] {
            let event: EventName = text.parse().unwrap();
            let wanted = SourceName::OnCoreType(core_type, Box::new(source));
            assert_eq!((&event.source, event.modes), (&wanted, bits), "{text}");
            assert_eq!(event.source.to_string().parse(), Ok(wanted), "{text}");
            assert_eq!(format!("{text}@10k").parse::<SampledEvent>().map(|sampled| sampled.event), Ok(event), "{text}");
        }
        let narrowed: EventName = "cpu_atom/event=0xd1,counters=0x3/".parse().unwrap();
        assert_eq!((narrowed.source.core_type(), narrowed.counters), (0x20, 3));
        let precise: SampledEvent = "cpu_core/TotalIssues/p@10k".parse().unwrap();
        assert_eq!(precise.event.modes, 7);
    }

    #[test]
    fn a_malformed_event_of_a_core_type_is_refused() {
        for text in [
            "cpu_core/",
            "cpu_core//",
            "cpu_core/TotalCycles",
            "cpu_core/TotalCycles/x",
            "cpu_core/TotalCycles:u/",
            "cpu_core/TotalCycles,inv/",
            "cpu_core/TotalCycles/uu",
            "cpu_core/event=/",
            "cpu_core/event=0x1000/",
            "cpu_core/umask=1/",
            "cpu_core/event=1,any=2/",
            "cpu_core/cpu_atom/TotalCycles//",
            "cpu_atom/cpu/event=1//",
            "cpu_atom/event=1/u/k",
        ] {
            assert!(text.parse::<EventName>().is_err(), "{text}");
            assert!(text.parse::<SampledEvent>().is_err(), "{text}");
        }
        for text in ["cpu_core", "cpu_foo/TotalCycles/", "CPU_CORE/TotalCycles/"] {
            assert_eq!(text.parse(), Ok(SourceName::Name(text.to_owned())), "no core type: an unknown source");
        }
    }

    #[test]
    fn an_event_counts_in_both_modes_by_default() {
        for (text, bits) in [("A", 3), ("A:u", 1), ("A:k", 2), ("A:uk", 3), ("A:ku", 3)] {
            let event: EventName = text.parse().unwrap();
            assert_eq!((event.source, event.modes), (SourceName::Name("A".to_owned()), bits), "{text}");
        }
        for text in ["", ":u", "A:", "A:x", "A:uu", "A:u:k"] {
            assert!(text.parse::<EventName>().is_err(), "{text:?}");
            assert!(text.parse::<SampledEvent>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_sampled_events_can_be_precise() {
        for (letters, bits) in
            [("p", 7), ("pp", 7), ("up", 5), ("pu", 5), ("pk", 6), ("kpp", 6), ("pkp", 6), ("ukp", 7), ("pku", 7)]
        {
            for text in [format!("A:{letters}"), format!("cpu/event=0xc0/{letters}")] {
                let event: SampledEvent = format!("{text}@10k").parse().unwrap();
                assert_eq!((event.event.modes, event.interval), (bits, Some(10_000)), "{text}");
                assert_eq!(text.parse::<SampledEvent>().unwrap().event.modes, bits, "{text}");
                let refused = text.parse::<EventName>().unwrap_err().to_string();
                let why = format!(
                    "precise events are sampled and not counted; write: .\\client record -e {}",
                    argument(&text)
                );
                let position = text.find(&format!(":{letters}")).unwrap_or(text.len() - letters.len()) + 1;
                assert_eq!(refused, format!("at character {position}: {why}"));
            }
        }
        for text in ["A:pppp", "A:upu", "A:pp:u", "A:", "A:P", "A:x"] {
            assert!(text.parse::<SampledEvent>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_printed_suffix_parses_to_the_same_modes() {
        for bits in 1..=7 {
            let typed = format!("A{}", suffix(bits)).parse::<SampledEvent>();
            let wanted = (bits != modes::PRECISE).then_some(bits);
            assert_eq!(typed.ok().map(|typed| typed.event.modes), wanted);
            assert_eq!(modes_of(mode_letters(bits)), wanted);
        }
    }

    #[test]
    fn the_interval_of_an_event_follows_its_modes() {
        for (text, bits, interval) in [
            ("A", 3, None),
            ("A@65536", 3, Some(65_536)),
            ("A:u@100k", 1, Some(100_000)),
            ("A:k@2M", 2, Some(2_000_000)),
        ] {
            let SampledEvent { event, interval: parsed } = text.parse().unwrap();
            assert_eq!((event.modes, parsed), (bits, interval), "{text}");
            assert_eq!(event.source, SourceName::Name("A".to_owned()), "{text}");
        }
        for text in ["A@", "A@0", "A@u", "A@1:u", "@1", "A@1@2", "A@-1"] {
            assert!(text.parse::<SampledEvent>().is_err(), "{text:?}");
        }
    }
}
