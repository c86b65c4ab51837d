//! Texts for the choice of the profile interface.

use pmu::{Kind, Reason};

/// Returns the text for the number of a reason.
#[must_use]
pub fn text(number: u32) -> String {
    let reason = Reason::from_number(number).map(|reason| reason.to_string());
    reason.unwrap_or_else(|| format!("reason {number}, which this client does not know"))
}

/// Returns the name of the profile interface with this number.
#[must_use]
pub fn interface(number: u32) -> String {
    let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == number);
    kind.map_or_else(|| format!("interface {number}, which this client does not know"), |kind| kind.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_and_interface_has_its_own_text() {
        for number in 0..16 {
            assert_eq!((0..16).filter(|other| text(*other) == text(number)).count(), 1, "{number}");
            assert_eq!((0..16).filter(|other| interface(*other) == interface(number)).count(), 1, "{number}");
        }
        assert_eq!(
            (text(15), interface(6)),
            (
                "reason 15, which this client does not know".to_owned(),
                "interface 6, which this client does not know".to_owned()
            )
        );
    }
}
