//! The first access of each register of the interface (see [`crate::first_access`]).

use x86_defs::intel::perfmon::{GLOBAL_FIXED_SHIFT, PerfCapabilities};

use super::{
    Emon, IA32_FIXED_CTR_CTRL, IA32_PERF_CAPABILITIES, IA32_PERF_GLOBAL_CTRL, IA32_PERF_GLOBAL_OVF_CTRL,
    IA32_PERF_GLOBAL_STATUS, fixed, freeze, hidden, reset,
};
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu};
use crate::interface::unmanaged::Counters;
use crate::state::FoundMsrs;

impl Emon {
    const fn examined_by(self, found: PerfCapabilities) -> Self {
        let capabilities = self.capabilities.with_full_width(found.fw_write());
        Self { capabilities: capabilities.with_freeze_while_smm(found.freeze_while_smm()) }
    }

    /// Accesses every register for the first time. Returns the interface with the capabilities that only
    /// IA32_PERF_CAPABILITIES reports, without counters that the global registers do not let through, and without
    /// other features whose bits the registers do not take, and without [hidden] counters that do not
    /// count.
    pub(in crate::interface) fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        let (mut examined, mut has_metrics, mut hides_metrics) = (self, false, false);
        if self.capabilities.has_capabilities() {
            let found = PerfCapabilities::from_bits(first.read(IA32_PERF_CAPABILITIES)?);
            examined = self.examined_by(found);
            hides_metrics = hidden::hides_metrics(first.cpuid(), found);
            has_metrics = found.perf_metrics_available() || hides_metrics;
        }
        if !examined.has_global_control() {
            examined.access_bank(first)?;
            return Ok(examined);
        }
        let accessed = first.trying(IA32_PERF_GLOBAL_CTRL, |found| {
            first.write(IA32_PERF_GLOBAL_CTRL, found & !self.capabilities.own())?;
            let hidden = examined.hidden(first.cpuid());
            examined.without(hidden).access_bank(first)?;
            let answering = examined.access_hidden(first, hidden);
            let accessed = answering.access_fixed(first, has_metrics)?;
            first.read(IA32_PERF_GLOBAL_STATUS)?;
            let accessed = accessed.access_reset(first)?;
            let others = found & !self.capabilities.own();
            Ok(accessed.access_control(first, others, has_metrics).prove_hidden(first, others, hidden, hides_metrics))
        })?;
        // The reset of the errata runs on every general counter, and without it counters count half.
        let cannot_reset = self.capabilities.needs_reset() && accessed.general() != self.general();
        if cannot_reset || accessed.bits(accessed.general().or(accessed.fixed())) == 0 {
            let own = self.capabilities.own();
            return Err(first.fail(Fault::of_value(Access::ReadBack, IA32_PERF_GLOBAL_CTRL, own)));
        }
        Ok(Self { capabilities: freeze::access_first(first, accessed.capabilities) })
    }

    /// Reads the control registers after the first accesses.
    pub(in crate::interface) fn found(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<FoundMsrs, Faulted> {
        if !self.has_global_control() {
            return Ok(FoundMsrs::default());
        }
        let fixed = if self.fixed().is_empty() { 0 } else { first.read(IA32_FIXED_CTR_CTRL)? };
        let debug = freeze::found(first, self.capabilities)?;
        Ok(FoundMsrs { global: first.read(IA32_PERF_GLOBAL_CTRL)?, fixed, debug })
    }

    /// Tries the control registers that contain something else than before, as the first accesses do. Of
    /// IA32_DEBUGCTL it returns what was tried last if it does not take what it contains, so that it is left alone.
    pub(in crate::interface) fn try_found(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        found: FoundMsrs,
        known: FoundMsrs,
    ) -> Result<FoundMsrs, Faulted> {
        if found.global != known.global {
            first.trying(IA32_PERF_GLOBAL_CTRL, |found| {
                first.write(IA32_PERF_GLOBAL_CTRL, found & !self.capabilities.own())
            })?;
        }
        if found.fixed != known.fixed {
            first.trying(IA32_FIXED_CTR_CTRL, |found| {
                first.write(IA32_FIXED_CTR_CTRL, fixed::others(self.capabilities, found))
            })?;
        }
        let is_kept = found.debug == known.debug || freeze::try_found(first, self.capabilities).is_ok();
        Ok(FoundMsrs { debug: if is_kept { found.debug } else { known.debug }, ..found })
    }

    /// Accesses the general counters, and tries the events with which they are [reset].
    fn access_bank(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
        self.bank().access_first(first, self.general())?;
        if self.capabilities.needs_reset() {
            for (register, select) in reset::selects(self.bank()) {
                first.try_value(register, select.with_en(false).into_bits())?;
            }
        }
        Ok(())
    }

    /// Accesses the fixed counters and their control register. Returns the interface without those that the register
    /// does not let through.
    fn access_fixed(self, first: &FirstAccess<'_, impl GuardedCpu>, has_metrics: bool) -> Result<Self, Faulted> {
        let fixed = self.fixed();
        if fixed.is_empty() {
            return Ok(self);
        }
        first.trying(IA32_FIXED_CTR_CTRL, |found| {
            let others = fixed::others(self.capabilities, found);
            first.write(IA32_FIXED_CTR_CTRL, others)?;
            for counter in fixed.iter() {
                Counters::access_first(self, first, counter)?;
            }
            // If another program uses the unit, its bits are there already; a mode that it leaves out counts for a
            // moment.
            let unit = if has_metrics { self.unit_field() } else { 0 };
            let taken = first.taken(IA32_FIXED_CTR_CTRL, others, fixed::every_field(self.capabilities) | unit);
            let left = fixed::whole_fields(self.capabilities, taken);
            let gone = self.bits(fixed) & !(u64::from(left) << GLOBAL_FIXED_SHIFT);
            let capabilities = self.capabilities.without(gone);
            Ok(Self { capabilities: if taken & unit == unit { capabilities } else { capabilities.with_slots(false) } })
        })
    }

    /// Accesses the register that clears the status: with all bits, and with none, as a spurious interrupt does.
    /// Returns the interface without a bit for frozen counters if the register does not take it.
    fn access_reset(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        first.write(IA32_PERF_GLOBAL_OVF_CTRL, 0)?;
        let without_freeze = self.capabilities.with_ctr_frz(false);
        match first.write(IA32_PERF_GLOBAL_OVF_CTRL, self.capabilities.clearable()) {
            Ok(()) => Ok(self),
            Err(_) => first
                .write(IA32_PERF_GLOBAL_OVF_CTRL, without_freeze.clearable())
                .map(|()| Self { capabilities: without_freeze }),
        }
    }

    /// Lets all counters through IA32_PERF_GLOBAL_CTRL beside its bits outside the interface, `others`; none of them is
    /// enabled. Returns the interface without those that the register does not let through.
    fn access_control(self, first: &FirstAccess<'_, impl GuardedCpu>, others: u64, has_metrics: bool) -> Self {
        let (own, unit) = (self.capabilities.own(), if has_metrics { self.unit_bits() } else { 0 });
        let taken = first.taken(IA32_PERF_GLOBAL_CTRL, others, own | unit);
        let capabilities = self.capabilities.without(own & !taken);
        Self { capabilities: if taken & unit == unit { capabilities } else { capabilities.with_slots(false) } }
    }
}
