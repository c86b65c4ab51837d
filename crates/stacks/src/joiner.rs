//! Joins samples, events and user parts.

use std::sync::Arc;
use std::time::Duration;

use protocol::{CounterSample, Event, Record, RecordKind, SampleRecord};
use recording::{MissingStack, SampleStack};

use crate::counts::StackCounts;
use crate::input::{CallGraph, SampleEvent, UserPart};
use crate::queue::{EventKey, Queue, SampleState, Waiting, key};
use crate::recent::Recent;
use crate::rules::{self, Progress, Relation};

/// Maximum number of events that are compared with a sample. Usually the first one fits or none does; others are of
/// earlier sessions.
const MAX_COMPARED: usize = 64;

/// Units of a duration per second.
const NANOSECONDS: u128 = 1_000_000_000;

/// What a joiner holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a sample waits for its stack, and how long events and user parts are kept.
    pub wait: Duration,
    /// Number of samples.
    pub samples: usize,
    /// Number of their last branches.
    pub branches: usize,
    /// Number of events.
    pub events: usize,
    /// Number of user parts.
    pub parts: usize,
    /// Number of frames of the samples, of the events and of the user parts: each have so many.
    pub frames: usize,
}

impl Default for Limits {
    /// Limits for 100,000 samples per second. Trace sessions deliver buffers that are not full once per second, so a
    /// user part can come two seconds after its sample. All together are less than 500 MB; the last branches of 50,000
    /// samples per second are less than 200 MB more.
    fn default() -> Self {
        Self {
            wait: Duration::from_millis(2_500),
            samples: 1 << 19,
            branches: 1 << 22,
            events: 1 << 19,
            parts: 1 << 19,
            frames: 12 << 20,
        }
    }
}

/// What a joiner holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Number of samples, without those that are ready.
    pub samples: usize,
    /// Number of their last branches.
    pub branches: usize,
    /// Number of events.
    pub events: usize,
    /// Number of user parts.
    pub parts: usize,
    /// Number of frames of the samples, of the events and of the user parts.
    pub frames: [usize; 3],
}

/// Joins samples with their stacks.
#[derive(Debug)]
pub struct Joiner {
    graph: CallGraph,
    limits: Limits,
    /// [`Limits::wait`] in units of the clock of samples.
    window: u64,
    /// The events of the session, in the order of its request.
    requested: Vec<Event>,
    queue: Queue,
    events: Recent<EventKey, Arc<SampleEvent>>,
    parts: Recent<u64, UserPart>,
    ready: Vec<(SampleRecord, SampleStack)>,
    counts: StackCounts,
}

impl Joiner {
    /// Creates a joiner for samples of these events, in the order of the request that started their session, with a
    /// clock of so many units per second.
    #[must_use]
    pub fn new(graph: CallGraph, limits: Limits, requested: Vec<Event>, clock: u64) -> Self {
        let window = limits.wait.as_nanos() * u128::from(clock) / NANOSECONDS;
        Self {
            graph,
            limits,
            window: u64::try_from(window).unwrap_or(u64::MAX),
            requested,
            queue: Queue::default(),
            events: Recent::default(),
            parts: Recent::default(),
            ready: Vec::new(),
            counts: StackCounts::default(),
        }
    }

    /// Adds records that arrived at `now`, a time since any moment, which does not decrease. The records of each CPU
    /// are in order. Records that are not samples are returned with [`SampleStack::NotRecorded`], and last branches
    /// directly behind the record that they followed.
    pub fn records(&mut self, records: &[SampleRecord], now: Duration) {
        for record in records {
            if record.kind() == Some(RecordKind::LastBranch) && self.queue.add_branch(*record) {
                continue;
            }
            let state = self.first_state(record);
            self.queue.push(Waiting { record: *record, arrived: now, state, branches: Vec::new() });
        }
        self.keep_limits();
    }

    /// Adds an event that arrived at `now`. An event that came before, and one of other sessions, is ignored.
    pub fn event(&mut self, event: SampleEvent, now: Duration) {
        if !rules::is_consistent(&event.payload) {
            return;
        }
        let event = Arc::new(event);
        let key = |source, extra| (source, extra) == (event.payload.source, event.payload.extra);
        let indexes = (0_u32..).zip(&self.requested).filter(|(_, one)| key(one.source, one.extra));
        // The same event can be there twice, in user mode and in kernel mode.
        for index in indexes.map(|(index, _)| index).collect::<Vec<_>>() {
            self.event_with(index, &event, now);
        }
        self.forget(now);
        self.keep_limits();
    }

    /// Adds an event of the session by its index.
    fn event_with(&mut self, index: u32, event: &Arc<SampleEvent>, now: Duration) {
        let payload = event.payload;
        let [first, last] = [payload.first, payload.cookie].map(rules::number);
        let key = (payload.cpu, index, last);
        if self.events.with_key(key).any(|known| known.payload == payload) {
            return;
        }
        for number in self.queue.awaiting_events(payload.cpu, index, [first, last]) {
            if let Some(SampleState::AwaitsEvent(sample)) = self.queue.state(number) {
                let sample = *sample;
                if let Some(relation) = rules::relation(&sample, &payload, self.window) {
                    let state = self.with_event(sample, event, relation);
                    self.queue.set_state(number, state);
                }
            }
        }
        // The event is kept: its sample may be fetched later, and a session can have several samples of an interrupt.
        let frames = event.stack.as_ref().map_or(0, |stack| stack.frames.len());
        self.events.add(key, Arc::clone(event), frames, now);
    }

    /// Adds a user part that arrived at `now`. Parts that came before, and items with frames in kernel mode, are
    /// ignored.
    pub fn user_part(&mut self, part: UserPart, now: Duration) {
        let match_id = part.stack.match_id;
        let identity = |part: &UserPart| (part.process, part.thread, part.time);
        let is_known = self.parts.with_key(match_id).any(|known| identity(known) == identity(&part));
        if is_known || !rules::is_user_part(&part) {
            return;
        }
        for number in self.queue.awaiting_users(match_id) {
            if let Some(SampleState::AwaitsUser(sample, event)) = self.queue.state(number)
                && let Some(stack) = rules::with_user(sample, event, &part, self.graph, self.window)
            {
                self.queue.set_state(number, SampleState::Done(stack));
            }
        }
        // The part is kept: its event may come later.
        let frames = part.stack.frames.len();
        self.parts.add(match_id, part, frames, now);
        self.forget(now);
        self.keep_limits();
    }

    /// Returns the records whose stacks are known, or were waited for long enough, up to the first one that still
    /// waits. Call this after everything that has arrived was added, so that nothing is missing that is there.
    pub fn take(&mut self, now: Duration) -> Vec<(SampleRecord, SampleStack)> {
        self.forget(now);
        while let Some(first) = self.queue.front()
            && (matches!(first.state, SampleState::Done(_)) || now.saturating_sub(first.arrived) >= self.limits.wait)
        {
            self.release([MissingStack::EventLost, MissingStack::UserLost]);
        }
        std::mem::take(&mut self.ready)
    }

    /// Returns all other records: nothing more will arrive.
    pub fn finish(&mut self) -> Vec<(SampleRecord, SampleStack)> {
        self.take(Duration::MAX)
    }

    /// Returns how many samples were returned, or are ready, by what is known of their stacks.
    #[must_use]
    pub const fn counts(&self) -> StackCounts {
        self.counts
    }

    /// Returns what the joiner holds.
    #[must_use]
    pub fn held(&self) -> Held {
        Held {
            samples: self.queue.len(),
            branches: self.queue.branches(),
            events: self.events.len(),
            parts: self.parts.len(),
            frames: [self.queue.frames(), self.events.frames(), self.parts.frames()],
        }
    }

    fn first_state(&self, record: &SampleRecord) -> SampleState {
        let sample = match record.parse() {
            Ok(Record::Sample(sample)) => sample,
            Ok(Record::Precise(_) | Record::Branch(_)) => {
                return SampleState::Done(SampleStack::Missing(MissingStack::Precise));
            }
            Ok(
                Record::LastBranch(_)
                | Record::Access(_)
                | Record::Lost(_)
                | Record::Stop(_)
                | Record::Pause(_)
                | Record::OffCpu(_),
            )
            | Err(_) => {
                return SampleState::Done(SampleStack::NotRecorded);
            }
        };
        if let Some(stack) = rules::without_event(&sample, self.graph) {
            return SampleState::Done(stack);
        }
        let Some((relation, event)) = self.event_of(&sample) else { return SampleState::AwaitsEvent(sample) };
        self.with_event(sample, &event, relation)
    }

    /// Returns the event of a sample that has come before it. The events of a counter cover disjoint numbers, so this
    /// is the first one that ends at the sample or later.
    fn event_of(&self, sample: &CounterSample) -> Option<(Relation, Arc<SampleEvent>)> {
        let (processor, source, number) = key(sample);
        let end = (processor, source, u32::MAX);
        let later = self.events.range((key(sample), 0)..=(end, u64::MAX));
        let begin = (processor, source, 0);
        let wraps = |event: &SampleEvent| rules::number(event.payload.first) > rules::number(event.payload.cookie);
        let wrapped = self.events.range((begin, 0)..((processor, source, number), 0));
        let wrapped = wrapped.take_while(|(_, event)| wraps(event));
        later
            .chain(wrapped)
            .take(MAX_COMPARED)
            .find_map(|(_, event)| Some((rules::relation(sample, &event.payload, self.window)?, Arc::clone(event))))
    }

    /// Returns what is known of the stack of a sample with a related event.
    fn with_event(&self, sample: CounterSample, event: &Arc<SampleEvent>, relation: Relation) -> SampleState {
        if relation == Relation::Merged {
            return SampleState::Done(SampleStack::Missing(MissingStack::Merged));
        }
        match rules::with_event(&sample, event, self.graph) {
            Progress::Done(stack) => SampleState::Done(stack),
            Progress::NeedsUser(match_id) => {
                let mut parts = self.parts.with_key(match_id);
                let found = parts.find_map(|part| rules::with_user(&sample, event, part, self.graph, self.window));
                found.map_or_else(|| SampleState::AwaitsUser(sample, Arc::clone(event)), SampleState::Done)
            }
        }
    }

    /// Makes the first record ready. The reasons apply if its event, or the frames in user mode, did not come.
    fn release(&mut self, [no_event, no_user]: [MissingStack; 2]) {
        let Some(Waiting { record, state, branches, .. }) = self.queue.pop() else { return };
        let stack = match state {
            SampleState::Done(stack) => stack,
            SampleState::AwaitsEvent(_) => SampleStack::Missing(no_event),
            SampleState::AwaitsUser(sample, event) => rules::without_user(&sample, &event, self.graph, no_user),
        };
        self.counts.add(&stack);
        self.ready.push((record, stack));
        self.ready.extend(branches.into_iter().map(|branch| (branch, SampleStack::NotRecorded)));
    }

    fn forget(&mut self, now: Duration) {
        let Limits { wait, events, parts, frames, .. } = self.limits;
        let before = now.saturating_sub(wait);
        self.events.trim(before, events, frames);
        self.parts.trim(before, parts, frames);
    }

    fn keep_limits(&mut self) {
        let Limits { samples, branches, frames, .. } = self.limits;
        while self.queue.len() > samples || self.queue.branches() > branches || self.queue.frames() > frames {
            self.release([MissingStack::Overflow; 2]);
        }
    }
}
