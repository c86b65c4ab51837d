//! Random histories of a scheduler, delivered in the disorder of Windows, against what happened.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::Record;
use system::trace::raw::{PROCESS, RawTraceEvent, STACK_WALK, THREAD};

use super::*;

/// Units of time per second: those of nanoseconds.
const CLOCK: u64 = 1_000_000_000;
const PROCESSES: [u32; 2] = [40, 44];
const CPUS: usize = 3;
const WAIT_REASON: u8 = 37;

/// An event of a history.
#[derive(Debug, Clone)]
struct Written {
    opcode: u8,
    provider: u128,
    time: u64,
    cpu: u32,
    payload: Vec<u8>,
}

/// Time of a thread by its state, since it was switched in for the first time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Times {
    run: u64,
    waited: u64,
    ready: u64,
    switches: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    New,
    Runs,
    Waits,
    Ready,
}

/// A scheduler of which each step is one of several numbers.
struct Scheduler {
    events: Vec<Written>,
    threads: BTreeMap<u32, (State, u64)>,
    running: [u32; CPUS],
    times: BTreeMap<u32, Times>,
    /// The last time at which a thread ran on.
    ran_on: BTreeMap<u32, (u64, Times)>,
    time: u64,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Scheduler {
    fn new() -> Self {
        let threads: BTreeMap<u32, (State, u64)> = (1..=6).map(|id| (id, (State::New, 0))).collect();
        let mut scheduler = Self {
            events: Vec::new(),
            threads,
            running: [0; CPUS],
            times: BTreeMap::new(),
            ran_on: BTreeMap::new(),
            time: 10 * CLOCK,
        };
        for id in 1..=6 {
            let time = scheduler.time;
            let payload = words(&[process_of(id), id]);
            scheduler.events.push(Written { opcode: 3, provider: THREAD, time, cpu: 0, payload });
        }
        scheduler
    }

    fn change(&mut self, id: u32, state: State) {
        let (before, since) = self.threads.insert(id, (state, self.time)).unwrap();
        let spent = self.time - since;
        let times = self.times.entry(id).or_default();
        match before {
            State::New => {}
            State::Runs => times.run += spent,
            State::Waits => times.waited += spent,
            State::Ready => times.ready += spent,
        }
        if matches!(state, State::Runs) {
            let times = self.times.entry(id).or_default();
            times.switches += u64::from(!matches!(before, State::New));
            self.ran_on.insert(id, (self.time, *times));
        }
    }

    fn switch(&mut self, cpu: usize, new: u32, waits: bool) {
        self.time += 1 + self.time % 7;
        let (time, number) = (self.time, u32::try_from(cpu).unwrap());
        let old = std::mem::replace(&mut self.running[cpu], new);
        let [state, reason] = if waits { [5, WAIT_REASON] } else { [1, 32] };
        let payload = [words(&[new, old, 0]), vec![reason, 1, state, 0], words(&[0, 0])].concat();
        self.events.push(Written { opcode: 36, provider: THREAD, time, cpu: number, payload });
        if old != 0 {
            self.change(old, if waits { State::Waits } else { State::Ready });
        }
        if new != 0 {
            self.change(new, State::Runs);
            for frames in [[0xFFFF_F800_0000_1000 + u64::from(new), 0xFFFF_F800_0000_2000], [0x1000, 0x2000]] {
                let frames = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
                let payload = [time.to_le_bytes().to_vec(), words(&[process_of(new), new]), frames].concat();
                self.events.push(Written { opcode: 32, provider: STACK_WALK, time: time + 1, cpu: number, payload });
            }
        }
    }

    fn step(&mut self, cpu: usize, choice: u8, other: u32) {
        let free: Vec<u32> = self
            .threads
            .iter()
            .filter(|(_, (state, _))| matches!(state, State::New | State::Ready))
            .map(|(id, _)| *id)
            .collect();
        let waiting: Vec<u32> =
            self.threads.iter().filter(|(_, (state, _))| matches!(state, State::Waits)).map(|(id, _)| *id).collect();
        let pick = |all: &[u32]| all.get(other as usize % all.len().max(1)).copied();
        match choice % 4 {
            0 if !waiting.is_empty() => {
                self.time += 3;
                let id = pick(&waiting).unwrap();
                let payload = [words(&[id]), vec![1, 0, u8::from(other.is_multiple_of(5)), 0]].concat();
                let cpu = u32::try_from(cpu).unwrap();
                self.events.push(Written { opcode: 50, provider: THREAD, time: self.time, cpu, payload });
                self.change(id, State::Ready);
            }
            1 if self.running[cpu] != 0 => self.switch(cpu, pick(&free).unwrap_or(0), true),
            2 if self.running[cpu] != 0 && !free.is_empty() => self.switch(cpu, pick(&free).unwrap(), false),
            _ if self.running[cpu] == 0 && !free.is_empty() => self.switch(cpu, pick(&free).unwrap(), false),
            _ => self.time += 1000,
        }
    }
}

fn process_of(thread: u32) -> u32 {
    PROCESSES[thread as usize % 2]
}

/// Passes events on in buffers of one CPU each, which are late by less than the window.
fn deliver(off_cpu: &mut OffCpu, events: &[Written], size: usize) {
    let mut buffers: Vec<(u64, Vec<&Written>)> = Vec::new();
    for cpu in 0..u32::try_from(CPUS).unwrap() {
        let own: Vec<&Written> = events.iter().filter(|event| event.cpu == cpu).collect();
        for chunk in own.chunks(size) {
            buffers.push((chunk.last().unwrap().time, chunk.to_vec()));
        }
    }
    buffers.sort_by_key(|(last, _)| *last);
    for event in buffers.iter().flat_map(|(_, events)| events) {
        let Written { opcode, provider, time, cpu, payload } = event;
        let raw = RawTraceEvent {
            provider: *provider,
            opcode: *opcode,
            version: 4,
            time: *time,
            processor: *cpu,
            payload,
            pointer: 8,
            ..RawTraceEvent::EMPTY
        };
        off_cpu.add(&raw);
    }
}

fn records(found: &[(SampleRecord, SampleStack)]) -> Vec<OffCpuRecord> {
    let parsed = found.iter().map(|(record, _)| record.parse());
    parsed.map(|record| if let Ok(Record::OffCpu(record)) = record { record } else { panic!("{record:?}") }).collect()
}

fn begun(tasks: RecordedTasks) -> OffCpu {
    let mut off_cpu = OffCpu::new(CallGraph::Both);
    off_cpu.begin(tasks, 2, CLOCK);
    off_cpu
}

proptest! {
    #[test]
    fn the_times_of_each_thread_are_those_of_the_scheduler_in_any_disorder(
        steps in prop::collection::vec((0..CPUS, any::<u8>(), any::<u32>()), 0..300),
        size in 1_usize..40,
        only in prop::option::of(1_u32..7),
    ) {
        let mut scheduler = Scheduler::new();
        for (cpu, choice, other) in steps {
            scheduler.step(cpu, choice, other);
        }
        let tasks = RecordedTasks { threads: only.into_iter().collect(), ..RecordedTasks::default() };
        let mut off_cpu = begun(tasks);
        deliver(&mut off_cpu, &scheduler.events, size);
        let (found, summary) = off_cpu.finish();
        prop_assert_eq!((summary.lost, summary.late, summary.without_stack), (0, 0, 0));
        let mut times: BTreeMap<u32, Times> = BTreeMap::new();
        for (record, (_, stack)) in records(&found).iter().zip(&found) {
            prop_assert_eq!((record.process, record.event), (process_of(record.thread), 2));
            prop_assert_eq!(record.ip, 0xFFFF_F800_0000_1000 + u64::from(record.thread));
            let SampleStack::Stack(stack) = stack else { panic!("{stack:?}") };
            prop_assert_eq!(&stack.callers, &[0xFFFF_F800_0000_2000, 0x1000, 0x2000]);
            let of = times.entry(record.thread).or_default();
            prop_assert_ne!(record.state, OffCpuState::WaitingOrReady);
            let (sum, ran_on) = match record.state {
                OffCpuState::Ready => (&mut of.ready, true),
                _ => (&mut of.waited, false),
            };
            *sum += record.duration;
            of.switches += u64::from(ran_on);
        }
        for (id, (_, wanted)) in &scheduler.ran_on {
            let found = times.get(id).copied().unwrap_or_default();
            let is_chosen = only.is_none_or(|only| only == *id);
            let wanted = if is_chosen { Times { run: 0, ..*wanted } } else { Times::default() };
            prop_assert_eq!(found, wanted, "thread {}", id);
        }
        let is_off = |(id, (state, _)): (&u32, &(State, u64))| {
            matches!(state, State::Waits | State::Ready) && only.is_none_or(|only| only == *id)
        };
        prop_assert_eq!(summary.open, scheduler.threads.iter().filter(|one| is_off(*one)).count() as u64);
    }

    /// Lost events and changed IDs make times unknown, never negative, and losses are counted.
    #[test]
    fn lost_and_late_events_never_make_a_time_longer_than_the_recording(
        steps in prop::collection::vec((0..CPUS, any::<u8>(), any::<u32>()), 0..300),
        lost in prop::collection::vec(any::<bool>(), 400),
    ) {
        let mut scheduler = Scheduler::new();
        for (cpu, choice, other) in steps {
            scheduler.step(cpu, choice, other);
        }
        let kept: Vec<Written> = scheduler.events.iter().zip(lost.iter().chain([&false].into_iter().cycle()))
            .filter(|(_, lost)| !**lost).map(|(event, _)| event.clone()).collect();
        let mut off_cpu = begun(RecordedTasks::default());
        deliver(&mut off_cpu, &kept, 10);
        let (found, _) = off_cpu.finish();
        let length = scheduler.time - 10 * CLOCK;
        for record in records(&found) {
            prop_assert!(record.duration <= length && record.time >= 10 * CLOCK);
        }
    }
}

/// Switches CPU 0 at a time from `old`, which waits, to `new`.
fn switch(time: u64, cpu: u32, old: u32, new: u32, state: u8) -> Written {
    let payload = [words(&[new, old, 0]), vec![WAIT_REASON, 1, state, 0], words(&[0, 0])].concat();
    Written { opcode: 36, provider: THREAD, time, cpu, payload }
}

fn started(time: u64, id: u32) -> Written {
    Written { opcode: 1, provider: THREAD, time, cpu: 0, payload: words(&[40, id]) }
}

fn follow(events: &[Written]) -> (Vec<OffCpuRecord>, OffCpuSummary) {
    let mut off_cpu = begun(RecordedTasks::default());
    deliver(&mut off_cpu, events, 1);
    let (found, summary) = off_cpu.finish();
    (records(&found), summary)
}

#[test]
fn a_lost_switch_is_counted_and_a_thread_that_got_the_id_of_another_has_not_its_wait() {
    let (found, summary) = follow(&[switch(10, 0, 0, 7, 1), switch(20, 0, 9, 0, 5)]);
    assert_eq!((found.len(), summary.lost, summary.open), (0, 1, 1));

    let events =
        [started(5, 7), switch(10, 0, 0, 7, 1), switch(20, 0, 7, 0, 5), started(30, 7), switch(40, 0, 0, 7, 1)];
    let (found, summary) = follow(&events);
    assert_eq!((found.len(), summary.open, summary.begun_before), (0, 0, 0));
    let (found, _) = follow(&[&events[..3], &events[4..]].concat());
    assert_eq!((found.len(), found[0].state, found[0].duration), (1, OffCpuState::WaitingOrReady, 20));
}

#[test]
fn a_thread_that_ended_waits_for_nothing_and_one_seen_on_two_cpus_has_not_left() {
    let (found, summary) = follow(&[switch(10, 0, 0, 7, 1), switch(20, 0, 7, 0, 4)]);
    assert_eq!((found.len(), summary.open), (0, 0));
    // The clock of CPU 1 is behind: it ran there before it left CPU 0.
    let events = [switch(10, 0, 0, 7, 1), switch(19, 1, 0, 7, 1), switch(20, 0, 7, 0, 5), switch(50, 1, 7, 0, 5)];
    let (found, summary) = follow(&events);
    assert_eq!((found.len(), summary.open, summary.open_time, summary.lost), (0, 1, 0, 0));
}

#[test]
fn the_waits_of_the_processes_that_a_command_starts_are_its_own() {
    let process = |time, id: u32, parent: u32| Written {
        opcode: 1,
        provider: PROCESS,
        time,
        cpu: 0,
        payload: [vec![0; 8], words(&[id, parent])].concat(),
    };
    let thread = |time, process: u32, id: u32| Written { payload: words(&[process, id]), ..started(time, id) };
    let mut events = vec![process(1, 100, 4), process(2, 104, 100), process(2, 108, 4)];
    events.extend([thread(3, 100, 1), thread(3, 104, 2), thread(3, 108, 3)]);
    for (place, id) in (0..).zip([1, 2, 3]) {
        let time = 10 + 100 * place;
        events.extend([switch(time, 0, 0, id, 1), switch(time + 10, 0, id, 0, 5), switch(time + 30, 0, 0, id, 1)]);
        events.push(switch(time + 40, 0, id, 0, 5));
    }
    for (with_children, wanted) in [(true, &[1, 2][..]), (false, &[1])] {
        let mut off_cpu = begun(RecordedTasks { processes: [100].into(), with_children, ..RecordedTasks::default() });
        deliver(&mut off_cpu, &events, 1);
        let threads: Vec<u32> = records(&off_cpu.finish().0).iter().map(|record| record.thread).collect();
        assert_eq!(threads, wanted);
    }
}

#[test]
fn waits_of_before_are_told_and_a_dpc_is_no_waker() {
    let ready = |time, flags| Written {
        opcode: 50,
        provider: THREAD,
        time,
        cpu: 1,
        payload: [words(&[7]), vec![1, 0, flags, 0]].concat(),
    };
    for (flags, waker) in [(0, 8), (1, 0)] {
        let events = [
            switch(5, 1, 0, 8, 1),
            switch(10, 0, 0, 7, 1),
            switch(20, 0, 7, 0, 5),
            ready(30, flags),
            ready(31, 0),
            switch(44, 0, 0, 7, 1),
        ];
        let (found, summary) = follow(&events);
        let told: Vec<_> = found.iter().map(|one| (one.state, one.time, one.duration, one.waker, one.reason)).collect();
        let waited = (OffCpuState::Waiting, 30, 10, waker, WAIT_REASON);
        assert_eq!(told, [waited, (OffCpuState::Ready, 44, 14, 0, WAIT_REASON)]);
        assert_eq!((summary.begun_before, summary.without_stack), (2, 1));
    }
}
