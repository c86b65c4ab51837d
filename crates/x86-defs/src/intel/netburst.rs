//! Counters of the NetBurst microarchitecture: Pentium 4 and the Xeons of its generation (SDM Vol. 3B, "Performance
//! Monitoring (Processors Based on Intel NetBurst Microarchitecture)").
//!
//! The MSR addresses are those of SDM Vol. 4, "MSRs in Processors Based on Intel NetBurst Microarchitecture". Only the
//! ESCRs of the units that halprof uses are defined.

use bitfield_struct::bitfield;

/// MSR_BPU_COUNTER0, first of [`COUNTERS`].
pub const MSR_BPU_COUNTER0: u32 = 0x300;

/// MSR_BPU_CCCR0, first of [`COUNTERS`]: [`Cccr`].
pub const MSR_BPU_CCCR0: u32 = 0x360;

/// MSR_BSU_ESCR0, first of two, of the bus sequence unit: [`Escr`].
pub const MSR_BSU_ESCR0: u32 = 0x3A0;

/// MSR_FSB_ESCR0, first of two, of the front-side bus: [`Escr`].
pub const MSR_FSB_ESCR0: u32 = 0x3A2;

/// MSR_CRU_ESCR0, first of two, of the retirement unit: [`Escr`].
pub const MSR_CRU_ESCR0: u32 = 0x3B8;

/// MSR_CRU_ESCR2, first of two, of the retirement unit: [`Escr`].
pub const MSR_CRU_ESCR2: u32 = 0x3CC;

/// Counters of a core (SDM Vol. 3B, Table "Performance Counter MSRs and Associated CCCR and ESCR MSRs").
pub const COUNTERS: u8 = 18;

/// Width of a counter in bits (SDM Vol. 3B, "Performance Counters" of NetBurst).
pub const WIDTH: u8 = 40;

/// Values of [`Cccr::escr_select`] (SDM Vol. 3B, Table "Performance Counter MSRs and Associated CCCR and ESCR MSRs",
/// column "No." of the ESCRs).
pub mod escr_select {
    /// MSR_CRU_ESCR0 and 1, for the IQ counters.
    pub const CRU_ESCR0: u8 = 4;
    /// MSR_CRU_ESCR2 and 3, for the IQ counters.
    pub const CRU_ESCR2: u8 = 5;
    /// MSR_FSB_ESCR0 and 1, for the BPU counters.
    pub const FSB_ESCR0: u8 = 6;
    /// MSR_BSU_ESCR0 and 1, for the BPU counters.
    pub const BSU_ESCR0: u8 = 7;
}

/// Value of [`Cccr::active_thread`]: count whichever threads are active. Without Hyper-Threading no other value is
/// allowed (SDM Vol. 3B, "CCCR MSRs").
pub const ACTIVE_THREAD_ANY: u8 = 0b11;

/// ESCR, event selection control register (SDM Vol. 3B, "ESCR MSRs", and the section of the same name for processors
/// that support Hyper-Threading).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Escr {
    /// T1_USR: count in thread 1 at privilege levels 1 to 3; reserved without Hyper-Threading.
    pub t1_usr: bool,
    /// T1_OS: count in thread 1 at privilege level 0; reserved without Hyper-Threading.
    pub t1_os: bool,
    /// T0_USR: count in thread 0 at privilege levels 1 to 3. USR without Hyper-Threading.
    pub t0_usr: bool,
    /// T0_OS: count in thread 0 at privilege level 0. OS without Hyper-Threading.
    pub t0_os: bool,
    /// Tag enable.
    pub tag_enable: bool,
    /// Tag value.
    #[bits(4)]
    pub tag_value: u8,
    /// Event mask.
    pub event_mask: u16,
    /// Event select.
    #[bits(6)]
    pub event_select: u8,
    #[bits(33)]
    _reserved: u64,
}

/// CCCR, counter configuration control register (SDM Vol. 3B, "CCCR MSRs", and the section of the same name for
/// processors that support Hyper-Threading).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Cccr {
    #[bits(12)]
    _reserved: u16,
    /// ENABLE: count.
    pub enable: bool,
    /// ESCR select: see [`escr_select`].
    #[bits(3)]
    pub escr_select: u8,
    /// Active thread; [`ACTIVE_THREAD_ANY`] without Hyper-Threading.
    #[bits(2)]
    pub active_thread: u8,
    /// COMPARE: filter by the threshold.
    pub compare: bool,
    /// COMPLEMENT: count at or below the threshold, instead of above it.
    pub complement: bool,
    /// THRESHOLD.
    #[bits(4)]
    pub threshold: u8,
    /// EDGE: count rising edges of the threshold comparison.
    pub edge: bool,
    /// FORCE_OVF: overflow on every count.
    pub force_ovf: bool,
    /// OVF_PMI_T0: interrupt thread 0 on overflow. OVF_PMI without Hyper-Threading.
    pub ovf_pmi_t0: bool,
    /// OVF_PMI_T1: interrupt thread 1 on overflow; reserved without Hyper-Threading.
    pub ovf_pmi_t1: bool,
    #[bits(2)]
    _reserved: u8,
    /// CASCADE: start when another counter overflows.
    pub cascade: bool,
    /// OVF: the counter overflowed. A write that leaves it set interrupts again.
    pub ovf: bool,
    _reserved: u32,
}
