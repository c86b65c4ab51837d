//! Errata of processors: those that only are reported, and those that the driver works around.
//!
//! | module | contents |
//! |---|---|
//! | [`named_sources`] | errata that make a named source count wrongly, whatever the driver does |
//! | [`workarounds`] | errata that the driver works around, each with its processors and what is done |

mod processors;

pub mod named_sources;
pub mod workarounds;
