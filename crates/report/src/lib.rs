//! Analyzes recordings: samples by process, module and symbol.
//!
//! A recording is read once, block by block. [`Tally`] counts samples by location, so memory grows with the number of
//! distinct addresses, not with the number of samples. [`Processes`] keeps the modules of each process. Then [`Atlas`]
//! resolves every address to its module and, through [`SymbolFinder`], to its symbol. Tables ([`Table`]), folded
//! stacks, flame graphs, profiles for the Firefox Profiler and CSV are made from these.
//!
//! There are no call stacks: a sample is one address.
//!
//! inferno, the library that draws the flame graphs, is under the CDDL 1.0.
//!
//! | module | contents |
//! |---|---|
//! | `read` | the passes over a recording |
//! | `tally` | samples by location; losses, throttling and sleep |
//! | `processes`, `modules` | the modules of each process |
//! | `symbols` | search for the symbol files of a module |
//! | `atlas` | modules and symbols of all addresses |
//! | `table`, `proportion` | sums by columns, shares and their confidence intervals |
//! | `branches` | branches by source and target |
//! | `merge` | ordinary samples and precise records in one order |
//! | `folded`, `firefox`, `lines` | exports for other programs |

#![forbid(unsafe_code)]

mod atlas;
mod branches;
mod filter;
mod firefox;
mod folded;
mod lines;
mod merge;
mod modules;
mod processes;
mod proportion;
mod read;
mod symbols;
mod table;
mod tally;

pub use atlas::{Atlas, Symbol, SymbolId};
pub use branches::{Branch, Branches, Taken};
pub use filter::Filter;
pub use firefox::firefox;
pub use folded::{flamegraph, folded};
pub use lines::lines;
pub use merge::{Merged, merged};
pub use modules::{ModuleId, Modules};
pub use processes::Processes;
pub use proportion::Interval;
pub use read::{Contents, ExportError};
pub use symbols::{Missing, Reason, SymbolFinder};
pub use table::{Column, Row, Table};
pub use tally::{Detail, Disturbance, Place, Tally, Total, Weight};
