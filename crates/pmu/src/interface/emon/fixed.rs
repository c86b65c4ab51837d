//! Fixed counters: what each counts, and the register that starts them (SDM Vol. 3B, 21.2.2).

use x86_defs::intel::perfmon::FixedControl;

use super::capabilities::{MAX_FIXED, PmuCapabilities};
use crate::source::ProfileSource;
use crate::state::{CounterSet, CounterState, CpuCounters};

/// For fixed counters 0 to 2 the bit in leaf 0xA EBX of the event that they count: instructions retired, core cycles,
/// reference cycles (SDM Vol. 3B, 21.2.2, Table 21-2).
const EVENTS: [u8; MAX_FIXED as usize] = [1, 0, 2];

/// The one of these whose general counterpart counts in another unit. Fixed counter 2 counts at the rate of the
/// time-stamp counter; event 3CH, unit mask 01H, at that of the core crystal or the bus on most processors (SDM Vol. 3B,
/// 21.2.3).
const REFERENCE_CYCLES: u8 = 2;

/// The number of the fixed counter that counts the event of a source, where there is that counter.
pub fn number_for(source: &ProfileSource) -> Option<u8> {
    let bit = source.ebx_bit?;
    (0..).zip(EVENTS).find(|(_, event)| *event == bit).map(|(number, _)| number)
}

/// Whether no other counter than the fixed one may count the source: who asks twice must not be answered in two units.
pub fn is_alone(source: &ProfileSource) -> bool {
    number_for(source) == Some(REFERENCE_CYCLES)
}

/// Of what IA32_FIXED_CTR_CTRL held, what does not belong to the interface.
pub fn others(capabilities: PmuCapabilities, saved: u64) -> u64 {
    (0..MAX_FIXED)
        .filter(|number| capabilities.fixed() >> number & 1 == 1)
        .fold(saved, |rest, number| rest & !FixedControl::ALL.to_register(number))
}

/// Returns what starts a fixed counter in this state.
const fn started(state: CounterState) -> FixedControl {
    FixedControl::new().with_os(state.kernel()).with_usr(state.user()).with_pmi(state.interrupts())
}

/// IA32_FIXED_CTR_CTRL with those of `counters` on that are fixed, and others as they were found.
pub fn control(capabilities: PmuCapabilities, row: CpuCounters<'_>, counters: CounterSet) -> u64 {
    (0..MAX_FIXED)
        .filter(|number| counters.has(capabilities.count() + number))
        .map(|number| started(row.get(capabilities.count() + number)).to_register(number))
        .fold(others(capabilities, row.known.saved().fixed), |register, bits| register | bits)
}
