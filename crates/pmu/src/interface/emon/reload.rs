//! Counters that the overflow of another one loads again (auto counter reload), without an interrupt.
//!
//! Two counters of an owner do so: a sampled one, whose overflow interrupts, and a silent one. Each begins anew when the
//! other overflows, so that the first that reaches its interval ends the window of both. Only the windows that the
//! sampled one ends are told.

use x86_defs::intel::architectural_pebs::{COUNTER_STRIDE, CounterConfig, IA32_PMC_FX0_CFG_C, IA32_PMC_GP0_CFG_C};
use x86_defs::intel::auto_counter_reload::{IA32_PMC_FX0_CFG_B, IA32_PMC_GP0_CFG_B};

use super::{Emon, capabilities};
use crate::cpu::{Cpu, Cpuid, Msr};
use crate::first_access::{Fault, FirstAccess, GuardedCpu};
use crate::interface::ProfileInterface;
use crate::state::{CounterSet, CounterState, CpuCounters};

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

    /// Tries the registers of the counters that can reload each other: every overflow, and every value in the bits that
    /// a load has. Returns the counters; none if a register does not take that, or another program uses one.
    pub(crate) fn access_reloads(self, first: &FirstAccess<'_, impl GuardedCpu>) -> CounterSet {
        let counters = self.enumerated_reloads(first.cpuid());
        let causes = self.bits(counters);
        let loads = CounterConfig::new().with_reload(u32::MAX).into_bits();
        // What is there stays: another program uses it.
        let takes = |register: Msr, value: u64| {
            first.trying(register, |found| match found {
                0 => first.demand(register, value).and_then(|()| first.demand(register, 0)).map(|()| true),
                _ => Ok(false),
            })
        };
        let takes_all = |counter: u8| -> Result<bool, Fault> {
            let [causing, loaded] = self.configs(counter);
            Ok(takes(causing, causes)? && takes(loaded, loads)?)
        };
        let all = counters.iter().all(|counter| takes_all(counter).unwrap_or(false));
        if all { counters } else { CounterSet::NONE }
    }

    /// Lets those of `counters` reload each other that do: two writes each. They stand still.
    #[inline(never)] // for the stack of its callers
    pub(super) fn begin_reloads(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        for counter in counters.iter() {
            let state = cpu_counters.get(counter);
            if state.reloaded() {
                let of_owner = |other: CounterState| other.reloaded() && other.owner() == state.owner();
                let both = cpu_counters.counters(of_owner);
                let causing = if state.silent() { both } else { both.without(CounterSet::NONE.with(counter)) };
                let reload = (state.initial_count(self.width_of(counter)) & 0xFFFF_FFFF) as u32;
                self.write_configs(cpu, counter, causing, CounterConfig::new().with_reload(reload));
            }
        }
    }

    /// Lets those of `counters` reload each other no longer that did: two writes each.
    #[inline(never)] // for the stack of its callers
    pub(super) fn end_reloads(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        for counter in counters.iter() {
            if cpu_counters.get(counter).reloaded() {
                self.write_configs(cpu, counter, CounterSet::NONE, CounterConfig::new());
            }
        }
    }

    fn write_configs(self, cpu: &impl Cpu, counter: u8, causing: CounterSet, config: CounterConfig) {
        let [causes, loaded] = self.configs(counter);
        cpu.wrmsr(loaded, config.into_bits());
        cpu.wrmsr(causes, self.bits(causing));
    }
}
