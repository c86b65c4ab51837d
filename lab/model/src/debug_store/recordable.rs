//! The general counters that can record each event, by processor model: the columns `PEBS`, `Counter` and
//! `PEBScounters` of Intel's event files (perfmon), for the events 3CH, 2EH, C0H, C4H and C5H. For other events and
//! models, every PEBS counter records.

use crate::{bits::byte, counter::CounterId, identity::is_atom, select::Selected};

/// Cycle and last-level cache events. They occur independently of instruction retirement, so no processor records them.
const NEVER: [u16; 2] = [0x3C, 0x2E];

/// Sandy Bridge, Ivy Bridge, Haswell, Broadwell, Skylake to Comet Lake, Skylake-SP to Cascade Lake.
const FROM_SANDY_BRIDGE_TO_CASCADE_LAKE: [u8; 19] =
    [0x2A, 0x2D, 0x3A, 0x3E, 0x3C, 0x45, 0x46, 0x3F, 0x3D, 0x47, 0x4F, 0x56, 0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6, 0x55];

/// Golden Cove, Raptor Cove and Redwood Cove: Alder Lake, Raptor Lake, Meteor Lake (P cores); Sapphire Rapids, Emerald
/// Rapids, Granite Rapids.
const GOLDEN_COVE_AND_REDWOOD_COVE: [u8; 12] = [0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0xAA, 0xAC, 0xB5, 0x8F, 0xCF, 0xAD, 0xAE];

/// The PEBS restrictions of a processor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Recordable {
    /// No restrictions are known for the model, except [`NEVER`].
    #[default]
    Unknown,
    OldCore,
    GoldenCove,
}

impl Recordable {
    pub(super) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let [signature, ..] = cpuid(1, 0);
        let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
        match byte(signature, 11, 8) {
            6 if FROM_SANDY_BRIDGE_TO_CASCADE_LAKE.contains(&model) => Self::OldCore,
            6 if GOLDEN_COVE_AND_REDWOOD_COVE.contains(&model) && !is_atom(cpuid) => Self::GoldenCove,
            _ => Self::Unknown,
        }
    }

    /// Returns a bit for each general counter that can record the selected event.
    pub(super) fn counters(self, Selected { event, umask, .. }: Selected) -> u64 {
        match (self, event, umask) {
            _ if NEVER.contains(&event) => 0,
            (Self::OldCore, 0xC0 | 0xC4 | 0xC5, 0) => 0,
            (Self::OldCore, 0xC0, 1) => 1 << 1,
            (Self::GoldenCove, 0xC0, _) => !1,
            _ => !0,
        }
    }

    /// Returns whether a counter records the selected event with precise distribution: at the overflow itself instead
    /// of at the next event (column `PDISTCounter` of the event files; SDM, "PDist: Precise Distribution").
    pub(super) fn is_distributed(self, counter: CounterId, Selected { event, .. }: Selected) -> bool {
        matches!((self, counter, event), (Self::GoldenCove, CounterId::General(0), 0xC4 | 0xC5))
    }
}
