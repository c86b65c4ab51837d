//! Whether a processor has a source, and if not, why.

use crate::counter_set::CounterSet;
use crate::source::RawEvent;

/// Whether a source is supported, and if not, why. Replies have these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Support {
    /// The source is supported.
    Supported = 0,
    /// The interface's table lacks the source.
    NotInInterface = 1,
    /// Leaf 0xA EAX\[31:24\] does not cover the event's EBX bit.
    EventNotEnumerated = 2,
    /// The event's bit in leaf 0xA EBX is set.
    EventNotAvailable = 3,
    /// The state of the counters could not be allocated.
    NoMemory = 4,
    /// Amd64: the processor family does not have this event, or does not count it in the core.
    NotOnThisFamily = 5,
    /// Raw event: the interface's registers do not take an event and a unit mask.
    NoRawEvents = 6,
    /// Raw event: its number is wider than the event numbers of the processor.
    NoSuchEvent = 7,
    /// Amd64: the processor's model belongs to no known generation, so the event's number is not known.
    ModelNotKnown = 8,
    /// Raw event: its unit mask has more than 8 bits, but the select registers have no UMASK2.
    NoSecondUnitMask = 9,
    /// Raw event: it compares for equality, but the select registers have no EQ.
    NoEquality = 10,
    /// Raw event: no general counter of the processor counts it.
    NoCounter = 11,
    /// Raw event of AMD: it can occur more than 15 times in a cycle, and the processor reports no counters that can be
    /// merged.
    NeedsTwoCounters = 12,
    /// Amd64: an event of the northbridge, which only the first core of each node counts.
    OtherCore = 13,
    /// Raw event of AMD: it merges two counters. The driver selects it itself.
    MergesCounters = 14,
    /// Raw event: it counts only with a value in an extra register, and the request has none.
    NeedsExtraRegister = 15,
    /// Raw event: it does not belong to the extra register of the request.
    NoExtraRegister = 16,
    /// Raw event: the value of its extra register has bits that the processor reserves, or selects nothing.
    ReservedExtraBits = 17,
    /// Raw event: the processor measures load latency only beside an auxiliary event.
    NeedsAuxiliaryEvent = 18,
    /// Raw event: the processor has no AnyThread.
    NoAnyThread = 19,
    /// Raw event of slots or of a top-down metric: the processor does not have it, or the event has more fields than
    /// event number and unit mask.
    NoMetrics = 20,
    /// Raw event of slots or of a top-down metric: it is counted, but cannot be sampled.
    CountedOnly = 21,
}

impl Support {
    /// All values, in the order of their numbers.
    pub const ALL: [Self; 22] = [
        Self::Supported,
        Self::NotInInterface,
        Self::EventNotEnumerated,
        Self::EventNotAvailable,
        Self::NoMemory,
        Self::NotOnThisFamily,
        Self::NoRawEvents,
        Self::NoSuchEvent,
        Self::ModelNotKnown,
        Self::NoSecondUnitMask,
        Self::NoEquality,
        Self::NoCounter,
        Self::NeedsTwoCounters,
        Self::OtherCore,
        Self::MergesCounters,
        Self::NeedsExtraRegister,
        Self::NoExtraRegister,
        Self::ReservedExtraBits,
        Self::NeedsAuxiliaryEvent,
        Self::NoAnyThread,
        Self::NoMetrics,
        Self::CountedOnly,
    ];

    /// Returns the value with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|support| *support as u32 == number)
    }
}

/// Returns the counters that count a raw event.
///
/// # Errors
/// That there are none.
pub const fn some(counters: CounterSet) -> Result<CounterSet, Support> {
    if counters.is_empty() { Err(Support::NoCounter) } else { Ok(counters) }
}

/// Returns the reason for which select registers with or without UMASK2 and EQ do not take a raw event, if there is
/// one.
pub fn lacks_version_6(event: RawEvent, umask2: bool, eq: bool) -> Option<Support> {
    match event {
        _ if event.umask() > 0xFF && !umask2 => Some(Support::NoSecondUnitMask),
        _ if event.eq() && !eq => Some(Support::NoEquality),
        _ => None,
    }
}
