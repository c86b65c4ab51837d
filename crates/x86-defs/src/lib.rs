//! Definitions of the x86-64 registers and memory formats that performance monitoring uses. The crate contains no
//! logic.
//!
//! | module | contents |
//! |---|---|
//! | [`control_register`] | CR4 |
//! | [`cpuid`] | leaf numbers, the registers of each leaf, family and model |
//! | [`local_apic`] | IA32_APIC_BASE and the LVT entry of the performance counters |
//! | [`intel::perfmon`] | architectural performance monitoring |
//! | [`intel::microcode`] | IA32_BIOS_SIGN_ID |
//! | [`intel::misc_enable`] | IA32_MISC_ENABLE |
//! | [`intel::debug_control`] | IA32_DEBUGCTL |
//! | [`intel::debug_store`] | the DS save area, BTS records, PEBS records |
//! | [`intel::netburst`], [`intel::p6`], [`intel::pentium`] | the counters of older processors |
//! | [`amd::perfmon`] | event select registers and counters |
//! | [`amd::perfmon_v2`] | the global registers of PerfMonV2 |
//!
//! # Conventions
//! - MSR addresses are `u32` constants under the names of the manuals. A constant that ends in 0 is the first register
//!   of a bank; its comment states the stride if that is not 1.
//! - Each register is a bitfield with one field per bit range of the manual. `_reserved` marks bits that the manual
//!   reserves. `_other` marks bits that have a meaning which this crate does not define. `from_bits` keeps both.
//! - Memory formats are `repr(C)` structures with assertions of their sizes and offsets.
//!
//! # References
//! SDM is the Intel 64 and IA-32 Architectures Software Developer's Manual, APM the AMD64 Architecture Programmer's
//! Manual, PPR the AMD Processor Programming Reference, TLFS the Microsoft Hypervisor Top Level Functional
//! Specification. A quoted title cites a section, table or figure, because its number changes between editions.

#![no_std]
#![forbid(unsafe_code)]

pub mod amd;
pub mod control_register;
pub mod cpuid;
pub mod intel;
pub mod local_apic;
