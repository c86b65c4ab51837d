//! Leaves 0AH and 23H: architectural performance monitoring of Intel.

use bitfield_struct::bitfield;

/// CPUID.0AH:EAX (SDM Vol. 2A, CPUID; Vol. 3B 21.2.1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEax {
    /// Version of architectural performance monitoring.
    pub version: u8,
    /// General-purpose counters of a logical processor.
    pub counters: u8,
    /// Width of a general-purpose counter in bits.
    pub width: u8,
    /// Number of valid bits in [`LeafAEbx`].
    pub ebx_length: u8,
}

/// CPUID.0AH:EBX: a set bit means that the event is not available (SDM Vol. 2A, CPUID; Vol. 3B 21.2.3, Table 21-1).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEbx {
    /// Core cycles.
    pub no_core_cycles: bool,
    /// Instructions retired.
    pub no_instructions_retired: bool,
    /// Reference cycles.
    pub no_reference_cycles: bool,
    /// Last-level cache references.
    pub no_llc_references: bool,
    /// Last-level cache misses.
    pub no_llc_misses: bool,
    /// Branch instructions retired.
    pub no_branches_retired: bool,
    /// Branch mispredicts retired.
    pub no_branch_mispredicts_retired: bool,
    /// Top-down slots.
    pub no_topdown_slots: bool,
    /// Events of later versions; reserved in earlier ones.
    #[bits(24)]
    _other: u32,
}

/// CPUID.0AH:ECX, from version 5 on (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEcx {
    /// Bit n: fixed-function counter n exists. A counter below [`LeafAEdx::fixed`] exists regardless of its bit.
    pub fixed_counters: u32,
}

/// CPUID.0AH:EDX, from version 2 on (SDM Vol. 2A, CPUID; Vol. 3B 21.2.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct LeafAEdx {
    /// Contiguous fixed-function counters, numbered from 0.
    #[bits(5)]
    pub fixed: u8,
    /// Width of a fixed-function counter in bits.
    pub fixed_width: u8,
    #[bits(2)]
    _reserved: u8,
    /// AnyThread deprecation: the AnyThread bits of the select registers are not supported.
    pub no_any_thread: bool,
    _reserved: u16,
}

/// CPUID.(7,1):EAX (SDM Vol. 2A, CPUID, "Structured Extended Feature Flags Enumeration Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf71Eax {
    _other: u8,
    /// ArchPerfmonExt: leaf 23H exists.
    pub arch_perfmon_ext: bool,
    #[bits(23)]
    _other: u32,
}

/// CPUID.(23H,0):EAX: bit n is set if subleaf n is valid (SDM Vol. 2A, CPUID, "Architectural Performance Monitoring
/// Extended Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf23Eax {
    _main: bool,
    /// Subleaf 1: the bitmaps of the general-purpose counters (EAX) and of the fixed-function counters (EBX).
    pub counters: bool,
    /// Subleaf 2: the bitmaps of the counters that can be reloaded (EAX general-purpose, EBX fixed-function), and of
    /// those whose overflow can reload others (ECX, EDX).
    pub auto_counter_reload: bool,
    _events: bool,
    /// Subleaf 4: the capabilities of architectural PEBS.
    pub pebs_capabilities: bool,
    /// Subleaf 5: the bitmaps of the counters of architectural PEBS: general-purpose ones (EAX), those of them with
    /// precise distribution (EBX), fixed-function ones (ECX), those of them with precise distribution (EDX).
    pub pebs_counters: bool,
    #[bits(26)]
    _other: u32,
}

/// CPUID.(23H,0):EBX: the bits of the select registers that version 6 adds (same section).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf23Ebx {
    /// UMASK2 exists.
    pub umask2: bool,
    /// EQ exists.
    pub eq: bool,
    #[bits(30)]
    _other: u32,
}

/// CPUID.(1CH,0):EAX (SDM Vol. 2A, CPUID, "Last Branch Records Information Leaf").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1CEax {
    /// Supported depths: bit n stands for 8(n + 1) entries.
    pub depths: u8,
    #[bits(22)]
    _reserved: u32,
    /// The records may be cleared in deep sleep.
    pub cleared_in_sleep: bool,
    /// IP values are linear addresses; otherwise they are offsets, which are the same without segments.
    pub linear: bool,
}

/// CPUID.(1CH,0):EBX (same section).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1CEbx {
    /// Branches can be chosen by mode.
    pub privilege_filter: bool,
    /// Branches can be chosen by kind.
    pub branch_filter: bool,
    /// Call-stack mode exists.
    pub call_stack: bool,
    #[bits(29)]
    _reserved: u32,
}
