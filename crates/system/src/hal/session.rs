//! A session of context switches with counters.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use halprof::pmu::Kind;
use halprof::text::processors::named;
use halprof::{HalError, Task};
use protocol::{CountRecord, EventRequest, ProcessorSet, modes};
use zerocopy::FromZeros;

use super::added_sources::AddedSources;
use super::attribution::{Attribution, CpuAccount, Sum};
use super::{Carrier, HalCalls, HalPlan, SwitchSession, counter_owners};
use crate::trace::switches::{Scheduling, scheduling};
use crate::trace::{TraceError, TraceLosses};

/// Time by which an event can arrive later than its successors: two periods of the flush timer, in seconds.
pub const WINDOW_SECONDS: u64 = 2;

/// Longest time until each CPU has shown counters: a few periods of the flush timer.
const FIRST_COUNTERS: Duration = Duration::from_secs(5);

/// Interval between two looks at the events that have arrived.
const ATTENTION: Duration = Duration::from_millis(20);

/// Units of 100 ns per second.
const TICKS: u128 = 10_000_000;

/// A session that counts.
pub struct CountingSession {
    events: Vec<EventRequest>,
    /// Their names.
    names: Vec<String>,
    processors: ProcessorSet,
    // They end in this order.
    session: Box<dyn SwitchSession>,
    _added: AddedSources,
    attribution: Arc<Mutex<Attribution>>,
    /// Processes, with the times at which they were named; empty for the whole machine.
    followed: Vec<(Task, u64)>,
    frequency: u64,
}

impl CountingSession {
    /// Starts a session, and waits until the counters of every CPU are seen to move.
    pub fn start(
        events: &[EventRequest],
        names: Vec<String>,
        processors: ProcessorSet,
        (calls, kind): (&Arc<dyn HalCalls>, Kind),
    ) -> Result<Self, HalError> {
        let (_, frequency) = calls.clock();
        let attribution = Arc::new(Mutex::new(Attribution::new(WINDOW_SECONDS * frequency)));
        let (sources, added) = AddedSources::of(events, calls, kind)?;
        let (shared, counters) = (Arc::clone(&attribution), sources.len());
        let sink = Box::new(move |event: &crate::trace::RawTraceEvent| {
            if let Some(event) = scheduling(event, counters) {
                lock(&shared).add(event);
            }
        });
        let plan = HalPlan { sources, processors: calls.processors(), carrier: Carrier::Switches };
        let session = started(calls.start(&plan, sink), &**calls)?;
        let mut session = Self {
            events: events.to_vec(),
            names,
            processors,
            session,
            _added: added,
            attribution,
            followed: Vec::new(),
            frequency,
        };
        session.wait_for_counters(&**calls)?;
        Ok(session)
    }

    /// Waits until every CPU has counted the known work of two visits.
    fn wait_for_counters(&mut self, calls: &dyn HalCalls) -> Result<(), HalError> {
        let end = Instant::now() + FIRST_COUNTERS;
        let all = 0..calls.processors();
        loop {
            for cpu in all.clone() {
                calls.visit(cpu).map_err(|cause| HalError::Call { function: "SetThreadGroupAffinity", cause })?;
            }
            // Without it, events arrive by the flush timer.
            let _ = self.session.flush();
            sleep(ATTENTION);
            let mut attribution = lock(&self.attribution);
            let waiting =
                all.clone().map(|cpu| (cpu, attribution.has_moved(cpu))).find(|(_, moved)| *moved != Some(true));
            let Some((processor, moved)) = waiting else {
                attribution.begin_at(calls.clock().0);
                return Ok(());
            };
            if Instant::now() >= end {
                let stands_still = moved.is_some();
                return Err(if stands_still {
                    HalError::StandStill { processor }
                } else {
                    HalError::Silent { processor }
                });
            }
        }
    }

    /// Restricts the counts to a thread, or to a process and those that it starts.
    pub fn follow(&mut self, task: Task, calls: &dyn HalCalls) -> Result<(), HalError> {
        // Windows' own rundown of threads can come later than their switches.
        let threads = calls.threads().map_err(|cause| HalError::Call { function: "the list of threads", cause })?;
        let mut attribution = lock(&self.attribution);
        let is_of = |process, thread| task == Task::Process(process) || task == Task::Thread(thread);
        for (process, id) in threads.into_iter().filter(|(process, id)| is_of(*process, *id)) {
            attribution.add(Scheduling::Thread { id, process, started: 0 });
        }
        self.followed.push((task, calls.clock().0));
        Ok(())
    }

    /// Stops the session. Returns the counts, and what is to be said of them.
    pub fn stop(mut self, number: u64, calls: &dyn HalCalls) -> Result<(Vec<CountRecord>, Vec<String>), HalError> {
        // The last slice of a CPU ends when it switches to this thread.
        for cpu in 0..calls.processors() {
            calls.visit(cpu).map_err(|cause| HalError::Call { function: "SetThreadGroupAffinity", cause })?;
        }
        let losses = self.session.stop().map_err(|cause| HalError::Call { function: "ControlTrace", cause })?;
        let mut attribution = lock(&self.attribution);
        attribution.finish();
        let sums = if self.followed.is_empty() {
            attribution.accounts().map(|(cpu, account)| (cpu, account.total)).collect()
        } else {
            attribution.of_tasks(&self.followed)
        };
        let mut records = Vec::new();
        for (cpu, sum) in &sums {
            if self.processors == ProcessorSet::EMPTY || self.processors.contains(*cpu) {
                records.extend(self.records_of(number, *cpu, sum));
            }
        }
        Ok((records, self.remarks(&attribution, losses)))
    }

    /// Returns the records of a CPU. Its events were enabled while the processes ran there.
    fn records_of(&self, session: u64, processor: u32, sum: &Sum) -> impl Iterator<Item = CountRecord> {
        let time = ticks(sum.time, self.frequency);
        self.events.iter().zip(0_u32..).zip(sum.events).map(move |((event, index), count)| CountRecord {
            session,
            event: event.event,
            modes: modes::BOTH,
            processor,
            counter: index,
            index,
            count,
            enabled: time,
            running: time,
            ..CountRecord::new_zeroed()
        })
    }

    /// Returns what is missing, in sentences.
    fn remarks(&self, attribution: &Attribution, losses: TraceLosses) -> Vec<String> {
        let mut remarks = Vec::new();
        let accounts: Vec<(u32, CpuAccount)> = attribution.accounts().collect();
        let cpus = |is_it: fn(&CpuAccount) -> bool| -> Vec<u32> {
            accounts.iter().filter(|(_, account)| is_it(account)).map(|(cpu, _)| *cpu).collect()
        };
        let share = |part: fn(&CpuAccount) -> u64| {
            let sum = |of: fn(&CpuAccount) -> u64| accounts.iter().map(|(_, account)| of(account)).sum::<u64>();
            #[expect(clippy::cast_precision_loss, reason = "a share is rounded")]
            let (part, whole) = (sum(part) as f64, sum(|account| account.total.time) as f64);
            100.0 * part / whole.max(1.0)
        };
        let torn = cpus(|account| account.broken + account.bare > 0);
        if !torn.is_empty() {
            remarks.push(format!(
                "not attributed: what ran in {:.2} % of the time; context switches of {} were lost or had no counters",
                share(|account| account.unattributed.time),
                named(torn),
            ));
        }
        let set_back = cpus(|account| account.set_back > 0);
        if !set_back.is_empty() {
            remarks.push(format!("counters of {} went back: another program or a sleep has set them", named(set_back)));
        }
        if losses != TraceLosses::default() {
            remarks.push(format!(
                "Windows lost {} events and {} buffers of the trace session; a thread that only ran in between has no \
                 count",
                losses.events, losses.buffers
            ));
        }
        let silent: Vec<u32> = attribution.silent().collect();
        if !silent.is_empty() {
            remarks.push(format!("{} had no counters at any context switch", named(silent)));
        }
        for (name, index) in self.names.iter().zip(0..) {
            let is_still = |account: &CpuAccount| account.total.events.get(index) == Some(&0);
            let still: Vec<u32> = accounts.iter().filter(|(_, one)| is_still(one)).map(|(cpu, _)| *cpu).collect();
            if !still.is_empty() {
                remarks.push(format!("{name} counted nothing at all on {}: it may not work there", named(still)));
            }
        }
        if !self.followed.is_empty() && attribution.of_unknown_processes() != Sum::default() {
            remarks
                .push("some threads ran whose process Windows did not tell; their events are in no count".to_owned());
        }
        remarks
    }
}

/// Returns a time of the performance counter in units of 100 ns.
pub fn ticks(time: u64, frequency: u64) -> u64 {
    u64::try_from(u128::from(time) * TICKS / u128::from(frequency.max(1))).unwrap_or(u64::MAX)
}

/// Names of the steps that give the counters to a session.
pub const COUNTERS: &str = "TraceSetInformation(TracePmcCounterListInfo)";
/// See [`COUNTERS`].
pub const SAMPLED: &str = "TraceSetInformation(TraceProfileSourceConfigInfo)";

/// Returns a session, or why it did not start.
pub fn started<T>(session: Result<T, TraceError>, calls: &dyn HalCalls) -> Result<T, HalError> {
    session.map_err(|error| match error.step {
        COUNTERS | SAMPLED => {
            let held = counter_owners::held(calls).unwrap_or_default();
            let told = || format!(", but counters to others: {}", counter_owners::sentence(&held));
            let holders = if held.is_empty() { String::new() } else { told() };
            HalError::Refused { holders, cause: error.cause }
        }
        function => HalError::Call { function, cause: error.cause },
    })
}

/// Locks what threads share. A panic does not leave it in a state that matters here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
