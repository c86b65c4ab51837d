//! Events for Event Tracing for Windows: what a processor's interrupts leave for its DPC, which writes the events.
//!
//! While no trace session wants the events, an interrupt does nothing for them: it takes the common path. While one
//! does, it takes the uncommon path, gives its samples a cookie, and notes them here.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::Source;
use protocol::trace::{Loss, Sample, SessionStart, SessionStop, cookie};
use protocol::{CounterSample, Mode};

/// Number of counters whose events can wait on a processor. No processor has more than NetBurst with 18 (SDM Vol. 3B,
/// 21.6.3), and sampling by time takes the place of one.
const CAPACITY: usize = 20;

/// An event to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent<'a> {
    /// [`EventId::Sample`](protocol::trace::EventId::Sample).
    Sample(Sample),
    /// [`EventId::Lost`](protocol::trace::EventId::Lost).
    Lost(Loss),
    /// [`EventId::Throttled`](protocol::trace::EventId::Throttled).
    Throttled(Loss),
    /// [`EventId::SessionStart`](protocol::trace::EventId::SessionStart), with the name of the event.
    SessionStart(SessionStart, &'a str),
    /// [`EventId::SessionStop`](protocol::trace::EventId::SessionStop).
    SessionStop(SessionStop),
}

/// What the events of a counter say that it counts: two sessions can count the same, so that no index of a session can
/// stand for it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EventKey {
    /// [`Event::source`](protocol::Event::source).
    pub source: u64,
    /// [`Event::extra`](protocol::Event::extra).
    pub extra: u64,
}

impl EventKey {
    /// Measured time.
    pub const TIME: Self = Self { source: Source::TIME.0, extra: 0 };
}

/// The [`EventKey`] of a counter.
#[derive(Debug)]
pub struct EventCell([AtomicU64; 2]);

impl EventCell {
    pub const fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    pub fn get(&self) -> EventKey {
        let [source, extra] = &self.0;
        EventKey { source: source.load(Ordering::Relaxed), extra: extra.load(Ordering::Relaxed) }
    }

    pub fn set(&self, key: EventKey) {
        let [source, extra] = &self.0;
        source.store(key.source, Ordering::Relaxed);
        extra.store(key.extra, Ordering::Relaxed);
    }
}

/// Why overflows of a counter have no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsampled {
    /// The interrupt came too late, or not at all.
    Lost,
    /// The processor is throttled.
    Throttled,
}

/// Events of a processor that its DPC has not written yet.
#[derive(Debug)]
pub struct UnwrittenEvents {
    counters: [CounterEvents; CAPACITY],
    /// Number of the first of these, which each have an event.
    used: usize,
}

/// Events of a counter: its samples, if there are any, and its overflows without a sample.
#[derive(Debug, Clone, Copy)]
struct CounterEvents {
    time: u64,
    ip: u64,
    weight: u64,
    /// Cookies of the first and of the last sample.
    first: u32,
    last: u32,
    /// Number of samples.
    count: u32,
    event: EventKey,
    lost: u32,
    throttled: u32,
    counter: u8,
    is_kernel: bool,
}

impl Default for UnwrittenEvents {
    #[inline(never)] // the load of the driver has no stack for it
    fn default() -> Self {
        Self { counters: [CounterEvents::NONE; CAPACITY], used: 0 }
    }
}

impl CounterEvents {
    const NONE: Self = Self {
        time: 0,
        ip: 0,
        weight: 0,
        first: 0,
        last: 0,
        count: 0,
        event: EventKey::TIME,
        lost: 0,
        throttled: 0,
        counter: 0,
        is_kernel: false,
    };

    /// Adds a sample.
    fn add(&mut self, sample: &CounterSample) {
        let Self { weight, first, count, .. } = *self;
        *self = Self {
            time: sample.time,
            ip: sample.ip,
            weight: weight.saturating_add(sample.interval.into()),
            first: if count == 0 { sample.cookie } else { first },
            last: sample.cookie,
            count: count.saturating_add(1),
            is_kernel: sample.mode == Mode::Kernel,
            ..*self
        };
    }

    /// Returns whether there is one.
    const fn has_any(&self) -> bool {
        self.count != 0 || self.lost != 0 || self.throttled != 0
    }

    /// Takes an event of processor `cpu`.
    fn take(&mut self, cpu: u32) -> Option<TraceEvent<'static>> {
        let Self { time, ip, weight, first, last, count, event, lost, throttled, is_kernel, .. } = *self;
        let EventKey { source, extra } = event;
        if count != 0 {
            (self.count, self.weight) = (0, 0);
            let (cookie, first, mode) = (cookie(cpu, last), cookie(cpu, first), is_kernel.into());
            let count = count.into();
            return Some(TraceEvent::Sample(Sample {
                time,
                ip,
                weight,
                cookie,
                first,
                source,
                extra,
                count,
                cpu,
                mode,
            }));
        }
        let of = |count| Loss { source, extra, count, cpu };
        if lost != 0 {
            self.lost = 0;
            return Some(TraceEvent::Lost(of(lost)));
        }
        self.throttled = 0;
        (throttled != 0).then(|| TraceEvent::Throttled(of(throttled)))
    }
}

impl UnwrittenEvents {
    /// Returns the events of a counter, or `None` if there is no room for them.
    #[inline]
    fn of(&mut self, counter: u8, event: EventKey) -> Option<&mut CounterEvents> {
        let known = self.counters.iter().take(self.used).position(|events| events.counter == counter);
        let index = known.unwrap_or(self.used);
        let events = self.counters.get_mut(index)?;
        if known.is_none() {
            *events = CounterEvents { event, counter, ..CounterEvents::NONE };
            self.used += 1;
        }
        Some(events)
    }

    /// Drops all events.
    pub const fn clear(&mut self) {
        self.used = 0;
    }

    /// Notes a sample of a counter that counts `event`.
    #[inline]
    pub fn add_sample(&mut self, counter: u8, event: EventKey, sample: &CounterSample) {
        if let Some(events) = self.of(counter, event) {
            events.add(sample);
        }
    }

    /// Notes a sample, unless one with the same cookie is noted.
    pub fn add_once(&mut self, counter: u8, event: EventKey, sample: &CounterSample) {
        let is_noted =
            |events: &CounterEvents| events.counter == counter && events.count != 0 && events.last == sample.cookie;
        if !self.counters.iter().take(self.used).any(is_noted) {
            self.add_sample(counter, event, sample);
        }
    }

    /// Notes an overflow of a counter without a sample.
    pub fn add_unsampled(&mut self, counter: u8, event: EventKey, why: Unsampled) {
        let Some(events) = self.of(counter, event) else { return };
        match why {
            Unsampled::Lost => events.lost = events.lost.saturating_add(1),
            Unsampled::Throttled => events.throttled = events.throttled.saturating_add(1),
        }
    }

    /// Returns whether there are any.
    pub const fn has_any(&self) -> bool {
        self.used != 0
    }

    /// Takes an event of processor `cpu`.
    pub fn take(&mut self, cpu: u32) -> Option<TraceEvent<'static>> {
        let last = self.used.checked_sub(1)?;
        let events = self.counters.get_mut(last)?;
        let event = events.take(cpu);
        if !events.has_any() {
            self.used = last;
        }
        event
    }
}
