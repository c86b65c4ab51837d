//! A machine of AMD processors whose registers are plain memory, and a client of its engine.

#[path = "../../benches/plain/grant.rs"]
mod grant;

use std::num::NonZeroU64;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{ClientId, Engine, Interrupted, Platform, Request, Sampler, Samples, Ticks};
use loom::sync::{Arc, Mutex};
use pmu::first_access::GeneralProtection;
use pmu::{Cpu, Cpuid, CurrentCpu, GuardedCpu, Msr, ProcessorIndex};
use protocol::{
    ALL_SOURCES, Code, CountRecord, Event, EventRequest, Hello, InfoReply, Mode, NtStatus, PROTOCOL_VERSION,
    ProcessorSet, RING, ReplyHeader, SampleRecord, SamplesRequest, StartHeader, StopRequest, modes,
};
use raw_cpuid::CpuIdResult;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use grant::grant_everything;

/// Events between two samples.
pub const INTERVAL: u32 = 5_000;

/// A source of every processor: TotalIssues.
pub const SOURCE: u64 = 2;

/// PerfEvtSel0 and PerfCtr0 (BKDG for family 10h, "MSRs - MSRC001_0xxx").
const SELECT: u32 = 0xC001_0000;
const COUNT: u32 = 0xC001_0004;

/// EN of PerfEvtSel.
const ENABLED: u64 = 1 << 22;

/// IA32_APIC_BASE, and its bit EN (APM Vol. 2, 16.3.1).
const APIC_BASE: u32 = 0x1B;
const APIC_ENABLED: u64 = 1 << 11;

/// CPUID as a function of leaf and subleaf.
type Leaves = Box<dyn Fn(u32, u32) -> [u32; 4] + Send + Sync>;

static LEAVES: LazyLock<Leaves> =
    LazyLock::new(|| Box::new(cpuid_dumps::find("amd-legacy").expect("an identity").cpuid_of_processor(0)));

/// A processor with four counters.
#[derive(Default)]
pub struct MemoryCpu {
    selects: [AtomicU64; 4],
    counters: [AtomicU64; 4],
}

impl MemoryCpu {
    /// Returns the register at an address.
    fn register(&self, msr: Msr) -> Option<&AtomicU64> {
        let of = |bank: &'_ [AtomicU64; 4], first: u32| -> Option<usize> {
            let index = msr.address().checked_sub(first)? as usize;
            (index < bank.len()).then_some(index)
        };
        match of(&self.selects, SELECT) {
            Some(index) => self.selects.get(index),
            None => self.counters.get(of(&self.counters, COUNT)?),
        }
    }

    /// Lets every counter that runs overflow: it has counted to zero. Returns whether one runs.
    fn overflow(&self) -> bool {
        let mut any = false;
        for (select, counter) in self.selects.iter().zip(&self.counters) {
            if select.load(Ordering::Relaxed) & ENABLED != 0 {
                counter.store(0, Ordering::Relaxed);
                any = true;
            }
        }
        any
    }
}

impl Cpuid for MemoryCpu {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = LEAVES(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

impl Cpu for MemoryCpu {
    fn rdmsr(&self, msr: Msr) -> u64 {
        if msr.address() == APIC_BASE {
            return APIC_ENABLED;
        }
        self.register(msr).map_or(0, |register| register.load(Ordering::Relaxed))
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        if let Some(register) = self.register(msr) {
            register.store(value & (u64::MAX >> 16), Ordering::Relaxed);
        }
    }

    fn rdpmc(&self, index: u32) -> u64 {
        self.counters.get(index as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    fn lvt_pmi(&self) -> u32 {
        0xFE
    }

    fn extended_lvt(&self, _index: u8) -> u32 {
        0
    }

    fn set_lvt_pmi(&self, _entry: u32) {}

    fn run_loop(&self, _iterations: u32) {}

    fn time_stamp(&self) -> u64 {
        0
    }

    fn user_rdpmc(&self) -> bool {
        false
    }

    fn save_area(&self, _word: u16) -> u64 {
        0
    }

    fn set_save_area(&self, _word: u16, _value: u64) {}
}

impl GuardedCpu for MemoryCpu {
    type Identity = Self;

    fn identity(&self) -> &Self {
        self
    }

    fn try_rdmsr(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        Ok(self.rdmsr(msr))
    }

    fn try_wrmsr(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        self.wrmsr(msr, value);
        Ok(())
    }

    fn try_rdpmc(&self, index: u32) -> Result<u64, GeneralProtection> {
        Ok(self.rdpmc(index))
    }

    fn run_loop(&self, _iterations: u32) {}
}

/// A processor, and its lock, which code at PROFILE_LEVEL holds.
struct Processor {
    registers: MemoryCpu,
    profile_level: Mutex<()>,
}

/// The machine.
pub struct Machine {
    processors: Vec<Processor>,
    /// Whether interrupts are directed to the sampler.
    has_handler: AtomicBool,
}

/// The machine as the platform of an engine.
#[derive(Clone)]
pub struct Shared(pub Arc<Machine>);

impl std::ops::Deref for Shared {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl Machine {
    pub fn new(processors: u32) -> Shared {
        let processor = |_| Processor { registers: MemoryCpu::default(), profile_level: Mutex::new(()) };
        let processors = (0..processors).map(processor).collect();
        Shared(Arc::new(Self { processors, has_handler: AtomicBool::new(false) }))
    }

    /// Runs `work` on a processor at PROFILE_LEVEL.
    fn on<T>(&self, processor: u32, work: impl FnOnce(CurrentCpu<'_, MemoryCpu>) -> T) -> T {
        let Processor { registers, profile_level } = &self.processors[processor as usize];
        let _masked = profile_level.lock().expect("no other thread panicked");
        work(CurrentCpu::new(registers, ProcessorIndex::new(processor)))
    }

    /// Lets the counters of a processor overflow, and delivers the interrupt. Nothing happens if none runs.
    pub fn interrupt(&self, processor: u32, sampler: &Sampler) {
        self.on(processor, |current| {
            if current.cpu().overflow() && self.has_handler.load(Ordering::Relaxed) {
                let code = Interrupted { ip: 0x1000, process: 4, thread: 8, mode: Mode::User };
                let _ = sampler.interrupt(current, || Ticks(0), &code);
            }
        });
    }
}

impl Platform for Shared {
    type Cpu = MemoryCpu;
    type PinnedCpu = MemoryCpu;

    grant_everything!();

    fn processors(&self) -> u32 {
        self.processors.len() as u32
    }

    fn maximum_processors(&self) -> u32 {
        self.processors.len() as u32
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&MemoryCpu) -> T) -> T {
        work(&self.processors[0].registers)
    }

    fn on_processor<T>(&self, processor: ProcessorIndex, work: impl FnOnce(&MemoryCpu) -> T) -> Result<T, NtStatus> {
        Ok(work(&self.processors[processor.as_usize()].registers))
    }

    fn on_processors(&self, processors: &ProcessorSet, work: &(impl Fn(CurrentCpu<'_, MemoryCpu>) + Sync)) {
        for processor in processors.iter() {
            self.on(processor, work);
        }
    }

    fn clock(&self) -> Ticks {
        Ticks(0)
    }

    fn shared_clock(&self) -> impl Fn() -> Ticks + Sync {
        || Ticks(0)
    }

    fn begin_sampling(&self) -> Result<NonZeroU64, NtStatus> {
        self.has_handler.store(true, Ordering::Relaxed);
        Ok(NonZeroU64::MIN)
    }

    fn end_sampling(&self) {
        self.has_handler.store(false, Ordering::Relaxed);
        // No processor is in the sampler.
        for processor in 0..self.processors() {
            self.on(processor, |_| ());
        }
    }
}

/// An open handle.
#[derive(Clone, Copy)]
pub struct Client(ClientId);

/// A reply: header, and the bytes behind it.
struct Reply(ReplyHeader, Vec<u8>);

impl Reply {
    fn of(mut bytes: Vec<u8>, length: usize) -> Self {
        bytes.truncate(length);
        let (header, _) = ReplyHeader::read_from_prefix(&bytes).expect("a reply has a header");
        Self(header, bytes)
    }

    fn records<T: FromBytes>(&self) -> Vec<T> {
        let bytes = &self.1[size_of::<ReplyHeader>()..];
        let records = bytes.chunks_exact(size_of::<T>()).filter_map(|bytes| T::read_from_bytes(bytes).ok());
        records.take(self.0.count as usize).collect()
    }
}

impl Client {
    pub fn open(engine: &mut Engine<Shared>, handle: usize) -> Self {
        let client = Self(ClientId(handle));
        engine.open(client.0, 1);
        let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
        client.ask(engine, Code::Hello, hello.as_bytes());
        client
    }

    fn ask(self, engine: &mut Engine<Shared>, code: Code, input: &[u8]) -> Reply {
        let mut buffer = input.to_vec();
        buffer.resize(input.len().max(4_096), 0);
        let request =
            Request { client: self.0, code: code as u32, buffer: &mut buffer, input: input.len(), output: 4_096 };
        let done = engine.serve(request);
        let reply = Reply::of(buffer, done.information);
        assert_eq!((reply.0.status, reply.0.cause), (0, 0), "{code:?}");
        reply
    }

    /// Starts a session that samples [`SOURCE`] with the smallest rings, and returns its number.
    pub fn start(self, engine: &mut Engine<Shared>) -> u64 {
        let ring = *RING.start();
        let header = StartHeader { ring, budget: 900, ..StartHeader::EMPTY };
        let event =
            EventRequest { event: Event::of(SOURCE), modes: modes::BOTH, interval: INTERVAL, ..EventRequest::EMPTY };
        self.ask(engine, Code::Start, &[header.as_bytes(), event.as_bytes()].concat()).0.detail[0]
    }

    /// Stops a session, and returns its final counts by processor.
    pub fn stop(self, engine: &mut Engine<Shared>, session: u64) -> Vec<CountRecord> {
        let request = StopRequest { session, source: ALL_SOURCES, core_type: 0, reserved: 0 };
        self.ask(engine, Code::Stop, request.as_bytes()).records()
    }

    /// Fetches what is there, and returns how many of it are samples, and whether nothing more will come.
    pub fn fetch(self, engine: &mut Engine<Shared>, session: u64) -> (u64, bool) {
        let request = SamplesRequest { session, wait: 0, reserved: 0 };
        let mut output = vec![0; 4_096];
        let samples = Samples { client: self.0, input: request.as_bytes(), output: &mut output, may_wait: false };
        let done = engine.samples(samples).expect("it does not wait");
        let reply = Reply::of(output, done.information);
        assert_eq!((reply.0.status, reply.0.cause), (0, 0));
        let is_sample = |record: &SampleRecord| record.kind().is_some_and(protocol::RecordKind::is_sample);
        (reply.records().iter().filter(|record| is_sample(record)).count() as u64, reply.0.detail[0] == 1)
    }

    /// Fetches everything of a session that is stopped.
    pub fn fetch_rest(self, engine: &mut Engine<Shared>, session: u64) -> u64 {
        let mut sum = 0;
        loop {
            let (count, is_last) = self.fetch(engine, session);
            sum += count;
            if is_last {
                return sum;
            }
        }
    }

    pub fn info(self, engine: &mut Engine<Shared>) -> InfoReply {
        let reply = self.ask(engine, Code::Info, &[]);
        InfoReply::read_from_prefix(&reply.1).map_or_else(|_| InfoReply::new_zeroed(), |(info, _)| info)
    }
}
