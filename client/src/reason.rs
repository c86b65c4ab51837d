//! Why the driver chose its profile interface, and the names of the interfaces.

/// The words for the number of a reason.
pub fn text(number: u32) -> String {
    match number {
        0 => "AuthenticAMD with long mode",
        1 => "GenuineIntel with architectural performance monitoring",
        2 => "the vendor is neither AuthenticAMD nor GenuineIntel",
        3 => "an AMD processor without long mode",
        4 => "a Microsoft-compatible hypervisor masks the counters",
        5 => "CPUID has no leaf 0xA",
        6 => "CPUID leaf 0xA says version 0",
        7 => "CPUID leaf 0xA enumerates no events",
        8 => "CPUID leaf 0xA says that core cycles are not available",
        9 => "CPUID leaf 0xA says zero counters",
        _ => return format!("reason {number}, which this client does not know"),
    }
    .to_owned()
}

/// The name of a profile interface.
pub fn interface(number: u32) -> String {
    match number {
        0 => "Default",
        1 => "Emon",
        2 => "Amd64",
        _ => return format!("interface {number}, which this client does not know"),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_and_interface_has_words_of_its_own() {
        for number in 0..11 {
            assert_eq!((0..11).filter(|other| text(*other) == text(number)).count(), 1, "{number}");
            assert_eq!((0..11).filter(|other| interface(*other) == interface(number)).count(), 1, "{number}");
        }
    }
}
