//! Names of functions, looked up in a thread of its own: sampling goes on while symbols are read or downloaded.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use protocol::{ALL_EVENTS, UNKNOWN};
use recording::Process;
use report::{LossStats, ProcessKey, Processes, SampleCounts, SampleLocation, SymbolFinder, SymbolIndex};

use super::state::{EventUpdate, Function, Update};
use crate::reading::load::finder;
use terminal::format::real;
use user_error::{Error, OutOfMemory};

/// The samples between two updates.
#[derive(Debug)]
pub struct Period {
    /// Time since the last update.
    pub elapsed: Duration,
    /// Samples by location and processor.
    pub sample_counts: SampleCounts,
    /// Processor time of the client.
    pub own_time: Option<Duration>,
}

/// The session whose samples are shown.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// Sources and names of the events.
    pub events: Vec<(u32, String)>,
    /// Number of sampled processors.
    pub processors: usize,
    /// Units per second of the clock of samples.
    pub clock: u64,
}

enum Job {
    Session(SessionFacts),
    Process(Process),
    Period(Box<Period>),
}

/// The thread that looks up names.
pub struct Names {
    jobs: Sender<Job>,
    updates: Receiver<Update>,
}

impl Names {
    /// Starts the thread, which searches the folders for symbols.
    pub fn start(folders: Vec<PathBuf>) -> Self {
        let (jobs, received) = mpsc::channel();
        let (done, updates) = mpsc::channel();
        // It ends with the channels, or with this process if a symbol server does not answer.
        thread::spawn(move || look_up(folders, &received, &done));
        Self { jobs, updates }
    }

    /// Tells what is sampled.
    pub fn session(&self, facts: SessionFacts) -> Result<(), Error> {
        self.send(Job::Session(facts))
    }

    /// Adds a process, or modules of one.
    pub fn process(&self, process: Process) -> Result<(), Error> {
        self.send(Job::Process(process))
    }

    /// Looks up the names of a period.
    pub fn period(&self, period: Period) -> Result<(), Error> {
        self.send(Job::Period(Box::new(period)))
    }

    fn send(&self, job: Job) -> Result<(), Error> {
        Ok(self.jobs.send(job).map_err(|_| OutOfMemory)?)
    }

    /// Returns the next period with its names, if it is ready.
    pub fn ready(&self) -> Option<Update> {
        self.updates.try_recv().ok()
    }
}

fn look_up(folders: Vec<PathBuf>, jobs: &Receiver<Job>, done: &Sender<Update>) {
    // Without a finder the thread ends, which the other side notices.
    let Ok(finder) = finder(folders, None) else { return };
    let finder = finder.with_perf_maps(vec![std::env::temp_dir()]).with_cache();
    let mut processes = Processes::default();
    let mut facts = SessionFacts::default();
    for job in jobs {
        match job {
            Job::Session(session) => facts = session,
            Job::Process(process) => processes.add_newest(&process),
            Job::Period(period) => {
                if done.send(update(&period, &facts, &processes, &finder)).is_err() {
                    return;
                }
            }
        }
    }
}

fn update(period: &Period, facts: &SessionFacts, processes: &Processes, finder: &SymbolFinder) -> Update {
    let counts = &period.sample_counts;
    // The samples of a period are recent: they belong to the last process that had the ID.
    let locations = || {
        let latest = |location: SampleLocation| processes.latest(location.process.id);
        counts
            .locations()
            .map(move |(location, weight)| (SampleLocation { process: latest(location), ..location }, weight))
    };
    let symbol_index = SymbolIndex::of(processes, locations().map(|(location, _)| location), finder);
    let event = |(index, name): &(u32, String)| {
        let mut functions: HashMap<Function, u64> = HashMap::new();
        let mut processors: BTreeMap<u32, u64> = BTreeMap::new();
        for (location, weight) in locations().filter(|(location, _)| location.event == *index) {
            let function = Function {
                process: process_text(processes, location.process),
                module: symbol_index.module(&location).to_owned(),
                symbol: symbol_index.symbol(&location).into_owned(),
            };
            *functions.entry(function).or_default() += weight.events;
            *processors.entry(location.processor).or_default() += weight.events;
        }
        let samples = counts.total(*index).weight.samples;
        EventUpdate { name: name.clone(), samples, functions: functions.into_iter().collect(), processors }
    };
    Update {
        elapsed: period.elapsed,
        events: facts.events.iter().map(event).collect(),
        lost: counts.loss_stats().map(|(_, _, stats)| stats.lost).fold(0, u64::saturating_add),
        paused: paused(counts, facts, period.elapsed),
        own_time: period.own_time.map(|time| time.as_secs_f64() / period.elapsed.as_secs_f64().max(1e-9)),
    }
}

fn process_text(processes: &Processes, process: ProcessKey) -> String {
    let name = processes.name_or_unknown(process);
    if process.id == UNKNOWN { name.to_owned() } else { format!("{name} ({})", process.id) }
}

/// Returns the share of the time of all processors for which sampling paused.
fn paused(counts: &SampleCounts, facts: &SessionFacts, elapsed: Duration) -> f64 {
    let of_all = counts.loss_stats().filter(|(source, ..)| *source == ALL_EVENTS);
    let paused: u64 = of_all.map(|(_, _, LossStats { paused, .. })| paused).fold(0, u64::saturating_add);
    let seconds = real(paused) / real(facts.clock.max(1));
    let all = elapsed.as_secs_f64() * real(facts.processors.max(1) as u64);
    if all > 0.0 { (seconds / all).min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use protocol::{CounterSample, LostRecord, PauseKind, PauseRecord, SampleRecord};
    use report::Detail;

    use super::*;
    use crate::verb::top::DETAIL;
    use fake_system::sample;

    #[test]
    fn a_period_has_names_rates_losses_and_pauses() {
        let at = |processor, source| -> SampleRecord {
            let protocol::Record::Sample(one) = sample(12, 1).parse().unwrap() else { panic!() };
            CounterSample { processor, event: source, ..one }.into()
        };
        let mut sample_counts = SampleCounts::new(DETAIL);
        sample_counts.add(&[
            at(0, 0x13),
            at(0, 0x13),
            at(1, 0x13),
            at(1, 2),
            LostRecord::new(1, 0, 0, 4).into(),
            PauseRecord::new(PauseKind::Resumed, 2, 0, 5_000_000).into(),
        ]);
        assert_eq!(DETAIL, Detail { processor: true, ..Detail::default() });
        let names = Names::start(vec![PathBuf::from("nowhere")]);
        let events = vec![(0x13, "TotalCycles".to_owned()), (2, "TotalIssues".to_owned())];
        names.session(SessionFacts { events, processors: 2, clock: 10_000_000 }).unwrap();
        let module = recording::Module {
            base: 0x40_0000,
            size: 0x1_0000,
            path: "C:\\app.exe".to_owned(),
            timestamp: 0,
            image_size: 0,
            debug: None,
        };
        let before = Process { id: 12, created: Some(1), name: "before.exe".to_owned(), modules: vec![module.clone()] };
        names.process(before).unwrap();
        let app = Process { id: 12, created: Some(2), name: "app.exe".to_owned(), modules: vec![module] };
        names.process(app).unwrap();
        let (elapsed, own_time) = (Duration::from_secs(2), Some(Duration::from_millis(100)));
        names.period(Period { elapsed, sample_counts, own_time }).unwrap();
        let update = names.updates.recv().unwrap();
        let function = Function {
            process: "app.exe (12)".to_owned(),
            module: "app.exe".to_owned(),
            symbol: "app.exe+0x1000".to_owned(),
        };
        let [cycles, issues] = &update.events[..] else { panic!("{update:?}") };
        assert_eq!((cycles.samples, &cycles.functions), (3, &vec![(function.clone(), 3 * 65_536)]));
        assert_eq!(cycles.processors, [(0, 2 * 65_536), (1, 65_536)].into());
        assert_eq!((issues.samples, &issues.functions), (1, &vec![(function, 65_536)]));
        assert_eq!((update.lost, update.paused, update.own_time), (4, 0.125, Some(0.05)));
    }
}
