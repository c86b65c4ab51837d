//! The model of a processor by itself. One program, which builds faster than one for each file.

mod common;

mod architectural_pebs;
mod call_stacks;
mod checklist;
mod countable;
mod debug_store;
mod errata;
mod extra;
mod freeze;
mod hidden;
mod ibs;
mod ibs_fetches;
mod interrupt_modes;
mod merged;
mod metrics;
mod northbridge;
mod old;
mod properties;
mod refusals;
mod reload;
mod reserved;
