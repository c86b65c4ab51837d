//! What holds for any bytes that the product's readers get, and its engine: the bodies of the fuzz targets.
//!
//! Each function of [`LAWS`] feeds bytes to a reader and panics if its law does not hold. Two programs call them:
//! cargo-fuzz with bytes that it makes (`cargo xtask fuzz files`), and a test of this crate with the corpora in
//! `fuzz/corpus`, natively and on the stable toolchain.
//!
//! | module | reader |
//! |---|---|
//! | `recordings` | recording files |
//! | `data_types` | PDBs, and the names of data by their types |
//! | `dumps` | CPUID dumps, and the interface and events of a processor that is known only by its CPUID |
//! | `names` | events as users type them, with modes, intervals and counters |
//! | `tables` | rows of events, and the makers' files and map |
//! | `metrics` | expressions, and metrics of the makers' files |
//! | `replies` | replies of a driver that another program may have replaced |
//! | `records` | records of samples, PEBS records and the bounds of their buffer |
//! | `requests` | the engine, to which bytes are requests, what happens between them, and lies of the processors |

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a law that does not hold panics, and nothing but tests and fuzz targets calls this crate"
)]

mod data_types;
mod dumps;
mod metrics;
mod names;
mod recordings;
mod records;
mod replies;
mod requests;
mod tables;

pub use data_types::data_types;
pub use dumps::cpuid_dump;
pub use metrics::{expression, metrics};
pub use names::event_name;
pub use recordings::recording;
pub use records::{debug_store, sample_records};
pub use replies::replies;
pub use requests::{engine, lying_processor};
pub use tables::{event_row, vendor_events, vendor_map};

/// A law: panics if it does not hold for these bytes.
pub type Law = fn(&[u8]);

/// Every law, by the name of its fuzz target and corpus.
pub const LAWS: [(&str, Law); 14] = [
    ("cpuid_dump", cpuid_dump),
    ("data_types", data_types),
    ("debug_store", debug_store),
    ("engine", engine),
    ("event_name", event_name),
    ("event_row", event_row),
    ("expression", expression),
    ("lying_processor", lying_processor),
    ("metrics", metrics),
    ("recording", recording),
    ("replies", replies),
    ("sample_records", sample_records),
    ("vendor_events", vendor_events),
    ("vendor_map", vendor_map),
];

/// Returns the text of these bytes, or an empty one if they are not UTF-8.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
