//! The times in which threads do not run: switches with states and stacks, and threads that become ready.

use crate::delivery::{DeliveredEvent, STACK_WALK};
use crate::live_thread::LiveThread;
use crate::system_events::{THREAD, classic, words};
use bench_protocol::{LockScript, Random, WaitLedger};
use std::collections::BTreeMap;

/// Types of the events.
const SWITCH: u8 = 36;
const READY: u8 = 50;
const STACK: u8 = 32;

/// States of a thread, and what it waits for.
const IS_READY: u8 = 1;
const TERMINATED: u8 = 4;
const WAITING: u8 = 5;
const USER_REQUEST: u8 = 6;
const PREEMPTED: u8 = 32;
const ALERT_BY_THREAD_ID: u8 = 37;

/// Where threads wait, in each mode.
const KERNEL: u64 = 0xFFFF_F800_0200_0000;
const USER: u64 = 0x7FF6_4000_0000;

/// Name of the program with the threads that share a lock.
const LOCKING: &str = "lock.exe";

/// The thread that a CPU leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) processor: u32,
    pub(crate) thread: u32,
    pub(crate) time: u64,
}

/// A thread that does not run.
#[derive(Debug, Clone, Copy)]
struct Off {
    since: u64,
    waits: bool,
    ready: Option<u64>,
    /// The thread that made it ready, if one did.
    waker: Option<u32>,
}

/// The threads that do not run.
#[derive(Debug)]
pub(crate) struct Waits {
    lock: Option<LockScript>,
    /// Place of the thread that has the lock, or has it next.
    holder: usize,
    off: BTreeMap<u32, Off>,
    ledger: BTreeMap<u32, WaitLedger>,
}

impl Waits {
    pub(crate) fn new(lock: Option<LockScript>) -> Self {
        Self { lock, holder: 0, off: BTreeMap::new(), ledger: BTreeMap::new() }
    }

    pub(crate) fn ledger(&self) -> Vec<WaitLedger> {
        self.ledger.values().cloned().collect()
    }

    /// Returns the threads that share a lock, if their process runs.
    pub(crate) fn threads(&self, threads: &[LiveThread]) -> Vec<LiveThread> {
        let Some(lock) = &self.lock else { return Vec::new() };
        let one = threads.iter().find(|one| one.process == lock.process);
        let of = |one: &LiveThread| {
            let each = lock.threads.iter();
            each.map(|thread| LiveThread { thread: *thread, name: LOCKING.to_owned(), ..one.clone() }).collect()
        };
        one.map(of).unwrap_or_default()
    }

    /// Returns whether a thread does not wait for the lock.
    pub(crate) fn can_run(&self, thread: u32) -> bool {
        let Some(lock) = &self.lock else { return true };
        let place = lock.threads.iter().position(|one| *one == thread);
        place.is_none_or(|place| place == self.holder)
    }

    /// Switches a CPU to a process and its thread. Returns the events.
    pub(crate) fn switch(
        &mut self,
        left: Left,
        is_gone: bool,
        (process, new): (u32, u32),
        version: u8,
        random: &mut Random,
    ) -> Vec<DeliveredEvent> {
        let Left { processor, thread: old, time, .. } = left;
        let mut events = Vec::new();
        let holds = self.lock.as_ref().is_some_and(|lock| lock.threads.get(self.holder) == Some(&old));
        // A thread that was preempted keeps the lock.
        let waits = random.percent(70);
        let [state, reason] = match (is_gone, waits, holds) {
            (true, ..) => [TERMINATED, 0],
            (_, true, true) => [WAITING, ALERT_BY_THREAD_ID],
            (_, true, false) => [WAITING, USER_REQUEST],
            (_, false, _) => [IS_READY, PREEMPTED],
        };
        if holds && waits {
            events.extend(self.release(left));
        }
        if let Some(off) = self.off.get_mut(&new).filter(|off| off.waits && off.ready.is_none() && time > off.since + 2)
            && !self.lock.as_ref().is_some_and(|lock| lock.threads.contains(&new))
            && random.percent(90)
        {
            // The thread that leaves the CPU has made it ready, or a DPC.
            let from_dpc = old == 0 || random.percent(30);
            off.ready = Some(time - 1);
            events.push(ready(left, new, from_dpc));
            off.waker = (!from_dpc).then_some(old);
        }
        if old != 0 && state != TERMINATED {
            self.off.insert(old, Off { since: time, waits: state == WAITING, ready: None, waker: None });
        } else {
            self.off.remove(&old);
        }
        let payload = [words(&[new, old, 0x0808]), vec![reason, 1, state, 0], words(&[1, 0])].concat();
        events.push(DeliveredEvent { processor, ..classic(THREAD, SWITCH, version, time, payload) });
        if new != 0 {
            events.extend(self.stack(left, process, new));
        }
        if let Some(Off { since, waits, ready, waker }) = self.off.remove(&new) {
            let entry = self.ledger.entry(new).or_default();
            let begin = if waits { ready.unwrap_or(time) } else { since };
            (entry.process, entry.thread, entry.switches) = (process, new, entry.switches + 1);
            entry.wakers.extend(waker);
            (entry.waited, entry.ready) = (entry.waited + begin - since, entry.ready + time - begin);
        }
        events
    }

    /// Gives the lock to the next thread, which is made ready.
    fn release(&mut self, left: Left) -> Option<DeliveredEvent> {
        let threads = &self.lock.as_ref()?.threads;
        self.holder = (self.holder + 1) % threads.len();
        let next = *threads.get(self.holder)?;
        let off = self.off.get_mut(&next)?;
        off.ready = Some(left.time - 1);
        off.waker = Some(left.thread);
        Some(ready(left, next, false))
    }

    /// Returns the stack of a thread that runs on.
    fn stack(&self, Left { processor, time, .. }: Left, process: u32, thread: u32) -> [DeliveredEvent; 2] {
        let base = u64::from(thread) * 0x1000;
        let lock = self.lock.as_ref().filter(|lock| lock.threads.contains(&thread));
        let user = lock.map_or_else(|| vec![USER + base + 0x100, USER + base + 0x200], |lock| lock.frames.clone());
        [(vec![KERNEL + base, KERNEL + base + 0x800], 1), (user, 900)].map(|(frames, later)| {
            let frames = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
            let payload = [time.to_le_bytes().to_vec(), words(&[process, thread]), frames].concat();
            DeliveredEvent { processor, ..classic(STACK_WALK, STACK, 2, time + later, payload) }
        })
    }
}

/// Returns the event for a thread that is made ready just before a CPU leaves another one.
fn ready(Left { processor, time, .. }: Left, thread: u32, from_dpc: bool) -> DeliveredEvent {
    let payload = [words(&[thread]), vec![1, 0, u8::from(from_dpc), 0]].concat();
    DeliveredEvent { processor, ..classic(THREAD, READY, 2, time - 1, payload) }
}
