//! Samples of the HAL's counters in the form in which the driver delivers its own: records, and events with stacks.
//!
//! Windows writes a sample, the parts of its stack and the start of its thread as events of their own, in any order.
//! All wait until nothing that belongs to them can arrive any more.

use std::collections::{BTreeMap, VecDeque};

use protocol::trace::{self, EventId};
use protocol::{CountRecord, CounterKind, CounterSample, Mode, SampleRecord, UNKNOWN, is_kernel_address};
use zerocopy::{FromZeros, IntoBytes};

use crate::lifetimes::Lifetimes;
use crate::trace::profile::{Profiled, profiled};
use crate::trace::raw::{HALPROF, STACK_TRACE64};
use crate::trace::switches::{Scheduling, scheduling};
use crate::trace::{Extension, RawTraceEvent, TraceSink};

/// The samples of a session.
pub struct Samples {
    /// The sources, and their events as they were requested.
    sources: Vec<(u32, u64)>,
    /// Time by which an event can arrive late.
    window: u64,
    /// Time of the newest sample.
    newest: u64,
    /// Samples up to this time were delivered.
    delivered: u64,
    /// Instruction pointers and threads, by time, CPU and index of the event: a sample that arrives twice is one.
    waiting: BTreeMap<(u64, u32, u32), (u64, u32)>,
    /// The frames of each mode, by time, thread, and CPU of the idle thread.
    stacks: BTreeMap<(u64, u32, u32), [Vec<u64>; 2]>,
    /// Intervals by index of the event, and the time since which they are in force.
    intervals: BTreeMap<(u32, u64), u32>,
    lifetimes: Lifetimes,
    /// Number of samples of each CPU, which names them for the joiner of stacks.
    cookies: BTreeMap<u32, u32>,
    /// Those that can be fetched, in the order of time.
    pub ready: VecDeque<SampleRecord>,
    /// Maximum number of those.
    room: usize,
    /// What was sampled, by index of the event and CPU.
    pub accounts: BTreeMap<(u32, u32), CountRecord>,
    /// Number of samples of sources that another session samples.
    pub foreign: u64,
    /// Number of samples that came after later ones were delivered.
    pub late: u64,
    /// Whether nothing more is added.
    pub has_ended: bool,
}

impl Samples {
    /// Creates the samples of sources: the number of each, its event as it was requested, and its interval. Each event
    /// can arrive later than its successors by `window`.
    #[must_use]
    pub fn new(sources: &[(u32, u64, u32)], window: u64, room: usize) -> Self {
        Self {
            sources: sources.iter().map(|(source, event, _)| (*source, *event)).collect(),
            window,
            newest: 0,
            delivered: 0,
            waiting: BTreeMap::new(),
            stacks: BTreeMap::new(),
            intervals: (0..).zip(sources).map(|(index, (_, _, interval))| ((index, 0), *interval)).collect(),
            lifetimes: Lifetimes::default(),
            cookies: BTreeMap::new(),
            ready: VecDeque::new(),
            room,
            accounts: BTreeMap::new(),
            foreign: 0,
            late: 0,
            has_ended: false,
        }
    }

    /// Adds a thread that existed before the session.
    pub fn add_thread(&mut self, process: u32, id: u32) {
        self.lifetimes.add_thread(id, process, 0);
    }

    /// Adds an event. `sink` receives the samples with their stacks, and every event that is none.
    pub fn add(&mut self, event: &RawTraceEvent, sink: Option<&mut TraceSink>) {
        match profiled(event) {
            Some(Profiled::Sample { ip, thread, source }) => {
                match self.index(source) {
                    None => self.foreign += 1,
                    Some(_) if event.time <= self.delivered => self.late += 1,
                    Some(index) => {
                        self.waiting.insert((event.time, event.processor, index), (ip, thread));
                    }
                }
                if event.time > self.newest {
                    self.newest = event.time;
                    self.deliver_until(event.time.saturating_sub(self.window), sink);
                }
            }
            Some(Profiled::Interval { source, new }) => {
                if let Some(index) = self.index(source) {
                    self.intervals.insert((index, event.time), new);
                }
            }
            Some(Profiled::Stack { time, thread, frames }) => {
                let parts = self.stacks.entry(stack_key(time, thread, event.processor)).or_default();
                let (kernel, user) = frames.into_iter().partition::<Vec<u64>, _>(|frame| is_kernel_address(*frame));
                // Parts that arrive twice are alike.
                for (part, frames) in parts.iter_mut().zip([kernel, user]).filter(|(_, frames)| !frames.is_empty()) {
                    *part = frames;
                }
                // It can be that of a context switch.
                if let Some(sink) = sink {
                    sink(event);
                }
            }
            None => {
                match scheduling(event, 0) {
                    Some(Scheduling::Thread { id, process, started }) => {
                        self.lifetimes.add_thread(id, process, started);
                    }
                    Some(Scheduling::Process { .. } | Scheduling::Switch { .. } | Scheduling::Ready { .. }) | None => {}
                }
                if let Some(sink) = sink {
                    sink(event);
                }
            }
        }
    }

    /// Delivers what is left: nothing more will arrive.
    pub fn finish(&mut self, sink: Option<&mut TraceSink>) {
        self.deliver_until(u64::MAX, sink);
        self.has_ended = true;
    }

    /// Returns the interval of an event at a time.
    #[must_use]
    pub fn interval(&self, index: u32, time: u64) -> u32 {
        self.intervals.range((index, 0)..=(index, time)).next_back().map_or(0, |(_, interval)| *interval)
    }

    fn index(&self, source: u32) -> Option<u32> {
        let place = self.sources.iter().position(|(one, _)| *one == source)?;
        u32::try_from(place).ok()
    }

    fn deliver_until(&mut self, end: u64, mut sink: Option<&mut TraceSink>) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= end) {
            let ((time, processor, event), (ip, thread)) = first.remove_entry();
            self.delivered = time;
            let started = self.lifetimes.thread_at(thread, time);
            let process = match thread {
                0 => 0,
                _ => self.lifetimes.process_of(thread, started).map_or(UNKNOWN, |(process, _)| process),
            };
            let interval = self.interval(event, time);
            let cookie = self.cookies.entry(processor).or_default();
            *cookie = cookie.wrapping_add(1).max(1);
            let sample = CounterSample {
                time,
                ip,
                process,
                thread,
                processor,
                event,
                interval,
                kind: CounterKind::Sample,
                mode: if is_kernel_address(ip) { Mode::Kernel } else { Mode::User },
                pebs_sequence: 0,
                cookie: *cookie,
            };
            let account = self.accounts.entry((event, processor)).or_insert_with(CountRecord::new_zeroed);
            if self.ready.len() >= self.room {
                account.full += 1;
                account.lost += 1;
                continue;
            }
            account.samples += 1;
            account.count += u64::from(interval);
            self.ready.push_back(sample.into());
            if let Some(sink) = &mut sink {
                let requested = self.sources.get(event as usize).map_or(0, |(_, event)| *event);
                self.pass_on(&sample, requested, sink);
            }
        }
        // Stacks of earlier samples have been used.
        self.stacks = self.stacks.split_off(&(end, 0, 0));
    }

    /// Passes a sample on, as the driver's event for it.
    fn pass_on(&self, sample: &CounterSample, source: u64, sink: &mut TraceSink) {
        let CounterSample { time, ip, process, thread, processor, interval, mode, cookie, .. } = *sample;
        let cookie = trace::cookie(processor, cookie);
        let payload = trace::Sample {
            time,
            ip,
            weight: interval.into(),
            cookie,
            first: cookie,
            source,
            extra: 0,
            count: 1,
            cpu: processor,
            mode: u32::from(mode == Mode::Kernel),
        };
        let parts = self.stacks.get(&stack_key(time, thread, processor));
        // The frames in user mode alone are not the stack of code in the kernel. The MatchId of a stack whose part in
        // user mode is missing leads to none.
        let item = parts.filter(|[kernel, _]| mode == Mode::User || !kernel.is_empty()).map(|[kernel, user]| {
            let match_id = if user.is_empty() { cookie } else { 0 };
            [&[match_id][..], kernel, user].concat()
        });
        let extension = item.as_ref().map(|item| Extension { kind: STACK_TRACE64, bytes: item.as_bytes() });
        sink(&RawTraceEvent {
            provider: HALPROF,
            id: EventId::Sample as u16,
            process,
            thread,
            processor,
            time,
            payload: payload.as_bytes(),
            extensions: extension.as_slice(),
            ..RawTraceEvent::EMPTY
        });
    }
}

/// Returns the key of a stack. Several CPUs can run the idle thread at a time.
const fn stack_key(time: u64, thread: u32, processor: u32) -> (u64, u32, u32) {
    (time, thread, if thread == 0 { processor } else { 0 })
}
