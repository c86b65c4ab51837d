//! Registers of AMD processors.

pub mod last_branches;
pub mod perfmon;
pub mod perfmon_v2;
