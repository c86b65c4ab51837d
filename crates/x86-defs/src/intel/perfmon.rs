//! Architectural performance monitoring (SDM Vol. 3B 21.2).

use bitfield_struct::bitfield;

/// IA32_PERFEVTSEL0, first of the event select registers: [`PerfEvtSel`] (SDM Vol. 3B 21.2.1.1).
pub const IA32_PERFEVTSEL0: u32 = 0x186;

/// IA32_PMC0, first of the general-purpose counters (SDM Vol. 3B 21.2.1.1). A write takes the lower 32 bits and extends
/// their sign.
pub const IA32_PMC0: u32 = 0xC1;

/// IA32_A_PMC0: the same counters with full-width writes, if [`PerfCapabilities::fw_write`] is set (SDM Vol. 3B
/// 21.2.8).
pub const IA32_A_PMC0: u32 = 0x4C1;

/// IA32_FIXED_CTR0, first of the fixed-function counters; writes have full width (SDM Vol. 3B 21.2.2).
pub const IA32_FIXED_CTR0: u32 = 0x309;

/// IA32_FIXED_CTR_CTRL: one [`FixedControl`] per fixed-function counter (SDM Vol. 3B 21.2.2, Figure 21-2).
pub const IA32_FIXED_CTR_CTRL: u32 = 0x38D;

/// IA32_PERF_GLOBAL_STATUS: [`GlobalStatus`]; read-only (SDM Vol. 3B 21.2.2).
pub const IA32_PERF_GLOBAL_STATUS: u32 = 0x38E;

/// IA32_PERF_GLOBAL_CTRL: [`GlobalCtrl`] (SDM Vol. 3B 21.2.2).
pub const IA32_PERF_GLOBAL_CTRL: u32 = 0x38F;

/// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on IA32_PERF_GLOBAL_STATUS_RESET: a written 1 clears the same bit of
/// [`GlobalStatus`] (SDM Vol. 3B 21.2.2).
pub const IA32_PERF_GLOBAL_OVF_CTRL: u32 = 0x390;

/// IA32_PERF_CAPABILITIES: [`PerfCapabilities`]; read-only. Exists if CPUID.1:ECX.PDCM is set (SDM Vol. 4,
/// "Architectural MSRs").
pub const IA32_PERF_CAPABILITIES: u32 = 0x345;

/// RDPMC index of fixed-function counter 0: ECX\[30\] selects the fixed-function counters (SDM Vol. 2B, RDPMC).
pub const RDPMC_FIXED: u32 = 1 << 30;

/// MSR_PERF_METRICS: fractions of fixed-function counter 3 in units of 1/255, a byte for each metric, if
/// [`PerfCapabilities::perf_metrics_available`] is set (SDM Vol. 3B, "Performance Metrics").
pub const MSR_PERF_METRICS: u32 = 0x329;

/// RDPMC index of [`MSR_PERF_METRICS`] (SDM Vol. 2B, RDPMC).
pub const RDPMC_METRICS: u32 = 1 << 29;

/// First bit of the fixed-function counters in [`GlobalCtrl`] and [`GlobalStatus`] (SDM Vol. 3B 21.2.2).
pub const GLOBAL_FIXED_SHIFT: u32 = 32;

/// Event select and unit mask of the architectural events, by their bit in CPUID.0AH:EBX (SDM Vol. 3B, Table 21-1):
/// core cycles, instructions retired, reference cycles, last-level cache references and misses, branches retired,
/// branch mispredicts retired, top-down slots.
pub const ARCHITECTURAL_EVENTS: [(u8, u8); 8] =
    [(0x3C, 0x00), (0xC0, 0x00), (0x3C, 0x01), (0x2E, 0x4F), (0x2E, 0x41), (0xC4, 0x00), (0xC5, 0x00), (0xA4, 0x01)];

/// IA32_PERFEVTSELx (SDM Vol. 3B 21.2.1.1, Figure 21-1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// Event select.
    pub event_select: u8,
    /// Unit mask (UMASK).
    pub umask: u8,
    /// USR: count at privilege levels 1 to 3.
    pub usr: bool,
    /// OS: count at privilege level 0.
    pub os: bool,
    /// E: edge detect.
    pub edge: bool,
    /// PC: pin control.
    pub pin_control: bool,
    /// INT: APIC interrupt enable.
    pub int: bool,
    /// ANY: count on all threads of the core. Version 3; reserved in other versions, deprecated by CPUID.0AH:EDX\[15\].
    pub any_thread: bool,
    /// EN: enable the counter.
    pub en: bool,
    /// INV: invert the counter mask.
    pub inv: bool,
    /// CMASK: counter mask.
    pub cmask: u8,
    /// IN_TX: count inside transactions only; reserved without TSX (SDM Vol. 3B, "Intel TSX Support in PMU").
    pub in_tx: bool,
    /// IN_TXCP: exclude counts of aborted transactions; reserved without TSX (same section).
    pub in_txcp: bool,
    /// Adaptive_Record: write adaptive PEBS records; reserved without adaptive PEBS (SDM Vol. 3B, "Adaptive PEBS").
    pub adaptive_record: bool,
    /// EN_LBR_LOG: log the event in last branch records; reserved without LBR event logging (SDM Vol. 3B, "LBR Event
    /// Logging").
    pub en_lbr_log: bool,
    /// EQ: compare with the counter mask for equality. Version 6; reserved before it (SDM Vol. 3B, "Architectural
    /// Performance Monitoring Version 6").
    pub eq: bool,
    #[bits(3)]
    _reserved: u8,
    /// UMASK2: second unit mask. Version 6; reserved before it (same section).
    pub umask2: u8,
    _reserved: u16,
}

/// The four bits of a fixed-function counter in IA32_FIXED_CTR_CTRL (SDM Vol. 3B 21.2.2, Figure 21-2).
///
/// Counter n has bits 4n to 4n + 3 of the register.
#[bitfield(u8)]
#[derive(PartialEq, Eq)]
pub struct FixedControl {
    /// EN, lower bit: count at privilege level 0.
    pub os: bool,
    /// EN, upper bit: count at privilege levels 1 to 3.
    pub usr: bool,
    /// ANY: count on all threads of the core. Version 3; deprecated by CPUID.0AH:EDX\[15\].
    pub any_thread: bool,
    /// PMI: interrupt on overflow.
    pub pmi: bool,
    /// Not part of the register's field.
    #[bits(4)]
    _unused: u8,
}

impl FixedControl {
    /// Bits per counter.
    pub const WIDTH: u32 = 4;

    /// Every bit of a counter.
    pub const ALL: Self = Self::new().with_os(true).with_usr(true).with_any_thread(true).with_pmi(true);

    /// Returns the field of fixed-function counter `number`, 0 to 15, from a value of the register.
    #[must_use]
    pub const fn from_register(register: u64, number: u8) -> Self {
        Self::from_bits((register >> (Self::WIDTH * (number & 0xF) as u32) & 0xF) as u8)
    }

    /// Returns a value of the register with this field for fixed-function counter `number`, 0 to 15, and zeros
    /// elsewhere.
    #[must_use]
    pub const fn to_register(self, number: u8) -> u64 {
        (self.into_bits() as u64 & 0xF) << (Self::WIDTH * (number & 0xF) as u32)
    }
}

/// IA32_PERF_GLOBAL_CTRL (SDM Vol. 3B 21.2.2; Vol. 4, "Architectural MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalCtrl {
    /// EN_PMCn, bit n: general-purpose counter n can count.
    pub general: u32,
    /// EN_FIXED_CTRn, bit n: fixed-function counter n can count.
    pub fixed: u16,
    /// EN_PERF_METRICS.
    pub perf_metrics: bool,
    #[bits(15)]
    _reserved: u16,
}

/// IA32_PERF_GLOBAL_STATUS. IA32_PERF_GLOBAL_OVF_CTRL has the same layout (SDM Vol. 3B 21.2.2 and 21.2.4; Vol. 4,
/// "Architectural MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalStatus {
    /// Ovf_PMCn, bit n: general-purpose counter n overflowed.
    pub general: u32,
    /// Ovf_FIXED_CTRn, bit n: fixed-function counter n overflowed.
    pub fixed: u16,
    /// OVF_PERF_METRICS.
    pub perf_metrics: bool,
    #[bits(5)]
    _reserved: u8,
    /// The PEBS index of architectural PEBS reached its threshold (Linux, arch/x86/include/asm/perf_event.h,
    /// `GLOBAL_STATUS_ARCH_PEBS_THRESHOLD`).
    pub pebs_threshold: bool,
    /// Trace_ToPA_PMI: Intel Processor Trace filled an output region.
    pub trace_topa_pmi: bool,
    #[bits(2)]
    _reserved: u8,
    /// LBR_Frz: last branch records are frozen.
    pub lbr_frz: bool,
    /// CTR_Frz: counters are frozen.
    pub ctr_frz: bool,
    /// ASCI: an SGX enclave may have affected the counts.
    pub asci: bool,
    /// Ovf_Uncore: an uncore counter overflowed.
    pub ovf_uncore: bool,
    /// OvfBuf: the PEBS index of the Debug Store reached its threshold.
    pub ovf_buf: bool,
    /// CondChgd: the status changed.
    pub cond_chgd: bool,
}

const _: () = assert!(GlobalCtrl::FIXED_OFFSET == GLOBAL_FIXED_SHIFT as usize);
const _: () = assert!(GlobalStatus::FIXED_OFFSET == GLOBAL_FIXED_SHIFT as usize);

/// IA32_PERF_CAPABILITIES (SDM Vol. 4, "Architectural MSRs"; Vol. 3B, Figure "Layout of IA32_PERF_CAPABILITIES MSR").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfCapabilities {
    /// LBR_FMT: format of last branch records.
    #[bits(6)]
    pub lbr_fmt: u8,
    /// PEBSTrap: PEBS assists are traps, not faults.
    pub pebs_trap: bool,
    /// PEBSSaveArchRegs: PEBS records contain architectural registers, not the instruction pointer and flags alone.
    pub pebs_save_arch_regs: bool,
    /// PEBS_FMT: format of PEBS records, see [`pebs`](crate::intel::debug_store::pebs).
    #[bits(4)]
    pub pebs_format: u8,
    /// FREEZE_WHILE_SMM: IA32_DEBUGCTL.FREEZE_WHILE_SMM is supported.
    pub freeze_while_smm: bool,
    /// FW_WRITE: full-width writes through [`IA32_A_PMC0`] (SDM Vol. 3B 21.2.8).
    pub fw_write: bool,
    /// PEBS_BASELINE: adaptive PEBS and MSR_PEBS_DATA_CFG.
    pub pebs_baseline: bool,
    /// PERF_METRICS_AVAILABLE: MSR_PERF_METRICS.
    pub perf_metrics_available: bool,
    /// PEBS_OUTPUT_PT_AVAIL: PEBS records can go to Intel Processor Trace.
    pub pebs_output_pt_avail: bool,
    /// PEBS_TIMING_INFO: adaptive records contain the retire latency.
    pub pebs_timing_info: bool,
    /// Bits of later generations; reserved before them.
    #[bits(46)]
    _other: u64,
}
