//! perf's names for what AMD's Instruction-Based Sampling samples: the ops of `ibs_op//`, with the terms `cnt_ctl=1`
//! for ops instead of cycles and, of halprof, `loads` and `stores` for those that access memory; the fetches of
//! `ibs_fetch//`.

use pmu::source::RawEvent;
use protocol::{EventRequest, event_flags, modes};

use super::{EventName, Malformed, SourceName, each, letters_of, raw_event};

/// The names of perf.
const OF_OPS: &str = "ibs_op/";
const OF_FETCHES: &str = "ibs_fetch/";

/// Cycles (PMCx076) and ops (PMCx0C1): the events at which ops are sampled. Instructions (PMCx0C0): that of fetches.
const CYCLES: RawEvent = RawEvent::new().with_event(0x76);
const OPS: RawEvent = RawEvent::new().with_event(0xC1);
const INSTRUCTIONS: RawEvent = RawEvent::new().with_event(0xC0);

/// Parses the name, with modes behind it; `None` if the text is another event.
pub fn parse(text: &str, default_modes: u32) -> Option<Result<EventName, Malformed>> {
    let prefix = [OF_OPS, OF_FETCHES].into_iter().find(|prefix| text.starts_with(prefix))?;
    let rest = text.strip_prefix(prefix)?;
    Some(match rest.split_once('/') {
        None => Err(Malformed::from(format!("\"{text}\" has no closing slash")).behind(text)),
        Some((terms, letters)) => named(prefix, terms, letters.strip_prefix(':').unwrap_or(letters), default_modes),
    })
}

/// Returns the name of an event whose flags say what is sampled; `None` if they say nothing, as with `cycles:p`.
pub fn word_of(request: &EventRequest) -> Option<String> {
    if request.flags & event_flags::FETCHES != 0 {
        return Some(format!("{OF_FETCHES}/"));
    }
    let is_cycles = request.event == raw_event::event_of(CYCLES, None);
    let terms = [
        ("loads", request.flags & event_flags::LOADS != 0),
        ("stores", request.flags & event_flags::STORES != 0),
        ("cnt_ctl=1", request.flags & (event_flags::LOADS | event_flags::STORES) != 0 && !is_cycles),
    ];
    let terms: Vec<&str> = terms.into_iter().filter(|(_, holds)| *holds).map(|(term, _)| term).collect();
    (!terms.is_empty()).then(|| format!("{OF_OPS}{}/", terms.join(",")))
}

fn named(prefix: &'static str, terms: &str, letters: &str, default_modes: u32) -> Result<EventName, Malformed> {
    let of_fetches = prefix == OF_FETCHES;
    let (mut event, mut flags) = if of_fetches { (INSTRUCTIONS, event_flags::FETCHES) } else { (CYCLES, 0) };
    let mut term = |term: &str| {
        match term {
            "" => {}
            "l3missonly" | "l3missonly=1" => return Err(filtered(term, "mem report --sort mem")),
            _ if term.starts_with("ldlat=") | term.starts_with("fetchlat=") => {
                return Err(filtered(term, "mem report --sort local_weight"));
            }
            "rand_en=1" | "rand_en" if of_fetches => {}
            _ if of_fetches => {
                return Err(format!("\"{term}\" is no term of ibs_fetch; rand_en=1 is, and always holds"));
            }
            "cnt_ctl=0" => event = CYCLES,
            "cnt_ctl=1" | "cnt_ctl" => event = OPS,
            "loads" => flags |= event_flags::LOADS,
            "stores" => flags |= event_flags::STORES,
            _ => return Err(format!("\"{term}\" is no term of ibs_op; cnt_ctl=1, loads and stores are")),
        }
        Ok(())
    };
    each(terms.split(','), &mut term).map_err(|error| error.behind(prefix))?;
    let behind = |why: String| Malformed::from(why).behind(prefix).behind(terms).behind("/");
    let (modes, pinned) = if letters.is_empty() { (None, false) } else { letters_of(letters).map_err(behind)? };
    Ok(EventName {
        source: SourceName::Raw(raw_event::event_of(event, None)),
        modes: modes.unwrap_or(default_modes) | modes::PRECISE,
        counters: 0,
        flags: flags | if pinned { event_flags::PINNED } else { 0 },
    })
}

fn filtered(term: &str, instead: &str) -> String {
    format!(
        "{term} is a filter of the processor that lengthens the periods of what it drops, so that shares are wrong; \
         leave it out and use: .\\client {instead}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::SampledEvent;
    use super::*;

    #[test]
    fn the_name_of_perf_is_the_precise_event_of_cycles_or_of_ops() {
        for (text, event, modes, flags) in [
            ("ibs_op//", CYCLES, 7, 0),
            ("ibs_op/cnt_ctl=0/", CYCLES, 7, 0),
            ("ibs_op/cnt_ctl=1/u", OPS, 5, 0),
            ("ibs_op/cnt_ctl=1,loads/:k", OPS, 6, event_flags::LOADS),
            ("ibs_fetch//", INSTRUCTIONS, 7, event_flags::FETCHES),
            ("ibs_fetch/rand_en=1/u", INSTRUCTIONS, 5, event_flags::FETCHES),
            ("ibs_op/loads,stores/pD", CYCLES, 7, event_flags::LOADS | event_flags::STORES | event_flags::PINNED),
        ] {
            let name = parse(text, modes::BOTH).unwrap().unwrap();
            let source = SourceName::Raw(raw_event::event_of(event, None));
            assert_eq!(name, EventName { source, modes, counters: 0, flags }, "{text}");
            let sampled: SampledEvent = format!("{text}@100k").parse().unwrap();
            assert_eq!((sampled.event, sampled.interval), (name, Some(100_000)), "{text}");
        }
        assert!(parse("cpu/event=0x76/p", modes::BOTH).is_none());
    }

    #[test]
    fn a_sampled_event_has_the_name_that_says_what_is_sampled() {
        for (text, word) in [
            ("ibs_fetch/rand_en=1/u", Some("ibs_fetch//")),
            ("ibs_op/stores,loads/", Some("ibs_op/loads,stores/")),
            ("ibs_op/loads,cnt_ctl=1/", Some("ibs_op/loads,cnt_ctl=1/")),
            ("ibs_op//", None),
        ] {
            let EventName { source: SourceName::Raw(event), flags, .. } = parse(text, modes::BOTH).unwrap().unwrap()
            else {
                panic!("{text}")
            };
            let request = EventRequest { event, flags, ..EventRequest::EMPTY };
            assert_eq!(word_of(&request).as_deref(), word, "{text}");
        }
    }

    #[test]
    fn what_is_no_such_event_is_refused_with_what_to_do() {
        for (text, why) in [
            ("ibs_op/", "has no closing slash"),
            ("ibs_op/ldlat=30/", "mem report --sort local_weight"),
            ("ibs_op/l3missonly=1/", "mem report --sort mem"),
            ("ibs_op/event=0x76/", "cnt_ctl=1, loads and stores are"),
            ("ibs_op//x", "is not a mode"),
            ("ibs_fetch/", "has no closing slash"),
            ("ibs_fetch/fetchlat=128/", "mem report --sort local_weight"),
            ("ibs_fetch/l3missonly=1/", "mem report --sort mem"),
            ("ibs_fetch/rand_en=0/", "rand_en=1 is, and always holds"),
            ("ibs_fetch/loads/", "no term of ibs_fetch"),
        ] {
            let error = parse(text, modes::BOTH).unwrap().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = EventName::parse("ibs_op//", modes::BOTH).unwrap_err().to_string();
        assert!(error.contains("precise events are sampled"), "{error}");
    }
}
