//! Comparison of the registers of the current processor with what the driver wrote.

use x86_defs::intel::debug_control::IA32_DEBUGCTL;

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::disturbance::{COUNTER, Disturbance};
use crate::interface::ProfileInterface;
use crate::state::{CounterCell, CounterSet, CpuCounters, PerCpuPmu, Total, all_but, backwards};

impl<E> Hal<E> {
    /// Compares the registers of the active counters of the current processor with the values that the driver wrote,
    /// and notes each counter that is disturbed, at the time `now`. Returns the disturbed counters of the registers
    /// that a new start writes; stopped counters are among them if another program started them. Touches no register if
    /// no counter is active, and writes none.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    pub fn compare(&self, current: CurrentCpu<'_, impl Cpu>, now: u64) -> CounterSet {
        let mut disturbed = CounterSet::NONE;
        let Some(cpu_counters) = self.find(current.index()) else { return disturbed };
        cpu_counters.pmu.disturbances.stamp(now);
        // While a processor is asleep none of its counters is active.
        if !cpu_counters.active.all.is_empty() {
            let reserved = cpu_counters.counters(|state| !state.is_free());
            self.interface_with(cpu_counters.pmu).compare(current.cpu(), cpu_counters, |counters, disturbance| {
                disturbed =
                    disturbed.or(note(cpu_counters.pmu, cpu_counters.cells, reserved, (counters, &disturbance, now)));
            });
            if cpu_counters.has_extra() {
                disturbed = disturbed.or(self.compare_extra_registers(current, now));
            }
        }
        disturbed
    }

    /// Notes at the time `now` that a register is disturbed on which the samples of all active counters depend.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn disturb(&self, current: CurrentCpu<'_, impl Cpu>, disturbance: Disturbance, now: u64) {
        if let Some(cpu_counters) = self.find(current.index()) {
            cpu_counters.pmu.disturbances.note(cpu_counters.active.all, disturbance, now);
        }
    }

    /// Lets exactly the active counters of the current processor count, where one register controls them all.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // its stack is not in use while its caller stops counters
    pub fn confine(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(cpu_counters) = self.find(current.index()).filter(|found| !found.active.all.is_empty()) {
            self.interface_with(cpu_counters.pmu).disable(current.cpu(), cpu_counters, CounterSet::NONE);
        }
    }

    /// Returns how often the counts of the current processor were disturbed, or interrupted by a sleep, as far as it
    /// was found. Counts that were read while the number was the same have no gap between them.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[must_use]
    pub fn interruptions(&self, current: CurrentCpu<'_, impl Cpu>) -> u64 {
        self.find(current.index()).map_or(0, |cpu_counters| cpu_counters.pmu.disturbances.interruptions())
    }

    /// Passes the first disturbance of each of `counters` of the current processor since the last call to `each`, with
    /// the time at which it was found; `now`, if it was found without a clock.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn take_disturbances(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        counters: CounterSet,
        now: u64,
        mut each: impl FnMut(u8, Disturbance, u64),
    ) {
        let Some(cpu_counters) = self.find(current.index()) else { return };
        cpu_counters.pmu.disturbances.stamp(now);
        while let Some((counter, disturbance, time)) = self.take_disturbance(current.index(), counters) {
            each(counter, disturbance, time);
        }
    }

    /// Takes the disturbance of one of `counters` of a processor, and returns it with the counter and the time. `None`
    /// if none of them has one.
    #[inline(never)] // its stack is not in use while the disturbance is passed on
    fn take_disturbance(&self, processor: ProcessorIndex, counters: CounterSet) -> Option<(u8, Disturbance, u64)> {
        let cpu_counters = self.find(processor)?;
        let (counter, disturbance, time) = cpu_counters.pmu.disturbances.take(counters)?;
        let register = match disturbance.register {
            COUNTER => self.interface_with(cpu_counters.pmu).counter_register(cpu_counters, counter).address(),
            other => other,
        };
        Some((cpu_counters.whole_of(counter), Disturbance { register, ..disturbance }, time))
    }
}

/// Notes a disturbance of some counters, found at a time. Returns those of them that are `reserved`, if a new start
/// writes the register.
#[cold]
#[inline(never)]
fn note(
    pmu: &PerCpuPmu,
    cells: &[CounterCell],
    reserved: CounterSet,
    (counters, disturbance, time): (CounterSet, &Disturbance, u64),
) -> CounterSet {
    pmu.disturbances.note(counters, *disturbance, time);
    if disturbance.register == IA32_DEBUGCTL {
        return CounterSet::NONE;
    }
    let cpu_counters = CpuCounters { cells, pmu, ..CpuCounters::default() };
    counters.and(reserved).iter().map(|counter| cpu_counters.whole_of(counter)).collect()
}

/// Adds the events up to `value` to the total of a counter. Returns the total. A value that went backwards was written
/// by another program or lost: it adds nothing, and the counter is disturbed.
#[inline]
pub(super) fn update(
    interface: &impl ProfileInterface,
    cpu_counters: CpuCounters<'_>,
    total: &Total,
    counter: u8,
    value: u64,
) -> u64 {
    let missing_bits = 64_u8.saturating_sub(interface.width_of(counter));
    let state = cpu_counters.get(counter);
    if state.precise() || state.reloaded() {
        return total.follow(value, missing_bits);
    }
    let mask = all_but(missing_bits);
    if backwards(total.value(), value, mask) {
        cpu_counters.pmu.disturbances.note_backwards(counter, value, total.value());
        total.loaded(value);
    }
    total.update(value, mask)
}
