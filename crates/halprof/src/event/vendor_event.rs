//! Events by the names that the makers of processors give them, and what a request can carry of them.

use events::Event as VendorEvent;
use pmu::Source;
use pmu::extra::{Extra, ExtraRegister, Selector};
use pmu::source::RawEvent;
use protocol::{Event, modes};
use thiserror::Error;

use crate::error_kind::ErrorKind;
pub use crate::event::core_tables::{LOW_POWER, cores, identity_of, tables};
use crate::event::raw_event::{event_of, term_of};

/// Fixed counters that the driver uses, and the profile sources that it counts with them (KPROFILE_SOURCE):
/// instructions, cycles, and cycles at a constant rate.
const FIXED: [(u16, Source); 3] = [(1, Source(0x02)), (2, Source(0x13)), (3, Source(0x1B))];

/// Returns whether a fixed counter counts a source.
#[must_use]
pub fn has_fixed_counter(source: Source) -> bool {
    FIXED.iter().any(|(_, fixed)| *fixed == source)
}

/// The fixed counter of slots and of their metrics. The driver knows its events by their encodings.
const SLOTS_COUNTER: u8 = 3;

/// The event of off-core responses without the value of its register, with which it counts nothing.
const OFFCORE: &str = "OFFCORE_RESPONSE";

/// Why the driver cannot count an event of a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannotCount {
    /// It needs an extra register that the driver does not set.
    #[error("it also needs register {0:#x}, which the driver does not set")]
    ExtraRegister(u16),
    /// It has no value of the extra register that it needs.
    #[error("it counts nothing without a value: {OFFCORE}:offcore_rsp=0x10001 or another")]
    NoValue,
    /// The user gave a value for a register that it does not need.
    #[error("it takes no value by {0}=")]
    OtherValue(&'static str),
    /// It is that of a fixed counter with AnyThread.
    #[error(
        "it is fixed counter {0} with both threads of a core (AnyThread), which the driver sets on general counters only"
    )]
    AnyThread(u8),
    /// Only an unused fixed counter counts it.
    #[error("only fixed counter {0} counts it, which the driver does not use yet")]
    FixedCounter(u8),
    /// Only a fixed counter from 1 on records it.
    #[error("only fixed counter {0} records it, and of the fixed counters the driver records counter 0 only")]
    FixedRecorder(u8),
    /// The driver knows event number and unit mask by other counters.
    #[error("the driver counts its event number and unit mask on other counters")]
    OtherCounters,
    /// E cores of two kinds count two events by its encoding.
    #[error("E cores and low-power E cores have different events of this encoding, and the driver counts on both")]
    LowPowerCores,
}

/// An event that the driver cannot count, as an error of a verb.
#[derive(Debug, Error)]
#[error("{name} cannot be counted")]
pub struct CannotCountEvent {
    /// Name of the event.
    pub name: String,
    /// Why.
    #[source]
    pub cause: CannotCount,
}

impl CannotCountEvent {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::UnsupportedSource
    }

    /// Returns what the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        Some(format!(".\\client encode {}   (shows what it needs)", self.name))
    }
}

/// Returns what the driver counts for an event of the maker, or records if the modes have
/// [`PRECISE`](modes::PRECISE): a source of the HAL or a raw event, with `value` instead of the table's value of its
/// extra register. Fixed counter 0 records INST_RETIRED.PREC_DIST, and the general counters another event (Linux,
/// arch/x86/events/intel/ds.c, `intel_icl_pebs_event_constraints`).
///
/// # Errors
/// If no request can carry the event.
pub fn request(event: &VendorEvent, value: Option<Extra>, modes: u32) -> Result<Event, CannotCount> {
    let encoding = event.encoding;
    let extra = extra(event, value)?;
    if event.is_fixed() {
        let number = event.counters.fixed().next().unwrap_or_default();
        if encoding.any {
            return Err(CannotCount::AnyThread(number));
        }
        let known = FIXED.into_iter().find(|(umask, _)| (encoding.event, encoding.umask) == (0, *umask));
        let raw = RawEvent::new().with_event(encoding.event).with_umask(encoding.umask);
        if modes & modes::PRECISE != 0 {
            let is_recorder = (encoding.event, encoding.umask, number) == (0, 1, 0);
            return if is_recorder { Ok(Event::of(raw.source().0)) } else { Err(CannotCount::FixedRecorder(number)) };
        }
        let is_unit = (encoding.event, number) == (0, SLOTS_COUNTER) && matches!(encoding.umask, 0x04 | 0x80..=0x87);
        let slots = is_unit.then_some(raw.source());
        let source = known.map(|(_, source)| source).or(slots).ok_or(CannotCount::FixedCounter(number))?;
        return Ok(Event::of(source.0));
    }
    let raw = RawEvent::new()
        .with_event(encoding.event)
        .with_umask(encoding.umask)
        .with_cmask(encoding.cmask)
        .with_inv(encoding.inv)
        .with_edge(encoding.edge)
        .with_any(encoding.any)
        .with_eq(encoding.eq);
    Ok(event_of(raw, extra))
}

/// Returns what an event needs in an extra register, with `value` instead of the table's value.
fn extra(event: &VendorEvent, value: Option<Extra>) -> Result<Option<Extra>, CannotCount> {
    let known = event.extra.as_ref().and_then(|extra| Some((extra.registers.first()?.msr, extra.value)));
    let of_table = match known {
        Some((msr, value)) => {
            let selector = selector(msr).ok_or(CannotCount::ExtraRegister(msr))?;
            Some(Extra { selector, value })
        }
        None if event.name == OFFCORE && value.is_none() => return Err(CannotCount::NoValue),
        None if event.name == OFFCORE => Some(Extra { selector: Selector::OffcoreResponse, value: 0 }),
        None => None,
    };
    match (of_table, value) {
        (Some(of_table), Some(value)) if of_table.selector == value.selector => Ok(Some(value)),
        (_, Some(value)) => Err(CannotCount::OtherValue(term_of(value.selector))),
        (of_table, None) => Ok(of_table),
    }
}

/// Returns the kind of an extra register, which requests have instead of its address.
fn selector(msr: u16) -> Option<Selector> {
    ExtraRegister::ALL.into_iter().find(|register| register.address() == u32::from(msr)).map(ExtraRegister::selector)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns what an event selects: select register, selector and value.
    fn selects(event: Event) -> Option<(u64, u8, u64)> {
        let raw = Source(event.source).raw()?;
        Some((raw.select(), raw.selector(), event.extra))
    }

    #[test]
    fn every_event_of_every_table_has_a_request_or_a_reason() {
        let (mut with_register, mut plain, mut reasons) = (0, 0, BTreeMap::new());
        for table in events::tables() {
            for event in table.events() {
                let request = match request(&event, None, modes::BOTH) {
                    Ok(request) => request,
                    Err(reason) => {
                        *reasons.entry(reason.to_string()).or_insert(0) += 1;
                        continue;
                    }
                };
                let Some(selected) = selects(request) else {
                    assert!(event.is_fixed(), "{}", event.name);
                    continue;
                };
                let (msr, value) = event.extra.as_ref().map_or((0, 0), |extra| (extra.registers[0].msr, extra.value));
                let selector = match msr {
                    0x1A6 | 0x1A7 | 0x3E0 => 1,
                    0x3F6 => 2,
                    0x3F7 => 3,
                    _ => 0,
                };
                assert_eq!(selected, (event.encoding.select() | 3 << 16, selector, value), "{}", event.name);
                *(if selector != 0 { &mut with_register } else { &mut plain }) += 1;
            }
        }
        let reasons: Vec<_> = reasons.iter().map(|(reason, number)| (reason.as_str(), *number)).collect();
        assert_eq!((with_register, plain), (6_683, 13_383));
        assert_eq!(
            reasons,
            [
                ("it counts nothing without a value: OFFCORE_RESPONSE:offcore_rsp=0x10001 or another", 11),
                (
                    "it is fixed counter 1 with both threads of a core (AnyThread), which the driver sets on general \
                     counters only",
                    12
                ),
                ("only fixed counter 4 counts it, which the driver does not use yet", 5),
                ("only fixed counter 5 counts it, which the driver does not use yet", 5),
                ("only fixed counter 6 counts it, which the driver does not use yet", 5),
            ]
        );
    }
}
