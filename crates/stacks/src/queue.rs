//! Samples that wait for their stacks, in the order of the rings.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use protocol::{CounterSample, SampleRecord};
use recording::SampleStack;

use crate::input::SampleEvent;

/// A sample that waits, or that waits for an earlier one to be returned.
#[derive(Debug)]
pub struct Waiting {
    /// The record.
    pub record: SampleRecord,
    /// When it arrived.
    pub arrived: Duration,
    /// What is known of its stack.
    pub state: SampleState,
    /// Its last branches.
    pub branches: Vec<SampleRecord>,
}

/// What is known of the stack of a sample.
#[derive(Debug)]
pub enum SampleState {
    /// Everything.
    Done(SampleStack),
    /// Nothing.
    AwaitsEvent(CounterSample),
    /// The frames in kernel mode.
    AwaitsUser(CounterSample, Arc<SampleEvent>),
}

impl SampleState {
    /// Returns the number of frames that it holds.
    fn frames(&self) -> usize {
        match self {
            Self::Done(SampleStack::Stack(stack)) => stack.callers.len(),
            Self::Done(_) | Self::AwaitsEvent(_) => 0,
            Self::AwaitsUser(_, event) => event.stack.as_ref().map_or(0, |stack| stack.frames.len()),
        }
    }

    fn match_id(&self) -> Option<u64> {
        match self {
            Self::AwaitsUser(_, event) => event.stack.as_ref().map(|stack| stack.match_id),
            Self::Done(_) | Self::AwaitsEvent(_) => None,
        }
    }
}

/// CPU, index of the event in the session, and number of an interrupt.
pub type EventKey = (u32, u32, u32);

/// Returns the key of the event of a sample.
pub const fn key(sample: &CounterSample) -> EventKey {
    (sample.processor, sample.event, sample.cookie)
}

/// The samples that were not returned yet. Each has a number, in ascending order.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    /// Number of the first one.
    first: u64,
    awaiting_events: BTreeSet<(EventKey, u64)>,
    awaiting_users: BTreeSet<(u64, u64)>,
    frames: usize,
    branches: usize,
}

impl Queue {
    /// Adds a last branch to the last sample, if there is one. Records keep the order of their ring.
    pub fn add_branch(&mut self, branch: SampleRecord) -> bool {
        let Some(last) = self.waiting.back_mut() else { return false };
        last.branches.push(branch);
        self.branches += 1;
        true
    }

    /// Adds a sample at the end.
    pub fn push(&mut self, waiting: Waiting) {
        let number = self.first + self.waiting.len() as u64;
        self.index(number, &waiting.state);
        self.waiting.push_back(waiting);
    }

    /// Returns the first sample.
    pub fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// Removes and returns the first sample.
    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.unindex(self.first, &waiting.state);
        self.first += 1;
        self.branches -= waiting.branches.len();
        Some(waiting)
    }

    /// Returns the numbers of the samples that wait for the events with numbers from `first` to `last` of a CPU and
    /// an index. The numbers wrap.
    pub fn awaiting_events(&self, processor: u32, index: u32, [first, last]: [u32; 2]) -> Vec<u64> {
        let of = |from, to| {
            let range = ((processor, index, from), 0)..=((processor, index, to), u64::MAX);
            self.awaiting_events.range(range).map(|(_, number)| *number)
        };
        if first <= last { of(first, last).collect() } else { of(first, u32::MAX).chain(of(0, last)).collect() }
    }

    /// Returns the numbers of the samples that wait for a user part with this MatchId.
    pub fn awaiting_users(&self, match_id: u64) -> Vec<u64> {
        self.awaiting_users.range((match_id, 0)..=(match_id, u64::MAX)).map(|(_, number)| *number).collect()
    }

    /// Returns what is known of the stack of a sample.
    pub fn state(&self, number: u64) -> Option<&SampleState> {
        self.waiting.get(self.place(number)?).map(|waiting| &waiting.state)
    }

    /// Changes what is known of the stack of a sample.
    pub fn set_state(&mut self, number: u64, state: SampleState) {
        self.index(number, &state);
        let place = self.place(number);
        if let Some(waiting) = place.and_then(|place| self.waiting.get_mut(place)) {
            let old = std::mem::replace(&mut waiting.state, state);
            self.unindex(number, &old);
        }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of their frames.
    pub const fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the number of their last branches.
    pub const fn branches(&self) -> usize {
        self.branches
    }

    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn index(&mut self, number: u64, state: &SampleState) {
        self.frames += state.frames();
        if let SampleState::AwaitsEvent(sample) = state {
            self.awaiting_events.insert((key(sample), number));
        }
        self.awaiting_users.extend(state.match_id().map(|match_id| (match_id, number)));
    }

    fn unindex(&mut self, number: u64, state: &SampleState) {
        self.frames -= state.frames();
        if let SampleState::AwaitsEvent(sample) = state {
            self.awaiting_events.remove(&(key(sample), number));
        }
        if let Some(match_id) = state.match_id() {
            self.awaiting_users.remove(&(match_id, number));
        }
    }
}
