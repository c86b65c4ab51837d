//! The tables of all families as halprof.sys has them: [`families`] and [`zen`] are evaluated by the compiler alone.

use super::{SOURCES, families, zen};
use crate::source::packed::{
    Column, MOST, PackedSelect, PackedSources, distinct, indexes, length_of_names, names, packed,
};

/// The names of all sources: those of Zen have the HAL's among them.
const NAMES: &[u8] = &names::<{ length_of_names(&zen::ENTRIES) }>(&zen::ENTRIES);

/// The selects of all families.
const OF_FAMILIES: [&[PackedSelect]; 7] = [
    &families::K8,
    &families::FAMILY_10,
    &families::FAMILY_11,
    &families::FAMILY_12,
    &families::FAMILY_14,
    &families::FAMILY_15,
    &families::FAMILY_16,
];
const SELECTS: &[PackedSelect] = &distinct::<{ distinct::<MOST>(&OF_FAMILIES).1 }>(&OF_FAMILIES).0;

/// The selects of all generations of Zen.
const OF_ZEN: [&[PackedSelect]; 6] = [&zen::ZEN, &zen::ZEN3, &zen::ZEN4, &zen::ZEN5, &zen::ZEN6, &zen::UNKNOWN];
const ZEN_SELECTS: &[PackedSelect] = &distinct::<{ distinct::<MOST>(&OF_ZEN).1 }>(&OF_ZEN).0;

static SOURCES_OF_FAMILIES: PackedSources =
    PackedSources::new(&const { packed(&SOURCES, &zen::ENTRIES) }, NAMES, SELECTS);
static SOURCES_OF_ZEN: PackedSources =
    PackedSources::new(&const { packed(&zen::ENTRIES, &zen::ENTRIES) }, NAMES, ZEN_SELECTS);

pub const K8: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::K8) });
pub const FAMILY_10: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_10) });
pub const FAMILY_11: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_11) });
pub const FAMILY_12: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_12) });
pub const FAMILY_14: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_14) });
pub const FAMILY_15: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_15) });
pub const FAMILY_16: Column = SOURCES_OF_FAMILIES.column(&const { indexes(SELECTS, &families::FAMILY_16) });
pub const ZEN: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::ZEN) });
pub const ZEN3: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::ZEN3) });
pub const ZEN4: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::ZEN4) });
pub const ZEN5: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::ZEN5) });
pub const ZEN6: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::ZEN6) });
pub const UNKNOWN: Column = SOURCES_OF_ZEN.column(&const { indexes(ZEN_SELECTS, &zen::UNKNOWN) });
