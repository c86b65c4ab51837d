//! Fixed counters: their events and their control register (SDM Vol. 3B, 21.2.2).

use x86_defs::intel::perfmon::FixedControl;

use super::capabilities::{MAX_FIXED, PmuCapabilities};
use super::sources::ebx_bit;
use crate::source::{ProfileSource, RawEvent};
use crate::state::{CounterSet, CounterState, CpuCounters};

/// Bits in leaf 0xA EBX of the events that fixed counters 0 to 2 count: instructions retired, core cycles, reference
/// cycles (SDM Vol. 3B, 21.2.2, Table 21-2).
const EVENTS: [u8; MAX_FIXED as usize] = [1, 0, 2];

/// The fixed counter that counts in another unit than its general event. Fixed counter 2 counts at the rate of the
/// time-stamp counter; event 3CH, unit mask 01H, at that of the core crystal or the bus on most processors (SDM Vol.
/// 3B, 21.2.3).
const REFERENCE_CYCLES: u8 = 2;

/// Instructions retired, as only fixed counter 0 counts and records them: INST_RETIRED.ANY, INST_RETIRED.PREC_DIST. No
/// general counter has this encoding.
const INSTRUCTIONS: RawEvent = RawEvent::new().with_umask(0x01);

/// Returns the number of the fixed counter for the event of a source, if there is one.
pub fn number_for(source: &ProfileSource) -> Option<u8> {
    if is_raw(source) {
        return Some(0);
    }
    let bit = ebx_bit(source)?;
    (0..).zip(EVENTS).find(|(_, event)| *event == bit).map(|(number, _)| number)
}

/// Returns whether only the fixed counter may count the source: two requests must not get counts in different units.
pub fn is_alone(source: &ProfileSource) -> bool {
    number_for(source) == Some(REFERENCE_CYCLES) || is_raw(source)
}

/// Returns whether the source is the raw event that no general counter counts.
pub fn is_raw(source: &ProfileSource) -> bool {
    source.source.raw() == Some(INSTRUCTIONS)
}

/// Returns the bits of IA32_FIXED_CTR_CTRL outside the interface, as they were found.
pub fn others(capabilities: PmuCapabilities, saved: u64) -> u64 {
    numbers(capabilities).fold(saved, |rest, number| rest & !FixedControl::ALL.to_register(number))
}

/// Returns the numbers of the fixed counters of the interface.
fn numbers(capabilities: PmuCapabilities) -> impl Iterator<Item = u8> {
    (0..MAX_FIXED).filter(move |number| capabilities.fixed() >> number & 1 == 1)
}

/// Every bit that a fixed counter in any state has in its field.
const STARTED: FixedControl = FixedControl::new().with_os(true).with_usr(true).with_pmi(true);

/// Returns IA32_FIXED_CTR_CTRL with all fixed counters on in both modes, with interrupts.
pub fn every_field(capabilities: PmuCapabilities) -> u64 {
    numbers(capabilities).fold(0, |all, number| all | STARTED.to_register(number))
}

/// Returns the bitmap of the fixed counters of which the register took all bits of [`every_field`].
pub fn whole_fields(capabilities: PmuCapabilities, taken: u64) -> u8 {
    let is_whole = |number: &u8| taken & STARTED.to_register(*number) == STARTED.to_register(*number);
    numbers(capabilities).filter(is_whole).fold(0, |all, number| all | 1 << number)
}

/// Returns what starts a fixed counter in this state.
const fn started(state: CounterState) -> FixedControl {
    FixedControl::new().with_os(state.kernel()).with_usr(state.user()).with_pmi(state.interrupts())
}

/// Returns IA32_FIXED_CTR_CTRL with the fixed ones of `counters` on, and bits outside the interface as they were found.
pub fn control(capabilities: PmuCapabilities, cpu_counters: CpuCounters<'_>, counters: CounterSet) -> u64 {
    (0..MAX_FIXED)
        .filter(|number| counters.has(capabilities.count() + number))
        .map(|number| started(cpu_counters.get(capabilities.count() + number)).to_register(number))
        .fold(others(capabilities, cpu_counters.pmu.snapshot.fixed_control()), |register, bits| register | bits)
}
