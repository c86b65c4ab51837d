//! A simulated driver and Event Tracing for Windows.
//!
//! The code of each interrupt has callers that no other code has, so a stack of another sample is recognized.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::{
    BranchKind, BranchRecord, BranchType, CounterKind, CounterSample, Event, LostRecord, Mode, PreciseKind,
    PreciseSample, Prediction, SampleRecord, trace,
};
use recording::{CallStack, MissingStack, SampleStack, StackEnd};
use stacks::{CallGraph, MAX_FRAMES, SampleEvent, StackItem, UserPart};

/// The events of the session: two that differ in the value of their extra register alone.
pub const EVENTS: [Event; 2] = {
    let offcore = Event { extra: 0x1_0001, ..Event::of(1 << 63 | 1 << 40 | 0x1_00B7) };
    [offcore, Event { extra: 0x1_0002, ..offcore }]
};

/// Units per second of the clock of samples.
pub const CLOCK: u64 = 10_000_000;
const MILLISECOND: u64 = CLOCK / 1_000;

/// Beginning of the addresses of the kernel.
const KERNEL: u64 = 0xFFFF_F800_0000_0000;

/// Time within which a thread does not use a MatchId again.
const REUSE: u64 = 3 * CLOCK;

/// An interrupt of a counter, and what becomes of its stack.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is chosen by itself")]
pub struct Interrupt {
    cpu: u32,
    /// Milliseconds since the interrupt before.
    pub gap: u64,
    /// Process and thread.
    task: u32,
    is_kernel: bool,
    /// Which of two counters have overflowed.
    sources: [bool; 2],
    /// Whether the code runs at DISPATCH_LEVEL: no DPC runs now.
    is_raised: bool,
    /// Whether the next interrupt comes before the DPC.
    is_delayed: bool,
    is_untraced: bool,
    kernel_frames: u64,
    user_frames: u64,
    /// Whether both parts are in one item.
    is_combined: bool,
    match_id: u64,
    /// Milliseconds until the event, its repetition, the user part and its repetition arrive.
    delays: [u64; 4],
    is_repeated: bool,
    loses_event: bool,
    pub loses_user: bool,
    /// Whether a late event of an earlier session, and a user part of another thread, come too.
    has_strangers: bool,
    /// Whether a precise record and a record of a loss come before the sample.
    has_others: bool,
    /// Milliseconds for which the rings were not read.
    stall: u64,
    /// Number of last branches of each sample.
    branches: u64,
}

fn depth() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..6, 1 => 180_u64..210]
}

/// Returns interrupts, with losses or without.
pub fn interrupts(can_lose: bool) -> impl Strategy<Value = Interrupt> {
    let lost = move || prop::bool::weighted(if can_lose { 0.25 } else { 0.0 });
    let rarely = || prop::bool::weighted(0.15);
    let code = (0_u32..2, 0_u64..80, 0_u32..5, any::<bool>(), any::<[bool; 2]>(), depth(), depth());
    let fate = (rarely(), rarely(), rarely(), any::<bool>(), 1_u64..6, any::<bool>(), rarely(), rarely());
    let stall = prop_oneof![3 => Just(0_u64), 1 => 0_u64..800];
    let branches = prop_oneof![3 => Just(0_u64), 1 => 1_u64..=32];
    let transfer = ([0_u64..1_000, 0..1_000, 0..1_000, 0..1_000], lost(), lost(), stall, branches);
    (code, fate, transfer).prop_map(|(code, fate, transfer)| {
        let (cpu, gap, task, is_kernel, sources, kernel_frames, user_frames) = code;
        let (is_raised, is_delayed, is_untraced, is_combined, match_id, is_repeated, has_strangers, has_others) = fate;
        let (delays, loses_event, loses_user, stall, branches) = transfer;
        let sources = if sources == [false; 2] { [true, false] } else { sources };
        Interrupt {
            cpu,
            gap,
            task,
            is_kernel,
            sources,
            is_raised,
            is_delayed,
            is_untraced,
            kernel_frames,
            user_frames,
            is_combined,
            match_id,
            delays,
            is_repeated,
            loses_event,
            loses_user,
            has_strangers,
            has_others,
            stall,
            branches,
        }
    })
}

impl Interrupt {
    /// Returns the process: the System process, one with two threads, and others.
    fn process(&self) -> u32 {
        [4, 100, 100, 200, 300][self.task as usize]
    }

    /// Returns the same interrupt, of which nothing is lost.
    pub fn without_losses(&self) -> Self {
        Self { loses_event: false, loses_user: false, ..*self }
    }

    fn thread(&self) -> u32 {
        1_000 + self.task
    }

    fn is_in_kernel(&self) -> bool {
        self.is_kernel || self.process() == 4
    }
}

/// What arrives at the joiner, and when.
#[derive(Debug)]
pub struct Arrival {
    /// Milliseconds.
    pub at: u64,
    pub input: Input,
}

#[derive(Debug)]
pub enum Input {
    Records(Vec<SampleRecord>),
    Event(SampleEvent),
    Part(UserPart),
}

impl Arrival {
    pub fn records(&self) -> Option<&Vec<SampleRecord>> {
        match &self.input {
            Input::Records(records) => Some(records),
            Input::Event(_) | Input::Part(_) => None,
        }
    }
}

/// A sample that has no event yet.
struct Pending {
    /// Index of the interrupt.
    index: usize,
    record: CounterSample,
}

/// The code that an interrupt found.
struct Code {
    /// Frames from the innermost; the first is the instruction pointer.
    kernel: Vec<u64>,
    user: Vec<u64>,
}

impl Code {
    fn of(index: usize, interrupt: &Interrupt) -> Self {
        let unique = (index as u64 + 1) << 16;
        // Loops: the same instruction is sampled again. What no DPC finds on the stack has its own.
        let is_shared = !interrupt.is_raised && !interrupt.is_delayed;
        let ip = if is_shared { u64::from(interrupt.task) << 8 } else { unique | 0xFF00 };
        let callers = |base: u64, count: u64| (1..=count).map(move |frame| base + (unique | frame));
        let (kernel, user) = (interrupt.kernel_frames, interrupt.user_frames);
        let has_user = interrupt.process() != 4;
        let user_callers = callers(0, if has_user { user } else { 0 });
        match (interrupt.is_in_kernel(), has_user) {
            (true, false) => {
                Self { kernel: [KERNEL + ip].into_iter().chain(callers(KERNEL, kernel)).collect(), user: Vec::new() }
            }
            (true, true) => Self {
                kernel: [KERNEL + ip].into_iter().chain(callers(KERNEL, kernel)).collect(),
                user: [unique | 0xFE00].into_iter().chain(user_callers).collect(),
            },
            (false, _) => {
                Self { kernel: Vec::new(), user: [0x7FF0_0000_0000 + ip].into_iter().chain(user_callers).collect() }
            }
        }
    }
}

fn cut(frames: &[u64]) -> (Vec<u64>, bool) {
    let kept = &frames[..frames.len().min(MAX_FRAMES)];
    (kept.to_vec(), kept.len() == MAX_FRAMES)
}

fn stack(callers: &[u64], is_cut: bool) -> SampleStack {
    let end = if is_cut { StackEnd::Truncated } else { StackEnd::Complete };
    SampleStack::Stack(CallStack { callers: callers.to_vec(), end })
}

/// Everything that arrives, and what must become of it.
#[derive(Debug, Default)]
pub struct World {
    /// In the order of arrival.
    pub arrivals: Vec<Arrival>,
    /// By CPU, source and time.
    pub truth: BTreeMap<(u32, u32, u64), SampleStack>,
}

struct Simulation<'a> {
    interrupts: &'a [Interrupt],
    graph: CallGraph,
    world: World,
    /// Of each CPU and source, the samples without an event.
    pending: BTreeMap<(u32, u32), Vec<Pending>>,
    /// When each thread used a MatchId last.
    used: BTreeMap<(u32, u64), u64>,
}

impl World {
    /// Simulates interrupts; the first on each CPU has the number `first`.
    pub fn new(interrupts: &[Interrupt], graph: CallGraph, first: u32) -> Self {
        let mut simulation =
            Simulation { interrupts, graph, world: Self::default(), pending: BTreeMap::new(), used: BTreeMap::new() };
        simulation.run(first);
        let mut world = simulation.world;
        // Stable: what arrives at the same time keeps its order, that of the rings.
        world.arrivals.sort_by_key(|arrival| arrival.at);
        world
    }
}

impl Simulation<'_> {
    fn run(&mut self, first: u32) {
        let mut time = 10 * CLOCK;
        let mut numbers = [first; 2];
        let mut fetched = [0_u64; 2];
        for (index, interrupt) in self.interrupts.iter().enumerate() {
            time += interrupt.gap * MILLISECOND + 1;
            let cpu = interrupt.cpu;
            let number = &mut numbers[cpu as usize];
            let cookie = if interrupt.is_untraced { 0 } else { *number };
            let ip = self.code(index).kernel.first().copied();
            let ip = ip.unwrap_or_else(|| self.code(index).user[0]);
            let mut records = Vec::new();
            if interrupt.has_others {
                records.push(precise(cpu, time));
                records.push(LostRecord::new(time, cpu, 0x13, 5).into());
            }
            for (source, _) in [0_u32, 1].into_iter().zip(interrupt.sources).filter(|(_, has)| *has) {
                let record = CounterSample {
                    time,
                    ip,
                    process: interrupt.process(),
                    thread: interrupt.thread(),
                    processor: cpu,
                    event: source,
                    interval: 1_000,
                    kind: CounterKind::Sample,
                    mode: if interrupt.is_in_kernel() { Mode::Kernel } else { Mode::User },
                    pebs_sequence: 0,
                    cookie,
                };
                records.push(record.into());
                records.extend((0..interrupt.branches).map(|number| branch(&record, number)));
                if interrupt.is_untraced {
                    let untraced = SampleStack::Missing(MissingStack::Untraced);
                    self.world.truth.insert((cpu, source, time), untraced);
                } else {
                    self.pending.entry((cpu, source)).or_default().push(Pending { index, record });
                }
            }
            if !interrupt.is_untraced {
                *number = if *number == u32::MAX { 1 } else { *number + 1 };
            }
            // The rings are read every 100 ms, and later after a stall.
            let at = (time / MILLISECOND + 100 + interrupt.stall).max(fetched[cpu as usize]);
            fetched[cpu as usize] = at;
            self.world.arrivals.push(Arrival { at, input: Input::Records(records) });
            if !interrupt.is_raised && !interrupt.is_delayed && !interrupt.is_untraced {
                self.run_dpc(cpu, Some(index), time);
            }
        }
        for cpu in 0..2 {
            self.run_dpc(cpu, None, time + CLOCK / 100);
        }
    }

    fn code(&self, index: usize) -> Code {
        Code::of(index, &self.interrupts[index])
    }

    /// Writes the events of a CPU. The DPC interrupts the code of an interrupt, or the idle process.
    fn run_dpc(&mut self, cpu: u32, context: Option<usize>, time: u64) {
        for source in [0_u32, 1] {
            let samples = self.pending.remove(&(cpu, source)).unwrap_or_default();
            let (Some(first), Some(last)) = (samples.first(), samples.last()) else { continue };
            let fate = self.interrupts[last.index];
            let record = last.record;
            let payload = trace::Sample {
                time: record.time,
                ip: record.ip,
                weight: 1_000 * samples.len() as u64,
                cookie: trace::cookie(cpu, record.cookie),
                first: trace::cookie(cpu, first.record.cookie),
                count: samples.len() as u64,
                source: EVENTS[source as usize].source,
                extra: EVENTS[source as usize].extra,
                cpu,
                mode: u32::from(record.mode == Mode::Kernel),
            };
            let is_lost = fate.loses_event;
            for merged in &samples[..samples.len() - 1] {
                let reason = if is_lost { MissingStack::EventLost } else { MissingStack::Merged };
                self.tell(&merged.record, SampleStack::Missing(reason));
            }
            let own = context == Some(last.index);
            let truth = self.write_event(payload, own.then_some(last.index), time, &fate);
            let truth = if is_lost { SampleStack::Missing(MissingStack::EventLost) } else { truth };
            self.tell(&record, truth);
        }
    }

    fn tell(&mut self, record: &CounterSample, truth: SampleStack) {
        let is_empty = self.graph == CallGraph::Kernel && record.mode == Mode::User;
        let truth = if is_empty { stack(&[], false) } else { truth };
        self.world.truth.insert((record.processor, record.event, record.time), truth);
    }

    /// Writes an event in the code of an interrupt, or in the idle process. Returns what it tells.
    fn write_event(&mut self, payload: trace::Sample, own: Option<usize>, time: u64, fate: &Interrupt) -> SampleStack {
        let dpc = [KERNEL + 0xD00_0001, KERNEL + 0xD00_0002];
        let Some(index) = own else {
            // Another thread can run the same code.
            let (process, thread) = if fate.has_strangers { (Some(0), Some(0)) } else { (None, None) };
            let other = if fate.has_strangers { payload.ip } else { KERNEL + 0xD1E };
            let frames = Box::new([dpc[0], dpc[1], other, KERNEL + 0xD1F]);
            let event = SampleEvent { payload, process, thread, stack: Some(StackItem { match_id: 0, frames }) };
            self.send_event(event, time, fate);
            return SampleStack::Missing(MissingStack::TakenElsewhere);
        };
        let Code { kernel, user } = self.code(index);
        let match_id = if fate.is_combined { 0 } else { self.match_id(fate, time, payload.source) };
        let whole = [&dpc[..], &kernel, if fate.is_combined { &user } else { &[] }].concat();
        let (frames, is_cut) = cut(&whole);
        let shown = &frames[dpc.len()..];
        let (process, thread) = (Some(fate.process()), Some(fate.thread()));
        let stack = Some(StackItem { match_id, frames: frames.clone().into() });
        self.send_event(SampleEvent { payload, process, thread, stack }, time, fate);
        let sent = (!fate.is_combined && !user.is_empty()).then(|| {
            let (frames, is_cut) = cut(&user);
            let part = UserPart {
                process,
                thread,
                time: time + MILLISECOND,
                stack: StackItem { match_id, frames: frames.clone().into() },
            };
            self.send_part(&part, fate);
            (frames, is_cut)
        });
        let has_kernel = kernel.len().min(shown.len());
        let known = Known { kernel: &shown[..has_kernel], combined: &shown[has_kernel..], is_cut, sent, fate };
        known.stack(self.graph)
    }

    /// Returns a MatchId, which other threads may use at the same time.
    fn match_id(&mut self, fate: &Interrupt, time: u64, source: u64) -> u64 {
        let last = self.used.get(&(fate.thread(), fate.match_id)).copied();
        let is_free = last.is_none_or(|last| time > last + REUSE);
        let chosen = if is_free { fate.match_id } else { time << 8 | source & 0xFF };
        self.used.insert((fate.thread(), chosen), time);
        chosen
    }

    fn send_event(&mut self, event: SampleEvent, time: u64, fate: &Interrupt) {
        let [delay, again, ..] = fate.delays;
        let now = time / MILLISECOND;
        if fate.has_strangers {
            let mut late = event.clone();
            late.payload.time -= 5 * CLOCK;
            late.stack = Some(StackItem { match_id: 0, frames: Box::new([late.payload.ip, 0xBAD, KERNEL + 0xBAD]) });
            self.arrive(now, Input::Event(late));
        }
        if fate.loses_event {
            return;
        }
        if fate.is_repeated {
            self.arrive(now + again, Input::Event(event.clone()));
        }
        self.arrive(now + delay, Input::Event(event));
    }

    fn send_part(&mut self, part: &UserPart, fate: &Interrupt) {
        let [.., delay, again] = fate.delays;
        let now = part.time / MILLISECOND;
        if fate.has_strangers {
            let stack =
                |match_id| StackItem { match_id, frames: part.stack.frames.iter().map(|one| one ^ 8).collect() };
            let match_id = part.stack.match_id;
            for stranger in [
                UserPart { process: Some(77), thread: Some(78), stack: stack(match_id), ..*part },
                UserPart { thread: Some(79), stack: stack(match_id), ..*part },
                UserPart { process: Some(77), thread: None, stack: stack(match_id), ..*part },
                UserPart { time: part.time - 4 * CLOCK, stack: stack(match_id), ..*part },
                UserPart { time: part.time + 4 * CLOCK, stack: stack(match_id), ..*part },
                UserPart { stack: StackItem { match_id, frames: Box::new([KERNEL + 0xBAD]) }, ..*part },
            ] {
                self.arrive(now, Input::Part(stranger));
            }
        }
        if fate.loses_user {
            return;
        }
        if fate.is_repeated {
            self.arrive(now + again, Input::Part(part.clone()));
        }
        self.arrive(now + delay, Input::Part(part.clone()));
    }

    fn arrive(&mut self, at: u64, input: Input) {
        self.world.arrivals.push(Arrival { at, input });
    }
}

/// What an event and its user part tell, and whether the part was sent.
struct Known<'a> {
    /// Frames of the interrupted code in the event.
    kernel: &'a [u64],
    combined: &'a [u64],
    is_cut: bool,
    /// The frames of the user part, and whether they were cut.
    sent: Option<(Vec<u64>, bool)>,
    fate: &'a Interrupt,
}

impl Known<'_> {
    fn stack(&self, graph: CallGraph) -> SampleStack {
        let Self { kernel, combined, is_cut, sent, fate } = self;
        let sent = sent.as_ref();
        if !fate.is_in_kernel() {
            return match sent {
                None => stack(&combined[1..], *is_cut),
                Some(_) if fate.loses_user => SampleStack::Missing(MissingStack::UserLost),
                Some((frames, is_cut)) => stack(&frames[1..], *is_cut),
            };
        }
        let callers = &kernel[1..];
        let end_in_kernel = *is_cut && combined.is_empty();
        let lost =
            |callers: &[u64]| SampleStack::Stack(CallStack { callers: callers.to_vec(), end: StackEnd::UserLost });
        match (graph, sent) {
            (CallGraph::Kernel, _) => stack(callers, end_in_kernel),
            (CallGraph::Both, Some(_)) if end_in_kernel => stack(callers, true),
            (CallGraph::Both, Some(_)) if fate.loses_user => lost(callers),
            (CallGraph::Both, Some((frames, is_cut))) => stack(&[callers, frames].concat(), *is_cut),
            (CallGraph::Both, None) => stack(&[callers, combined].concat(), *is_cut),
            (CallGraph::User, Some(_)) if fate.loses_user => lost(&[]),
            (CallGraph::User, Some((frames, is_cut))) => stack(frames, *is_cut),
            (CallGraph::User, None) => stack(combined, *is_cut),
        }
    }
}

/// Returns a last branch of a sample; the branches of a sample differ.
fn branch(sample: &CounterSample, number: u64) -> SampleRecord {
    let CounterSample { time, ip, process, thread, processor, event, mode, .. } = *sample;
    BranchRecord {
        time,
        from: ip - number,
        process,
        thread,
        processor,
        event,
        cycles: 0,
        prediction: Prediction::Predicted,
        branch_type: BranchType::NotReported,
        kind: BranchKind::LastBranch,
        mode,
        to: ip,
    }
    .into()
}

fn precise(processor: u32, time: u64) -> SampleRecord {
    let (ip, process, thread, source, interval) = (0x40_1000, 100, 1_001, 1, 1_000);
    let (kind, mode) = (PreciseKind::Precise, Mode::User);
    PreciseSample { time, ip, process, thread, processor, event: source, interval, kind, mode, number: 0 }.into()
}
