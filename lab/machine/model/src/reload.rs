//! Auto counter reload (SDM, "Auto Counter Reload"; Linux, arch/x86/events/intel/core.c, `intel_pmu_config_acr`): the
//! overflow of a counter loads others.

use crate::{
    CpuidFunction,
    bits::{bit, ones},
    counter::CounterId,
    fault::{GeneralProtection, refuse_reserved},
    pmu::leaf_23,
};
use std::collections::BTreeMap;

/// `IA32_PMC_GP0_CFG_B` and `IA32_PMC_FX0_CFG_B`: which overflows load the counter. Those of the next counters follow
/// four addresses apart; `CFG_C`, with what is loaded, is one address behind.
const GENERAL_CONFIG: u32 = 0x1902;
const FIXED_CONFIG: u32 = 0x1982;
const STRIDE: u32 = 4;
const COUNTERS: u32 = 32;

/// The registers of a processor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reloads {
    /// The counters that can be loaded, and those whose overflow can load them, with their bits of the global
    /// registers.
    loaded: u64,
    causing: u64,
    /// `CFG_B`, and the `CFG_C` that no record needs.
    registers: BTreeMap<u32, u64>,
}

impl Reloads {
    /// Reads the enumeration.
    pub(crate) fn new(cpuid: &CpuidFunction) -> Self {
        let [subleaves, ..] = leaf_23(cpuid);
        if !bit(subleaves.into(), 2) {
            return Self::default();
        }
        let [general, fixed, causing, causing_fixed] = cpuid(0x23, 2).map(u64::from);
        Self { loaded: general | fixed << 32, causing: causing | causing_fixed << 32, registers: BTreeMap::new() }
    }

    pub(crate) fn lose_power(&mut self) {
        self.registers.clear();
    }

    /// Returns the bits that a register takes, if the processor has it.
    fn writable(&self, msr: u32) -> Option<u64> {
        let number = |first: u32| msr.checked_sub(first).filter(|offset| *offset < STRIDE * COUNTERS);
        let (offset, first_bit) = match number(FIXED_CONFIG) {
            Some(offset) => (offset, COUNTERS),
            None => (number(GENERAL_CONFIG)?, 0),
        };
        let writable = match offset % STRIDE {
            0 => self.causing,
            1 => ones(32),
            _ => return None,
        };
        bit(self.loaded, first_bit + offset / STRIDE).then_some(writable)
    }

    pub(crate) fn rdmsr(&self, msr: u32) -> Option<u64> {
        self.writable(msr).map(|_| self.registers.get(&msr).copied().unwrap_or_default())
    }

    pub(crate) fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let writable = self.writable(msr)?;
        Some(refuse_reserved(value, !writable).map(|()| _ = self.registers.insert(msr, value)))
    }

    /// Returns the counters that the overflow of one loads, each with its `CFG_C`.
    pub(crate) fn by_overflow_of(&self, cause: CounterId) -> Vec<(CounterId, u32)> {
        let of = |(msr, causing): (&u32, &u64)| {
            let (first, id): (u32, fn(u8) -> CounterId) = if *msr < FIXED_CONFIG {
                (GENERAL_CONFIG, CounterId::General)
            } else {
                (FIXED_CONFIG, CounterId::Fixed)
            };
            let is_by_it = (msr - first).is_multiple_of(STRIDE) && causing & cause.bit() != 0;
            let number = u8::try_from((msr - first) / STRIDE).ok().filter(|_| is_by_it)?;
            Some((id(number), msr + 1))
        };
        self.registers.iter().filter_map(of).collect()
    }
}
