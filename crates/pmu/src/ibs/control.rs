//! The control registers of the units.

use x86_defs::amd::ibs::{self as registers, IbsFetchCtl, IbsOpCtl};
use x86_defs::cpuid::Leaf8000001BEax;

use super::{Counted, fetch, op};
use crate::cpu::{Cpu, Msr};

/// The register of a unit.
pub(crate) struct Control {
    pub(super) msr: Msr,
    /// What its unit can count.
    pub(super) counted: &'static [Counted],
    /// The registers that a look reads.
    pub(super) registers: &'static [Msr],
    pub(super) enable: u64,
    pub(super) valid: u64,
    /// What software alone changes.
    pub(super) settings: u64,
    /// The low bits of the counter, which the processor sets at random, if software keeps them.
    pub(super) random: u64,
    /// The period and [`valid`](Self::valid), which are cleared before the unit is switched off: otherwise family 10h
    /// shows a sample from then on (erratum 420).
    pub(super) cleared_first: u64,
}

/// That of ops.
pub(crate) const OPS: Control = Control {
    msr: Msr::new(registers::IBS_OP_CTL),
    counted: &[Counted::Cycles, Counted::Ops],
    registers: &op::REGISTERS,
    enable: IbsOpCtl::new().with_en(true).into_bits(),
    valid: IbsOpCtl::new().with_val(true).into_bits(),
    settings: !IbsOpCtl::new().with_val(true).with_cur_cnt(0x7FF_FFFF).into_bits(),
    random: IbsOpCtl::new().with_cur_cnt(0x7F).into_bits(),
    cleared_first: IbsOpCtl::new().with_max_cnt(u16::MAX).with_max_cnt_ext(0x7F).with_val(true).into_bits(),
};

/// That of fetches.
pub(crate) const FETCHES: Control = Control {
    msr: Msr::new(registers::IBS_FETCH_CTL),
    counted: &[Counted::Fetches],
    registers: &fetch::REGISTERS,
    enable: IbsFetchCtl::new().with_en(true).into_bits(),
    valid: IbsFetchCtl::new().with_val(true).into_bits(),
    settings: IbsFetchCtl::new()
        .with_max_cnt(u16::MAX)
        .with_en(true)
        .with_rand_en(true)
        .with_l3_miss_only(true)
        .into_bits(),
    random: 0,
    cleared_first: IbsFetchCtl::new().with_max_cnt(u16::MAX).with_val(true).into_bits(),
};

impl Control {
    /// Returns whether two values have other settings.
    pub(super) const fn differs(&self, one: u64, other: u64) -> bool {
        (one ^ other) & self.settings != 0
    }

    /// Switches the unit off, whose register contains `now`, and leaves this value: two writes.
    pub(super) fn leave(&self, cpu: &impl Cpu, now: u64, value: u64) {
        cpu.wrmsr(self.msr, now & !self.cleared_first);
        cpu.wrmsr(self.msr, value);
    }
}

/// Returns the settings of a unit that is off for the period that is next to this one.
pub(super) fn settings(counted: Counted, features: Leaf8000001BEax, period: u32) -> u64 {
    /// The least periods (Linux, `perf_ibs_op` and `perf_ibs_fetch`).
    const OPS: u32 = 0x90;
    const FETCHES: u32 = 0x10;
    let has_long_counter = counted != Counted::Fetches && features.op_cnt_ext();
    let most = if has_long_counter { (1 << 27) - 1 } else { (1 << 20) - 1 };
    let least = if counted == Counted::Fetches { FETCHES } else { OPS };
    let period = period.clamp(least, most);
    let low = (period >> 4 & 0xFFFF) as u16;
    match counted {
        Counted::Fetches => IbsFetchCtl::new().with_max_cnt(low).with_rand_en(true).into_bits(),
        Counted::Cycles | Counted::Ops => IbsOpCtl::new()
            .with_max_cnt(low)
            .with_max_cnt_ext((period >> 20 & 0x7F) as u8)
            .with_cnt_ctl(counted == Counted::Ops)
            .into_bits(),
    }
}

/// Returns the period for a counter with this interval.
///
/// Of ops an eighth of it, and at least 512, is left for the op to retire, and for the time until the interrupt.
/// Dispatched ops are more than those that retire, and cycles are also counted where the counter does not count. One
/// fetch is at most 64 bytes, which are seldom more than 16 instructions.
pub(super) fn period(counted: Counted, interval: u32) -> u32 {
    match counted {
        Counted::Fetches => interval / 16,
        Counted::Cycles | Counted::Ops => interval.saturating_sub((interval / 8).max(512)),
    }
}
