//! Registers of AMD processors.

pub mod perfmon;
pub mod perfmon_v2;
