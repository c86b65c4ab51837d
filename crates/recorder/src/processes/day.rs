//! A day of short-lived processes, whose IDs are used again.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use protocol::{CounterKind, CounterSample, Mode, SampleRecord};
use recording::{RecordedSession, Summary, Writer};
use report::{Column, Contents, Detail, Filter, SymbolFinder, SymbolIndex, Table, TableRow};

use super::*;

/// Address of the program in every process.
const PROGRAM: u64 = 0x40_0000;

/// Modules that every process loads.
const COMMON: u64 = 20;

/// Number of processes that run all day.
const SERVICES: u32 = 50;

/// Numbers of IDs for every other of the rest: few, which are used again before their process is forgotten, and many.
const IDS: [u64; 2] = [5, 300];

/// Time between two looks at the samples, in milliseconds.
const STEP: u64 = 500;

/// The processes that run at a time, by ID: number and time of creation.
#[derive(Default)]
struct Running(Mutex<BTreeMap<u32, (u64, u64)>>);

impl Running {
    fn with<R>(&self, work: impl FnOnce(&mut BTreeMap<u32, (u64, u64)>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn module(base: u64, path: String) -> LoadedModule {
    LoadedModule { base, size: 0x1000, path: path.into() }
}

fn name(number: u64) -> String {
    format!("p{number}.exe")
}

impl ProcessSource for Running {
    fn processes(&self) -> io::Result<Vec<RunningProcess>> {
        let process = |(id, (number, created)): (&u32, &(u64, u64))| RunningProcess {
            id: *id,
            name: name(*number),
            created: *created,
            created_on_clock: Some(*created),
        };
        Ok(self.with(|running| running.iter().map(process).collect()))
    }

    /// Each process has a program of its own, at the same address as all others.
    fn modules(&self, id: u32) -> io::Result<Vec<LoadedModule>> {
        let number = self.with(|running| running.get(&id).map(|(number, _)| *number));
        let number = number.ok_or(io::ErrorKind::NotFound)?;
        let common = (1..COMMON).map(|dll| module(dll << 32, format!("no/dll{dll}.dll")));
        Ok(common.chain([module(PROGRAM, format!("no/{}", name(number)))]).collect())
    }

    fn open(&self, _: system::Task) -> io::Result<Box<dyn system::OpenTask>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>> {
        Ok(Vec::new())
    }
}

/// The largest sizes of the tables.
#[derive(Debug, Default)]
struct Sizes {
    tracked: usize,
    modules: usize,
    images: usize,
}

impl Sizes {
    fn note(&mut self, processes: &Processes) {
        self.tracked = self.tracked.max(processes.tracked.len());
        self.modules = self.modules.max(processes.tracked.values().map(|tracked| tracked.modules.len()).sum());
        self.images = self.images.max(processes.images.by_path.len());
    }
}

/// A recording of the day, and what is true of it. The clock of its samples counts milliseconds.
struct Day {
    writer: Writer<File>,
    samples: Vec<SampleRecord>,
    /// Number of samples by process ID, name, and program.
    truth: BTreeMap<(u32, String, String), u64>,
}

impl Day {
    fn new(file: File) -> Self {
        let session = RecordedSession {
            created_unix_ms: 0,
            client: String::new(),
            driver: String::new(),
            processor: String::new(),
            computer: None,
            command: Vec::new(),
            clock: 1_000,
            processors: vec![0],
            batch: 0,
            core_types: Vec::new(),
            events: Vec::new(),
            condition: None,
            last_branches: 0,
            tasks: recording::RecordedTasks::default(),
            part: 0,
        };
        let writer = Writer::new(file, &session).unwrap();
        Self { writer, samples: Vec::new(), truth: BTreeMap::new() }
    }

    /// Samples the program of each process.
    fn sample(&mut self, running: &BTreeMap<u32, (u64, u64)>, time: u64) {
        for (id, (number, _)) in running {
            let sample = CounterSample {
                time,
                ip: PROGRAM + 0x10,
                process: *id,
                thread: 8,
                processor: 0,
                event: 0x13,
                interval: 65_536,
                kind: CounterKind::Sample,
                mode: Mode::User,
                pebs_sequence: 0,
                cookie: 0,
            };
            self.samples.push(sample.into());
            *self.truth.entry((*id, name(*number), name(*number))).or_default() += 1;
        }
    }

    /// Writes the samples, and then the processes that were found by them, as `record` does.
    fn write(&mut self, processes: &[Process]) {
        self.writer.samples(&self.samples).unwrap();
        self.samples.clear();
        for process in processes {
            self.writer.process(process).unwrap();
        }
    }

    fn finish(self) -> BTreeMap<(u32, String, String), u64> {
        let summary = Summary { elapsed: 1, ..Summary::default() };
        self.writer.finish(&summary).unwrap();
        self.truth
    }
}

/// Returns the samples of a recording as a report has them.
fn reported(file: File) -> BTreeMap<(u32, String, String), u64> {
    let contents = Contents::read(&mut BufReader::new(file), Detail::default()).unwrap();
    assert!(contents.damage.is_none());
    let finder = SymbolFinder::new(Vec::new(), None, None).unwrap();
    let index = SymbolIndex::new(&contents, &Filter::default(), &finder);
    let source = contents.sample_counts.totals().next().unwrap().0;
    let table = Table::new(&contents, &index, source, &[Column::Process, Column::Module], &Filter::default());
    let key =
        |row: TableRow| ((row.process.unwrap(), row.process_name.unwrap(), row.module.unwrap()), row.weight.samples);
    table.rows().map(key).collect()
}

#[test]
fn a_day_of_short_lived_processes_takes_bounded_memory_and_each_sample_has_its_process() {
    // 100,000 processes in a day; without the variable, 100 minutes of it.
    let total: u64 = if env::var_os("HALPROF_SOAK").is_some() { 100_000 } else { 7_000 };
    let (begin, running) = (Instant::now(), Running::default());
    running.with(|running| running.extend((1..=SERVICES).map(|service| (4 * service, (service.into(), 1)))));
    let (mut processes, mut sizes) = (Processes::default(), Sizes::default());
    let [mut recorded, mut sampled]: [BTreeMap<u32, Vec<(String, String)>>; 2] = Default::default();
    let mut file = tempfile::tempfile().unwrap();
    let mut day = Day::new(file.try_clone().unwrap());
    let (mut started, mut time) = (0_u64, 1);
    while started < total {
        time += STEP;
        // Each runs for two to six seconds; 864 milliseconds pass from one start to the next. The ID of a process that
        // has ended is often used again before the next look, so that a block has samples of both.
        running.with(|running| {
            day.sample(running, time - STEP);
            running.retain(|_, (number, created)| *created == 1 || time < *created + 2_000 + *number % 5 * 1_000);
            while started * 864 < time {
                let [few, many] = IDS;
                let id = if started % 2 == 0 { started / 2 % few } else { few + started / 2 % many };
                let id = 4 * (SERVICES + 1 + u32::try_from(id).unwrap());
                assert!(running.insert(id, (1_000 + started, time - STEP / 2)).is_none(), "the ID is free");
                started += 1;
            }
            day.sample(running, time - 1);
            for (id, (number, _)) in running.iter() {
                let process = (name(*number), format!("no/{}", name(*number)));
                let of_id = sampled.entry(*id).or_default();
                if of_id.last() != Some(&process) {
                    of_id.push(process);
                }
            }
        });
        let now = begin + Duration::from_millis(time);
        let (mut list, mut found) = (ProcessList::default(), Vec::new());
        processes.schedule(running.with(|running| running.keys().copied().collect::<Vec<_>>()), now);
        processes.refresh(&running, &mut list, now);
        while processes.query_next(&running, &mut list, now, |process| found.push(process)) {}
        day.write(&found);
        for process in found {
            let program = process.modules.iter().find(|module| module.base == PROGRAM);
            let program = program.map_or_else(String::new, |module| module.path.clone());
            recorded.entry(process.id).or_default().push((process.name, program));
        }
        sizes.note(&processes);
    }

    println!("{total} processes: {sizes:?}");
    // Besides the services: six seconds of running processes, and those of the ten seconds before.
    let most = SERVICES as usize + 24;
    assert!(sizes.tracked <= most && sizes.modules as u64 <= most as u64 * COMMON, "{sizes:?}");
    assert!(sizes.images <= MANY_IMAGES, "{sizes:?}");
    assert_eq!(recorded, sampled, "each process once, with its name and program");

    let truth = day.finish();
    file.rewind().unwrap();
    let length = file.metadata().unwrap().len();
    let reported = reported(file);
    let wrong: Vec<_> = reported.iter().filter(|(key, samples)| truth.get(key) != Some(samples)).take(5).collect();
    println!("{} processes in the report, {} bytes", reported.len(), length);
    assert!(wrong.is_empty() && reported.len() == truth.len(), "{wrong:?}");
}
