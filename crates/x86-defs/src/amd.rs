//! Registers of AMD processors.

pub mod ibs;
pub mod last_branches;
pub mod perfmon;
pub mod perfmon_v2;
