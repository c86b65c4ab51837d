//! The reset of the general counters before the first one starts (`Action::ResetCounters`).

use x86_defs::intel::perfmon::PerfEvtSel;

use super::{Emon, IA32_PERF_GLOBAL_CTRL};
use crate::cpu::{Cpu, Msr};
use crate::interface::unmanaged::{Bank, Counters};
use crate::state::{CounterSet, CounterState, CpuCounters};

/// Event select registers during the reset. The erratum asks for the first three events; in practice some of them
/// count, and all four counters are needed (Linux, arch/x86/events/intel/core.c, `intel_pmu_nhm_workaround`).
const EVENTS: [u64; 4] = [0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1];

/// Returns the event select registers that the reset writes, with their values.
pub fn selects(bank: Bank) -> impl Iterator<Item = (Msr, PerfEvtSel)> {
    (0..).zip(EVENTS).map(move |(counter, event)| (bank.select(counter), PerfEvtSel::from_bits(event)))
}

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
    for (counter, (register, event)) in (0..).zip(selects(bank)) {
        cpu.wrmsr(register, event.into_bits());
        Counters::load(bank, cpu, counter, CounterState::FREE);
    }
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control | emon.bits(bank.all));
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, control);
    bank.clear_selects(cpu, bank.all.without(starting));
}
