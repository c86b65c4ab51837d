//! Counters of P cores that CPUID hides.
//!
//! On Alder Lake, Raptor Lake and Meteor Lake, leaf 0xA reports the counters that both kinds of cores have, and
//! PERF_METRICS_AVAILABLE may be clear. The P cores nevertheless have eight general counters, fixed counter 3 and its
//! metrics (Linux, arch/x86/events/intel/core.c, `intel_pmu_init` and `intel_pmu_broken_perf_cap`). Some machines
//! report them once their E cores are turned off.
//!
//! No manual promises these counters, so nothing is believed. They are tried on each processor before a session counts
//! there: each register has to take what a session writes, and each counter has to count a known loop. A counter that
//! does not is left out. These are the only trials in which a counter counts: it does not interrupt, and starts too low
//! to overflow.
//!
//! Under a hypervisor none of these registers is accessed: it virtualizes what it reports.

use x86_defs::cpuid::{LeafAEdx, leaf};
use x86_defs::intel::perfmon::{self, PerfCapabilities, PerfEvtSel};

use super::capabilities::{hides_counters, reported_general};
use super::perf_metrics::{FIELD, GLOBAL, MODES, MSR_PERF_METRICS, RDPMC_SLOTS, SLOTS};
use super::{Bank, Counters, Emon, IA32_FIXED_CTR_CTRL, IA32_FIXED_CTR0, IA32_PERF_GLOBAL_CTRL};
use crate::cpu::Cpuid;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::unmanaged;
use crate::known_loop::{ITERATIONS, LEAST_INSTRUCTIONS};
use crate::state::CounterSet;

/// Counts the instructions of the loop in both modes.
const INSTRUCTIONS: PerfEvtSel = PerfEvtSel::new().with_event_select(0xC0).with_usr(true).with_os(true).with_en(true);

/// Returns whether leaf 0xA or IA32_PERF_CAPABILITIES, which contains `found`, hides fixed counter 3 or its metrics.
pub fn hides_metrics(cpu: &impl Cpuid, found: PerfCapabilities) -> bool {
    let edx = LeafAEdx::from_bits(cpu.cpuid(leaf::ARCHITECTURAL_PERFMON, 0).edx);
    hides_counters(cpu) && !(found.perf_metrics_available() && edx.fixed() > SLOTS)
}

impl Emon {
    /// Returns the general counters that CPUID hides.
    ///
    /// # IRQL
    /// Any at which the thread stays on its processor.
    pub fn hidden(self, cpu: &impl Cpuid) -> CounterSet {
        let reported = if hides_counters(cpu) { reported_general(cpu) } else { u64::MAX };
        self.general().without(CounterSet::from_bits(reported))
    }

    /// Returns the interface without these general counters.
    pub(super) fn without(self, counters: CounterSet) -> Self {
        Self { capabilities: self.capabilities.without(self.bits(counters)) }
    }

    /// Returns the interface without those of these counters that fail a trial.
    fn keeping(self, counters: CounterSet, passes: impl Fn(u8) -> Result<bool, Faulted>) -> Self {
        self.without(counters.iter().filter(|counter| !passes(*counter).unwrap_or(false)).collect())
    }

    /// Accesses the registers of the `hidden` general counters for the first time. Returns the interface without those
    /// that do not answer.
    pub(super) fn access_hidden(self, first: &FirstAccess<'_, impl GuardedCpu>, hidden: CounterSet) -> Self {
        self.keeping(hidden, |counter| {
            let all = CounterSet::NONE.with(counter);
            Bank { all, ..self.bank() }.access_first(first, all).map(|()| true)
        })
    }

    /// Lets the `hidden` counters count the known loop in [`Phase::Write`](crate::first_access::Phase), each with its
    /// bits of IA32_PERF_GLOBAL_CTRL beside `others`. The caller restores that register, in which the counters of the
    /// interface are off. Returns the interface without the counters that fail, among them fixed counter 3 if it [is
    /// hidden](hides_metrics).
    pub(super) fn prove_hidden(
        self,
        first: &FirstAccess<'_, impl GuardedCpu>,
        others: u64,
        hidden: CounterSet,
        hides_metrics: bool,
    ) -> Self {
        let hidden = hidden.and(self.general());
        let Self { capabilities } = self.keeping(hidden, |counter| self.counts_loop(first, counter, others));
        let loses_slots = hides_metrics && capabilities.slots() && !unit_counts_loop(first, others).unwrap_or(false);
        Self { capabilities: capabilities.with_slots(capabilities.slots() && !loses_slots) }
    }

    /// Returns whether a general counter counts the instructions of the loop.
    fn counts_loop(self, first: &FirstAccess<'_, impl GuardedCpu>, counter: u8, others: u64) -> Result<bool, Faulted> {
        let (place, bits) = (self.place(counter), self.bits(CounterSet::NONE.with(counter)));
        first.trying(place.register, |_| {
            first.write(place.register, 0)?;
            first.trying(place.control, |_| {
                first.write(place.control, INSTRUCTIONS.into_bits())?;
                run_loop(first, others, bits)
            })?;
            Ok(first.counter(place.index)? >= LEAST_INSTRUCTIONS || !first.writes())
        })
    }
}

/// Returns whether fixed counter 3 counts the slots of the loop, and the metrics divide them. Leaves the unit alone if
/// another program has enabled it.
fn unit_counts_loop(first: &FirstAccess<'_, impl GuardedCpu>, others: u64) -> Result<bool, Faulted> {
    let slots = IA32_FIXED_CTR0.at(SLOTS);
    first.trying(IA32_FIXED_CTR_CTRL, |found| {
        if found & FIELD != 0 {
            return Ok(false);
        }
        // The metrics are written after the counter, as for a session.
        first.trying(MSR_PERF_METRICS, |_| {
            first.trying(slots, |_| {
                first.demand(slots, unmanaged::COUNT)?;
                first.demand(slots, 0)?;
                first.demand(MSR_PERF_METRICS, 0)?;
                first.demand(IA32_FIXED_CTR_CTRL, found | MODES)?;
                run_loop(first, others, GLOBAL)?;
                let (slots, metrics) = (first.counter(RDPMC_SLOTS)?, first.counter(perfmon::RDPMC_METRICS)?);
                // Each iteration takes a slot at least.
                Ok(slots >= ITERATIONS.into() && metrics != 0 || !first.writes())
            })
        })
    })
}

/// Runs the loop while these bits of IA32_PERF_GLOBAL_CTRL are set.
fn run_loop(first: &FirstAccess<'_, impl GuardedCpu>, others: u64, bits: u64) -> Result<(), Faulted> {
    first.write(IA32_PERF_GLOBAL_CTRL, others | bits)?;
    first.run_loop();
    first.write(IA32_PERF_GLOBAL_CTRL, others)
}
