//! When a written event arrives, with which stacks, and what is lost.

use bench_protocol::{Disorder, ProviderId, Random, TraceReport, UserParts, WrittenEvent};
use std::{
    collections::{BTreeMap, HashMap},
    iter,
    time::Duration,
};

/// StackWalkGuid, {def2fe46-7bd6-4b80-bd94-f57fe20d0ce3}.
pub const STACK_WALK: ProviderId = *b"\x46\xFE\xF2\xDE\xD6\x7B\x80\x4B\xBD\x94\xF5\x7F\xE2\x0D\x0C\xE3";

/// EVENT_TRACE_TYPE_STACK, the opcode of StackWalk events.
const STACK_OPCODE: u8 = 32;

/// Units of the performance counter between an event and its user part.
const USER_PART_AFTER: u64 = 1;

/// An EVENT_EXTENDED_ITEM_STACK_TRACE64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackItem {
    /// 0 if the frames of both modes are in the item.
    pub match_id: u64,
    /// Frames, from the innermost.
    pub frames: Vec<u64>,
}

/// An event as a session receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredEvent {
    /// GUID of the provider; of a MOF event the class.
    pub provider: ProviderId,
    /// EVENT_DESCRIPTOR.Id.
    pub id: u16,
    /// EVENT_DESCRIPTOR.Version.
    pub version: u8,
    /// EVENT_DESCRIPTOR.Channel.
    pub channel: u8,
    /// EVENT_DESCRIPTOR.Level.
    pub level: u8,
    /// EVENT_DESCRIPTOR.Opcode.
    pub opcode: u8,
    /// EVENT_DESCRIPTOR.Keyword.
    pub keyword: u64,
    /// Whether it is a MOF event (EVENT_HEADER_FLAG_CLASSIC_HEADER).
    pub is_classic: bool,
    /// Processor.
    pub processor: u32,
    /// Process.
    pub process: u32,
    /// Thread.
    pub thread: u32,
    /// Performance counter.
    pub time: u64,
    /// Metadata of a TraceLogging event (EVENT_HEADER_EXT_TYPE_EVENT_SCHEMA_TL); empty for others.
    pub metadata: Vec<u8>,
    /// Payload.
    pub payload: Vec<u8>,
    /// The stack, if the session asked for it.
    pub stack: Option<StackItem>,
    /// The counters of an event that carries some (EVENT_HEADER_EXT_TYPE_PMC_COUNTERS).
    pub counters: Vec<u64>,
}

/// Time after which an event no longer waits for those that could overtake it: Windows delivers buffers that are not
/// full after the flush timer, at least one second.
const FLUSH: Duration = Duration::from_secs(1);

/// An event on its way.
#[derive(Debug)]
struct Waiting {
    at: Duration,
    /// Number of written events after which it is delivered.
    place: u64,
    event: DeliveredEvent,
}

/// Events on their way from the provider to the consumer of a session.
#[derive(Debug)]
pub struct Delivery {
    disorder: Disorder,
    /// Number of the next event.
    number: u64,
    /// Number of entries that were queued.
    queued: u64,
    /// Number of events of each CPU.
    of_cpu: HashMap<u32, u64>,
    /// Events that have not arrived, by time and order.
    delayed: BTreeMap<(Duration, u64), Waiting>,
    /// Events that have arrived, by place and order.
    arrived: BTreeMap<(u64, u64), Waiting>,
    report: TraceReport,
}

impl Delivery {
    /// Creates a delivery without events.
    #[must_use]
    pub fn new(disorder: Disorder) -> Self {
        Self {
            disorder,
            number: 0,
            queued: 0,
            of_cpu: HashMap::new(),
            delayed: BTreeMap::new(),
            arrived: BTreeMap::new(),
            report: TraceReport::default(),
        }
    }

    /// Returns what was delivered and lost.
    #[must_use]
    pub const fn report(&self) -> &TraceReport {
        &self.report
    }

    /// Adds an event that is delivered as it is, before all events that are added later.
    pub fn add_as_is(&mut self, event: DeliveredEvent) {
        self.queue(Duration::ZERO, 0, event);
    }

    /// Adds an event of the kernel, at `now`.
    pub fn add_of_kernel(&mut self, event: DeliveredEvent, now: Duration) {
        let Some((number, mut random)) = self.begin(event.processor) else { return };
        self.end(number, &mut random, now, event, None);
    }

    /// Adds an event that a driver wrote, at `now`; `with_stack` if the session enabled its provider with
    /// EVENT_ENABLE_PROPERTY_STACK_TRACE.
    pub fn add(&mut self, written: WrittenEvent, with_stack: bool, now: Duration) {
        let Some((number, mut random)) = self.begin(written.processor) else { return };
        let (event, user_part) = self.with_stacks(written, with_stack, number);
        self.end(number, &mut random, now, event, user_part);
    }

    /// Returns the number of an event, and its decisions; `None` if it is lost.
    fn begin(&mut self, processor: u32) -> Option<(u64, Random)> {
        let number = self.number;
        self.number += 1;
        self.report.written += 1;
        (!self.is_lost(number, processor)).then(|| (number, Random::new(self.disorder.seed, number)))
    }

    /// Queues an event that is not lost.
    fn end(
        &mut self,
        number: u64,
        random: &mut Random,
        now: Duration,
        event: DeliveredEvent,
        user_part: Option<DeliveredEvent>,
    ) {
        let Disorder { delay, shuffle, duplicates, .. } = self.disorder;
        let at = now + Duration::from_millis(random.up_to(delay));
        let place = number + random.up_to(shuffle.into());
        let is_double = random.percent(duplicates);
        self.report.delivered += 1;
        if let Some(part) = user_part {
            self.add_user_part(part, random, at, place);
        }
        if is_double {
            self.report.duplicates += 1;
            self.queue(at, place, event.clone());
        }
        self.queue(at, place, event);
    }

    /// Returns whether an event is lost, alone or with its buffer.
    fn is_lost(&mut self, number: u64, processor: u32) -> bool {
        let Disorder { seed, buffer, lost_buffers, lost_events, .. } = self.disorder;
        let position = self.of_cpu.entry(processor).or_default();
        let (of_buffer, in_buffer) = (*position / u64::from(buffer.max(1)), *position % u64::from(buffer.max(1)));
        *position += 1;
        let buffers = Random::new(!seed, u64::from(processor) << 40 | of_buffer).percent(lost_buffers);
        if buffers {
            self.report.lost_buffers += u64::from(in_buffer == 0);
            self.report.lost_with_buffers += 1;
            return true;
        }
        let alone = Random::new(seed.rotate_left(32), number).percent(lost_events);
        self.report.lost_events += u64::from(alone);
        alone
    }

    /// Returns an event with its stack, and the event that brings the frames in user mode, if it is another.
    fn with_stacks(
        &mut self,
        written: WrittenEvent,
        with_stack: bool,
        number: u64,
    ) -> (DeliveredEvent, Option<DeliveredEvent>) {
        let WrittenEvent { provider, id, version, channel, level, keyword, processor, process, thread, time, .. } =
            written;
        let WrittenEvent { metadata, payload, mut kernel, user, .. } = written;
        let stack = None;
        let mut event = DeliveredEvent {
            provider,
            id,
            version,
            channel,
            level,
            opcode: 0,
            keyword,
            is_classic: false,
            processor,
            process,
            thread,
            time,
            metadata,
            payload,
            stack,
            counters: Vec::new(),
        };
        if !with_stack {
            return (event, None);
        }
        let variants = [UserParts::Together, UserParts::SameProvider, UserParts::StackWalk];
        let mut how = self.disorder.user_parts;
        if how == UserParts::Mixed {
            how = variants.into_iter().cycle().nth(usize::try_from(number % 3).unwrap_or_default()).unwrap_or_default();
        }
        if how == UserParts::Together || user.is_empty() {
            kernel.extend(user);
            event.stack = Some(self.item(0, kernel));
            return (event, None);
        }
        let match_id = number + 1;
        event.stack = Some(self.item(match_id, kernel));
        let mut part = DeliveredEvent { stack: Some(self.item(match_id, user)), ..event.clone() };
        part.payload.clear();
        part.time += USER_PART_AFTER;
        if how == UserParts::StackWalk {
            part.metadata.clear();
            let (provider, opcode, is_classic) = (STACK_WALK, STACK_OPCODE, true);
            part = DeliveredEvent { provider, opcode, is_classic, id: 0, version: 2, channel: 0, keyword: 0, ..part };
        }
        (event, Some(part))
    }

    /// Returns an item with at most the maximum number of frames.
    fn item(&mut self, match_id: u64, mut frames: Vec<u64>) -> StackItem {
        if frames.len() > self.disorder.frames {
            self.report.cut += 1;
            frames.truncate(self.disorder.frames);
        }
        StackItem { match_id, frames }
    }

    /// Queues the event that brings the frames in user mode of an event at this place.
    fn add_user_part(&mut self, part: DeliveredEvent, random: &mut Random, at: Duration, place: u64) {
        let Disorder { user_delay, user_first, lost_user_parts, duplicates, .. } = self.disorder;
        if random.percent(lost_user_parts) {
            self.report.lost_user_parts += 1;
            return;
        }
        let is_first = random.percent(user_first);
        let later = Duration::from_millis(random.up_to(user_delay));
        let is_double = random.percent(duplicates);
        // Queued before its event, the part also arrives before it unless it is delayed.
        let (at, place) = if is_first { (at, place) } else { (at + later, place + 1) };
        self.report.user_parts += 1;
        if is_double {
            self.report.duplicates += 1;
            self.queue(at, place, part.clone());
        }
        self.queue(at, place, part);
    }

    fn queue(&mut self, at: Duration, place: u64, event: DeliveredEvent) {
        self.delayed.insert((at, self.queued), Waiting { at, place, event });
        self.queued += 1;
    }

    /// Removes and returns the next event that has arrived at `now`.
    pub fn next(&mut self, now: Duration) -> Option<DeliveredEvent> {
        while let Some(entry) = self.delayed.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, order), waiting) = entry.remove_entry();
            self.arrived.insert((waiting.place, order), waiting);
        }
        let first = self.arrived.first_entry()?;
        let Waiting { at, place, .. } = first.get();
        (*place <= self.number || at.saturating_add(FLUSH) <= now).then(|| first.remove().event)
    }

    /// Removes and returns the events that are left when the session was stopped, in the order of arrival.
    pub fn finish(&mut self) -> Vec<DeliveredEvent> {
        iter::from_fn(|| self.next(Duration::MAX)).collect()
    }
}
