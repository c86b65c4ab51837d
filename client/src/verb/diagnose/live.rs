//! `diagnose --live`: the state of this machine, with every register that a session can touch. Nothing is written.

use std::collections::BTreeMap;

use halprof::OpenError;
use halprof::source::{SourceInfo, Sources};
use halprof::text::processors::ranges;
use halprof::text::register;
use pmu::Cpuid;
use protocol::{Event, HalSourceRecord, NtStatus, ReadBy, RegisterRecord};
use raw_cpuid::CpuIdResult;
use serde::Serialize;
use x86_defs::cpuid::leaf;

use super::Diagnosis;
use crate::cli::Json;
use crate::verb::info::Info;
use crate::verb::list::own_hal::Differences;
use counts::cpuid;
use system::connection::{self, BackendChoice};
use system::hal::counter_owners::{self, HeldCounter};
use system::{System, WindowsVersion};
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{self, counted, properties, table};
use user_error::Error;

/// First leaves of the ranges that hypervisors use: KVM has its own in the second one if it offers those of Hyper-V.
const HYPERVISOR_RANGES: [u32; 2] = [leaf::HYPERVISOR_VENDOR, leaf::HYPERVISOR_VENDOR + 0x100];

/// Maximum number of leaves of a range; Hyper-V has 13.
const MOST_LEAVES: u32 = 32;

/// The state of the machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Live {
    windows: WindowsVersion,
    /// Whether Windows refuses drivers without a valid signature, if that is known.
    enforces_signatures: Option<bool>,
    /// Whether it accepts signatures for tests, if that is known.
    accepts_test_signatures: Option<bool>,
    /// `null` if it is not installed.
    driver: Option<Info>,
    own_hal: Option<OwnHal>,
    /// What the HAL of Windows says about the sources of the driver.
    hal_sources: Vec<HalSource>,
    /// What CPUID says on the processor on which the client runs.
    cpuid: Diagnosis,
    hypervisor_leaves: Vec<HypervisorLeaf>,
    processors: Vec<ProcessorRegisters>,
}

impl Document for Live {
    const SCHEMA: &'static str = "halprof.live/1";
}

/// What Windows' own HAL offers without the driver.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OwnHal {
    sources: Vec<SourceInfo>,
    differences: Differences,
    /// The counters that someone holds; `null` if Windows does not tell them, as before Windows 11.
    held_counters: Option<Vec<HeldCounter>>,
}

impl OwnHal {
    /// Asks Windows. Nothing if it refuses to list its sources, or if this is not Windows.
    fn of(system: &dyn System) -> Result<Option<Self>, Error> {
        let listed =
            connection::choose(system, BackendChoice::Hal).and_then(|hal| Ok(hal.sources()?.iter().cloned().collect()));
        let (Some(calls), Ok::<Vec<_>, _>(sources)) = (system.hal(), listed) else { return Ok(None) };
        let differences = Differences::on_this_processor(&sources)?;
        Ok(Some(Self { sources, differences, held_counters: counter_owners::held(&*calls).ok() }))
    }

    fn rows(&self) -> [(&'static str, String); 2] {
        let held = match self.held_counters.as_deref() {
            None => "Windows does not tell who holds them".to_owned(),
            Some([]) => "none, as far as Windows knows".to_owned(),
            Some(held) => counter_owners::sentence(held),
        };
        [("HAL's own list", counted(self.sources.len() as u64, "source")), ("Counters held", held)]
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HalSource {
    id: u32,
    name: String,
    /// `null` if the HAL refused to answer.
    supported: Option<bool>,
    interval: Option<u32>,
    /// The NTSTATUS of the refusal.
    error: Option<String>,
}

impl HalSource {
    fn new(record: &HalSourceRecord, sources: &Sources) -> Self {
        let HalSourceRecord { source, status, supported, interval } = *record;
        // An NTSTATUS with the highest bit is an error.
        let error = (status.cast_signed() < 0).then(|| NtStatus::new(status).to_string());
        let answer = error.is_none();
        Self {
            id: source,
            name: sources.name_of(&Event::of(source.into())),
            supported: answer.then_some(supported != 0),
            interval: answer.then_some(interval),
            error,
        }
    }
}

/// A CPUID leaf in hexadecimal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HypervisorLeaf {
    number: String,
    eax: String,
    ebx: String,
    ecx: String,
    edx: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ProcessorRegisters {
    processor: u32,
    registers: Vec<Register>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Register {
    name: String,
    /// `rdmsr`, `rdpmc`, or `local_apic`: a load from its page.
    read_by: &'static str,
    /// Address, index or offset, in hexadecimal.
    number: String,
    /// In hexadecimal; `null` if it cannot be read.
    value: Option<String>,
    /// Why it cannot be read.
    error: Option<String>,
}

impl Register {
    fn new(record: &RegisterRecord, interface: u32) -> Self {
        let RegisterRecord { number, read_by, failed, value } = *record;
        let (name, read_by) = match ReadBy::from_number(read_by) {
            Some(ReadBy::Rdmsr) => (register::named(interface, number), "rdmsr"),
            Some(ReadBy::Rdpmc) => (format!("RDPMC {number:#x}"), "rdpmc"),
            Some(ReadBy::LocalApic) => (format!("LVT entry (local APIC {number:#x})"), "local_apic"),
            None => (format!("unknown register {number:#x}"), "unknown"),
        };
        let why = || match value {
            0 => "#GP".to_owned(),
            status => format!("NTSTATUS {}", NtStatus::new((status & 0xFFFF_FFFF) as u32)),
        };
        let error = (failed != 0).then(why);
        let value = error.is_none().then(|| format::address(value));
        Self { name, read_by, number: format!("{number:#x}"), value, error }
    }

    /// Returns the value, or why there is none.
    fn text(&self) -> &str {
        self.value.as_deref().or(self.error.as_deref()).unwrap_or_default()
    }
}

pub fn run(args: &Json, context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    let own_hal = OwnHal::of(system)?;
    let connection = match connection::open(system) {
        Err(halprof::Error::Open(OpenError::NotInstalled)) if own_hal.is_some() => None,
        opened => Some(opened?),
    };
    let cpu = cpuid::this_processor();
    let (mut driver, mut hal_sources, mut processors, mut sessions) = (None, Vec::new(), Vec::new(), 0);
    if let Some(connection) = connection {
        let (info, sources) = (connection.info()?, connection.sources()?);
        for processor in 0..info.processors {
            let records = connection.registers(processor)?;
            let registers = records.iter().map(|record| Register::new(record, info.interface)).collect();
            processors.push(ProcessorRegisters { processor, registers });
        }
        driver = Some(Info::new(&info, connection.core_types()?));
        hal_sources = connection.hal_sources()?.iter().map(|record| HalSource::new(record, sources)).collect();
        sessions = info.sessions;
    }
    let integrity = system.code_integrity().ok();
    let live = Live {
        windows: system.windows_version(),
        enforces_signatures: integrity.map(|found| found.is_enforced),
        accepts_test_signatures: integrity.map(|found| found.accepts_test_signatures),
        driver,
        own_hal,
        hal_sources,
        cpuid: Diagnosis::new("this processor".to_owned(), &cpu)?,
        hypervisor_leaves: hypervisor_leaves(&cpu),
        processors,
    };
    if args.json {
        return context.json(&live);
    }
    context.say(&rows(&live))?;
    for sentence in live.own_hal.iter().flat_map(|hal| hal.differences.sentences()) {
        context.say(&format!("\n{sentence}"))?;
    }
    if live.driver.is_none() {
        return context.say("\nThe driver is not installed, so no register was read.");
    }
    context.say(&format!("\n{}\n", registers(&live.processors)))?;
    context.say(&summary(&live.processors, sessions))
}

/// Returns the leaves of the hypervisor, if CPUID reports one.
fn hypervisor_leaves(cpu: &impl Cpuid) -> Vec<HypervisorLeaf> {
    if cpuid::hypervisor(cpu).is_none() {
        return Vec::new();
    }
    let of_range = |first: u32| {
        let last = cpu.cpuid(first, 0).eax;
        // Where there is no such range, CPUID returns something else.
        let count = last.checked_sub(first).filter(|more| *more < MOST_LEAVES).map_or(0, |more| more + 1);
        first..first + count
    };
    let read = |leaf: u32| {
        let CpuIdResult { eax, ebx, ecx, edx } = cpu.cpuid(leaf, 0);
        let [number, eax, ebx, ecx, edx] = [leaf, eax, ebx, ecx, edx].map(|bits| format!("{bits:#010x}"));
        HypervisorLeaf { number, eax, ebx, ecx, edx }
    };
    HYPERVISOR_RANGES.into_iter().flat_map(of_range).map(read).collect()
}

fn rows(live: &Live) -> String {
    let signatures = match (live.enforces_signatures, live.accepts_test_signatures) {
        (Some(false), _) => "not required of drivers",
        (Some(true), Some(true)) => "required of drivers; those for tests are accepted",
        (Some(true), _) => "required of drivers",
        (None, _) => "unknown",
    };
    let mut rows = vec![("Windows", windows(&live.windows)), ("Signatures", signatures.to_owned())];
    rows.extend(live.driver.as_ref().map(|_| ("Windows' HAL", hal(&live.hal_sources))));
    rows.extend(live.own_hal.iter().flat_map(OwnHal::rows));
    rows.extend(live.driver.iter().flat_map(Info::rows));
    properties(&rows)
}

/// Formats what the HAL of Windows says: the sources that it supports, or why it does not answer.
fn hal(sources: &[HalSource]) -> String {
    let refused = sources.iter().find_map(|source| source.error.as_deref());
    if let Some(status) = refused.filter(|_| sources.iter().all(|source| source.error.is_some())) {
        return format!("refuses to tell its sources: {status}");
    }
    let supported = sources.iter().filter(|source| source.supported == Some(true)).count();
    format!("supports {supported} of the driver's {}", counted(sources.len() as u64, "source"))
}

fn windows(version: &WindowsVersion) -> String {
    let more: Vec<&str> = [&version.release, &version.edition].into_iter().flatten().map(String::as_str).collect();
    match (&version.build, more.as_slice()) {
        (None, _) => "unknown".to_owned(),
        (Some(build), []) => format!("build {build}"),
        (Some(build), more) => format!("build {build} ({})", more.join(", ")),
    }
}

/// Formats the registers, with one row for all processors on which one has the same value.
fn registers(processors: &[ProcessorRegisters]) -> String {
    // By the place of the register in the order of the driver, and by the first processor.
    let mut names: Vec<&str> = Vec::new();
    let mut values: BTreeMap<(usize, &str), Vec<u32>> = BTreeMap::new();
    for ProcessorRegisters { processor, registers } in processors {
        for register in registers {
            let place = names.iter().position(|name| *name == register.name).unwrap_or(names.len());
            if place == names.len() {
                names.push(&register.name);
            }
            values.entry((place, register.text())).or_default().push(*processor);
        }
    }
    let mut found: Vec<_> = values.iter().map(|((place, value), on)| (*place, on, *value)).collect();
    found.sort_unstable();
    let row = |(place, on, value): (usize, &Vec<u32>, &str)| {
        let name = names.get(place).copied().unwrap_or_default();
        vec![name.to_owned(), ranges(on.iter().copied()), value.to_owned()]
    };
    table(&["Register", "CPU", "Value"], &[], &found.into_iter().map(row).collect::<Vec<_>>())
}

fn summary(processors: &[ProcessorRegisters], sessions: u32) -> String {
    let all = || processors.iter().flat_map(|one| &one.registers);
    let of = counted(processors.len() as u64, "processor");
    let mut text = format!("{} of {of} were read; none was written.", counted(all().count() as u64, "register"));
    if all().any(|register| register.error.as_deref() == Some("#GP")) {
        text.push_str("\n#GP: the processor, or its hypervisor, does not have the register.");
    }
    if sessions > 0 {
        text.push_str("\nSessions run: some of these values are theirs.");
    }
    text
}
