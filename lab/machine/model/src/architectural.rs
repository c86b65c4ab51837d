//! The architectural events, which mean the same on every Intel processor that enumerates them.

use crate::select::Selected;

/// (event, umask) by the bit of `CPUID.0AH:EBX` (SDM, "Pre-defined Architectural Performance Events").
const EVENTS: [(u16, u16); 8] = [
    (0x3C, 0x00), // UnHalted Core Cycles
    (0xC0, 0x00), // Instructions Retired
    (0x3C, 0x01), // UnHalted Reference Cycles
    (0x2E, 0x4F), // LLC Reference
    (0x2E, 0x41), // LLC Misses
    (0xC4, 0x00), // Branch Instruction Retired
    (0xC5, 0x00), // Branch Misses Retired
    (0xA4, 0x01), // Topdown Slots
];

/// Indexes into [`EVENTS`] of the events that fixed counters 0 to 3 count (SDM, "Architectural Performance Monitoring
/// Version 2 Facilities", table of the fixed-function counters: instructions, core cycles, reference cycles; "Version
/// 5" adds slots).
const FIXED: [u8; 4] = [1, 0, 2, 7];

/// Returns the selection of architectural event `index`.
pub(crate) fn event(index: u8) -> Option<Selected> {
    EVENTS.get(usize::from(index)).map(|&(event, umask)| Selected::event(event, umask))
}

/// Returns the event of fixed counter `number`. Counters beyond [`FIXED`] get event 0 with their number plus one as the
/// unit mask, the pseudo-encoding that Intel's event lists use for fixed counters.
pub(crate) fn fixed(number: u8) -> Selected {
    FIXED
        .get(usize::from(number))
        .and_then(|&index| event(index))
        .unwrap_or_else(|| Selected::event(0, u16::from(number.saturating_add(1))))
}
