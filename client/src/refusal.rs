//! What to do about a refusal of the driver, in the terms of the command line.

use halprof::Refusal;

/// Returns what to do.
pub fn remedy(refusal: &Refusal) -> Option<String> {
    refusal.remedy()
}

#[cfg(test)]
pub mod tests;
