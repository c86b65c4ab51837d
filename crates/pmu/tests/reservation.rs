//! Reservation of counters for several events, as the engine does it.

use pmu::placement::Wanted;
use pmu::{Hal, ProcessorIndex};

/// Reserves a counter of the boot processor for each event, or none. Returns the first event without a counter if not.
pub fn reserve_all(hal: &Hal, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
    let narrowed: Vec<_> = wanted.iter().map(|wanted| hal.narrowed(ProcessorIndex::BOOT, *wanted)).collect();
    hal.assign(ProcessorIndex::BOOT, &narrowed, assigned)?;
    for (Wanted { state, .. }, counter) in wanted.iter().zip(assigned) {
        hal.set_up(ProcessorIndex::BOOT, *counter, *state);
    }
    Ok(())
}
