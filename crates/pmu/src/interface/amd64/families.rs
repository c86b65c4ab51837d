//! The selects of families 10h to 16h: those of the HAL's table, with the differences of each family.
//!
//! A unit mask that selects other units, or more of them, has changed. A source is absent if the family lacks its
//! event, or counts something else under its number.
//!
//! The events come from the BIOS and Kernel Developer's Guides, section "Performance Counter Events", of families 10h
//! (31116), 11h (41256), 12h (41131), 14h (43170), 15h (42301) and 16h (48751), which libpfm4 has in
//! lib/events/amd64_events_fam10h.h to amd64_events_fam16h.h. No guide of these families lists event 025H, late
//! cancels, or event 024H without a unit mask.

use super::SOURCES;
use crate::source::packed::PackedSelect;

/// A difference from the HAL's table.
#[derive(Clone, Copy)]
struct Difference {
    /// The first source that differs.
    first: u64,
    /// The last source that differs.
    last: u64,
    /// The unit mask, or `None` if the sources are absent.
    unit_mask: Option<u8>,
}

/// The source has another unit mask.
const fn units(source: u64, unit_mask: u8) -> Difference {
    Difference { first: source, last: source, unit_mask: Some(unit_mask) }
}

/// The source is absent.
const fn absent(source: u64) -> Difference {
    absent_from(source, source)
}

/// The sources from `first` to `last` are absent.
const fn absent_from(first: u64, last: u64) -> Difference {
    Difference { first, last, unit_mask: None }
}

impl Difference {
    /// Applies the difference to the select of a source.
    const fn applied(self, source: u64, select: PackedSelect) -> PackedSelect {
        if source < self.first || source > self.last {
            return select;
        }
        match self.unit_mask {
            None => PackedSelect::ABSENT,
            Some(unit_mask) => PackedSelect::new(select.unpacked() & !0xFF00 | (unit_mask as u64) << 8),
        }
    }
}

/// Returns the selects of the HAL's table with these differences.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
const fn selects(differences: &[Difference]) -> [PackedSelect; SOURCES.len()] {
    let mut selects = [PackedSelect::ABSENT; SOURCES.len()];
    let mut place = 0;
    while place < selects.len() {
        selects[place] = PackedSelect::new(SOURCES[place].select);
        let mut index = 0;
        while index < differences.len() {
            selects[place] = differences[index].applied(SOURCES[place].source.0, selects[place]);
            index += 1;
        }
        place += 1;
    }
    selects
}

/// The K8: the HAL's table.
pub const K8: [PackedSelect; SOURCES.len()] = selects(&[]);

/// Family 10h.
pub const FAMILY_10: [PackedSelect; SOURCES.len()] = selects(&[
    // Scalar SSE is no unit of its own.
    units(0x0D, 0x07),
    units(0x73, 0x07),
    absent(0x77),
    units(0x2D, 0x01),
    absent(0x2E),
    // The two units of prefetched lines, load pipe and store errors, prefetches of the data cache.
    units(0x3F, 0x7F),
    units(0x4A, 0x0F),
    units(0x51, 0x3F),
    units(0x57, 0x0F),
    // Both memory controllers.
    units(0x93, 0x3F),
    units(0x94, 0x09),
    units(0x95, 0x12),
    units(0x96, 0x24),
    units(0x97, 0x03),
    units(0x98, 0x03),
    units(0x99, 0x3F),
    units(0x9A, 0x09),
    units(0x9B, 0x12),
    units(0x9C, 0x24),
    units(0xA2, 0x3F),
    absent(0xA9),
    // Address extensions and checksums too.
    units(0xAF, 0x3F),
    units(0xB4, 0x3F),
    units(0xB9, 0x3F),
    absent_from(0xBE, 0xBF),
]);

/// Family 11h.
pub const FAMILY_11: [PackedSelect; SOURCES.len()] = selects(&[
    units(0x2D, 0x01),
    absent(0x2E),
    units(0x45, 0x00),
    units(0x46, 0x00),
    units(0x63, 0x00),
    // Both memory controllers; turnarounds have other bits.
    units(0x93, 0x3F),
    units(0x94, 0x09),
    units(0x95, 0x12),
    units(0x96, 0x24),
    units(0x97, 0x01),
    absent(0x98),
    units(0x99, 0x3F),
    units(0x9A, 0x24),
    units(0x9B, 0x09),
    units(0x9C, 0x12),
    absent_from(0x9D, 0xA1),
    units(0xA2, 0x3F),
    absent(0xA9),
    // Addresses have a unit of their own, before those for data, buffer releases and NOPs. There is one link.
    units(0xAF, 0x3F),
    units(0xB1, 0x04),
    units(0xB2, 0x08),
    units(0xB3, 0x10),
    absent_from(0xB4, 0xBD),
    absent_from(0xBE, 0xBF),
]);

/// Family 12h.
pub const FAMILY_12: [PackedSelect; SOURCES.len()] = selects(&[
    units(0x0D, 0x07),
    units(0x73, 0x07),
    // SSE has one unit, for packed and scalar instructions.
    absent_from(0x76, 0x77),
    units(0x2D, 0x01),
    absent(0x2E),
    units(0x3F, 0x7F),
    absent_from(0x4A, 0x4C),
    units(0x51, 0x3F),
    units(0x57, 0x0F),
    absent_from(0x78, 0x7B),
    units(0x93, 0x3F),
    units(0x94, 0x09),
    units(0x95, 0x12),
    units(0x96, 0x24),
    units(0x97, 0x01),
    absent(0x98),
    units(0x99, 0x1B),
    absent(0x9A),
    units(0x9B, 0x09),
    units(0x9C, 0x12),
    absent_from(0x9D, 0xA1),
    units(0xA2, 0x3F),
    absent(0xA9),
    absent_from(0xAF, 0xBF),
]);

/// Family 14h.
pub const FAMILY_14: [PackedSelect; SOURCES.len()] = selects(&[
    units(0x0D, 0x03),
    units(0x73, 0x03),
    absent_from(0x75, 0x77),
    // The FPU has two pipes; event 023H is another queue.
    units(0x19, 0x03),
    absent_from(0x1A, 0x1F),
    absent(0x2C),
    units(0x2D, 0x01),
    absent(0x2E),
    // Unit 0 is uncacheable data, or evictions by probes.
    absent(0x34),
    absent(0x3A),
    absent(0x40),
    units(0x45, 0x00),
    // Misses of the L2 TLB, by stores and loads; the other units miss the L1 TLB alone.
    units(0x46, 0x0C),
    absent_from(0x48, 0x4C),
    units(0x51, 0x0B),
    absent(0x54),
    absent(0x56),
    units(0x57, 0x03),
    absent(0x5A),
    absent(0x62),
    absent(0x64),
    absent_from(0x78, 0x7B),
    absent_from(0x7F, 0x89),
    units(0x97, 0x01),
    absent_from(0x98, 0xA1),
    units(0xA2, 0x3F),
    absent(0xA9),
    absent_from(0xAF, 0xBF),
]);

/// Family 15h. The northbridge has counters of its own.
pub const FAMILY_15: [PackedSelect; SOURCES.len()] = selects(&[
    // Event 041H counts nothing without a unit (Linux, arch/x86/events/amd/core.c, `amd_hw_cache_event_ids`, has
    // 0141H). Unit 1 is streaming stores alone.
    units(0x08, 0x01),
    units(0x32, 0x01),
    units(0x0D, 0x07),
    units(0x73, 0x07),
    absent_from(0x76, 0x77),
    // Four pipes instead of kinds of operations.
    units(0x19, 0xFF),
    absent_from(0x1A, 0x1F),
    absent(0x21),
    absent(0x2C),
    units(0x2D, 0x01),
    absent(0x2E),
    // Units are results of the refill instead of states of the line.
    units(0x33, 0x0F),
    absent_from(0x34, 0x38),
    units(0x39, 0x00),
    absent_from(0x3A, 0x44),
    absent_from(0x48, 0x4C),
    units(0x51, 0x5F),
    units(0x57, 0x17),
    units(0x63, 0x07),
    absent_from(0x78, 0x7B),
    absent(0x81),
    absent(0x83),
    // Event 0D8H is the load queue alone.
    absent(0x87),
    absent(0x89),
    units(0x8A, 0x1F),
    absent_from(0x8B, 0x8E),
    absent_from(0x93, 0xBF),
]);

/// Family 16h. The northbridge and the L2 have counters of their own.
pub const FAMILY_16: [PackedSelect; SOURCES.len()] = selects(&[
    units(0x0D, 0x03),
    units(0x73, 0x03),
    absent_from(0x75, 0x77),
    units(0x19, 0x03),
    absent_from(0x1A, 0x1F),
    units(0x2B, 0x03),
    absent(0x2C),
    units(0x2D, 0x01),
    absent(0x2E),
    absent(0x34),
    absent(0x3A),
    absent(0x40),
    units(0x45, 0x00),
    units(0x46, 0x0C),
    units(0x47, 0x03),
    absent_from(0x48, 0x4C),
    absent_from(0x51, 0x5D),
    absent(0x64),
    absent_from(0x78, 0x7B),
    absent_from(0x7F, 0x89),
    absent_from(0x93, 0xBF),
]);
