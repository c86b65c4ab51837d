//! The reset of the general counters before the first one starts (`Action::ResetCounters`).

use super::{Emon, IA32_PERF_GLOBAL_CTRL};
use crate::cpu::Cpu;
use crate::interface::unmanaged::Counters;
use crate::state::{CounterSet, CounterState, CpuCounters};

/// Event select registers during the reset. The erratum asks for the first three events; in practice some of them
/// count, and all four counters are needed (Linux, arch/x86/events/intel/core.c, `intel_pmu_nhm_workaround`).
const EVENTS: [u64; 4] = [0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1];

/// Resets the general counters if some of `counters`, which are about to start, are general ones, and none counts: not
/// of the driver by its state, nor of another program by the global control register. Fixed counters keep counting.
///
/// Costs one read. The reset costs ten writes more, and one for each general counter that does not start.
pub fn before_start(emon: Emon, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
    let (bank, starting) = (emon.bank(), counters.and(emon.general()));
    if starting.is_empty() || !cpu_counters.active.all.and(bank.all).is_empty() {
        return;
    }
    let control = cpu.rdmsr(IA32_PERF_GLOBAL_CTRL);
    if !emon.counters_in(control).and(bank.all).is_empty() {
        return;
    }
    for (counter, event) in (0..).zip(EVENTS) {
        cpu.wrmsr(bank.select(counter), event);
        Counters::load(bank, cpu, counter, CounterState::FREE);
    }
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control | emon.bits(bank.all));
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control);
    bank.clear_selects(cpu, bank.all.without(starting));
}
