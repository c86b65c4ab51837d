//! What makers say about their events in a sentence.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The lines `NAME<tab>DESCRIPTION` of Intel's files (perfmon, BSD-3-Clause), compressed.
const COMPRESSED: &[u8] = include_bytes!("../../events/facts/descriptions.zst");

/// Limit of the lines in bytes.
const MAX_LENGTH: usize = 1 << 20;

static LINES: LazyLock<String> = LazyLock::new(|| {
    let lines = zstd::bulk::decompress(COMPRESSED, MAX_LENGTH).unwrap_or_default();
    String::from_utf8(lines).unwrap_or_default()
});

static BY_NAME: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| LINES.lines().filter_map(|line| line.split_once('\t')).collect());

/// Returns the description of an event by its maker's name, in the words of most of the processors that have it.
#[must_use]
pub fn of(name: &str) -> Option<&'static str> {
    BY_NAME.get(name.to_ascii_uppercase().as_str()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_any_case_has_the_description_of_its_event() {
        assert_eq!(of("inst_retired.any"), Some("Number of instructions retired. Fixed Counter - architectural event"));
        assert_eq!(of("XYZZY"), None);
        assert_eq!(BY_NAME.len(), LINES.lines().count());
    }
}
