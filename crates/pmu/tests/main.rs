//! Profile interfaces on the model of a processor. One program, which builds faster than one for each file.

mod amd_families;
mod assignment;
mod budgets;
mod capabilities;
mod checklist;
mod debug_store;
mod errata;
mod first_accesses;
mod foreign;
mod hidden;
mod hygon;
mod identities;
mod information;
mod pairs;
mod placement;
mod properties;
mod raw_events;
mod reservation;
mod selection;
mod sources;
mod version_6;
mod workarounds;
