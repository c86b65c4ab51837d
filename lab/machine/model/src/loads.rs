//! Retired loads that some event numbers count, and which event counts them on which processor.
//!
//! The same event number is another event on each core type of a hybrid. A test that says what happened, and not which
//! event number counts it, notices when counts of different events are added.

use crate::{
    bits::byte,
    cpuid::{family, is_atom, vendor},
    select::Selected,
};

/// A retired load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// It missed the last level cache.
    MissedLastLevel,
    /// Another core had the line modified.
    HitModified,
}

/// Returns the event that counts such loads: `MEM_LOAD_RETIRED.L3_MISS` and `MEM_LOAD_L3_HIT_RETIRED.XSNP_HITM` of
/// Golden Cove, `MEM_LOAD_UOPS_RETIRED_MISC.L3_MISS` and `MEM_LOAD_UOPS_RETIRED.HITM` of Gracemont (event files of
/// Alder Lake; models by `mapfile.csv`). `None` for other processors.
pub(crate) fn event(cpuid: &dyn Fn(u32, u32) -> [u32; 4], load: Load) -> Option<Selected> {
    let [signature, ..] = cpuid(1, 0);
    let model = byte(signature, 19, 16) << 4 | byte(signature, 7, 4);
    if vendor(cpuid) != b"GenuineIntel" || family(signature) != 6 || !matches!(model, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF)
    {
        return None;
    }
    let (number, umask) = match (is_atom(cpuid), load) {
        // The same encoding with two meanings.
        (false, Load::MissedLastLevel) | (true, Load::HitModified) => (0xD1, 0x20),
        (false, Load::HitModified) => (0xD2, 0x04),
        (true, Load::MissedLastLevel) => (0xD2, 0x20),
    };
    Some(Selected::event(number, umask))
}
