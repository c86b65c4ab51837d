//! Names of data by PDBs of clang, rustc and lld.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test helpers fail by panicking")]

mod damage;
mod known;
mod operands;
mod program;
