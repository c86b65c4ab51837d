//! Counters that the overflow of another one loads again (auto counter reload), without an interrupt.
//!
//! Two counters of an owner do so: a sampled one, whose overflow interrupts, and a silent one. Each begins anew when
//! the other overflows, so that the first that reaches its interval ends the window of both. Only a window that the
//! sampled one ends makes a sample.

use x86_defs::intel::architectural_pebs::{COUNTER_STRIDE, CounterConfig, IA32_PMC_FX0_CFG_C, IA32_PMC_GP0_CFG_C};
use x86_defs::intel::auto_counter_reload::{IA32_PMC_FX0_CFG_B, IA32_PMC_GP0_CFG_B};

use super::{Emon, capabilities};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::state::{CounterSet, CpuCounters};

/// Returns the register of a counter, of which those of general counter 0 and of fixed counter 0 have these addresses.
pub(crate) const fn config(first: [u32; 2], counter: u8, first_fixed: u8) -> Msr {
    let [general, fixed] = first;
    match counter.checked_sub(first_fixed) {
        None => Msr::new(general).at(counter.wrapping_mul(COUNTER_STRIDE)),
        Some(number) => Msr::new(fixed).at(number.wrapping_mul(COUNTER_STRIDE)),
    }
}

impl Emon {
    /// Returns CFG_B and CFG_C of a counter.
    const fn configs(self, counter: u8) -> [Msr; 2] {
        let first_fixed = self.capabilities.count();
        [
            config([IA32_PMC_GP0_CFG_B, IA32_PMC_FX0_CFG_B], counter, first_fixed),
            config([IA32_PMC_GP0_CFG_C, IA32_PMC_FX0_CFG_C], counter, first_fixed),
        ]
    }

    /// Returns the counters that CPUID says can reload each other.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub(crate) fn enumerated_reloads(self, cpu: &impl Cpuid) -> CounterSet {
        self.general().or(self.fixed()).and(self.counters_in(capabilities::reloadable(cpu)))
    }

    /// Tries the registers of the counters that CPUID says can reload each other: every overflow, and every value in
    /// the bits that a load has. Returns the counters; none if a register does not take that, or another program uses
    /// one.
    pub(crate) fn access_reloads(self, first: &FirstAccess<'_, impl GuardedCpu>, enumerated: CounterSet) -> CounterSet {
        let counters = self.general().or(self.fixed()).and(enumerated);
        let causes = self.bits(counters);
        let loads = CounterConfig::new().with_reload(u32::MAX).into_bits();
        // What is there stays: another program uses it.
        let takes = |register: Msr, value: u64| {
            first.trying(register, |found| match found {
                0 => first.demand(register, value).map(|()| true),
                _ => Ok(false),
            })
        };
        let takes_all = |counter: u8| -> Result<bool, Faulted> {
            let [causing, loaded] = self.configs(counter);
            Ok(takes(causing, causes)? & takes(loaded, loads)?)
        };
        // Each is read, whatever the others answer.
        let answering: CounterSet = counters.iter().filter(|counter| takes_all(*counter).unwrap_or(false)).collect();
        if answering == counters { counters } else { CounterSet::NONE }
    }

    /// Lets those of `counters` reload each other that do, from now on or no longer: two writes each. They stand still.
    #[inline]
    pub(super) fn set_reloads(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet, on: bool) {
        if !cpu_counters.pmu.reloadable().is_empty() {
            self.write_reloads(cpu, cpu_counters, counters, on);
        }
    }

    #[inline(never)] // for the stack of its callers
    fn write_reloads(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet, on: bool) {
        for counter in cpu_counters.counters(|state| state.reloaded()).and(counters).iter() {
            let state = cpu_counters.get(counter);
            let (mut causing, mut config) = (CounterSet::NONE, CounterConfig::new());
            if on {
                let both = cpu_counters.counters(|other| other.reloaded() && other.owner() == state.owner());
                let itself = if state.silent() { CounterSet::NONE } else { CounterSet::NONE.with(counter) };
                causing = both.without(itself);
                config = config.with_reload(state.interval().wrapping_neg());
            }
            let [causes, loaded] = self.configs(counter);
            cpu.wrmsr(loaded, config.into_bits());
            cpu.wrmsr(causes, self.bits(causing));
        }
    }
}
