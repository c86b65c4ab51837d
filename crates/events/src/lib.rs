//! Events of processors by the names that their makers give them: what to write into the registers, and which counters
//! count them.
//!
//! The tables are made from the facts in `crates/events/facts` by `cargo xtask events`; the README there names the
//! sources. A lookup reads no file and needs no driver:
//!
//! ```
//! use events::{CoreType, Identity, Vendor};
//!
//! let alder_lake = Identity { vendor: Vendor::Intel, family: 6, model: 0x97, stepping: 2 };
//! let table = events::table(alder_lake, Some(CoreType::Core))?;
//! let event = table.event("mem_load_retired.l3_miss")?;
//! assert_eq!(event.encoding.select(), 0x20D1);
//! assert_eq!(event.counters.general().collect::<Vec<_>>(), [0, 1, 2, 3]);
//! # Ok::<(), events::LookupError>(())
//! ```
//!
//! [`metric`] has metrics, and the values of their expressions for the counts of events.
//!
//! [`condition`] has comparisons of the ratio of two events with a number.
//!
//! [`Generic`] has the names that are alike on all processors, such as `cycles`.

#![forbid(unsafe_code)]

pub mod condition;
mod database;
mod errata;
mod event;
pub mod expression;
mod generic;
mod identity;
pub mod import;
mod lookup;
pub mod metric;
pub mod pack;
mod perf;
pub mod row;
mod similar;

pub use database::Table;
pub use errata::errata;
pub use event::{Counters, Encoding, Event, EventExtra, Precision, Register};
pub use generic::{Generic, GenericError, Target};
pub use identity::{CoreType, Identity, Vendor};
pub use lookup::{CoreTable, LookupError, core_tables, maker, table, tables};
pub use perf::other_of_perf;
pub use similar::nearest;

/// Returns the size of the tables in the program, in bytes.
#[must_use]
pub const fn size() -> usize {
    database::BYTES.len()
}
