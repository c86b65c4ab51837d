//! The registers.

use bitfield_struct::bitfield;

use crate::cpu::Msr;
use crate::state::CounterState;

/// IA32_PERFEVTSEL0 and those that follow (SDM Vol. 3B, 21.2.1.1).
pub const IA32_PERFEVTSEL0: Msr = Msr::new(0x186);

/// IA32_PMC0 and those that follow (SDM Vol. 3B, 21.2.1.1). A write takes 32 bits and extends their sign.
pub const IA32_PMC0: Msr = Msr::new(0xC1);

/// IA32_A_PMC0 and those that follow: the same counters, written whole (SDM Vol. 3B, 21.2.8).
pub const IA32_A_PMC0: Msr = Msr::new(0x4C1);

/// IA32_FIXED_CTR0 and those that follow, written whole (SDM Vol. 3B, 21.2.2).
pub const IA32_FIXED_CTR0: Msr = Msr::new(0x309);

/// IA32_FIXED_CTR_CTRL: a [`FixedControl`] for each fixed counter (SDM Vol. 3B, 21.2.2, Figure 21-2).
pub const IA32_FIXED_CTR_CTRL: Msr = Msr::new(0x38D);

/// IA32_PERF_GLOBAL_CTRL (SDM Vol. 3B, 21.2.2).
pub const IA32_PERF_GLOBAL_CTRL: Msr = Msr::new(0x38F);

/// IA32_PERF_GLOBAL_STATUS (SDM Vol. 3B, 21.2.2).
pub const IA32_PERF_GLOBAL_STATUS: Msr = Msr::new(0x38E);

/// IA32_PERF_GLOBAL_OVF_CTRL, from version 4 on IA32_PERF_GLOBAL_STATUS_RESET (SDM Vol. 3B, 21.2.2): a one clears
/// the same bit of the status.
pub const IA32_PERF_GLOBAL_OVF_CTRL: Msr = Msr::new(0x390);

/// OvfBuf in IA32_PERF_GLOBAL_STATUS: the index of the PEBS buffer has come to its threshold (SDM Vol. 3B, 21.2.4).
pub const OVF_BUF: u64 = 1 << 62;

/// [`PerfCapabilities`], read-only (SDM Vol. 4, "Architectural MSRs").
pub const IA32_PERF_CAPABILITIES: Msr = Msr::new(0x345);

/// RDPMC: in ECX, this bit and the number of a fixed counter (SDM Vol. 2B, RDPMC).
pub const RDPMC_FIXED: u32 = 1 << 30;

/// IA32_PERFEVTSELx (SDM Vol. 3B, 21.2.1.1, Figure 21-1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// Event select.
    pub event_select: u8,
    /// Unit mask.
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
    /// ANY: any thread of the core; version 3, reserved in others, deprecated by CPUID leaf 0xA EDX\[15\]. Never set.
    pub any_thread: bool,
    /// EN: enable.
    pub en: bool,
    /// INV: invert the counter mask.
    pub inv: bool,
    /// CMASK: counter mask.
    pub cmask: u8,
    /// Reserved in architectural versions 1 to 5 without further features.
    #[bits(32)]
    __: u32,
}

impl PerfEvtSel {
    /// What starts a general counter with this event as its state says.
    pub const fn of(select: u64, state: CounterState) -> Self {
        Self::from_bits(select)
            .with_usr(state.user())
            .with_os(state.kernel())
            .with_int(state.interrupts())
            .with_en(true)
    }
}

/// The four bits of a fixed counter in IA32_FIXED_CTR_CTRL (SDM Vol. 3B, 21.2.2, Figure 21-2).
#[bitfield(u8)]
#[derive(PartialEq, Eq)]
pub struct FixedControl {
    /// EN, bit 0: count at privilege level 0.
    pub os: bool,
    /// EN, bit 1: count at privilege levels 1 to 3.
    pub usr: bool,
    /// ANY: any thread of the core; version 3, deprecated by CPUID leaf 0xA EDX\[15\]. Never set.
    pub any_thread: bool,
    /// PMI: interrupt on overflow.
    pub pmi: bool,
    /// The next counter's.
    #[bits(4)]
    __: u8,
}

impl FixedControl {
    /// Bits of each counter.
    pub const WIDTH: u32 = 4;

    /// What starts a fixed counter as its state says.
    pub const fn of(state: CounterState) -> Self {
        Self::new().with_os(state.kernel()).with_usr(state.user()).with_pmi(state.interrupts())
    }

    /// What the register says of fixed counter `number`.
    pub const fn in_register(register: u64, number: u8) -> Self {
        Self::from_bits((register >> (Self::WIDTH * (number & 0xF) as u32) & 0xF) as u8)
    }

    /// The bits in the place of fixed counter `number`.
    pub const fn in_place_of(self, number: u8) -> u64 {
        (self.into_bits() as u64) << (Self::WIDTH * (number & 0xF) as u32)
    }
}

/// IA32_PERF_CAPABILITIES, as far as it is asked (SDM Vol. 4, "Architectural MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfCapabilities {
    /// Of LBR.
    __: u8,
    /// PEBS_FMT: the format of PEBS records.
    #[bits(4)]
    pub pebs_format: u8,
    /// FREEZE_WHILE_SMM can be set.
    __: bool,
    /// FW_WRITE: general counters can be written whole (SDM Vol. 3B, 21.2.8).
    pub fw_write: bool,
    /// Of others.
    #[bits(50)]
    __: u64,
}
