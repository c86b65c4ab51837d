//! Recording from rings that fill while everything else is slow: the code of the client, with rings as in the driver.

#![cfg(unix)]

use std::env;
use std::io::{self, BufReader, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use halprof::Device;
use protocol::{Code, CounterKind, CounterSample, Mode, Record, ReplyHeader, SamplesRequest};
use recording::{Block, Limits, Reader};
use sample_ring::{Consumer, Producer, Pushed};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::*;
use fake_system::{CLOCK, FakeDriver, FakeSystem};
use system::{LoadedModule, OpenTask, RunningProcess, Task};

/// Number of rings: the processors of a large server.
const RINGS: u32 = 256;

/// Time of a query of the modules of a process.
const QUERY: Duration = Duration::from_millis(10);

/// Maximum time for which samples are taken at once, if the test does not run for longer.
const BURST: Duration = Duration::from_millis(20);

/// What is recorded, and under which load.
#[derive(Clone, Copy)]
struct Load {
    /// Samples per second in all rings.
    rate: u32,
    /// Capacity of each ring in samples.
    capacity: usize,
    time: Duration,
    processes: u32,
    /// Time for which the disk stalls.
    stall: Duration,
}

/// A driver with rings, and the requests that a recording sends while it runs.
struct RingDevice {
    rings: Mutex<Vec<Consumer<SampleRecord, ()>>>,
    is_stopped: AtomicBool,
}

/// An open handle to it.
struct RingHandle(Arc<RingDevice>);

impl Device for RingHandle {
    /// Serves a request as `engine::Rings` does.
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        assert_eq!(code, Code::Samples);
        let SamplesRequest { wait, .. } = SamplesRequest::read_from_bytes(input).unwrap();
        let deadline = Instant::now() + Duration::from_millis(wait.into());
        let mut rings = self.0.rings.lock().unwrap();
        while !rings.iter().any(Consumer::is_half_full)
            && !self.0.is_stopped.load(Ordering::Acquire)
            && Instant::now() < deadline
        {
            sleep(Duration::from_millis(1));
        }
        let is_stopped = self.0.is_stopped.load(Ordering::Acquire);
        let (header, body) = output.split_at_mut(size_of::<ReplyHeader>());
        let mut length = 0;
        for ring in &mut *rings {
            let room = (body.len() - length) / size_of::<SampleRecord>();
            ring.drain(room, |records| {
                let bytes = records.as_bytes();
                body[length..length + bytes.len()].copy_from_slice(bytes);
                length += bytes.len();
            });
        }
        let last = is_stopped && rings.iter().all(Consumer::is_empty);
        let count = u32::try_from(length / size_of::<SampleRecord>()).unwrap();
        let reply = ReplyHeader { count, total: count, detail: [last.into(), 0], ..ReplyHeader::new_zeroed() };
        header.copy_from_slice(reply.as_bytes());
        Ok(header.len() + length)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(Self(Arc::clone(&self.0)))
    }
}

/// Processes of which each query takes long.
struct SlowProcesses(u32);

impl ProcessSource for SlowProcesses {
    fn processes(&self) -> io::Result<Vec<RunningProcess>> {
        let process = |number| RunningProcess {
            id: 4 * number,
            name: format!("p{number}.exe"),
            created: 0,
            created_on_clock: None,
        };
        Ok((1..=self.0).map(process).collect())
    }

    fn modules(&self, _: u32) -> io::Result<Vec<LoadedModule>> {
        sleep(QUERY);
        Ok(vec![fake_system::module(0x40_0000, "app.exe")])
    }

    fn open(&self, _: Task) -> io::Result<Box<dyn OpenTask>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>> {
        Ok(Vec::new())
    }
}

/// A disk that stalls once. The pipe to it holds 64 KiB.
struct StallingDisk {
    pipe: PipeReader,
    stall: Duration,
    stalls_at: Option<Instant>,
}

impl Read for StallingDisk {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.stalls_at.is_some_and(|at| Instant::now() >= at) {
            self.stalls_at = None;
            sleep(self.stall);
        }
        self.pipe.read(bytes)
    }
}

/// Takes samples in all rings. Returns how many were stored and lost.
fn take_samples(mut rings: Vec<Producer<SampleRecord, ()>>, load: Load) -> (u64, u64) {
    let Load { rate, time, processes, .. } = load;
    let (mut since, mut taken, mut due, mut lost) = (Instant::now(), 0_u64, 0.0, 0);
    let total = time.as_secs() * u64::from(rate);
    while taken < total {
        let now = Instant::now();
        due += f64::from(rate) * (now - since).min(BURST).as_secs_f64();
        since = now;
        while due >= 1.0 && taken < total {
            due -= 1.0;
            let processor = u32::try_from(taken % u64::from(RINGS)).unwrap();
            let number = taken / u64::from(RINGS);
            let process = 4 * (1 + u32::try_from(taken / 64 % u64::from(processes)).unwrap());
            let sample = CounterSample {
                time: number,
                ip: 0x40_1000 + number * 0x9E37 % 0x8000,
                process,
                thread: process + 1,
                processor,
                event: 0x13,
                interval: 100_003,
                kind: CounterKind::Sample,
                mode: Mode::User,
                pebs_sequence: 0,
                cookie: 0,
            };
            match rings[processor as usize].push(sample.into()) {
                Pushed::Stored { .. } => {}
                Pushed::Full => lost += 1,
            }
            taken += 1;
        }
        sleep(Duration::from_millis(1));
    }
    (taken - lost, lost)
}

/// Reads a recording. Returns the number of samples and of processes with modules. The samples of each processor must
/// be in order.
fn read_back(disk: StallingDisk) -> (u64, usize) {
    let (mut samples, mut processes) = (0, 0);
    let mut times = vec![0; RINGS as usize];
    for block in Reader::new(BufReader::with_capacity(1 << 20, disk)).unwrap() {
        match block.unwrap() {
            Block::Samples(records) => {
                samples += records.len() as u64;
                for record in records {
                    let Ok(Record::Sample(sample)) = record.parse() else { panic!("{record:?}") };
                    let time = &mut times[sample.processor as usize];
                    assert!(sample.time == 0 || sample.time > *time, "CPU {}", sample.processor);
                    *time = sample.time;
                }
            }
            Block::Process(process) => processes += usize::from(!process.modules.is_empty()),
            Block::Session(_) | Block::Summary(_) => {}
            other => panic!("{other:?}"),
        }
    }
    (samples, processes)
}

fn session() -> RecordedSession {
    RecordedSession {
        created_unix_ms: 0,
        client: String::new(),
        driver: String::new(),
        processor: String::new(),
        computer: None,
        command: Vec::new(),
        clock: CLOCK,
        condition: None,
        last_branches: 0,
        tasks: RecordedTasks::default(),
        part: 0,
        processors: (0..RINGS).collect(),
        batch: 0,
        core_types: Vec::new(),
        events: Vec::new(),
    }
}

/// Records from all rings while queries of processes are slow and the disk stalls. Returns the numbers of samples that
/// were stored, lost and read back.
fn record(load: Load) -> [u64; 3] {
    let Load { capacity, time, processes, stall, .. } = load;
    let rings = (0..RINGS).map(|_| sample_ring::channel(capacity, ()).unwrap());
    let (producers, consumers): (Vec<_>, Vec<_>) = rings.unzip();
    let device = Arc::new(RingDevice { rings: Mutex::new(consumers), is_stopped: AtomicBool::new(false) });
    let (pipe, file) = io::pipe().unwrap();
    let disk = StallingDisk { pipe, stall, stalls_at: Some(Instant::now() + time / 3) };
    let reader = thread::spawn(move || read_back(disk));

    let system = FakeSystem::running(FakeDriver::default());
    let setup = RecorderSetup {
        system: &system,
        source: Box::new(SlowProcesses(processes)),
        processes: Processes::default(),
        limits: Limits::default(),
        tracing: None,
        family: None,
    };
    let path = Path::new("pipe");
    let file = Some((path, File::from(OwnedFd::from(file))));
    let mut recorder = Recorder::begin(file, None, &session(), setup).unwrap();
    recorder.fetch(SampleStream::new(RingHandle(Arc::clone(&device)).share(), 7), u64::MAX);
    let taking = thread::spawn(move || take_samples(producers, load));
    while !taking.is_finished() {
        assert!(!recorder.step(None).unwrap());
    }
    let (stored, lost) = taking.join().unwrap();
    device.is_stopped.store(true, Ordering::Release);
    recorder.drain().unwrap();
    let mut summary = Summary::default();
    let (record_counts, _) = recorder.finish(&mut summary).unwrap();
    assert_eq!(record_counts.samples, stored);
    let (read, queried) = reader.join().unwrap();
    assert_eq!(queried, processes as usize, "every process was queried");
    [stored, lost, read]
}

#[test]
fn nothing_is_lost_while_queries_are_slow_and_the_disk_stalls() {
    let [second, minute] = [Duration::from_secs(1), Duration::from_mins(1)];
    // 16,384 is the default for 10,000 samples a second on each of 256 processors, and holds 1.6 s of them. Without
    // optimization, two cores carry a tenth of them, and without the variable, other tests run at the same time.
    let server = Load { rate: 2_500_000, capacity: 16_384, time: minute, processes: 500, stall: second };
    let load = match (env::var_os("HALPROF_SOAK"), cfg!(debug_assertions)) {
        (Some(_), false) => server,
        (Some(_), true) => Load { rate: 250_000, capacity: 512, ..server },
        (None, _) => Load { rate: 60_000, capacity: 512, time: 6 * second, processes: 100, stall: 4 * second },
    };
    let [stored, lost, read] = record(load);
    println!("{} samples/s for {:?}: {stored} stored, {lost} lost, {read} read", load.rate, load.time);
    assert_eq!((lost, read), (0, stored));
}
