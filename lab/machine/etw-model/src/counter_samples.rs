//! Samples of the counters of a scheduler's CPUs, with stacks, and what another session adds to them.

use crate::delivery::{DeliveredEvent, STACK_WALK};
use crate::system_events::{PERF_INFO, classic, words};
use bench_protocol::{HalScript, Random, SampleLedger};
use std::collections::BTreeMap;

/// Types of the events.
const SAMPLE: u8 = 47;
const SET_INTERVAL: u8 = 72;
const STACK: u8 = 32;

/// Time until a changed interval is in force, in units of 100 ns.
const CHANGE_AFTER: u64 = 20_000;

/// Number of a source that another session samples.
const FOREIGN: u32 = 0x77;

/// Where the code of threads is, in each mode.
const KERNEL: u64 = 0xFFFF_F800_0100_0000;
const USER: u64 = 0x7FF6_0000_0000;

/// The thread that executes on a CPU, in a time with events of one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) processor: u32,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) events: u64,
}

/// What is sampled.
#[derive(Debug)]
pub(crate) struct CounterSamples {
    /// The sources and their intervals.
    sources: Vec<(u32, u32)>,
    with_stacks: bool,
    /// Events since the last sample, by CPU and source.
    since: BTreeMap<(u32, usize), u64>,
    ledger: BTreeMap<(u32, u32, u64), SampleLedger>,
    written: u64,
    /// When another program has doubled the interval of the first source.
    changed_at: Option<u64>,
}

impl CounterSamples {
    pub(crate) fn new(sources: Vec<(u32, u32)>, with_stacks: bool) -> Self {
        let (since, ledger) = Default::default();
        Self { sources, with_stacks, since, ledger, written: 0, changed_at: None }
    }

    pub(crate) fn ledger(&self) -> Vec<SampleLedger> {
        self.ledger.values().cloned().collect()
    }

    /// Returns the source whose interval another program has changed, and the new one.
    pub(crate) fn changed(&self) -> Option<(u32, u32)> {
        let (source, interval) = *self.sources.first()?;
        self.changed_at.map(|_| (source, 2 * interval))
    }

    /// Returns the events of a slice, for the source with this place.
    pub(crate) fn of_slice(
        &mut self,
        place: usize,
        slice: Slice,
        script: &HalScript,
        random: &mut Random,
    ) -> Vec<DeliveredEvent> {
        let mut written = Vec::new();
        let mut done = 0;
        while let Some((source, mut interval)) = self.sources.get(place).copied() {
            if place == 0 && self.changed_at.is_some_and(|at| at <= slice.from) {
                interval *= 2;
            }
            let since = self.since.entry((slice.processor, place)).or_default();
            let needed = u64::from(interval).saturating_sub(*since);
            if needed > slice.events - done {
                *since += slice.events - done;
                break;
            }
            (*since, done) = (0, done + needed);
            let time = slice.from + (slice.to - slice.from) * done / slice.events.max(1);
            // No two samples have the same time, on up to 8 CPUs: one CPU of this scheduler is ahead of another.
            let time = time / 64 * 64 + u64::from(slice.processor % 8) * 8 + place as u64;
            written.extend(self.sample(time, (source, interval), slice, script, random));
            self.written += 1;
            if self.written >= script.changed_after && script.changed_after != 0 && self.changed_at.is_none() {
                // Later than the time of every CPU: one of them is ahead of another.
                let at = *self.changed_at.insert(slice.to + CHANGE_AFTER);
                let payload = self.sources.first().map(|(source, first)| words(&[*source, 2 * first, *first]));
                written.push(classic(PERF_INFO, SET_INTERVAL, 3, at, payload.unwrap_or_default()));
            }
        }
        written
    }

    /// Returns a sample and the parts of its stack.
    fn sample(
        &mut self,
        time: u64,
        (source, interval): (u32, u32),
        slice: Slice,
        script: &HalScript,
        random: &mut Random,
    ) -> Vec<DeliveredEvent> {
        let Slice { process, thread, processor, .. } = slice;
        let variant = random.up_to(3);
        let base = u64::from(thread) * 0x1000 + variant * 0x10;
        // The idle process and System have no user mode.
        let has_user = thread != 0 && process != 4;
        let user: Vec<u64> = if has_user { vec![USER + base + 0x100, USER + base + 0x200] } else { Vec::new() };
        let is_kernel = !has_user || variant == 0;
        let (kernel, user) = if is_kernel {
            (vec![KERNEL + base, KERNEL + base + 0x800], user)
        } else {
            (Vec::new(), [vec![USER + base], user].concat())
        };
        let frames = [&kernel[..], &user].concat();
        let ip = frames.first().copied().unwrap_or_default();
        let of = |ip: u64, source: u32| {
            let payload = [ip.to_le_bytes().to_vec(), words(&[thread, source])].concat();
            DeliveredEvent { processor, ..classic(PERF_INFO, SAMPLE, 2, time, payload) }
        };
        let stack = |thread: u32, frames: &[u64], later: u64| {
            let ids = words(&[process, thread]);
            let frames = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
            let payload = [time.to_le_bytes().to_vec(), ids, frames].concat();
            DeliveredEvent { processor, ..classic(STACK_WALK, STACK, 2, time + later, payload) }
        };
        let mut written = vec![of(ip, source)];
        let is_stackless = random.percent(script.stackless);
        if self.with_stacks && !is_stackless {
            // Each mode is an event of its own; that of user mode comes when the thread returns there.
            for (part, later) in [(&kernel, 1), (&user, 900)] {
                if !part.is_empty() {
                    written.push(stack(thread, part, later));
                }
            }
        }
        if random.percent(script.foreign) {
            written.push(of(ip + 1, FOREIGN));
            written.push(stack(thread + 2, &[USER + 7, USER + 9], 1));
        }
        let entry = self.ledger.entry((process, source, ip)).or_default();
        let (samples, stackless) = (entry.samples + 1, entry.stackless + u64::from(is_stackless));
        let (callers, events) = (frames.get(1..).unwrap_or_default().to_vec(), entry.events + u64::from(interval));
        *entry = SampleLedger { process, source, ip, callers, samples, stackless, events };
        written
    }
}
