//! Starts of sessions that need much of what is scarce.

use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{
    Event, EventRequest, MAX_EVENTS, MAX_RING_BYTES, ProcessorSet, RING, SampleRecord, StartHeader, flags, modes,
};

use super::{MANY, Scarcity};
use crate::generate::{Generator, put};

/// Values of off-core responses: some for each generation.
const RESPONSES: [u64; 6] = [0x1_0001, 0x1_0002, 0x1_0004, 0x101, 0x102, 0x104];

impl Generator<'_, '_> {
    /// Writes the input of a start that needs much of what is scarce.
    pub(crate) fn start_scarce(&mut self, scarcity: Scarcity, input: &mut Vec<u8>) {
        let mut header = StartHeader { processors: self.processors(), ..StartHeader::EMPTY };
        let mut events = Vec::new();
        match scarcity {
            Scarcity::Subscribers => {
                header.ring = *RING.start();
                // All samplers of an event share its counter.
                let (source, interval) = if self.one_in(2) { (0, 50_000) } else { (2, 5_000) };
                events.push(EventRequest { event: Event::of(source), interval, ..EventRequest::EMPTY });
            }
            Scarcity::RingMemory => {
                header.ring = *RING.end();
                // Memory that would be granted is not asked for: it would be taken from the host.
                let of_each = u64::from(header.ring) * size_of::<SampleRecord>() as u64;
                let too_many = (MAX_RING_BYTES.saturating_sub(self.known.ring_bytes) / of_each + 1).min(MANY.into());
                header.processors = ProcessorSet::EMPTY;
                for processor in 0..u32::try_from(too_many).unwrap_or(MANY) {
                    header.processors.insert(processor);
                }
                events.push(EventRequest { event: Event::TIME, interval: 50_000, ..EventRequest::EMPTY });
            }
            Scarcity::RawEvents => {
                header.flags = flags::MULTIPLEX;
                // All events of a session take turns on one counter, so that the other sessions have the others.
                let counters = 1 << self.choices.up_to(3);
                for _ in 0..MAX_EVENTS {
                    let umask = u16::try_from(self.choices.up_to(255)).unwrap_or_default();
                    let event = self.choices.pick(&[0xC0, 0xC4, 0xC5, 0x3C]).copied().unwrap_or_default();
                    let raw = RawEvent::new().with_event(event).with_umask(umask);
                    events.push(EventRequest {
                        event: Event { counters, ..Event::of(raw.source().0) },
                        ..EventRequest::EMPTY
                    });
                }
            }
            Scarcity::ExtraRegisters => {
                for _ in 0..=self.choices.up_to(2) {
                    let event = if self.one_in(2) { 0xB7 } else { 0xBB };
                    let raw = RawEvent::new().with_event(event).with_umask(1);
                    let source = raw.with_selector(Selector::OffcoreResponse as u8).source().0;
                    let extra = self.choices.pick(&RESPONSES).copied().unwrap_or_default();
                    events.push(EventRequest { event: Event { extra, ..Event::of(source) }, ..EventRequest::EMPTY });
                }
            }
            Scarcity::FreeCounters | Scarcity::WorkingCounters => {
                let source = self.choices.pick(&[2, 6, 0x13]).copied().unwrap_or_default();
                events.push(EventRequest { event: Event::of(source), ..EventRequest::EMPTY });
            }
        }
        put(input, &header);
        for event in events {
            put(input, &EventRequest { modes: modes::BOTH, ..event });
        }
    }
}
