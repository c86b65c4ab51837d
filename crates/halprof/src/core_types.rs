//! Core types of a hybrid: names of events on one of them, and what each of them has.

use pmu::CoreType;
use protocol::{CoreTypeRecord, SourceRecord};
use serde::Serialize;

use crate::event::raw_event;
use crate::text::support;

/// A core type of this machine, as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
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
#[must_use]
pub fn numbers(mask: u32) -> Vec<u32> {
    (0..u32::BITS).filter(|counter| mask >> counter & 1 == 1).collect()
}

/// Returns the name of a core type, with which the notation of its events begins.
#[must_use]
pub fn name(number: u32) -> String {
    CoreType::from_number(number).map_or_else(|| format!("cpu_{number:#x}"), |core_type| core_type.to_string())
}

/// Returns the name of a source on a core type, as perf writes it: `cpu_core/TotalCycles/`, `cpu_core/event=0xd1/`.
/// With core type 0 it is the source itself.
#[must_use]
pub fn qualified(source: &str, core_type: u32) -> String {
    if core_type == 0 {
        return source.to_owned();
    }
    match source.strip_prefix(raw_event::PREFIX) {
        Some(terms) => format!("{}/{terms}", name(core_type)),
        None => format!("{}/{source}/", name(core_type)),
    }
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
}
