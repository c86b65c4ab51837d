//! Architectural PEBS, which CPUID.23H.4 and .5 enumerate (Intel Architecture Instruction Set Extensions and Future
//! Features, "Architectural PEBS"; Linux, arch/x86/include/asm/msr-index.h and perf_event.h, `arch_pebs_index`,
//! `arch_pebs_header`): the processor writes records into physical memory that registers of its own describe, and the
//! Debug Store has no part in it.

use core::mem::offset_of;

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// IA32_PEBS_BASE: [`PebsBase`].
pub const IA32_PEBS_BASE: u32 = 0x3F4;

/// IA32_PEBS_INDEX: [`PebsIndex`].
pub const IA32_PEBS_INDEX: u32 = 0x3F5;

/// IA32_PMC_GP0_CFG_C: [`CounterConfig`] of general-purpose counter 0. That of counter n is
/// [`COUNTER_STRIDE`] * n further.
pub const IA32_PMC_GP0_CFG_C: u32 = 0x1903;

/// IA32_PMC_FX0_CFG_C: the same of fixed-function counter 0.
pub const IA32_PMC_FX0_CFG_C: u32 = 0x1983;

/// Distance of the registers of neighbouring counters.
pub const COUNTER_STRIDE: u8 = 4;

/// Position of [`PebsBase::page`]: a page has 2 to this power bytes.
pub const PAGE_SHIFT: u32 = 12;

/// IA32_PEBS_BASE.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PebsBase {
    /// SIZE: the buffer has 2^SIZE pages of 4 KB.
    #[bits(4)]
    pub size: u8,
    _reserved: u8,
    /// Number of the first physical page. Bits above the physical address width of CPUID.80000008H are reserved.
    #[bits(52)]
    pub page: u64,
}

/// IA32_PEBS_INDEX.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PebsIndex {
    #[bits(4)]
    _reserved: u8,
    /// WR: where the next record is written, in units of 16 bytes from the start of the buffer.
    #[bits(23)]
    pub wr: u32,
    #[bits(4)]
    _reserved: u8,
    /// FULL: a record had no room.
    pub full: bool,
    /// EN: records are written.
    pub en: bool,
    #[bits(3)]
    _reserved: u8,
    /// THRESH: an interrupt is requested once WR is at least this.
    #[bits(23)]
    pub thresh: u32,
    #[bits(5)]
    _reserved: u8,
}

/// Unit of [`PebsIndex::wr`] and [`PebsIndex::thresh`] in bytes.
pub const INDEX_UNIT: u8 = 16;

/// IA32_PMC_GPn_CFG_C, IA32_PMC_FXn_CFG_C: what a record of this counter has besides the basic group. Bits for groups
/// that CPUID.23H.4:EBX does not report are reserved; those are 32 higher here than there.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct CounterConfig {
    /// RELOAD: the lower half of the value that the counter is loaded with after a record. The upper half is ones.
    pub reload: u32,
    #[bits(3)]
    _reserved: u8,
    /// CNTR_ALLOW: records of other counters may contain this one.
    pub allow_counter: bool,
    /// CNTR_GP, CNTR_FIXED, METRICS: general-purpose counters, fixed-function counters, metrics.
    #[bits(3)]
    pub counters: u8,
    #[bits(1)]
    _reserved: bool,
    /// LBR: last branch records.
    #[bits(2)]
    pub lbr: u8,
    #[bits(7)]
    _reserved: u8,
    /// XMM and the groups of wider vector registers.
    #[bits(7)]
    pub vectors: u8,
    #[bits(5)]
    _reserved: u8,
    /// GPR: general-purpose registers.
    pub gpr: bool,
    /// AUX: memory access.
    pub aux: bool,
    /// EN: overflows of the counter are recorded.
    pub en: bool,
}

/// First word of a record, and of each fragment of one.
#[bitfield(u64)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RecordHeader {
    /// Size of the record or fragment in bytes, with the header.
    pub size: u16,
    #[bits(14)]
    _reserved: u16,
    /// The processor was in 64-bit mode.
    pub long_mode: bool,
    /// Another fragment of the record follows. One follows too if all bits from this one's word on upward are clear
    /// except `size`: a null record.
    pub continued: bool,
    #[bits(3)]
    _reserved: u8,
    /// Groups of counters.
    #[bits(5)]
    pub counters: u8,
    /// Last branch records: 1 for eight, 2 for sixteen, 3 for as many as the group says.
    #[bits(2)]
    pub lbr: u8,
    #[bits(7)]
    _reserved: u8,
    /// Groups of vector registers.
    #[bits(7)]
    pub vectors: u8,
    #[bits(5)]
    _reserved: u8,
    /// General-purpose registers follow.
    pub gpr: bool,
    /// The memory access group follows.
    pub aux: bool,
    /// [`ArchitecturalBasicGroup`] follows.
    pub basic: bool,
}

impl RecordHeader {
    /// Returns whether another fragment of the same record follows.
    #[must_use]
    pub const fn is_followed(self) -> bool {
        self.continued() || self.into_bits() >> u16::BITS == 0
    }
}

/// A record without optional groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ArchitecturalRecord {
    /// Header.
    pub header: RecordHeader,
    /// Reserved half of the header.
    pub reserved: u64,
    /// Basic group.
    pub basic: ArchitecturalBasicGroup,
}

/// Basic group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ArchitecturalBasicGroup {
    /// Instruction pointer of the instruction that caused the event.
    pub ip: u64,
    /// Applicable counters: bit n is general-purpose counter n, bit 32 + n fixed-function counter n.
    pub counters: u64,
    /// Time-stamp counter.
    pub tsc: u64,
    /// Retire latency in bits 15:0, valid if bit 16 is set.
    pub retire_latency: u64,
    /// Reserved.
    pub reserved: [u64; 2],
}

/// Memory access group (Linux, arch/x86/include/asm/perf_event.h, `arch_pebs_aux`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ArchitecturalMemoryGroup {
    /// Memory access address.
    pub address: u64,
    /// Reserved.
    pub reserved: [u64; 4],
    /// Auxiliary information: the data source encoding.
    pub source: u64,
    /// Cycles of the instruction in bits 15:0, of the access in bits 47:32.
    pub latency: u64,
    /// TSX auxiliary information.
    pub tsx: u64,
}

const _: () = {
    assert!(PebsBase::PAGE_OFFSET == PAGE_SHIFT as usize);
    assert!(size_of::<ArchitecturalRecord>() == 64);
    assert!(offset_of!(ArchitecturalRecord, basic) == 16 && size_of::<ArchitecturalBasicGroup>() == 48);
    assert!(size_of::<ArchitecturalMemoryGroup>() == 64 && offset_of!(ArchitecturalMemoryGroup, latency) == 48);
};
