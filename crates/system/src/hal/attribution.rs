//! Counts of threads and processes, from the counters of each CPU at its context switches.
//!
//! The difference between two switches of a CPU belongs to the thread that the second one switches out, if the first
//! one has switched it in. Otherwise an event between them was lost, and the difference is not attributed. On each CPU
//! the counts of threads, of the idle thread, and what is not attributed add up to the difference between its last and
//! its first counters.

use std::collections::BTreeMap;

use halprof::Task;

use crate::lifetimes::Lifetimes;
use crate::trace::switches::{Scheduling, Switch, Values};

/// Events in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Events, in the order of the session's list.
    pub events: Values,
    /// Time, in units of the performance counter.
    pub time: u64,
}

impl Sum {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        for (sum, events) in self.events.iter_mut().zip(other.events) {
            *sum = sum.saturating_add(events);
        }
        self.time = self.time.saturating_add(other.time);
    }
}

/// What happened on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// The first counters until the last ones.
    pub total: Sum,
    /// The idle thread.
    pub idle: Sum,
    /// Slices whose thread is unknown.
    pub unattributed: Sum,
    /// Number of slices whose beginning or end was lost.
    pub broken: u64,
    /// Number of switches without counters, after the first one that had them.
    pub bare: u64,
    /// Number of times a counter went back: something else has set it. What it counted since then is lost.
    pub set_back: u64,
}

/// The last switch of a CPU that had counters.
#[derive(Debug, Clone, Copy)]
struct Last {
    switch: Switch,
    values: Values,
    /// A later switch had no counters.
    is_torn: bool,
}

/// A CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// Switches that earlier ones may follow yet, by time and order of arrival.
    waiting: BTreeMap<(u64, u64), Switch>,
    last: Option<Last>,
    account: CpuAccount,
}

/// The counts so far.
#[derive(Debug)]
pub struct Attribution {
    /// Time by which an event can arrive late.
    window: u64,
    /// Slices that began earlier are not counted.
    from: u64,
    /// Time of the newest switch.
    newest: u64,
    arrived: u64,
    cpus: BTreeMap<u32, Cpu>,
    lifetimes: Lifetimes,
    /// By CPU, thread, and the start of the thread that had the ID then; `None` if that is not known yet.
    sums: BTreeMap<(u32, u32, Option<u64>), Sum>,
}

impl Attribution {
    /// Creates an attribution without events, of which each can arrive later than its successors by `window`.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self {
            window,
            from: 0,
            newest: 0,
            arrived: 0,
            cpus: BTreeMap::new(),
            lifetimes: Lifetimes::default(),
            sums: BTreeMap::new(),
        }
    }

    /// Leaves out what began before a time.
    pub fn begin_at(&mut self, time: u64) {
        self.from = time;
    }

    /// Returns whether a counter of a CPU has moved between two of its switches; `None` if it has had no counters.
    #[must_use]
    pub fn has_moved(&self, cpu: u32) -> Option<bool> {
        let cpu = self.cpus.get(&cpu)?;
        let mut values =
            cpu.last.map(|last| last.values).into_iter().chain(cpu.waiting.values().filter_map(|one| one.counters));
        let first = values.next()?;
        Some(values.any(|values| values != first))
    }

    /// Adds an event.
    pub fn add(&mut self, event: Scheduling) {
        match event {
            Scheduling::Thread { id, process, started } => self.lifetimes.add_thread(id, process, started),
            Scheduling::Process { id, parent, started } => self.lifetimes.add_process(id, parent, started),
            Scheduling::Ready { .. } => {}
            Scheduling::Switch { cpu, switch } => {
                self.arrived += 1;
                self.cpus.entry(cpu).or_default().waiting.insert((switch.time, self.arrived), switch);
                if switch.time > self.newest {
                    self.newest = switch.time;
                    self.count_until(switch.time.saturating_sub(self.window));
                }
            }
        }
    }

    /// Counts every switch that has arrived.
    pub fn finish(&mut self) {
        self.count_until(u64::MAX);
    }

    /// Counts the switches up to a time.
    fn count_until(&mut self, end: u64) {
        for (number, cpu) in &mut self.cpus {
            while let Some(switch) = cpu.next(end) {
                let Some((thread, slice)) = cpu.count(&switch, self.from) else { continue };
                let started = self.lifetimes.thread_at(thread, switch.time);
                self.sums.entry((*number, thread, started)).or_default().add(&slice);
            }
        }
    }

    /// Returns the CPUs that had counters.
    pub fn accounts(&self) -> impl Iterator<Item = (u32, CpuAccount)> {
        let counted = self.cpus.iter().filter(|(_, cpu)| cpu.last.is_some());
        counted.map(|(number, cpu)| (*number, cpu.account))
    }

    /// Returns the CPUs that switched and never had counters.
    pub fn silent(&self) -> impl Iterator<Item = u32> {
        self.cpus.iter().filter(|(_, cpu)| cpu.last.is_none()).map(|(number, _)| *number)
    }

    /// Returns what each CPU counted for threads and processes, given by their IDs at a time, and for the processes
    /// that these started.
    #[must_use]
    pub fn of_tasks(&self, tasks: &[(Task, u64)]) -> BTreeMap<u32, Sum> {
        let mut sums: BTreeMap<u32, Sum> = self.accounts().map(|(number, _)| (number, Sum::default())).collect();
        let (mut roots, mut threads) = (Vec::new(), Vec::new());
        for (task, time) in tasks {
            match *task {
                Task::Process(id) => roots.push((id, *time)),
                Task::Thread(id) => threads.push((id, self.lifetimes.thread_at(id, *time))),
            }
        }
        for ((cpu, thread, started), slice) in &self.sums {
            let is_chosen = threads.contains(&(*thread, *started));
            if is_chosen || self.lifetimes.belongs_to(*thread, *started, &roots) {
                sums.entry(*cpu).or_default().add(slice);
            }
        }
        sums
    }

    /// Returns what was counted for threads whose process is unknown.
    #[must_use]
    pub fn of_unknown_processes(&self) -> Sum {
        let mut sum = Sum::default();
        for ((_, thread, started), slice) in &self.sums {
            if self.lifetimes.process_of(*thread, *started).is_none() {
                sum.add(slice);
            }
        }
        sum
    }
}

impl Cpu {
    /// Removes and returns the first switch up to a time. Of several at the same time, it is the one that switches out
    /// the running thread.
    fn next(&mut self, end: u64) -> Option<Switch> {
        let (first, _) = *self.waiting.first_key_value()?.0;
        if first > end {
            return None;
        }
        let running = self.last.map(|last| last.switch.new);
        let mut alike = self.waiting.range((first, 0)..=(first, u64::MAX));
        let follows = |(key, switch): (&(u64, u64), &Switch)| (Some(switch.old) == running).then_some(*key);
        let key = alike.find_map(follows).or_else(|| self.waiting.keys().next().copied())?;
        self.waiting.remove(&key)
    }

    /// Counts a switch, if the slice that it ends did not begin before `from`. Returns the thread that ran until then,
    /// and what was counted for it, if it is known and not the idle thread.
    fn count(&mut self, switch: &Switch, from: u64) -> Option<(u32, Sum)> {
        let account = &mut self.account;
        let Some(last) = &mut self.last else {
            let is_torn = false;
            self.last = switch.counters.map(|values| Last { switch: *switch, values, is_torn });
            return None;
        };
        if *switch == last.switch || switch.time < last.switch.time {
            return None; // delivered twice, or too late: the one after it has shown that it was missing
        }
        let Some(values) = switch.counters else {
            account.bare += u64::from(switch.time >= from);
            last.is_torn = true;
            return None;
        };
        let is_chain = !last.is_torn && last.switch.new == switch.old;
        let before = std::mem::replace(last, Last { switch: *switch, values, is_torn: false });
        if before.switch.time < from {
            return None;
        }
        let mut slice = Sum { time: switch.time - before.switch.time, ..Sum::default() };
        for ((events, now), before) in slice.events.iter_mut().zip(values).zip(before.values) {
            let Some(difference) = now.checked_sub(before) else {
                account.set_back += 1;
                return None;
            };
            *events = difference;
        }
        account.total.add(&slice);
        match switch.old {
            _ if !is_chain => {
                account.broken += 1;
                account.unattributed.add(&slice);
            }
            0 => account.idle.add(&slice),
            thread => return Some((thread, slice)),
        }
        None
    }
}
