//! Core types of a hybrid: names of events on one of them, and what each of them has.

use pmu::CoreType;
use protocol::{CoreTypeRecord, SourceRecord};
use serde::Serialize;

use crate::format::table;
use crate::processors::{named, ranges};
use crate::support;

/// A core type of this machine, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreTypeInfo {
    /// The name in the notation of events.
    #[serde(rename = "core_type")]
    pub name: String,
    /// The active processors of the type.
    pub processors: Vec<u32>,
    /// Number of counters, including fixed ones.
    pub counters: u32,
    /// Number of fixed counters.
    pub fixed_counters: u32,
    /// Width of a general counter, in bits.
    pub counter_width: u32,
    /// Width of a fixed counter, in bits.
    pub fixed_counter_width: u32,
    /// Version of architectural performance monitoring.
    pub pmu_version: u32,
    /// Number in CPUID leaf 0x1A.
    #[serde(skip)]
    pub number: u32,
}

impl From<&CoreTypeRecord> for CoreTypeInfo {
    fn from(record: &CoreTypeRecord) -> Self {
        Self {
            name: name(record.core_type),
            processors: record.processors.iter().collect(),
            counters: record.counters,
            fixed_counters: record.fixed_counters,
            counter_width: record.width,
            fixed_counter_width: record.fixed_width,
            pmu_version: record.pmu_version,
            number: record.core_type,
        }
    }
}

/// What a source is on a core type, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceOnType {
    /// The name in the notation of events.
    #[serde(rename = "core_type")]
    pub name: String,
    /// Whether processors of the type have it.
    pub supported: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The counters that can count it.
    pub counters: Vec<u32>,
    /// Whether no table of the driver lists the event.
    pub unlisted: bool,
    /// The counters that record it precisely, if the processor has PEBS.
    pub precise_counters: Vec<u32>,
    /// Number of processors of the type on which it currently runs.
    pub running: u32,
    /// A [`pmu::Support`].
    #[serde(skip)]
    pub support: u32,
}

impl From<&SourceRecord> for SourceOnType {
    fn from(record: &SourceRecord) -> Self {
        let supported = support::is_supported(record.support);
        Self {
            name: name(record.core_type),
            supported,
            reason: (!supported).then(|| support::sentence(record.support)),
            counters: numbers(record.counters),
            unlisted: record.unlisted != 0,
            precise_counters: numbers(record.precise),
            running: record.running,
            support: record.support,
        }
    }
}

/// Returns the numbers of the counters in a mask.
pub fn numbers(mask: u32) -> Vec<u32> {
    (0..u32::BITS).filter(|counter| mask >> counter & 1 == 1).collect()
}

/// Returns the name of a core type, with which the notation of its events begins.
pub fn name(number: u32) -> String {
    CoreType::from_number(number).map_or_else(|| format!("cpu_{number:#x}"), |core_type| core_type.to_string())
}

/// Returns the name of a source on a core type, as perf writes it: `cpu_core/TotalCycles/`, `cpu_core/event=0xd1/`.
/// With core type 0 it is the source itself.
pub fn qualified(source: &str, core_type: u32) -> String {
    if core_type == 0 { source.to_owned() } else { report::qualified(source, &name(core_type)) }
}

/// Formats the counters of each core type. The texts are the columns of `info`.
pub fn core_types_table(core_types: &[CoreTypeInfo]) -> String {
    let row = |one: &CoreTypeInfo| {
        let general = one.counters.saturating_sub(one.fixed_counters);
        vec![
            one.name.clone(),
            ranges(one.processors.iter().copied()),
            general.to_string(),
            one.counter_width.to_string(),
            one.fixed_counters.to_string(),
            one.fixed_counter_width.to_string(),
            one.pmu_version.to_string(),
        ]
    };
    let headings = ["Core type", "CPU", "General", "Bits", "Fixed", "Bits", "PMU version"];
    table(&headings, &headings[2..], &core_types.iter().map(row).collect::<Vec<_>>())
}

/// Formats the core types with their processors: `cpu_core is CPUs 0-3, cpu_atom CPUs 4-7`.
pub fn with_processors<'a>(core_types: impl IntoIterator<Item = (&'a str, Vec<u32>)>) -> String {
    let mut text = String::new();
    for (name, processors) in core_types {
        let lead = if text.is_empty() { format!("{name} is ") } else { format!(", {name} ") };
        text.push_str(&lead);
        text.push_str(&named(processors));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_name_has_the_core_type_of_perf_in_front() {
        for (source, core_type, text) in [
            ("TotalCycles", 0, "TotalCycles"),
            ("TotalCycles", 0x40, "cpu_core/TotalCycles/"),
            ("cpu/event=0xd1,umask=0x20/", 0, "cpu/event=0xd1,umask=0x20/"),
            ("cpu/event=0xd1,umask=0x20/", 0x20, "cpu_atom/event=0xd1,umask=0x20/"),
            ("0x99", 0x30, "cpu_0x30/0x99/"),
        ] {
            assert_eq!(qualified(source, core_type), text);
        }
    }

    #[test]
    fn the_processors_of_each_core_type_are_named() {
        assert_eq!(
            with_processors([("cpu_core", vec![0, 2]), ("cpu_atom", vec![1])]),
            "cpu_core is CPUs 0,2, cpu_atom CPU 1"
        );
    }
}
