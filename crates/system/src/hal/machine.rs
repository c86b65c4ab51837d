//! What the HAL and CPUID tell of the machine.

use halprof::HalError;
use halprof::pmu::{Cpuid, Hypervisor, Kind, Selection, cpu};
use protocol::{InfoReply, SourceRecord};
use raw_cpuid::CpuIdResult;
use x86_defs::cpuid::{VENDOR_AMD, leaf, vendor_text};
use zerocopy::FromZeros;

use super::HalCalls;
use super::source_list::{self, HalSource};
use crate::trace::switches::MAX_COUNTERS;

/// Number of counters of a session where Windows does not tell it: those before Windows 10 version 1703 had.
const LEAST_MAXIMUM: u32 = 4;

/// The number of the timer, which is no source of a counter.
pub const TIMER: u32 = 0;

impl Cpuid for &dyn HalCalls {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        (**self).cpuid(leaf, subleaf)
    }
}

/// Returns the sources of the HAL.
pub fn sources(calls: &dyn HalCalls) -> Result<Vec<HalSource>, HalError> {
    let list = calls.source_list();
    let failed = |cause| HalError::Call { function: "TraceQueryInformation for the profile sources", cause };
    list.map(|list| source_list::parse(&list)).map_err(failed)
}

/// Returns how many sources a session can count.
pub fn maximum(calls: &dyn HalCalls) -> u32 {
    let told = calls.maximum_counters().unwrap_or(LEAST_MAXIMUM);
    told.min(u32::try_from(MAX_COUNTERS).unwrap_or(u32::MAX))
}

/// Returns the profile interface whose sources the HAL has. The list decides: a hypervisor that masks the counters
/// leaves the timer alone.
pub fn kind(calls: &dyn HalCalls, sources: &[HalSource]) -> Kind {
    match cpu::vendor(&calls) {
        _ if sources.iter().all(|source| source.number == TIMER) => Kind::Default,
        VENDOR_AMD => Kind::Amd64,
        _ => Kind::Emon,
    }
}

/// Returns the properties of the machine that do not need the driver.
pub fn info(calls: &dyn HalCalls, sources: &[HalSource]) -> InfoReply {
    let cpu = calls;
    let selection = Selection::of_boot_processor(&cpu);
    let hypervisor = cpu.cpuid(leaf::HYPERVISOR_VENDOR, 0);
    let is_guest = Hypervisor::of(&cpu) != Hypervisor::None;
    let mut vendor = [0; 16];
    vendor.iter_mut().zip(cpu::vendor(&cpu)).for_each(|(to, from)| *to = from);
    let counters = maximum(calls);
    InfoReply {
        interface: kind(calls, sources) as u32,
        windows10: selection.windows10 as u32,
        reason: selection.reason as u32,
        counters,
        least_counters: counters,
        processors: calls.processors(),
        maximum_processors: calls.processors(),
        signature: cpu.cpuid(leaf::FEATURES, 0).eax,
        vendor,
        hypervisor: Hypervisor::of(&cpu) as u32,
        hypervisor_vendor: if is_guest {
            vendor_text([hypervisor.ebx, hypervisor.ecx, hypervisor.edx])
        } else {
            [0; 12]
        },
        ..InfoReply::new_zeroed()
    }
}

/// Returns a source as the driver would list it. `kind` is the interface of the HAL, whose tables have its encoding.
pub fn record(source: &HalSource, kind: Kind, calls: &dyn HalCalls) -> SourceRecord {
    let mut record = SourceRecord::new_zeroed();
    let HalSource { number, name, minimum, maximum: longest } = source;
    let name: String = name.chars().filter(char::is_ascii).collect();
    for (to, from) in record.name.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let known = kind.sources().iter().find(|known| known.source.0 == u64::from(*number) && known.name == name);
    SourceRecord {
        source: u64::from(*number),
        select: known.map_or(0, |known| known.select),
        interval: calls.interval(*number).unwrap_or_default(),
        minimum: *minimum,
        maximum: *longest,
        name_length: u32::try_from(name.len().min(record.name.len())).unwrap_or_default(),
        counters: if *number == TIMER { 0 } else { (1 << maximum(calls)) - 1 },
        ..record
    }
}
