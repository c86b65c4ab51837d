//! From a recording to tables, symbols and exports.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "reading/branches.rs"]
mod branches;
#[path = "reading/damage.rs"]
mod damage;
#[path = "reading/exports.rs"]
mod exports;
#[path = "reading/kinds.rs"]
mod kinds;
#[path = "reading/merge.rs"]
mod merge;
#[path = "reading/scene.rs"]
mod scene;
#[path = "reading/symbols.rs"]
mod symbols;
#[path = "reading/tables.rs"]
mod tables;
