//! Suggestions for an unknown event.

use events::{CoreTable, Generic, nearest};

/// Maximum number of suggestions.
pub const MOST: usize = 3;

/// Formats suggestions as the end of a sentence.
#[must_use]
pub fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean: {}?", near.join(", ")) }
}

/// Says, as the end of a sentence, what a name is elsewhere, or suggests others.
#[must_use]
pub fn elsewhere(name: &str, near: &[String]) -> String {
    if let Some((what, _)) = events::other_of_perf(name) {
        return format!(": it is {what}, and halprof has none");
    }
    let maker = events::maker(name).map_or_else(String::new, |maker| format!(": some of {maker}'s processors have it"));
    maker + &did_you_mean(near)
}

/// Returns the names that are most similar to an unknown one: generic names, sources of the HAL and events of the
/// processor.
pub fn near(wanted: &str, sources: &[&str], tables: &[CoreTable]) -> Vec<String> {
    let mut names: Vec<String> =
        Generic::ALL.iter().flat_map(|one| one.names()).map(|name| (*name).to_owned()).collect();
    names.extend(sources.iter().map(|name| (*name).to_owned()));
    names.extend(tables.iter().flat_map(|one| one.table.events()).map(|event| event.name));
    names.sort_unstable();
    names.dedup();
    nearest(wanted, names.iter().map(String::as_str), MOST)
}

#[cfg(test)]
mod tests {
    use events::{Identity, Vendor, core_tables};

    use super::*;

    /// Returns the end of the sentence about a name on a processor.
    fn said(name: &str, vendor: Vendor, family: u16, model: u8) -> String {
        let tables = core_tables(Identity { vendor, family, model, stepping: 2 });
        assert!(!tables.is_empty());
        elsewhere(name, &near(name, &[], &tables))
    }

    #[test]
    fn a_name_of_the_other_maker_is_told_with_the_nearest_here() {
        for (name, wanted) in [
            (
                "MEM_LOAD_RETIRED.L3_MISS",
                "Intel's processors have it; did you mean: DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR, cache-misses?",
            ),
            ("INST_RETIRED.ANY", "Intel's processors have it; did you mean: instructions, RETIRED_INSTRUCTIONS?"),
            ("CPU_CLK_UNHALTED.THREAD", "Intel's processors have it; did you mean: cycles, CYCLES_NOT_IN_HALT?"),
            ("LONGEST_LAT_CACHE.MISS", "Intel's processors have it; did you mean: cache-misses?"),
        ] {
            assert_eq!(said(name, Vendor::Amd, 0x19, 0x61), format!(": some of {wanted}"), "{name}");
        }
        for (name, wanted) in [
            ("RETIRED_INSTRUCTIONS", "AMD's processors have it; did you mean: instructions, INST_RETIRED.ANY?"),
            ("CYCLES_NOT_IN_HALT", "AMD's processors have it; did you mean: cycles, CPU_CLK_UNHALTED.THREAD?"),
            (
                "MEM_LOAD_RETIRED.L3_MISS",
                "Intel's processors have it; did you mean: MEM_LOAD_UOPS_RETIRED.L3_MISS, cache-misses?",
            ),
        ] {
            assert_eq!(said(name, Vendor::Intel, 6, 0x3C), format!(": some of {wanted}"), "{name}");
        }
        let none = said("page-faults", Vendor::Intel, 6, 0x3C);
        assert_eq!(none, ": it is a software event of perf, and halprof has none");
        assert_eq!(said("xyzzy", Vendor::Intel, 6, 0x3C), "");
    }
}
