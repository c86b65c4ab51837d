//! The general counters that count each event, by processor model. On other counters the event is selected and counts
//! nothing.
//!
//! The tables have the events whose column `Counter` in Intel's event files (perfmon, August 2026) names fewer counters
//! than the processor has, and for AMD's family 15h the rules of its BKDG ("Performance Monitor Events", column of each
//! event; the same as Linux, arch/x86/events/amd/core.c, `amd_get_event_constraints_f15h`). From Ice Lake on, whole
//! ranges of event numbers are restricted, whether or not Intel names an event of the number (Linux,
//! arch/x86/events/intel/core.c, `INTEL_EVENT_CONSTRAINT_RANGE`). Events that no table has count on every counter.

use std::ops::RangeInclusive;

use crate::{
    bits::byte,
    counter::CounterId,
    cpuid::{family, is_atom, vendor},
    select::Selected,
};

/// Events and, for each, its unit masks (none: all of them); bit n of the last field is counter n. The first rule that
/// has an event decides.
type Rule = (&'static [RangeInclusive<u16>], &'static [u8], u64);

/// Every counter.
const EVERY: u64 = !0;

/// Nehalem.
const NEHALEM: &[Rule] =
    &[(&[0x40..=0x43, 0x4C..=0x4C, 0x4E..=0x4E, 0x51..=0x53, 0x63..=0x63], &[], 0x3), (&[0x0B..=0x0B], &[0x10], 0x8)];

/// Westmere.
const WESTMERE: &[Rule] = &[
    (&[0x4C..=0x4C, 0x4E..=0x4E, 0x51..=0x52, 0x63..=0x63], &[], 0x3),
    (&[0x60..=0x60, 0xB3..=0xB3], &[], 0x1),
    (&[0x0B..=0x0B], &[0x10], 0x8),
];

/// Sandy Bridge.
const SANDY_BRIDGE: &[Rule] = &[
    (&[0xCD..=0xCD], &[], 0x8),
    (&[0x48..=0x48], &[0x01], 0x4),
    (&[0xA3..=0xA3], &[0x02, 0x06], 0x4),
    (&[0xC0..=0xC0], &[0x01], 0x2),
];

/// Ivy Bridge, Haswell, Broadwell.
const IVY_BRIDGE_TO_BROADWELL: &[Rule] = &[
    (&[0xCD..=0xCD], &[], 0x8),
    (&[0x48..=0x48], &[0x01], 0x4),
    (&[0xA3..=0xA3], &[0x08, 0x0C], 0x4),
    (&[0xC0..=0xC0], &[0x01], 0x2),
];

/// Skylake to Comet Lake, Skylake-SP to Cooper Lake, for `INST_RETIRED.PREC_DIST`. With a counter mask, the same
/// encoding is `INST_RETIRED.TOTAL_CYCLES_PS`, which the other counters count.
const SKYLAKE: &[Rule] = &[(&[0xC0..=0xC0], &[0x01], 0x2)];

/// Ice Lake, Tiger Lake, Rocket Lake.
const ICE_LAKE: &[Rule] = &[
    (&[0xA3..=0xA3], &[0x04, 0x10, 0x14], EVERY),
    (
        &[
            0x03..=0x0A,
            0x1F..=0x28,
            0x32..=0x32,
            0x48..=0x56,
            0x60..=0x8B,
            0xA3..=0xA3,
            0xA8..=0xB0,
            0xB7..=0xBD,
            0xD0..=0xE6,
            0xEF..=0xF4,
        ],
        &[],
        0xF,
    ),
];

/// Golden Cove and Redwood Cove.
const GOLDEN_COVE: &[Rule] = &[
    (&[0x2E..=0x2E, 0x3C..=0x3C], &[], EVERY),
    (&[0x01..=0x8F, 0xD0..=0xDF], &[], 0xF),
    (&[0xA3..=0xA3], &[0x01, 0x02, 0x05, 0x06, 0x08, 0x0C], 0xF),
    (&[0xA4..=0xA4], &[0x04, 0x08], 0x1),
    (&[0xCD..=0xCD], &[0x01], 0xFE),
    (&[0xCD..=0xCD], &[0x02], 0x1),
    (&[0xCE..=0xCE], &[], 0x1),
];

/// Lion Cove and Cougar Cove. `OCR` (events 2A and 2B) counts on all counters in Intel's event files, and on the first
/// four in Linux.
const LION_COVE: &[Rule] = &[
    (&[0x20..=0x20, 0xD0..=0xDF], &[], 0xF),
    (&[0x2A..=0x2B], &[0x01], 0xF),
    (&[0x48..=0x48, 0x75..=0x75], &[], 0x4),
    (&[0xA4..=0xA4], &[0x04, 0x08], 0x1),
    (&[0xA4..=0xA4], &[0x10], 0x8),
    (&[0xB1..=0xB1], &[0x01], 0x8),
    (&[0xCD..=0xCD], &[0x01], 0x3FC),
    (&[0xCD..=0xCD], &[0x02], 0x3),
    (&[0xE0..=0xE0], &[0x00], 0xF),
];

/// Gracemont.
const GRACEMONT: &[Rule] = &[(&[0xD0..=0xD0], &[0x05], 0x3)];

/// The restrictions of a processor.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Countable {
    Table(&'static [Rule]),
    Skylake,
    Family15,
}

impl Countable {
    pub(crate) fn read(cpuid: &dyn Fn(u32, u32) -> [u32; 4]) -> Self {
        let [signature, ..] = cpuid(1, 0);
        let (family, model) = (family(signature), byte(signature, 19, 16) << 4 | byte(signature, 7, 4));
        match vendor(cpuid).as_slice() {
            b"GenuineIntel" if family == 6 => Self::of_family_6(model, is_atom(cpuid)),
            b"AuthenticAMD" if family == 0x15 => Self::Family15,
            _ => Self::Table(&[]),
        }
    }

    /// SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel"; `mapfile.csv` of the event files.
    fn of_family_6(model: u8, is_atom: bool) -> Self {
        match model {
            0x1A | 0x1E | 0x1F | 0x2E => Self::Table(NEHALEM),
            0x25 | 0x2C | 0x2F => Self::Table(WESTMERE),
            0x2A | 0x2D => Self::Table(SANDY_BRIDGE),
            0x3A | 0x3E | 0x3C | 0x3F | 0x45 | 0x46 | 0x3D | 0x47 | 0x4F | 0x56 => Self::Table(IVY_BRIDGE_TO_BROADWELL),
            0x4E | 0x5E | 0x8E | 0x9E | 0xA5 | 0xA6 | 0x55 => Self::Skylake,
            0x7D | 0x7E | 0x6A | 0x6C | 0x8C | 0x8D | 0xA7 => Self::Table(ICE_LAKE),
            0x97 | 0x9A | 0xB7 | 0xBA | 0xBF if is_atom => Self::Table(GRACEMONT),
            0xBE => Self::Table(GRACEMONT),
            0x97 | 0x9A | 0xB7 | 0xBA | 0xBF | 0xAA | 0xAC | 0xB5 if !is_atom => Self::Table(GOLDEN_COVE),
            0x8F | 0xCF | 0xAD | 0xAE | 0xD7 => Self::Table(GOLDEN_COVE),
            0xBD | 0xC5 | 0xC6 | 0xCC | 0xD5 | 0xE5 if !is_atom => Self::Table(LION_COVE),
            _ => Self::Table(&[]),
        }
    }

    /// Returns whether the counter counts the selected event. A fixed counter and a metric always do.
    pub(crate) fn counts(self, counter: CounterId, selected: Selected) -> bool {
        match counter {
            CounterId::General(number) => self.counters(selected) >> number & 1 == 1,
            CounterId::Fixed(_) | CounterId::Metric(_) => true,
        }
    }

    /// Returns a bit for each general counter that counts the selected event.
    fn counters(self, selected: Selected) -> u64 {
        let Selected { event, umask, cmask, .. } = selected;
        let [umask, _] = umask.to_le_bytes(); // with UMASK2 the same counters
        let find = |table: &[Rule]| {
            let fits = |(events, umasks, _): &&Rule| {
                events.iter().any(|range| range.contains(&event)) && (umasks.is_empty() || umasks.contains(&umask))
            };
            table.iter().find(fits).map_or(EVERY, |(_, _, counters)| *counters)
        };
        match self {
            Self::Table(table) => find(table),
            Self::Skylake if cmask == 0 => find(SKYLAKE),
            Self::Skylake if (event, umask) == (0xC0, 0x01) => 0xD,
            Self::Skylake => EVERY,
            Self::Family15 => of_family_15(event, umask),
        }
    }
}

/// Returns the counters that count an event of family 15h.
fn of_family_15(event: u16, umask: u8) -> u64 {
    const ALL: u64 = 0x3F;
    const FIRST_THREE: u64 = 0x07;
    const LAST_THREE: u64 = 0x38;
    const NONE: u64 = 0;
    let has_several_units = umask.count_ones() > 1;
    match event & 0xF0 {
        // Floating point.
        0x00 | 0x10 => match event {
            0x000 if umask & 0xF0 != 0 && umask & 0x0F != 0 => 1 << 3,
            0x004 if has_several_units => 1 << 3,
            0x003 | 0x00B | 0x00D => 1 << 3,
            _ => LAST_THREE,
        },
        // Load and store, data cache, execution.
        0x20..=0x50 | 0xC0 => match event {
            0x031 if has_several_units => NONE,
            0x023 | 0x031 | 0x043 | 0x045 | 0x046 | 0x054 | 0x055 => FIRST_THREE,
            0x02D => 1 << 3,
            0x02E => 1 << 3 | 1 << 0,
            0x1C0 => LAST_THREE,
            _ => ALL,
        },
        // The unit that two cores share, instruction cache, decoder.
        0x60..=0x90 | 0xD0 => match event {
            0x08F | 0x187 | 0x188 => 1 << 0,
            0x0DB..=0x0DF | 0x1D6 | 0x1D8 => ALL,
            _ => FIRST_THREE,
        },
        // Northbridge: it has counters of its own.
        0xE0 | 0xF0 => NONE,
        _ => ALL,
    }
}
