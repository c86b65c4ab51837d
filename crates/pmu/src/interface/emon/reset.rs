//! The reset of the general counters before some of them start (`Action::ResetCounters`).

use x86_defs::intel::perfmon::PerfEvtSel;

use super::{Emon, IA32_PERF_GLOBAL_CTRL};
use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::interface::unmanaged::{Bank, Counters};
use crate::state::{CounterSet, CounterState, CpuCounters};

/// Event select registers during the reset. The erratum asks for the first three events; in practice some of them
/// count, and all four counters are needed (Linux, arch/x86/events/intel/core.c, `intel_pmu_nhm_workaround`).
const EVENTS: [u64; 4] = [0x0043_00B5, 0x0043_00D2, 0x0043_00B1, 0x0043_00B1];

/// Returns the event select registers that the reset writes, with their values.
pub fn selects(bank: Bank) -> impl Iterator<Item = (Msr, PerfEvtSel)> {
    (0..).zip(EVENTS).map(move |(counter, event)| (bank.select(counter), PerfEvtSel::from_bits(event)))
}

/// Resets the general counters if some of `counters`, which are about to start, are general ones. Active general
/// counters stop for the time of the reset, keep their counts and what is left of their intervals, and have to be let
/// count again by IA32_PERF_GLOBAL_CTRL. Fixed counters keep counting.
///
/// If another program lets a general counter count, by the global control register, there is no reset: it would destroy
/// that count, because a write reaches only 32 bits of a counter. The counters that start are then disturbed.
///
/// Costs one read. The reset costs ten writes more, one for each general counter that neither starts nor is active, and
/// if there are A active ones, one write and A times one RDPMC and two writes.
// Never inlined: `enable` is on deep paths, and few processors need a reset.
#[inline(never)]
pub fn before_start(emon: Emon, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
    let (bank, starting) = (emon.bank(), counters.and(emon.general()));
    if starting.is_empty() {
        return;
    }
    let active = cpu_counters.active.all.and(bank.all);
    let control = cpu.rdmsr(IA32_PERF_GLOBAL_CTRL);
    let theirs = emon.counters_in(control).and(bank.all).without(active);
    if !theirs.is_empty() {
        let disturbance = Disturbance::of(IA32_PERF_GLOBAL_CTRL, control, control & !emon.bits(theirs));
        return cpu_counters.pmu.disturbances.note_found(disturbance.map(|disturbance| (starting, disturbance)));
    }
    let stopped = control & !emon.bits(bank.all);
    if !active.is_empty() {
        cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, stopped);
    }
    let mut values = [0; EVENTS.len()];
    for ((counter, started), value) in cpu_counters.pmu.started_of(active).zip(&mut values) {
        *value = cpu.rdpmc(u32::from(counter));
        // A counter with an interval, precise or not, goes on where it was. The value of another one may have more bits
        // than a write has.
        if !cpu_counters.get(counter).interrupt() {
            started.overflowed(*value, started.initial());
            *value = started.initial();
        }
    }
    for (counter, (register, event)) in (0..).zip(selects(bank)) {
        cpu.wrmsr(register, event.into_bits());
        Counters::load(bank, cpu, counter, CounterState::FREE);
    }
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, stopped | emon.bits(bank.all));
    cpu.wrmsr(IA32_PERF_GLOBAL_CTRL, stopped);
    bank.clear_selects(cpu, bank.all.without(starting).without(active));
    for ((counter, started), value) in cpu_counters.pmu.started_of(active).zip(values) {
        cpu.wrmsr(started.register(), value);
        cpu.wrmsr(bank.select(counter), started.select());
    }
}
