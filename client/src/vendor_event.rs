//! Events by the names that the makers of processors give them, and what a request can carry of them.

use events::{CoreTable, Event, Identity, Table, Vendor, core_tables};
use pmu::source::RawEvent;
use pmu::{CoreType, Cpuid, Source};
use protocol::InfoReply;
use thiserror::Error;

use crate::cpuid;
use crate::error::UserError;
use crate::exit::Exit;
use crate::format;

/// Fixed counters that the driver uses, and the profile sources that it counts with them (KPROFILE_SOURCE):
/// instructions, cycles, and cycles at a constant rate.
const FIXED: [(u16, Source); 3] = [(1, Source(0x02)), (2, Source(0x13)), (3, Source(0x1B))];

/// The event of off-core responses without the value of its register, with which it counts nothing, and the register.
const OFFCORE: &str = "OFFCORE_RESPONSE";
const OFFCORE_REGISTER: u16 = 0x1A6;

/// The generic name of the core type of low-power E cores, which CPUID does not tell from other E cores.
pub const LOW_POWER: &str = "cpu_lowpower";

/// Why the driver cannot count an event of a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannotCount {
    /// It needs a second register.
    #[error("it also needs register {0:#x}, which an event by name cannot set yet")]
    ExtraRegister(u16),
    /// It has AnyThread.
    #[error("it counts both threads of a core (AnyThread), which the driver refuses")]
    AnyThread,
    /// Only an unused fixed counter counts it.
    #[error("only fixed counter {0} counts it, which the driver does not use yet")]
    FixedCounter(u8),
    /// The driver knows event number and unit mask by other counters.
    #[error("the driver counts its event number and unit mask on other counters")]
    OtherCounters,
    /// No number of a source has all its fields.
    #[error("no request can carry all fields of its encoding")]
    NotEncodable,
    /// E cores of two kinds count two events by its encoding.
    #[error("E cores and low-power E cores have different events of this encoding, and the driver counts on both")]
    LowPowerCores,
}

/// An event that the driver cannot count, as an error of a verb.
#[derive(Debug, Error)]
#[error("{name} cannot be counted")]
pub struct CannotCountEvent {
    /// Name of the event.
    pub name: String,
    /// Why.
    #[source]
    pub cause: CannotCount,
}

impl UserError for CannotCountEvent {
    fn exit(&self) -> Exit {
        Exit::UnsupportedSource
    }

    fn remedy(&self) -> Option<String> {
        Some(format!("client encode {}   (shows what it needs)", self.name))
    }
}

/// Returns the source that a request names for an event, and the mask of its counters if the driver does not know them.
///
/// # Errors
/// If no request can carry the event.
pub fn source(event: &Event, table: Option<Table>) -> Result<(Source, u32), CannotCount> {
    let encoding = event.encoding;
    if let Some(register) = event.extra.as_ref().and_then(|extra| extra.registers.first()) {
        return Err(CannotCount::ExtraRegister(register.msr));
    }
    if event.name == OFFCORE {
        return Err(CannotCount::ExtraRegister(OFFCORE_REGISTER));
    }
    if encoding.any {
        return Err(CannotCount::AnyThread);
    }
    if event.is_fixed() {
        let number = event.counters.fixed().next().unwrap_or_default();
        let known = FIXED.into_iter().find(|(umask, _)| (encoding.event, encoding.umask) == (0, *umask));
        return known.map(|(_, source)| (source, 0)).ok_or(CannotCount::FixedCounter(number));
    }
    let raw = RawEvent::NONE
        .with_event(encoding.event)
        .with_umask(encoding.umask)
        .with_cmask(encoding.cmask)
        .with_inv(encoding.inv)
        .with_edge(encoding.edge)
        .with_equality(encoding.eq);
    // The driver's constraints are about event number and unit mask, the latter of 8 bits.
    let is_wide = encoding.umask > u16::from(u8::MAX);
    let is_special = || table.is_some_and(|table| has_own_counters(event, table));
    let counters = if is_wide || is_special() { event.counters.general_mask.into() } else { 0 };
    if raw.is_encodable() { Ok((raw.source(), counters)) } else { Err(CannotCount::NotEncodable) }
}

/// Returns whether another event of the same number and unit mask counts on other counters.
fn has_own_counters(event: &Event, table: Table) -> bool {
    let number = |event: &Event| (event.encoding.event, event.encoding.umask);
    let is_plain = event.encoding.cmask == 0 && !event.encoding.inv && !event.encoding.edge;
    !is_plain
        && table
            .events()
            .any(|other| number(&other) == number(event) && other.extra.is_none() && other.counters != event.counters)
}

/// Returns what the tables of events know a processor by.
pub fn identity(cpu: &impl Cpuid) -> Option<Identity> {
    let identity = cpuid::identity(cpu);
    Some(Identity::of_signature(Vendor::from_name(&identity.vendor)?, identity.signature))
}

/// Returns the same for the processor of the driver.
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
pub fn cores(table: CoreTable) -> &'static str {
    match table.core_type {
        None => "cpu",
        Some(_) if table.native_model != 0 => LOW_POWER,
        Some(core_type) => core_type.name(),
    }
}
