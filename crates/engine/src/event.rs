//! An event of a session, and how it is served.

use pmu::extra::{AUXILIARY, Selector};
use pmu::interval::IntervalRange;
use pmu::state::{CounterSet, CounterState};
use pmu::{CoreType, Source};
use protocol::{ALL_SOURCES, Event, modes};

use crate::sampler::Hal;

/// The events that a request addresses.
#[derive(Debug, Clone, Copy)]
pub struct EventFilter {
    /// [`Event::source`], or [`ALL_SOURCES`].
    pub source: u64,
    /// Number of the core type, or 0 for every event.
    pub core_type: u32,
}

impl EventFilter {
    /// Addresses every event.
    pub const ALL: Self = Self::of_source(ALL_SOURCES);

    /// Addresses the events of a source, or all with [`ALL_SOURCES`].
    pub const fn of_source(source: u64) -> Self {
        Self { source, core_type: 0 }
    }

    /// Returns whether it addresses every event.
    pub const fn is_all(self) -> bool {
        self.source == ALL_SOURCES && self.core_type == 0
    }
}

/// An event of a session, on all processors of the session that have its core type.
#[derive(Debug, Clone, Copy)]
pub struct PlannedEvent {
    /// The event, with the core type that was chosen for it if the request named none.
    pub requested: Event,
    /// [`modes`].
    pub modes: u32,
    /// [`event_flags`](protocol::event_flags).
    pub flags: u32,
    /// The event is sampled.
    pub sampled: bool,
    /// The counters that the client allows.
    pub within: CounterSet,
    /// How the event is served.
    pub service: Service,
    /// Group of the event, or 0 for an event by itself.
    pub group: u32,
    /// The event has a counter all the time.
    pub pinned: bool,
    /// Whether it is counted.
    pub state: EventState,
    /// The counters that count it on the processors of a [kind](pmu::Hal::kind), as they were looked up last.
    pub counters: Option<(u64, CounterSet)>,
    /// Of which overflows there are samples, if not of all.
    pub condition: Option<Condition>,
    /// The event is counted for the condition of another one alone.
    pub beside: bool,
}

/// Of which overflows of an event there are samples: of those with such a ratio of two counts in their window.
#[derive(Debug, Clone, Copy)]
pub struct Condition {
    /// Indexes in the session of the two events.
    pub ratio: [u16; 2],
    /// The ratio has to be above the limit, not below it.
    pub is_above: bool,
    /// The limit, and what it is divided by.
    pub limit: [u32; 2],
}

impl Condition {
    /// Returns the other event of the ratio, and its count at which a window of `interval` events of the event with
    /// this index cannot meet the condition any more: one that is not reached if and only if the condition is met.
    /// `None` if it compares otherwise, or with too large a count.
    pub fn reached(&self, own: u16, interval: u32) -> Option<(u16, u32)> {
        let [over, under] = self.limit.map(u64::from);
        let (other, over, under) = match (self.ratio, self.is_above) {
            ([other, by], false) if by == own => (other, over, under),
            ([by, other], true) if by == own => (other, under, over),
            _ => return None,
        };
        // None of these sums has more than 64 bits.
        let rounded_up = u64::from(interval).wrapping_mul(over).wrapping_add(under.wrapping_sub(1));
        let count = rounded_up.checked_div(under)?;
        // As large as an interval, so that none is lost between an overflow and its interrupt.
        let count = u32::try_from(count).ok().filter(|count| IntervalRange::COUNTER.clamp(*count) == *count)?;
        (other != own).then_some((other, count))
    }
}

impl PlannedEvent {
    /// Returns whether it is the [auxiliary event](AUXILIARY) of load latency, on a counter all the time.
    pub fn is_auxiliary(&self, multiplexed: bool) -> bool {
        self.requested.source == AUXILIARY.source().0
            && self.state == EventState::Running
            && (self.pinned || !multiplexed)
    }
}

/// Whether an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventState {
    /// It is.
    Running,
    /// It is, and its session is about to yield.
    Yielding,
    /// Its session has yielded, and its final count waits for a request.
    Yielded,
    /// It was stopped.
    Stopped,
}

/// How an event is served.
#[derive(Debug, Clone, Copy)]
pub enum Service {
    /// By measured time.
    Time {
        /// Interval in units of 100 ns.
        interval: u32,
    },
    /// By a counter.
    Counter {
        /// State of the counter, without the owner.
        state: CounterState,
        /// Samples per second to which the interval is adapted, or 0 for a constant interval.
        frequency: u32,
    },
    /// By the Branch Trace Store.
    Branches {
        /// Branches before an interrupt.
        before: u32,
    },
}

impl Service {
    /// Returns whether the processor itself records the event.
    pub const fn uses_debug_store(&self) -> bool {
        match self {
            Self::Time { .. } => false,
            Self::Branches { .. } => true,
            Self::Counter { state, .. } => state.precise(),
        }
    }
}

impl PlannedEvent {
    /// Returns whether the event is sampled when a timer expires.
    pub const fn is_sampled_by_time(&self) -> bool {
        self.sampled && matches!(self.service, Service::Time { .. })
    }

    /// Returns whether ops are sampled at the event: it is precise, and no record of the processor makes it so.
    pub const fn uses_ibs(&self) -> bool {
        self.modes & modes::PRECISE != 0 && !self.service.uses_debug_store()
    }

    /// Returns the kind of the extra register that it needs.
    pub fn selector(&self) -> Option<Selector> {
        Selector::from_number(Source(self.requested.source).raw()?.selector())
    }

    /// Returns whether the event needs the performance monitor interrupt.
    pub const fn needs_interrupt(&self) -> bool {
        match self.service {
            Service::Time { .. } => false,
            Service::Counter { .. } => self.sampled,
            Service::Branches { .. } => true,
        }
    }

    /// Returns whether the event runs.
    pub const fn runs(&self) -> bool {
        matches!(self.state, EventState::Running | EventState::Yielding)
    }

    /// Notes that the event has been stopped.
    pub const fn stop(&mut self) {
        self.state = if matches!(self.state, EventState::Yielding) { EventState::Yielded } else { EventState::Stopped };
    }

    /// Returns whether the event runs and is addressed by the filter.
    pub fn is_running(&self, filter: EventFilter) -> bool {
        self.runs() && self.is_addressed(filter)
    }

    /// Returns whether the event is addressed by the filter, and has a count: it runs, or has yielded.
    pub fn has_count(&self, filter: EventFilter) -> bool {
        self.state != EventState::Stopped && self.is_addressed(filter)
    }

    const fn is_addressed(&self, EventFilter { source, core_type }: EventFilter) -> bool {
        (source == ALL_SOURCES || source == self.requested.source)
            && (core_type == 0 || core_type == self.requested.core_type)
    }

    /// Returns whether it is counted on processors of this core type; `None` on a machine that is not a hybrid.
    pub fn is_on(&self, core_type: Option<CoreType>) -> bool {
        self.is_everywhere() || core_type.is_some_and(|core_type| core_type.number() == self.requested.core_type)
    }

    /// Returns whether it is counted on the processors of all core types.
    pub const fn is_everywhere(&self) -> bool {
        self.requested.core_type == 0
    }

    /// Returns whether it names no core type, and is not the same event on all core types.
    pub fn is_ambiguous(&self, hal: &Hal) -> bool {
        let is_counted = matches!(self.service, Service::Counter { .. });
        is_counted && self.is_everywhere() && !hal.is_same_everywhere(Source(self.requested.source))
    }
}
