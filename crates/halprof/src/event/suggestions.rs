//! Suggestions for an unknown event.

use events::{CoreTable, Generic, nearest};

/// Maximum number of suggestions.
pub const MOST: usize = 3;

/// Formats suggestions as the end of a sentence.
#[must_use]
pub fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean: {}?", near.join(", ")) }
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
