//! Records of processor event-based sampling (PEBS), by PEBS_FMT of IA32_PERF_CAPABILITIES.
//!
//! | PEBS_FMT | processors | layout | bytes |
//! |---|---|---|---|
//! | 0 | Core 2 | [`PebsFormat0`] | 144 |
//! | 1 | Nehalem to Ivy Bridge | [`PebsFormat1`] | 176 |
//! | 2 | Haswell, Broadwell | [`PebsFormat2`] | 192 |
//! | 3 | Skylake to Comet Lake | [`PebsFormat3`] | 200 |
//! | 4 to 6 | Ice Lake to Arrow Lake | [`BasicGroup`] and the groups that it names | in the record |
//!
//! Adaptive records (formats 4 to 6) consist of groups in this order: basic, memory, general-purpose registers, XMM
//! registers, last branch records. Each group except the first is optional.

use core::mem::offset_of;

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// PEBS record of format 0 (SDM Vol. 3B 19.4.9, Figure "64-bit PEBS Record Format").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PebsFormat0 {
    /// RFLAGS.
    pub flags: u64,
    /// RIP of the instruction after the one that caused the event.
    pub ip: u64,
    /// RAX.
    pub ax: u64,
    /// RBX.
    pub bx: u64,
    /// RCX.
    pub cx: u64,
    /// RDX.
    pub dx: u64,
    /// RSI.
    pub si: u64,
    /// RDI.
    pub di: u64,
    /// RBP.
    pub bp: u64,
    /// RSP.
    pub sp: u64,
    /// R8 to R15.
    pub r8: [u64; 8],
}

/// PEBS record of format 1 (SDM Vol. 3B 21.3.1.1.1, Table "PEBS Record Format for Intel Core i7 Processor Family").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PebsFormat1 {
    /// Fields of format 0.
    pub registers: PebsFormat0,
    /// IA32_PERF_GLOBAL_STATUS at the time of the record; in format 3 the applicable counters.
    pub counters: u64,
    /// Data linear address.
    pub address: u64,
    /// Data source encoding.
    pub source: u64,
    /// Latency value in core cycles.
    pub latency: u64,
}

/// PEBS record of format 2 (SDM Vol. 3B, Table "PEBS Record Format for 4th Generation Intel Core Processor Family").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PebsFormat2 {
    /// Fields of format 1.
    pub format1: PebsFormat1,
    /// EventingIP: the instruction that caused the event.
    pub eventing_ip: u64,
    /// TX abort information.
    pub tx_abort: u64,
}

/// PEBS record of format 3 (SDM Vol. 3B, Table "PEBS Record Format for 6th Generation Intel Core Processor Family").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PebsFormat3 {
    /// Fields of format 2.
    pub format2: PebsFormat2,
    /// Time-stamp counter.
    pub tsc: u64,
}

/// First word of an adaptive record: MSR_PEBS_DATA_CFG at the time of the record, and the size of the record (SDM Vol.
/// 3B, "Adaptive PEBS", Table "Basic Info Group").
#[bitfield(u64)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RecordFormat {
    /// [`MemoryGroup`] follows.
    pub memory: bool,
    /// [`RegistersGroup`] follows.
    pub registers: bool,
    /// [`XmmGroup`] follows.
    pub xmm: bool,
    /// [`LbrEntry`] follows, [`last_lbr_entry`](Self::last_lbr_entry) + 1 times.
    pub lbr: bool,
    /// Counters and metrics follow, and groups that are reserved.
    #[bits(20)]
    pub others: u32,
    /// Number of last branch records, minus 1.
    pub last_lbr_entry: u8,
    /// Retire latency: cycles since the previous instruction retired. Reserved in format 4.
    pub retire_latency: u16,
    /// Size of the record in bytes.
    pub size: u16,
}

/// Basic group of an adaptive record, at its start (SDM Vol. 3B, "Adaptive PEBS", Table "Basic Info Group").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BasicGroup {
    /// Record format.
    pub format: RecordFormat,
    /// Instruction pointer of the instruction that caused the event.
    pub ip: u64,
    /// Applicable counters: bit n is general-purpose counter n, bit 32 + n fixed-function counter n.
    pub counters: u64,
    /// Time-stamp counter.
    pub tsc: u64,
}

/// Memory access group of an adaptive record (SDM Vol. 3B, "Adaptive PEBS", Table "Memory Access Info Group").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MemoryGroup {
    /// Memory access address.
    pub address: u64,
    /// Auxiliary information: the data source encoding.
    pub source: u64,
    /// Memory access latency in core cycles.
    pub latency: u64,
    /// TSX auxiliary information.
    pub tsx: u64,
}

/// General-purpose registers group of an adaptive record; its order differs from [`PebsFormat0`] (SDM Vol. 3B,
/// "Adaptive PEBS", Table "GPR Group").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RegistersGroup {
    /// RFLAGS.
    pub flags: u64,
    /// RIP of the instruction after the one that caused the event.
    pub ip: u64,
    /// RAX.
    pub ax: u64,
    /// RCX.
    pub cx: u64,
    /// RDX.
    pub dx: u64,
    /// RBX.
    pub bx: u64,
    /// RSP.
    pub sp: u64,
    /// RBP.
    pub bp: u64,
    /// RSI.
    pub si: u64,
    /// RDI.
    pub di: u64,
    /// R8 to R15.
    pub r8: [u64; 8],
}

/// XMM registers group of an adaptive record (SDM Vol. 3B, "Adaptive PEBS", Table "XMM Group").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct XmmGroup {
    /// XMM0 to XMM15, each with its lower half first.
    pub xmm: [[u64; 2]; 16],
}

/// One last branch record of an adaptive record (SDM Vol. 3B, "Adaptive PEBS", Table "LBR Group").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LbrEntry {
    /// LBR_FROM.
    pub from: u64,
    /// LBR_TO.
    pub to: u64,
    /// LBR_INFO.
    pub info: u64,
}

const _: () = {
    assert!(size_of::<PebsFormat0>() == 144 && offset_of!(PebsFormat0, r8) == 0x50);
    assert!(size_of::<PebsFormat1>() == 176 && offset_of!(PebsFormat1, counters) == 0x90);
    assert!(size_of::<PebsFormat2>() == 192 && offset_of!(PebsFormat2, eventing_ip) == 0xB0);
    assert!(size_of::<PebsFormat3>() == 200 && offset_of!(PebsFormat3, tsc) == 0xC0);
    assert!(size_of::<BasicGroup>() == 32);
    assert!(size_of::<MemoryGroup>() == 32);
    assert!(size_of::<RegistersGroup>() == 144 && offset_of!(RegistersGroup, r8) == 0x50);
    assert!(size_of::<XmmGroup>() == 256);
    assert!(size_of::<LbrEntry>() == 24);
};
