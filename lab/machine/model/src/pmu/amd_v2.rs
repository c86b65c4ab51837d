//! AMD's `PerfMonV2` (Zen 4 and later): the extended counters with global registers.

use super::{Amd, Pmu, Running};
use crate::{
    bits::bit,
    counter::{Counter, CounterId},
    fault::{GeneralProtection, refuse_reserved},
    writable,
};

/// `PerfCntrGlobalStatus`: bit n is set when counter n overflows (PPR, MSRC000_0300). Read-only.
const GLOBAL_STATUS: u32 = 0xC000_0300;
/// `PerfCntrGlobalCtl`: counter n counts only while bit n is set (PPR, MSRC000_0301).
const GLOBAL_CTL: u32 = 0xC000_0301;
/// `PerfCntrGlobalStatusClr`: writing one clears the status bit (PPR, MSRC000_0302).
const GLOBAL_STATUS_CLR: u32 = 0xC000_0302;
/// `PerfCntrGlobalStatusSet`: writing one sets the status bit (PPR, MSRC000_0303). The write raises no interrupt.
const GLOBAL_STATUS_SET: u32 = 0xC000_0303;

/// Status bit 59, counters frozen: no counter counts while it is set. Exists with `LbrAndPmcFreeze`.
const PMC_FREEZE: u32 = 59;

/// Status bit 58, last branch records frozen.
const LBR_FREEZE: u32 = 58;

/// `DebugCtl` (APM Vol. 2, 13.1.1.7). The model implements only the freezing, and has the register only with
/// `LbrAndPmcFreeze`.
const DEBUG_CTL: u32 = 0x1D9;
/// `FREEZE_LBRS_ON_PMI`: an overflow that interrupts freezes the last branch records.
const FREEZE_LBRS_ON_PMI: u32 = 11;
/// `FREEZE_PERFMON_ON_PMI`: an overflow that interrupts freezes the counters.
const FREEZE_PERFMON_ON_PMI: u32 = 12;

pub(crate) struct AmdV2 {
    core: Amd,
    control: u64,
    control_bits: u64,
    status: u64,
    status_bits: u64,
    /// `None` without `LbrAndPmcFreeze`.
    debug_control: Option<u64>,
}

impl AmdV2 {
    /// The control register resets to all counters enabled (PPR, MSRC000_0301, `PerfCntrEn`; the APM does not say), so
    /// software that knows only the select registers still works.
    pub(crate) fn new(count: u8, freeze: bool, svm: bool, family: u32) -> Self {
        let control_bits = writable::amd_global_ctl(count);
        Self {
            core: Amd::extended(count, svm, family),
            control: control_bits,
            control_bits,
            status: 0,
            status_bits: writable::amd_global_status(count, freeze),
            debug_control: freeze.then_some(0),
        }
    }
}

impl Pmu for AmdV2 {
    fn rdmsr(&self, msr: u32) -> Option<u64> {
        match msr {
            GLOBAL_STATUS => Some(self.status),
            GLOBAL_CTL => Some(self.control),
            GLOBAL_STATUS_CLR | GLOBAL_STATUS_SET => Some(0),
            DEBUG_CTL => self.debug_control,
            _ => self.core.rdmsr(msr),
        }
    }

    fn wrmsr(&mut self, msr: u32, value: u64) -> Option<Result<(), GeneralProtection>> {
        let written = match msr {
            GLOBAL_STATUS => Err(GeneralProtection),
            GLOBAL_CTL => refuse_reserved(value, !self.control_bits).map(|()| self.control = value),
            GLOBAL_STATUS_CLR => refuse_reserved(value, !self.status_bits).map(|()| self.status &= !value),
            GLOBAL_STATUS_SET => refuse_reserved(value, !self.status_bits).map(|()| self.status |= value),
            DEBUG_CTL => {
                let register = self.debug_control.as_mut()?;
                refuse_reserved(value, !writable::AMD_DEBUG_CTL).map(|()| *register = value)
            }
            _ => return self.core.wrmsr(msr, value),
        };
        Some(written)
    }

    fn rdpmc(&self, index: u32) -> Option<u64> {
        self.core.rdpmc(index)
    }

    fn running(&self) -> Vec<Running> {
        if bit(self.status, PMC_FREEZE) {
            return Vec::new();
        }
        let mut running = self.core.running();
        // A pair counts only while the control register enables both.
        let is_enabled = |id| self.control & status_bit(id) != 0;
        running.retain(|counter| is_enabled(counter.id) && self.core.upper(counter.id).is_none_or(is_enabled));
        running
    }

    fn counter(&self, id: CounterId) -> Option<&Counter> {
        self.core.counter(id)
    }

    fn most_per_cycle(&self, running: &Running) -> Option<u64> {
        self.core.most_per_cycle(running)
    }

    fn until_overflow(&self, id: CounterId) -> Option<u64> {
        self.core.until_overflow(id)
    }

    fn count(&mut self, id: CounterId, events: u64) -> u64 {
        let overflows = self.core.count(id, events);
        if overflows > 0 {
            self.status |= status_bit(id);
            let freezes = |by| self.debug_control.is_some_and(|control| bit(control, by)) && self.core.interrupts(id);
            let frozen = [(FREEZE_PERFMON_ON_PMI, PMC_FREEZE), (FREEZE_LBRS_ON_PMI, LBR_FREEZE)];
            let frozen = frozen.into_iter().filter(|(by, _)| freezes(*by)).fold(0, |all, (_, bit)| all | 1 << bit);
            self.status |= frozen;
        }
        overflows
    }

    fn has_interrupting_status(&self, _: bool) -> bool {
        self.core.interrupting().any(|id| self.status & status_bit(id) != 0)
    }

    fn masks_lvt_on_delivery(&self) -> bool {
        self.core.masks_lvt_on_delivery()
    }
}

/// Returns the bit of a counter in the global registers.
fn status_bit(id: CounterId) -> u64 {
    match id {
        CounterId::General(number) => 1 << number,
        CounterId::Fixed(_) | CounterId::Metric(_) => 0,
    }
}
