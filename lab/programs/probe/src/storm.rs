//! A storm: threads that send the requests of generators at the same time, with handles that each can use.

use crate::device::{Buffer, Completed, Device, OpenOptions, Pending, Sent, Win32Error};
use protocol::{Code, CoreTypeRecord, Hello, InfoReply, PROTOCOL_VERSION, ReplyHeader, SamplesRequest, SourceRecord};
use request_generator::{
    Generator, HandleKind, Machine, Request, SLOTS, SessionAt, SessionPick, SourceLimits, Step, StormPlan, StormReport,
    check_reply,
};
use std::{
    array,
    collections::VecDeque,
    mem::offset_of,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};
use windows_sys::Win32::Foundation::{ERROR_INVALID_HANDLE, ERROR_OPERATION_ABORTED};
use zerocopy::{FromBytes, IntoBytes};

/// A number that no session has.
const NO_SESSION: u64 = u64::MAX;

/// Number of sessions that a handle remembers.
const REMEMBERED: usize = 4;

/// Number of pending requests of a thread.
const MAX_PENDING: usize = 6;

/// Longest wait for samples through a handle whose requests cannot be pending, in milliseconds.
const MAX_WAIT: u32 = 10;

/// Number of wrong replies that a thread reports.
const MAX_WRONG: usize = 5;

/// What the output contains before a request.
const UNTOUCHED: u8 = 0xA5;

/// An open handle.
struct Open {
    device: Device,
    /// The sessions that were started with it; the last one is the first.
    sessions: VecDeque<u64>,
}

/// What a thread does at present.
struct Present {
    report: StormReport,
    /// Number and description of the step, and when it began.
    step: (u64, String, Instant),
}

/// What the threads share.
struct Shared {
    device: &'static str,
    threads: Vec<[Mutex<Option<Open>>; SLOTS]>,
    presents: Vec<Mutex<Present>>,
    latest: AtomicU64,
    running: AtomicU64,
}

/// A storm that has begun.
pub struct Storm(Arc<Shared>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Storm {
    /// Asks the driver about the machine and starts the threads.
    pub fn begin(device: &'static str, plan: StormPlan) -> Result<Self, Win32Error> {
        let machine = machine(device)?;
        let shared = Arc::new(Shared {
            device,
            threads: (0..plan.threads).map(|_| array::from_fn(|_| Mutex::new(None))).collect(),
            presents: (0..plan.threads).map(|_| Mutex::new(Present::new())).collect(),
            latest: AtomicU64::new(NO_SESSION),
            running: AtomicU64::new(plan.threads.into()),
        });
        for thread in 0..plan.threads {
            let generator = Generator::new(plan.seed, thread, plan.threads, machine.clone(), plan.restrictions);
            let share = plan.requests.div_ceil(plan.threads.into());
            let mut of_thread = Thread { shared: Arc::clone(&shared), number: thread as usize, pending: Vec::new() };
            thread::spawn(move || of_thread.run(generator, share));
        }
        Ok(Self(shared))
    }

    /// Returns the state or the result.
    pub fn report(&self) -> StormReport {
        // Read before the numbers, which are final then.
        let ended = self.0.running.load(Ordering::SeqCst) == 0;
        let mut report = StormReport { ended, ..StormReport::default() };
        for (thread, present) in self.0.presents.iter().enumerate() {
            let present = lock(present);
            report.add(&present.report);
            let (number, step, begun) = &present.step;
            let time = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            if !ended && time > report.longest_step {
                (report.longest_step, report.step) = (time, format!("thread {thread}, step {number}: {step}"));
            }
        }
        report
    }
}

impl Present {
    fn new() -> Self {
        Self { report: StormReport::default(), step: (0, String::new(), Instant::now()) }
    }
}

/// One thread of a storm.
struct Thread {
    shared: Arc<Shared>,
    number: usize,
    pending: Vec<(Box<Pending>, Code)>,
}

impl Thread {
    fn run(&mut self, mut generator: Generator, requests: u64) {
        let mut sent = 0;
        for number in 0.. {
            if sent == requests {
                break;
            }
            let step = generator.step();
            self.note(|present| present.step = (number, describe(&step), Instant::now()));
            sent += u64::from(matches!(step, Step::Send { .. }));
            self.execute(step);
            self.reap(Pending::is_complete);
        }
        self.note(|present| present.step = (requests, "the last handles are closed".to_owned(), Instant::now()));
        (0..SLOTS).for_each(|slot| self.close(slot));
        self.reap(|pending| {
            // Fails if the request is complete, or if its handle is closed, which completes it.
            let _ = pending.cancel();
            true
        });
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }

    fn note(&self, change: impl FnOnce(&mut Present)) {
        if let Some(present) = self.shared.presents.get(self.number) {
            change(&mut lock(present));
        }
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::Open { slot, kind } => self.open(slot, kind),
            Step::Close { slot } => self.close(slot),
            Step::Cancel { slot } => {
                let handle = self.with_slot(self.number, slot, |open| {
                    // Fails if no request is pending.
                    let _ = open.device.cancel();
                    open.device.handle()
                });
                self.note(|present| present.report.cancels += 1);
                self.reap(|pending| handle == Some(pending.handle));
            }
            Step::Send { slot, of_next, request } => {
                let thread = (self.number + usize::from(of_next)) % self.shared.threads.len().max(1);
                self.send(thread, slot, request);
            }
        }
    }

    fn with_slot<T>(&self, thread: usize, slot: usize, body: impl FnOnce(&mut Open) -> T) -> Option<T> {
        lock(self.shared.threads.get(thread)?.get(slot)?).as_mut().map(body)
    }

    fn open(&self, slot: usize, kind: HandleKind) {
        let HandleKind { writable, overlapped } = kind;
        let device = Device::open(self.shared.device, OpenOptions { writable, overlapped }).ok();
        self.note(|present| present.report.opened += u64::from(device.is_some()));
        let open = device.map(|device| Open { device, sessions: VecDeque::new() });
        if let Some(place) = self.shared.threads.get(self.number).and_then(|slots| slots.get(slot)) {
            *lock(place) = open;
        }
    }

    /// Closes a handle and waits for its pending requests, which that ends.
    fn close(&mut self, slot: usize) {
        let place = self.shared.threads.get(self.number).and_then(|slots| slots.get(slot));
        let Some(Open { device, .. }) = place.and_then(|place| lock(place).take()) else { return };
        let handle = device.handle();
        drop(device);
        self.note(|present| present.report.closed += 1);
        self.reap(|pending| pending.handle == handle);
    }

    fn send(&mut self, thread: usize, slot: usize, request: Request) {
        let Request { code, mut input, session, output } = request;
        let latest = self.shared.latest.load(Ordering::SeqCst);
        let found =
            self.with_slot(thread, slot, |open| (open.device.handle(), number_of(session, &open.sessions, latest)));
        let Some((handle, number)) = found else {
            return self.count(code, &Err(Win32Error(ERROR_INVALID_HANDLE)), None);
        };
        if let Some(SessionAt { offset, .. }) = session
            && let Some(field) = input.get_mut(offset..offset + size_of::<u64>())
        {
            field.copy_from_slice(&number.to_le_bytes());
        }
        if !handle.overlapped && code == Code::Samples as u32 {
            shorten_wait(&mut input);
        }
        let (input, output) = (Buffer::Bytes(input), Buffer::Bytes(vec![UNTOUCHED; output]));
        // A session that is stopped has fewer requests afterwards.
        if code == Code::Stop as u32 && session.is_some() {
            self.with_slot(thread, slot, |open| open.sessions.rotate_left(1.min(open.sessions.len())));
        }
        let known = protocol::find(code).map(|spec| spec.code);
        match (handle.send(code, input, output), known) {
            (Ok(Sent::Completed(completed)), _) => self.completed(code, completed, Some((thread, slot))),
            (Ok(Sent::Pending(pending)), Some(code)) => {
                self.pending.push((pending, code));
                if self.pending.len() > MAX_PENDING {
                    let (oldest, code) = self.pending.remove(0);
                    // Fails if the request is complete, or if its handle is closed, which completes it.
                    let _ = oldest.cancel();
                    self.note(|present| present.report.cancels += 1);
                    self.completed(code as u32, oldest.wait(), None);
                }
            }
            (Ok(Sent::Pending(pending)), None) => self.completed(code, pending.wait(), None),
            (Err(error), _) => self.count(code, &Err(error), None),
        }
    }

    /// Takes the results of the pending requests that are complete or will be.
    fn reap(&mut self, is_ending: impl Fn(&Pending) -> bool) {
        let (ending, left) = std::mem::take(&mut self.pending).into_iter().partition(|(pending, _)| is_ending(pending));
        self.pending = left;
        let ending: Vec<(Box<Pending>, Code)> = ending;
        for (pending, code) in ending {
            self.completed(code as u32, pending.wait(), None);
        }
    }

    /// Checks and counts the result of a request. `started` is the slot of a handle with which a session was started.
    fn completed(&self, code: u32, completed: Completed, slot: Option<(usize, usize)>) {
        let Completed { returned, output } = completed;
        let Ok(length) = returned else { return self.count(code, &returned, None) };
        let (reply, rest) = output.split_at(length.min(output.len()));
        let Some(spec) = protocol::find(code) else {
            return self.wrong(&format!("the unknown request {code:#x} succeeded"));
        };
        if rest.iter().any(|byte| *byte != UNTOUCHED) {
            self.wrong(&format!("{}: bytes after the {length} of the reply were written", spec.name));
        }
        match check_reply(spec.code, output.len(), reply) {
            Err(wrong) => self.wrong(&format!("{}: {wrong}", spec.name)),
            Ok(facts) => {
                self.count(code, &returned, Some(facts.header));
                self.note(|present| present.report.samples += facts.samples);
                if let (Code::Start, 0, Some((thread, slot))) = (spec.code, facts.header.status, slot) {
                    let [session, _] = facts.header.detail;
                    self.shared.latest.store(session, Ordering::SeqCst);
                    self.with_slot(thread, slot, |open| {
                        open.sessions.push_front(session);
                        open.sessions.truncate(REMEMBERED);
                    });
                }
            }
        }
    }

    fn count(&self, code: u32, result: &Result<usize, Win32Error>, header: Option<ReplyHeader>) {
        self.note(|Present { report, .. }| {
            let name = protocol::find(code).map_or("unknown", |spec| spec.name);
            let counts = report.codes.entry(name.to_owned()).or_default();
            match (result, header) {
                (Ok(_), Some(header)) if header.status == 0 => counts.accepted += 1,
                (Ok(_), Some(header)) => {
                    counts.refused += 1;
                    *report.refusals.entry(header.cause).or_default() += 1;
                }
                (Ok(_), None) => {}
                (Err(Win32Error(error)), _) => {
                    counts.failed += 1;
                    report.cancelled += u64::from(*error == ERROR_OPERATION_ABORTED);
                }
            }
        });
    }

    fn wrong(&self, what: &str) {
        self.note(|Present { report, step: (number, ..) }| {
            if report.wrong.len() < MAX_WRONG {
                report.wrong.push(format!("thread {}, step {number}: {what}", self.number));
            }
        });
    }
}

fn describe(step: &Step) -> String {
    match step {
        Step::Open { slot, .. } => format!("open {slot}"),
        Step::Close { slot } => format!("close {slot}"),
        Step::Cancel { slot } => format!("cancel {slot}"),
        Step::Send { slot, of_next, request } => {
            let name = protocol::find(request.code).map_or("unknown", |spec| spec.name);
            let of = if *of_next { " of the next thread" } else { "" };
            format!("{name}, {} and {} bytes, handle {slot}{of}", request.input.len(), request.output)
        }
    }
}

fn number_of(session: Option<SessionAt>, sessions: &VecDeque<u64>, latest: u64) -> u64 {
    match session {
        Some(SessionAt { pick: SessionPick::OfHandle(back), .. }) => sessions.get(back).copied().unwrap_or(NO_SESSION),
        Some(SessionAt { pick: SessionPick::Latest, .. }) => latest,
        None => NO_SESSION,
    }
}

/// Limits the time that a request for samples waits.
fn shorten_wait(input: &mut [u8]) {
    let wait = offset_of!(SamplesRequest, wait);
    if let Some(field) = input.get_mut(wait..wait + size_of::<u32>()) {
        let asked = u32::from_le_bytes(<[u8; 4]>::try_from(&*field).unwrap_or_default());
        field.copy_from_slice(&asked.min(MAX_WAIT).to_le_bytes());
    }
}

/// Asks the driver what the machine offers.
fn machine(name: &str) -> Result<Machine, Win32Error> {
    const ROOM: usize = 1 << 16;
    let device = Device::open(name, OpenOptions { writable: false, overlapped: false })?;
    let ask = |code: Code, input: &[u8]| {
        device.handle().control(code as u32, Buffer::Bytes(input.to_vec()), Buffer::Bytes(vec![0; ROOM]))
    };
    ask(Code::Hello, Hello { version: PROTOCOL_VERSION, reserved: 0 }.as_bytes())?;
    let info = ask(Code::Info, &[])?;
    let [active, processors] =
        InfoReply::read_from_bytes(&info).map_or([1; 2], |info| [info.processors, info.maximum_processors]);
    let records =
        |code: Code| ask(code, &[]).map(|reply| reply.get(size_of::<ReplyHeader>()..).unwrap_or_default().to_vec());
    let sources = all::<SourceRecord>(&records(Code::ListSources)?);
    let core_types = all::<CoreTypeRecord>(&records(Code::ListCoreTypes)?);
    Ok(Machine {
        active,
        processors,
        sources: sources.iter().filter(|record| record.support == 0).map(SourceLimits::of).collect(),
        core_types: core_types.iter().map(|record| record.core_type).collect(),
    })
}

fn all<T: FromBytes>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(|bytes| T::read_from_bytes(bytes).ok()).collect()
}
