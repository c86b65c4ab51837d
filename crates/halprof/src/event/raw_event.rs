//! Raw events in the notation of perf: `cpu/event=0xC0,umask=0x00,cmask=1,inv,edge,any,eq/`, with the value of an extra
//! register, `offcore_rsp=0x10001`, `ldlat=30` or `frontend=0x15`, and one more term, `counters=0x3`: the counters that
//! the event may take.

use std::fmt;

use pmu::Source;
use pmu::extra::{Extra, Selector};
use pmu::source::RawEvent;
use protocol::Event;

use super::{Malformed, each};

/// Prefix of a raw event.
pub const PREFIX: &str = "cpu/";

/// The terms for extra registers, with their selectors and the largest values of any processor.
const EXTRA_TERMS: [(&str, Selector, u64); 3] = [
    ("offcore_rsp", Selector::OffcoreResponse, u64::MAX),
    ("ldlat", Selector::LoadLatency, 0xFFFF),
    ("frontend", Selector::FrontEnd, 0xFF_FFFF),
];

/// Returns a raw event with what it needs in an extra register.
#[must_use]
pub fn event_of(raw: RawEvent, extra: Option<Extra>) -> Event {
    let selector = extra.map_or(0, |extra| extra.selector as u8);
    let source = raw.with_selector(selector).source().0;
    Event { extra: extra.map_or(0, |extra| extra.value), ..Event::of(source) }
}

/// Formats the value of an extra register as a term: `ldlat=30`.
pub struct ExtraTerm(pub Extra);

impl fmt::Display for ExtraTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Extra { selector, value }) = *self;
        let term = term_of(selector);
        match selector {
            Selector::LoadLatency => write!(f, "{term}={value}"),
            Selector::OffcoreResponse | Selector::FrontEnd => write!(f, "{term}={value:#x}"),
        }
    }
}

/// Returns the name of the term for a kind of extra registers.
#[must_use]
pub fn term_of(selector: Selector) -> &'static str {
    EXTRA_TERMS.iter().find(|(_, of, _)| *of == selector).map_or("", |(name, ..)| *name)
}

/// Parses a term for the value of an extra register; `None` if it is no such term.
#[must_use]
pub fn extra_term(term: &str) -> Option<Result<Extra, String>> {
    let (name, value) = term.split_once('=').map_or((term, None), |(name, value)| (name, Some(value)));
    let (_, selector, most) = EXTRA_TERMS.into_iter().find(|(known, ..)| *known == name)?;
    Some(number(name, value, most).map(|value| Extra { selector, value }))
}

/// The terms without a value of their own, beside those of extra registers.
const PLAIN_TERMS: [&str; 9] = ["config", "event", "umask", "cmask", "inv", "edge", "any", "eq", "counters"];

/// Returns whether a text is the name of a term, and not that of an event.
#[must_use]
pub fn is_term(text: &str) -> bool {
    PLAIN_TERMS.contains(&text) || EXTRA_TERMS.iter().any(|(name, ..)| *name == text)
}

/// The fields of IA32_PERFEVTSELx and of PerfEvtSeln that perf's `rNNN` can set: event, umask, edge, any, inv and cmask
/// (SDM Vol. 3B, 21.2.1.1; APM Vol. 2, 13.2.1: bits 35:32 are the upper ones of the event).
const CONFIG: u64 = 0xF_FFA4_FFFF;

/// The bits for user and kernel mode, interrupt and enable, which perf does not take from `rNNN`: tools that print
/// values of registers set them.
const OF_COUNTING: u64 = 0x53_0000;

/// Parses perf's notation of an event by the value of its register: `r00c0`. `None` if the text is something else.
#[must_use]
pub fn of_config(text: &str) -> Option<Result<RawEvent, String>> {
    let digits = text.strip_prefix('r').filter(|digits| (1..=16).contains(&digits.len()))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some(of_bits(text, u64::from_str_radix(digits, 16).ok()?))
}

/// Returns the event of the bits that perf calls config.
fn of_bits(text: &str, config: u64) -> Result<RawEvent, String> {
    let config = config & !OF_COUNTING;
    if config & !CONFIG != 0 {
        let bit = (config & !CONFIG).trailing_zeros();
        return Err(format!("{text} sets bit {bit}, which is no part of an event"));
    }
    let is_set = |bit: u32| config >> bit & 1 == 1;
    let byte = |shift: u32| u8::try_from(config >> shift & 0xFF).unwrap_or_default();
    let upper = u16::try_from(config >> 32 << 8).unwrap_or_default();
    let event = RawEvent::new().with_event(upper | u16::from(byte(0))).with_umask(byte(8).into()).with_cmask(byte(24));
    Ok(event.with_edge(is_set(18)).with_any(is_set(21)).with_inv(is_set(23)))
}

/// Returns a note on an event whose number has more than 8 bits, as a value of a register has that begins with the unit
/// mask.
#[must_use]
pub fn note(event: Event) -> Option<String> {
    let raw = Source(event.source).raw().filter(|raw| raw.event() > 0xFF && raw.umask() == 0)?;
    let [upper, lower] = raw.event().to_be_bytes();
    let number = raw.event();
    Some(format!("number {number:#x} is not perf's r{number:x}, which is cpu/event={lower:#04x},umask={upper:#04x}/"))
}

/// Parses the terms between the slashes. The counters of the event are those that it may take.
///
/// # Errors
/// If a term is unknown, given twice, or has an invalid value.
pub fn parse(terms: &str) -> Result<Event, Malformed> {
    if let Some(event) = of_config(terms) {
        return Ok(event_of(event?, None));
    }
    let mut parser = Parser { seen: Vec::new(), event: RawEvent::new(), extra: None, counters: 0 };
    each(terms.split(','), |term| parser.term(term))?;
    Ok(parser.finish()?)
}

/// The terms that were parsed.
struct Parser<'a> {
    seen: Vec<&'a str>,
    event: RawEvent,
    extra: Option<Extra>,
    counters: u32,
}

impl<'a> Parser<'a> {
    /// Parses the next term.
    fn term(&mut self, term: &'a str) -> Result<(), String> {
        let Self { seen, event, extra, counters } = self;
        let (name, value) = term.split_once('=').map_or((term, None), |(name, value)| (name, Some(value)));
        if seen.contains(&name) {
            return Err(format!("{name} is given twice"));
        }
        seen.push(name);
        *event = match name {
            "event" => {
                event.with_event(u16::try_from(number(name, value, RawEvent::MAX_EVENT.into())?).unwrap_or_default())
            }
            "config" => of_bits(term, number(name, value, u64::MAX)?)?,
            "umask" => event.with_umask(u16::try_from(number(name, value, u16::MAX.into())?).unwrap_or_default()),
            "cmask" => event.with_cmask(byte(name, value)?),
            "inv" => event.with_inv(flag(name, value)?),
            "edge" => event.with_edge(flag(name, value)?),
            "any" => event.with_any(flag(name, value)?),
            "eq" => event.with_eq(flag(name, value)?),
            "counters" => {
                *counters = u32::try_from(number(name, value, u32::MAX.into())?).unwrap_or_default();
                if *counters == 0 {
                    return Err("counters=0 leaves the event no counter; bit n of the mask is counter n".to_owned());
                }
                *event
            }
            "period" => return Err("an interval stands behind the event: @100k".to_owned()),
            "config1" => {
                return Err("the second register has a term of its own: offcore_rsp, ldlat or frontend".to_owned());
            }
            "" => return Err(format!("a term is empty; write {PREFIX}event=0xC0,umask=0x00/")),
            other => {
                let Some(value) = extra_term(term) else {
                    return Err(format!(
                        "\"{other}\" is none of event, umask, cmask, inv, edge, any, eq, offcore_rsp, ldlat, frontend \
                         and counters; the driver supports no others"
                    ));
                };
                if extra.replace(value?).is_some() {
                    return Err("an event has one of offcore_rsp, ldlat and frontend".to_owned());
                }
                *event
            }
        };
        Ok(())
    }

    /// Returns the event.
    fn finish(self) -> Result<Event, String> {
        let Self { seen, event, extra, counters } = self;
        let is_whole = seen.contains(&"config");
        let [_, parts @ .., _] = PLAIN_TERMS;
        if is_whole && seen.iter().any(|term| parts.contains(term)) {
            return Err(
                "config is the whole event, and event, umask, cmask, inv, edge and any are parts of it".to_owned()
            );
        }
        if !is_whole && !seen.contains(&"event") {
            return Err("which event? It begins with event=".to_owned());
        }
        Ok(Event { counters, ..event_of(event, extra) })
    }
}

fn byte(name: &str, value: Option<&str>) -> Result<u8, String> {
    Ok(u8::try_from(number(name, value, u8::MAX.into())?).unwrap_or_default())
}

fn number(name: &str, value: Option<&str>, max: u64) -> Result<u64, String> {
    let text = value.ok_or_else(|| format!("{name} takes a value: {name}=0x1"))?;
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(digits, radix) {
        Ok(number) if plain && number <= max => Ok(number),
        _ => Err(format!("{name} is from 0 to {max:#x}, not \"{text}\"")),
    }
}

fn flag(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(value) => Err(format!("{name} is 0 or 1, not \"{value}\"")),
    }
}

/// Formats a raw event with prefix and slash, without the counters and the core type. Terms that are 0 are omitted.
pub struct Notation(pub Event);

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Event { source, extra: value, .. }) = *self;
        let event = Source(source).raw().unwrap_or_default();
        write!(f, "{PREFIX}event={:#04x}", event.event())?;
        for (name, value) in [("umask", event.umask()), ("cmask", event.cmask().into())] {
            if value != 0 {
                write!(f, ",{name}={value:#04x}")?;
            }
        }
        for (name, is_set) in [("inv", event.inv()), ("edge", event.edge()), ("any", event.any()), ("eq", event.eq())] {
            if is_set {
                write!(f, ",{name}")?;
            }
        }
        if let Some(selector) = Selector::from_number(event.selector()) {
            write!(f, ",{}", ExtraTerm(Extra { selector, value }))?;
        }
        f.write_str("/")
    }
}

/// Returns the notation of an event with the term for the counters that it may take; 0 is any.
#[must_use]
pub fn narrowed(event: &str, counters: u32) -> String {
    match event.strip_suffix('/') {
        Some(terms) if counters != 0 => format!("{terms},counters={counters:#x}/"),
        _ => event.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(event: u16, umask: u16, cmask: u8, inv: bool, edge: bool) -> RawEvent {
        RawEvent::new().with_event(event).with_umask(umask).with_cmask(cmask).with_inv(inv).with_edge(edge)
    }

    #[test]
    fn a_register_value_is_an_event_as_in_perf() {
        for (text, wanted) in [
            ("r00c0", "cpu/event=0xc0/"),
            ("rc0", "cpu/event=0xc0/"),
            ("r5300c0", "cpu/event=0xc0/"),
            ("r1A8", "cpu/event=0xa8,umask=0x01/"),
            ("r1a401a2", "cpu/event=0xa2,umask=0x01,cmask=0x01,inv,edge,any/"),
            ("r1000000c2", "cpu/event=0x1c2/"),
        ] {
            let event = event_of(of_config(text).unwrap().unwrap(), None);
            assert_eq!(Notation(event).to_string(), wanted, "{text}");
            assert_eq!(parse(text), Ok(event));
            let term = text.replacen('r', "config=0x", 1);
            assert_eq!(parse(&term), Ok(event), "{term}");
            assert!(parse(&format!("{term},umask=1")).is_err() && parse(&format!("umask=1,{term}")).is_err());
            assert_eq!(parse(&format!("{term},counters=1")), Ok(Event { counters: 1, ..event }));
        }
        for text in ["r", "c0", "r0x10", "rz", "r12345678901234567", "R00c0"] {
            assert!(of_config(text).is_none(), "{text}");
        }
        let error = of_config("r800c0").unwrap().unwrap_err();
        assert_eq!(error, "r800c0 sets bit 19, which is no part of an event");
    }

    #[test]
    fn a_number_that_looks_like_a_register_value_has_a_note() {
        let note = |terms: &str| note(parse(terms).unwrap());
        let wanted = "number 0x1c2 is not perf's r1c2, which is cpu/event=0xc2,umask=0x01/";
        assert_eq!(note("event=0x1c2"), Some(wanted.to_owned()));
        assert_eq!([note("event=0xc2,umask=1"), note("event=0x1c2,umask=1"), note("r1c2")], [None, None, None]);
    }

    #[test]
    fn terms_come_in_any_order_in_decimal_or_hexadecimal() {
        for (terms, wanted) in [
            ("event=0xC0", event(0xC0, 0, 0, false, false)),
            ("event=192,umask=1", event(0xC0, 1, 0, false, false)),
            ("edge,umask=0x01,event=0x1c2,cmask=2,inv=1", event(0x1C2, 1, 2, true, true)),
            ("event=0,inv=0,edge=0", event(0, 0, 0, false, false)),
            ("event=0xfff,umask=0xFF,cmask=255", event(0xFFF, 0xFF, 0xFF, false, false)),
            ("event=0xc4,umask=0x8050", event(0xC4, 0x8050, 0, false, false)),
            ("event=0xc4,any", event(0xC4, 0, 0, false, false).with_any(true)),
            ("event=0xc4,umask=0x100,cmask=255", event(0xC4, 0x100, 255, false, false)),
            ("event=0xc2,umask=2,cmask=8,eq", event(0xC2, 2, 8, false, false).with_eq(true)),
            ("event=0xc2,umask=0xffff,cmask=15,eq,inv=1", event(0xC2, 0xFFFF, 15, true, false).with_eq(true)),
        ] {
            assert_eq!(parse(terms), Ok(event_of(wanted, None)), "{terms}");
        }
    }

    #[test]
    fn an_invalid_raw_event_is_reported_with_the_reason() {
        for (terms, word) in [
            ("", "empty"),
            ("umask=1", "event="),
            ("event", "takes a value"),
            ("event=", "from 0 to 0xfff"),
            ("event=0x1000", "from 0 to 0xfff"),
            ("event=-1", "from 0 to 0xfff"),
            ("event=+1", "from 0 to 0xfff"),
            ("event=1,umask=0x10000", "from 0 to 0xffff"),
            ("event=1,cmask=256", "from 0 to 0xff"),
            ("event=1,eq=2", "0 or 1"),
            ("event=1,event=2", "twice"),
            ("event=1,inv=2", "0 or 1"),
            ("event=1,counters=0", "no counter"),
            ("event=1,counters", "takes a value"),
            ("event=1,counters=0x100000000", "from 0 to 0xffffffff"),
            ("event=1,counters=1,counters=2", "twice"),
            ("event=1,counters=0-3", "not \"0-3\""),
            ("counters=1", "event="),
            ("event=1,any=2", "0 or 1"),
            ("event=1,offcore_rsp", "takes a value"),
            ("event=1,offcore_rsp=0x10000000000000000", "from 0 to 0xffffffffffffffff"),
            ("event=1,ldlat=0x10000", "from 0 to 0xffff"),
            ("event=1,frontend=0x1000000", "from 0 to 0xffffff"),
            ("event=1,frontend=1,ldlat=3", "one of offcore_rsp, ldlat and frontend"),
            ("event=1,offcore_rsp=1,offcore_rsp=2", "twice"),
            ("event=1,config=0x4300c0", "the whole event"),
            ("event=1,", "empty"),
        ] {
            let refused = parse(terms).unwrap_err().to_string();
            assert!(refused.contains(word), "{terms}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_event_parses_to_the_same_event(
            fields in 0..1_u64 << 40, register in 0..=EXTRA_TERMS.len(), value: u64, counters: u32,
        ) {
            let raw = RawEvent::from_bits(fields).with_is_event(true);
            let extra = EXTRA_TERMS.get(register).map(|(_, selector, most)| Extra { selector: *selector, value: value & most });
            let event = Event { counters, ..event_of(raw, extra) };
            let shown = narrowed(&Notation(event).to_string(), counters);
            let terms = shown.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix('/'));
            prop_assert_eq!(parse(terms.unwrap()), Ok(event));
        }
    }
}
