//! Measures an empty region of each grade once, for callgrind to count the instructions of the library in user mode;
//! `cargo xtask bench` does that. Driver and Windows repeat what they answered in the region before, so that neither
//! counts.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/lab/mod.rs"]
mod lab;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bench_protocol::{Scheduling, UserRdpmc};
use halprof::system::{Affinity, CounterValues, ProfilingData, ProfilingHandle, System, ThreadMemoryBytes};
use halprof::{Builder, Counts, Device, Driver, Grade, Machine, ThreadGroup};
use lab::{Lab, LabSystem};
use protocol::Code;

/// Whether the stand-ins repeat their answers.
type Repeats = Rc<Cell<bool>>;

/// The driver's device.
struct RecordedDevice {
    inner: Box<dyn Device>,
    repeats: Repeats,
    /// The last reply to each request.
    replies: RefCell<BTreeMap<u32, Vec<u8>>>,
}

impl Device for RecordedDevice {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        if self.repeats.get()
            && let Some(reply) = self.replies.borrow().get(&(code as u32))
            && let Some(room) = output.get_mut(..reply.len())
        {
            room.copy_from_slice(reply);
            return Ok(reply.len());
        }
        let length = self.inner.request(code, input, output)?;
        let reply = output.get(..length).unwrap_or_default().to_vec();
        self.replies.borrow_mut().insert(code as u32, reply);
        Ok(length)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        self.inner.share()
    }
}

/// Windows, for the thread.
struct RecordedSystem {
    inner: LabSystem,
    repeats: Repeats,
    data: Cell<ProfilingData>,
    counters: Cell<CounterValues>,
}

impl System for RecordedSystem {
    fn find_profiling(&self) -> Result<(), &'static str> {
        self.inner.find_profiling()
    }

    fn is_profiled(&self) -> io::Result<bool> {
        self.inner.is_profiled()
    }

    fn enable_profiling(&self, counters: u64) -> io::Result<ProfilingHandle> {
        self.inner.enable_profiling(counters)
    }

    fn read_profiling(&self, handle: &ProfilingHandle) -> io::Result<ProfilingData> {
        let mut data = self.data.get();
        if self.repeats.get() {
            // Windows charges cycles to a thread that runs.
            data.cycle_time += 1;
        } else {
            data = self.inner.read_profiling(handle)?;
        }
        self.data.set(data);
        Ok(data)
    }

    fn read_counters(&self, handle: &ProfilingHandle) -> io::Result<CounterValues> {
        if !self.repeats.get() {
            self.counters.set(self.inner.read_counters(handle)?);
        }
        Ok(self.counters.get())
    }

    fn read_memory(&self, handle: &ProfilingHandle) -> io::Result<ThreadMemoryBytes> {
        self.inner.read_memory(handle)
    }

    fn disable_profiling(&self, handle: ProfilingHandle) -> io::Result<()> {
        self.inner.disable_profiling(handle)
    }

    fn pin(&self, cpu: u32) -> io::Result<Affinity> {
        self.inner.pin(cpu)
    }

    fn unpin(&self, affinity: &Affinity) -> io::Result<()> {
        self.inner.unpin(affinity)
    }

    fn current_cpu(&self) -> u32 {
        self.inner.current_cpu()
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn time_asleep(&self) -> Duration {
        Duration::ZERO
    }

    fn windows_build(&self) -> Option<String> {
        self.inner.windows_build()
    }

    fn verification_file(&self) -> Option<PathBuf> {
        self.inner.verification_file()
    }

    fn read_protected(&self, file: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.inner.read_protected(file, most)
    }

    fn write_protected(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        self.inner.write_protected(file, content)
    }

    fn remove_protected(&self, file: &Path) -> io::Result<()> {
        self.inner.remove_protected(file)
    }
}

fn main() {
    for (grade, operation) in [(Grade::Undisturbed, "undisturbed"), (Grade::Virtualized, "virtualized")] {
        for names in [&["branches"][..], &["branches", "branch-misses", "cache-references", "cache-misses"]] {
            let lab = Lab::new("haswell-4710mq", 2, Scheduling { rdpmc: UserRdpmc::Works, ..Scheduling::default() });
            lab.refuse_threads(grade == Grade::Undisturbed);
            let repeats = Repeats::default();
            let device = RecordedDevice { inner: lab.device(), repeats: repeats.clone(), replies: RefCell::default() };
            let system = RecordedSystem {
                inner: LabSystem(lab),
                repeats: repeats.clone(),
                data: Cell::default(),
                counters: Cell::default(),
            };
            let machine = Machine::over(Driver::over(Box::new(device)).expect("the driver"), Rc::new(system));
            let named = |builder: Builder, name: &&str| builder.event(name).expect("a name");
            let builder = names.iter().fold(Builder::new().require(grade), named);
            let mut group = builder.build_for_thread_on(&machine).expect("a group");
            assert_eq!(group.availability().grade(), grade);
            group.measure(|| ()).expect("a region whose answers are recorded");
            repeats.set(true);
            // The first call resolves functions of the C library.
            group.measure(|| ()).expect("a region");
            let counts = measured_region(black_box(&mut group));
            report(format_args!("{operation}|{}", names.len()));
            assert!(counts.quality.is_exact(), "{}", counts.quality);
            repeats.set(false);
        }
    }
}

#[inline(never)]
fn measured_region(group: &mut ThreadGroup) -> Counts {
    group.measure(|| ()).expect("a region")
}

/// Callgrind writes what it has counted whenever it comes here.
#[inline(never)]
fn report(operation: std::fmt::Arguments<'_>) {
    println!("Library|{operation}|0|0|0|0");
}
