//! From a recording to tables, symbols and exports.

#![expect(clippy::unwrap_used, reason = "test helpers fail by panicking")]

#[path = "reading/access_names.rs"]
mod access_names;
#[path = "reading/access_table.rs"]
mod access_table;
#[path = "reading/accesses.rs"]
mod accesses;
#[path = "reading/branch_profile.rs"]
mod branch_profile;
#[path = "reading/branches.rs"]
mod branches;
#[path = "reading/cache_lines.rs"]
mod cache_lines;
#[path = "reading/calls.rs"]
mod calls;
#[path = "reading/changes.rs"]
mod changes;
#[path = "reading/damage.rs"]
mod damage;
#[path = "reading/data_source.rs"]
mod data_source;
#[path = "reading/exports.rs"]
mod exports;
#[path = "reading/formats.rs"]
mod formats;
#[path = "reading/hybrid.rs"]
mod hybrid;
#[path = "reading/images.rs"]
mod images;
#[path = "reading/jit.rs"]
mod jit;
#[path = "reading/kinds.rs"]
mod kinds;
#[path = "reading/last_branches.rs"]
mod last_branches;
#[path = "reading/latency.rs"]
mod latency;
#[path = "reading/pe_image.rs"]
mod pe_image;
#[path = "reading/reused_ids.rs"]
mod reused_ids;
#[path = "reading/slices.rs"]
mod slices;
#[path = "reading/stacks.rs"]
mod stacks;
#[path = "reading/stores.rs"]
mod stores;
#[path = "reading/support.rs"]
mod support;
#[path = "reading/symbols.rs"]
mod symbols;
#[path = "reading/tables.rs"]
mod tables;
#[path = "reading/timeline.rs"]
mod timeline;
