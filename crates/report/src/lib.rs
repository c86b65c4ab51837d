//! Reading recordings: where samples fell, by process, module and symbol.
//!
//! A recording is read once, block by block: [`Tally`] counts samples by place, so that memory grows with the distinct
//! addresses and not with the samples, and [`Processes`] keeps what was loaded where. Afterwards [`Atlas`] gives
//! every address its module and, through [`SymbolFinder`], its symbol. From these come tables ([`Table`]), folded
//! stacks, flame graphs, profiles for the Firefox Profiler and CSV.
//!
//! There are no call stacks: a sample is one address.
//!
//! inferno, the library that draws the flame graphs, is under the CDDL 1.0.
//!
//! | module | what it holds |
//! |---|---|
//! | `read` | the passes over a recording |
//! | `tally` | samples by place, and what befell the sampling |
//! | `processes`, `modules` | what was loaded where |
//! | `symbols` | which files have the symbols of a module |
//! | `atlas` | what every address is called |
//! | `table`, `proportion` | sums by columns, shares and their confidence intervals |
//! | `branches` | branches by where they are and where they went |
//! | `merge` | ordinary samples and precise records in one order |
//! | `folded`, `firefox`, `lines` | what other programs read |

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
