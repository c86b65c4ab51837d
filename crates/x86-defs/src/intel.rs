//! Registers and memory formats of Intel processors.

pub mod architectural_pebs;
pub mod auto_counter_reload;
pub mod debug_control;
pub mod debug_store;
pub mod extra;
pub mod last_branches;
pub mod microcode;
pub mod misc_enable;
pub mod netburst;
pub mod p6;
pub mod pentium;
pub mod perfmon;
