//! The tables of events of a processor, by its identity and core type.

use events::{CoreTable, Identity, Vendor, core_tables};
use pmu::CoreType;
use protocol::InfoReply;

use crate::text::format;

/// The generic name of the core type of low-power E cores, which CPUID does not tell from other E cores.
pub const LOW_POWER: &str = "cpu_lowpower";

/// Returns what the tables of events know the processor of the driver by; `None` for another maker.
#[must_use]
pub fn identity_of(info: &InfoReply) -> Option<Identity> {
    Some(Identity::of_signature(Vendor::from_name(&format::text(&info.vendor))?, info.signature))
}

/// Returns the tables of a processor, on a hybrid those of a core type or, without one, of all.
pub fn tables(identity: Option<Identity>, core_type: Option<CoreType>) -> Vec<CoreTable> {
    let all = identity.map(core_tables).unwrap_or_default();
    let is_meant = |one: &CoreTable| {
        core_type.is_none_or(|wanted| one.core_type.is_none_or(|core_type| core_type as u32 == wanted.number()))
    };
    all.into_iter().filter(is_meant).collect()
}

/// Returns the name of the cores of a table: that of their PMU in perf.
#[must_use]
pub fn cores(table: CoreTable) -> &'static str {
    match table.core_type {
        None => "cpu",
        Some(_) if table.native_model != 0 => LOW_POWER,
        Some(core_type) => core_type.name(),
    }
}
