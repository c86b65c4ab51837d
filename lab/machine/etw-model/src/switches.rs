//! A scheduler, and the counters of its CPUs at each context switch.

use crate::counter_samples::{CounterSamples, Slice};
use crate::delivery::DeliveredEvent;
use crate::live_thread::LiveThread;
use crate::system_events::{PROCESS, THREAD, classic, words};
use crate::waits::{Left, Waits};
use bench_protocol::{HalScript, ProcessLedger, Random, SwitchLedger};
use std::collections::BTreeMap;

/// Types of the events.
const START: u8 = 1;
const END: u8 = 2;
const RUNDOWN: u8 = 3;
const SWITCH: u8 = 36;

/// Shortest and longest time until the next switch, in units of the performance counter of Wine (100 ns).
const SLICE: [u64; 2] = [500, 12_000];

/// The program that executes known work.
const CLIENT: &str = "client.exe";

/// A CPU.
#[derive(Debug, Clone)]
struct Cpu {
    /// Process and thread that run; zeros for the idle thread.
    running: (u32, u32),
    since: u64,
    until: u64,
    counters: Vec<u64>,
    switches: u32,
}

/// The scheduler.
#[derive(Debug)]
pub struct SwitchModel {
    script: HalScript,
    random: Random,
    sources: Vec<u32>,
    cpus: Vec<Cpu>,
    threads: Vec<LiveThread>,
    has_begun: bool,
    ledger: BTreeMap<u32, ProcessLedger>,
    switches: u64,
    /// What is sampled instead of counted at switches.
    sampled: Option<CounterSamples>,
    /// The times in which threads do not run, if switches have stacks.
    waits: Option<Waits>,
}

impl SwitchModel {
    /// Creates a scheduler at a time, with counters for these sources.
    #[must_use]
    pub fn new(script: &HalScript, sources: &[u32], time: u64) -> Self {
        let cpu =
            Cpu { running: (0, 0), since: time, until: time, counters: vec![1_000_000; sources.len()], switches: 0 };
        Self {
            random: Random::new(script.seed, 0x5C4ED),
            script: script.clone(),
            sources: sources.to_vec(),
            cpus: vec![cpu; usize::try_from(script.processors).unwrap_or_default()],
            threads: Vec::new(),
            has_begun: false,
            ledger: BTreeMap::new(),
            switches: 0,
            sampled: None,
            waits: None,
        }
    }

    /// Creates a scheduler whose switches are no events, with samples of these sources at these intervals.
    #[must_use]
    pub fn sampling(script: &HalScript, sources: Vec<(u32, u32)>, with_stacks: bool, time: u64) -> Self {
        let numbers: Vec<u32> = sources.iter().map(|(source, _)| *source).collect();
        Self { sampled: Some(CounterSamples::new(sources, with_stacks)), ..Self::new(script, &numbers, time) }
    }

    /// Makes the switches events with stacks, besides those for threads that become ready.
    #[must_use]
    pub fn with_waits(mut self) -> Self {
        self.waits = Some(Waits::new(self.script.lock.clone()));
        self
    }

    /// Returns the source whose interval another program has changed, and the new one.
    #[must_use]
    pub fn changed_interval(&self) -> Option<(u32, u32)> {
        self.sampled.as_ref()?.changed()
    }

    /// Returns what processes executed so far.
    #[must_use]
    pub fn ledger(&self) -> SwitchLedger {
        let processes = self.ledger.values().cloned().collect();
        let samples = self.sampled.as_ref().map(CounterSamples::ledger).unwrap_or_default();
        let waits = self.waits.as_ref().map(Waits::ledger).unwrap_or_default();
        SwitchLedger { sources: self.sources.clone(), processes, switches: self.switches, samples, waits }
    }

    /// Lets the CPUs run until a time, from which on the machine has these threads. Returns the events of that time.
    pub fn run_until(&mut self, time: u64, threads: &[LiveThread]) -> Vec<DeliveredEvent> {
        let mut events = Vec::new();
        while let Some((number, at)) = self.next_switch().filter(|(_, at)| *at < time) {
            events.extend(self.switch(number, at));
        }
        let locking = self.waits.as_ref().map(|waits| waits.threads(threads)).unwrap_or_default();
        events.extend(self.change_threads(time, &[threads, &locking].concat()));
        events.sort_by_key(|event| event.time);
        events
    }

    /// Returns the CPU that switches next, and when.
    fn next_switch(&self) -> Option<(usize, u64)> {
        let each = self.cpus.iter().enumerate().map(|(number, cpu)| (number, cpu.until));
        each.min_by_key(|(_, until)| *until)
    }

    /// Lets the client execute known work on the first CPU at a time. Returns the events of that time.
    pub fn execute(&mut self, work: &[u64], time: u64) -> Vec<DeliveredEvent> {
        let client = self.threads.iter().find(|one| one.name == CLIENT).map(|one| (one.process, one.thread));
        let mut events = self.switch_to(0, time, client);
        let sums = client.and_then(|(process, _)| self.ledger.get_mut(&process));
        if let (Some(cpu), Some(ledger)) = (self.cpus.first_mut(), sums) {
            let counts = cpu.counters.iter_mut().zip(&mut ledger.events).zip(work);
            counts.for_each(|((counter, sum), events)| (*counter, *sum) = (*counter + events, *sum + events));
        }
        events.extend(self.switch(0, time + 1));
        events
    }

    fn change_threads(&mut self, time: u64, threads: &[LiveThread]) -> Vec<DeliveredEvent> {
        let mut events = Vec::new();
        let before = std::mem::replace(&mut self.threads, threads.to_vec());
        let begun = if self.has_begun { START } else { RUNDOWN };
        self.has_begun = true;
        let is_of = |all: &[LiveThread], process| all.iter().any(|one| one.process == process);
        let mut processes: Vec<u32> = Vec::new();
        for one in threads.iter().filter(|one| !before.contains(one)) {
            if !is_of(&before, one.process) && !processes.contains(&one.process) {
                processes.push(one.process);
                events.push(process_event(begun, time, one));
            }
            let payload = [words(&[one.process, one.thread]), vec![0; 64]].concat();
            events.push(classic(THREAD, begun, 3, time, payload));
        }
        for number in 0..self.cpus.len() {
            // A thread that has ended is switched out.
            let Some(cpu) = self.cpus.get(number) else { continue };
            let has_ended = cpu.running.1 != 0 && !threads.iter().any(|one| one.thread == cpu.running.1);
            if has_ended {
                let at = time.max(cpu.since);
                events.extend(self.switch(number, at));
            }
        }
        for one in before.iter().filter(|one| !threads.contains(one)) {
            events.push(classic(THREAD, END, 3, time, [words(&[one.process, one.thread]), vec![0; 64]].concat()));
        }
        events
    }

    /// Switches a CPU to another thread. Returns its samples until then, and the event of the switch.
    fn switch(&mut self, number: usize, time: u64) -> Vec<DeliveredEvent> {
        self.switch_to(number, time, None)
    }

    /// Switches a CPU to a thread, or to any.
    fn switch_to(&mut self, number: usize, time: u64, wanted: Option<(u32, u32)>) -> Vec<DeliveredEvent> {
        let others: Vec<u32> = self.cpus.iter().map(|cpu| cpu.running.1).collect();
        let ready: Vec<(u32, u32)> = self.threads.iter().map(|one| (one.process, one.thread)).collect();
        let can_run = |thread| self.waits.as_ref().is_none_or(|waits| waits.can_run(thread));
        let ready: Vec<_> =
            ready.into_iter().filter(|(_, thread)| !others.contains(thread) && can_run(*thread)).collect();
        let Some(cpu) = self.cpus.get_mut(number) else { return Vec::new() };
        let index = u32::try_from(number).unwrap_or_default();
        let (process, old) = cpu.running;
        let has_counters = cpu.switches >= self.script.withheld && !self.script.silent.contains(&index);
        // What was executed before the first counters is not in the ledger, as it is not in what the client sees.
        let is_counted = cpu.switches > self.script.withheld && !self.script.silent.contains(&index);
        let entry = self.ledger.entry(process).or_default();
        entry.process = process;
        entry.events.resize(self.sources.len(), 0);
        if let Some(one) = self.threads.iter().find(|one| one.process == process) {
            entry.parent = one.parent;
            entry.name.clone_from(&one.name);
        }
        let stands_still =
            self.script.still.contains(&index) || entry.name == CLIENT && !self.script.known_work.is_empty();
        let mut samples = Vec::new();
        let counters = cpu.counters.iter_mut().zip(&self.sources).zip(&mut entry.events);
        for (place, ((counter, source), sum)) in counters.enumerate() {
            let rate = Random::new(u64::from(*source), u64::from(old)).up_to(40) + 1;
            let events = if stands_still { 0 } else { (time - cpu.since) * rate / 4 };
            *counter += events;
            *sum += if is_counted { events } else { 0 };
            if let Some(sampled) = &mut self.sampled {
                let slice = Slice { processor: index, process, thread: old, from: cpu.since, to: time, events };
                samples.extend(sampled.of_slice(place, slice, &self.script, &mut self.random));
            }
        }
        if cpu.switches > self.script.withheld && self.random.percent(self.script.set_back) {
            cpu.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
        let goes_idle = old != 0 && self.random.percent(30);
        let next = if goes_idle { None } else { self.random.pick(&ready).copied() };
        let next = wanted.or(next);
        cpu.running = next.unwrap_or_default();
        cpu.since = time;
        cpu.until = time + SLICE[0] + self.random.up_to(SLICE[1] - SLICE[0]);
        cpu.switches += 1;
        self.switches += 1;
        let new = cpu.running.1;
        if let Some(waits) = &mut self.waits {
            let (left, until) = (Left { processor: index, thread: old, time }, self.script.version);
            let is_gone = old != 0 && !self.threads.iter().any(|one| one.thread == old);
            samples.extend(waits.switch(left, is_gone, cpu.running, until, &mut self.random));
        }
        if self.sampled.is_some() || self.waits.is_some() {
            return samples;
        }
        let mut counters = if has_counters { cpu.counters.clone() } else { Vec::new() };
        let is_later = cpu.switches > self.script.withheld + 1;
        if is_later && self.random.percent(self.script.bare) {
            counters.clear();
        }
        if is_later && self.random.percent(self.script.narrow) {
            counters.pop();
        }
        if is_later && self.random.percent(self.script.untold) {
            return Vec::new();
        }
        // Priorities and C-state; wait reason, mode and state (9: waiting for process in-swap); wait time; reserved.
        let payload = words(&[new, old, 0x0808, 0x0009_002A, 1, 0]);
        let switch = classic(THREAD, SWITCH, self.script.version, time, payload);
        vec![DeliveredEvent { processor: index, counters, ..switch }]
    }
}

/// Returns the event of a process that starts or exists.
fn process_event(opcode: u8, time: u64, one: &LiveThread) -> DeliveredEvent {
    // UniqueProcessKey, ProcessId, ParentId, SessionId, ExitStatus, DirectoryTableBase, Flags
    let numbers = [&[0; 8][..], &words(&[one.process, one.parent, 1, 259]), &[0; 8], &words(&[0])].concat();
    // UserSID: a TOKEN_USER, which is a pointer and attributes, and an empty SID. ImageFileName and CommandLine.
    let texts = [&[0x11; 16][..], &[1, 0, 0, 0, 0, 0, 0, 5], one.name.as_bytes(), &[0, 0, 0]].concat();
    classic(PROCESS, opcode, 4, time, [numbers, texts].concat())
}
