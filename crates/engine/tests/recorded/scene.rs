//! Helpers for a machine with a Debug Store, its engine and a client.

use engine::{Engine, Interrupted};
use model::{Branch, CounterId, Mode, Processor, Stored};
use protocol::{
    BRANCHES, BranchRecord, CountRecord, Event, EventRequest, InfoReply, PreciseSample, Record, StartHeader, modes,
};
use simulation::{Client, SimMachine};
use zerocopy::FromBytes;

/// An identity for each PEBS format, 15 for architectural PEBS, and whether records hold the exact instruction. From
/// format 4 on fixed counter 0 records instructions.
pub const FORMATS: [(&str, u8, bool); 8] = [
    ("core2-e5200", 0, false),
    ("nehalem-920", 1, false),
    ("haswell-4710mq", 2, true),
    ("skylake-6600k", 3, true),
    ("alder-lake-12900k", 4, true),
    ("alder-lake-12900k", 5, true),
    ("arrow-lake-245k", 6, true),
    ("panther-lake-355", 15, true),
];

/// IA32_DEBUGCTL, IA32_PEBS_ENABLE, IA32_DS_AREA.
pub const REGISTERS: [u32; 3] = [0x1D9, 0x3F1, 0x600];

/// IA32_PEBS_BASE, IA32_PEBS_INDEX, and IA32_PMC_GP0_CFG_C and IA32_PMC_FX0_CFG_C of architectural PEBS.
pub const BASE: u32 = 0x3F4;
pub const INDEX: u32 = 0x3F5;
const CONFIGS: [u32; 11] = [0x1903, 0x1907, 0x190B, 0x190F, 0x1913, 0x1917, 0x191B, 0x191F, 0x1923, 0x1927, 0x1983];

/// InstructionRetired.
pub const INSTRUCTIONS: u64 = 0x1A;

/// Interval of precise events.
pub const INTERVAL: u32 = 4_096;

/// Events from the load of a precise counter to its record: the event after the overflow writes it.
pub const TO_RECORD: u64 = INTERVAL as u64 + 1;

/// Interval of branches.
pub const BUFFER: u32 = 64;

/// Returns `count` processors of an identity. Formats 5 and 7 override the PEBS format of the identity.
pub fn machine(name: &str, format: u8, processors: u32) -> SimMachine {
    machine_with(name, format, processors, [0; 4])
}

/// As [`machine`], with these registers of CPUID leaf 80000007H, which the dumps do not have.
pub fn machine_with(name: &str, format: u8, processors: u32, power: [u32; 4]) -> SimMachine {
    let identity = cpuid_dumps::find(name).unwrap();
    let own = identity.perf_capabilities();
    let capabilities = if matches!(format, 5 | 7) { own & !0xF00 | u64::from(format) << 8 } else { own };
    assert_eq!(capabilities >> 8 & 0xF, u64::from(format));
    SimMachine::of((0..processors).map(|_| {
        let dump = identity.cpuid();
        let processor = Processor::new(Box::new(
            move |leaf, subleaf| {
                if leaf == 0x8000_0007 { power } else { dump.cpuid(leaf, subleaf) }
            },
        ));
        let mut processor = processor.with_perf_capabilities(capabilities);
        processor.set_memory(Box::new(host_memory::ProcessMemory));
        processor
    }))
}

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

pub const fn precise(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: modes::USER | modes::PRECISE, interval, ..EventRequest::EMPTY }
}

pub const fn branches(modes: u32) -> EventRequest {
    EventRequest { event: Event::of(BRANCHES), modes, interval: BUFFER, ..EventRequest::EMPTY }
}

pub const fn header(batch: u32) -> StartHeader {
    StartHeader { ring: 1024, budget: 900, batch, ..StartHeader::EMPTY }
}

pub fn started(client: Client, engine: &mut Engine<&SimMachine>, header: &StartHeader, events: &[EventRequest]) -> u64 {
    let answer = client.start_with(engine, *header, events).header();
    assert_eq!((answer.status, answer.cause, answer.detail[1]), (0, 0, 10_000_000));
    answer.detail[0]
}

pub const fn interrupted(processor: u32) -> Interrupted {
    Interrupted { ip: 0xBAD, process: 100 + processor, thread: 200, mode: protocol::Mode::User }
}

/// Makes events occur at an address on the processor and delivers the interrupts.
pub fn run(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, ip: u64, count: u64) {
    machine.processor(processor).model().set_place(ip, 77);
    machine.run(processor, Mode::User, &|_| count);
    machine.deliver(engine, processor, &interrupted(processor));
}

/// Takes a branch on the processor and delivers the interrupts.
pub fn branch(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, mode: Mode, from: u64) {
    let branch = Branch { from, to: from + 0x100, predicted: from & 0x10 != 0 };
    machine.processor(processor).model().branch(mode, branch);
    machine.deliver(engine, processor, &interrupted(processor));
}

/// Fetches all records.
pub fn fetched(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> Vec<Record> {
    let answer = client.samples(engine, session, None, 100_000).unwrap();
    assert_eq!((answer.header().status, answer.header().cause), (0, 0));
    answer.try_samples().unwrap()
}

/// Returns the precise sample that the record is.
pub fn precise_sample(record: &Record) -> PreciseSample {
    let Record::Precise(sample) = record else { unreachable!("{record:?}") };
    *sample
}

/// Returns the branch that the record is.
pub fn branch_record(record: &Record) -> BranchRecord {
    let Record::Branch(branch) = record else { unreachable!("{record:?}") };
    *branch
}

pub fn stopped(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    session: u64,
    source: Option<u64>,
) -> Vec<CountRecord> {
    let answer = client.stop(engine, session, source);
    assert_eq!(answer.header().status, 0);
    answer.records()
}

pub fn stored(machine: &SimMachine, processor: u32) -> Stored {
    machine.processor(processor).model().stored().clone()
}

/// Returns the number of PEBS records of all counters of a processor.
pub fn records(machine: &SimMachine, processor: u32) -> u64 {
    stored(machine, processor).records.values().sum()
}

/// Returns the number of overflows of all counters of a processor.
pub fn overflows(machine: &SimMachine, processor: u32) -> u64 {
    machine.processor(processor).model().ledger().entries().map(|entry| entry.overflows).sum()
}

/// Returns the total of a counter in the model's ledger.
pub fn counted(machine: &SimMachine, processor: u32, counter: u32) -> u64 {
    machine.counted(processor, counter)
}

/// Returns a register, if the processor has it.
pub fn register(machine: &SimMachine, processor: u32, register: u32) -> Option<u64> {
    machine.processor(processor).model().uncounted(|model| model.rdmsr(register).ok())
}

/// Returns the three registers, as far as the processor has them. With architectural PEBS, the second is what the bits
/// of its registers are together.
pub fn registers(machine: &SimMachine, processor: u32) -> [Option<u64>; 3] {
    let [control, pebs, area] = REGISTERS.map(|number| register(machine, processor, number));
    let of_architectural = [BASE, INDEX].into_iter().chain(CONFIGS);
    let together =
        of_architectural.filter_map(|number| register(machine, processor, number)).reduce(|all, one| all | one);
    [control, pebs.or(together), area]
}

pub fn set_register(machine: &SimMachine, processor: u32, register: u32, value: u64) {
    machine.processor(processor).model().uncounted(|model| model.wrmsr(register, value)).unwrap();
}

pub fn info(client: Client, engine: &mut Engine<&SimMachine>) -> InfoReply {
    let answer = client.ask(engine, protocol::Code::Info, &[], size_of::<InfoReply>());
    InfoReply::read_from_bytes(&answer.bytes).unwrap()
}

/// Checks that nothing counts or records, no control area is left, and the HAL handles the interrupt.
pub fn is_left_clean(machine: &SimMachine) -> bool {
    let idle = |cpu: &simulation::ModelCpu| cpu.model().enabled_counters() == Vec::<(CounterId, _)>::new();
    !machine.is_in_use() && machine.all().all(idle)
}
