//! The choice of a profile interface.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use native_lab::ModelCpu;
use profile::{Kind, Reason, Selection};

/// What CPUID says, as far as the choice asks.
#[derive(Debug, Clone, Copy)]
struct Leaves {
    vendor: &'static [u8; 12],
    long_mode: bool,
    highest: u32,
    version: u32,
    counters: u32,
    width: u32,
    length: u32,
    ebx: u32,
    hypervisor: Hypervisor,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Hypervisor {
    None,
    /// Present, but not Hv#1.
    Other,
    /// Hv#1 with EDX[2] of leaf 0x40000003 clear.
    Masking,
    /// Hv#1 with it set.
    Open,
    /// The leaves of a masking one, but CPUID.1:ECX[31] clear: memory of another life, no hypervisor.
    Absent,
}

const HYPERVISORS: [Hypervisor; 5] =
    [Hypervisor::None, Hypervisor::Other, Hypervisor::Masking, Hypervisor::Open, Hypervisor::Absent];

/// Counters, their width, length of the EBX vector.
const COUNTERS: [(u32, u32, u32); 11] = [
    (0, 48, 0),
    (0, 48, 7),
    (1, 40, 0),
    (1, 32, 1),
    (4, 48, 7),
    (8, 64, 8),
    (255, 48, 255),
    (4, 0, 7),
    (4, 31, 7),
    (4, 65, 7),
    (4, 255, 7),
];

impl Leaves {
    fn cpuid(self, leaf: u32) -> [u32; 4] {
        let word = |at: usize| u32::from_le_bytes(self.vendor[at..at + 4].try_into().unwrap());
        let present = !matches!(self.hypervisor, Hypervisor::None | Hypervisor::Absent);
        match leaf {
            0 => [self.highest, word(0), word(8), word(4)],
            1 => [0x0006_06A6, 0, u32::from(present) << 31, 0],
            0xA if self.highest >= 0xA => {
                [self.length << 24 | self.width << 16 | self.counters << 8 | self.version, self.ebx, 0, 0]
            }
            0x4000_0001 if self.hypervisor == Hypervisor::Other => [u32::from_le_bytes(*b"KVM0"), 0, 0, 0],
            0x4000_0001 if self.hypervisor != Hypervisor::None => [u32::from_le_bytes(*b"Hv#1"), 0, 0, 0],
            0x4000_0003 if self.hypervisor == Hypervisor::Open => [0, 0, 0, 1 << 2],
            0x8000_0000 => [0x8000_0001, 0, 0, 0],
            0x8000_0001 => [0, 0, 0, u32::from(self.long_mode) << 29],
            _ => [0; 4],
        }
    }

    fn selection(self) -> Selection {
        let processor = model::Processor::new(Box::new(move |leaf, _| self.cpuid(leaf)));
        Selection::of_boot_processor(&ModelCpu::new(processor))
    }

    /// The rules as the issue of the HAL's first Windows 10 has them, in one expression each.
    fn expected(self) -> (Kind, Kind, Reason) {
        let masked = self.hypervisor == Hypervisor::Masking;
        let default = |reason| (Kind::Default, Kind::Default, reason);
        match self.vendor {
            b"AuthenticAMD" if !self.long_mode => default(Reason::NoLongMode),
            b"AuthenticAMD" if masked => default(Reason::MaskedByHypervisor),
            b"AuthenticAMD" => (Kind::Amd64, Kind::Amd64, Reason::Amd),
            b"GenuineIntel" if self.highest < 10 => default(Reason::NoLeafA),
            b"GenuineIntel" if self.version == 0 => default(Reason::VersionZero),
            b"GenuineIntel" if self.length == 0 => default(Reason::NoEvents),
            b"GenuineIntel" if self.ebx % 2 == 1 => default(Reason::NoCycles),
            b"GenuineIntel" if masked => default(Reason::MaskedByHypervisor),
            b"GenuineIntel" if self.counters == 0 => (Kind::Emon, Kind::Default, Reason::ZeroCounters),
            b"GenuineIntel" => (Kind::Emon, Kind::Emon, Reason::Intel),
            _ => default(Reason::OtherVendor),
        }
    }
}

#[test]
fn the_whole_product_of_conditions_is_decided_as_the_hal_decides() {
    let vendors =
        [b"AuthenticAMD", b"GenuineIntel", b"HygonGenuine", b"CentaurHauls", b"  Shanghai  ", b"AMDisbetter!"];
    let mut seen = 0;
    for vendor in vendors {
        for long_mode in [false, true] {
            for highest in [0, 1, 9, 10, 11, 0x20, u32::MAX] {
                for version in [0, 1, 2, 5, 255] {
                    for (counters, width, length) in COUNTERS {
                        for ebx in [0, 1, 2, 0xFE, 0xFF] {
                            for hypervisor in HYPERVISORS {
                                let leaves = Leaves {
                                    vendor,
                                    long_mode,
                                    highest,
                                    version,
                                    counters,
                                    width,
                                    length,
                                    ebx,
                                    hypervisor,
                                };
                                let Selection { windows10, interface, reason } = leaves.selection();
                                assert_eq!((windows10, interface, reason), leaves.expected(), "{leaves:?}");
                                seen += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(seen, 6 * 2 * 7 * 5 * COUNTERS.len() * 5 * 5);
}

#[test]
fn extended_leaves_that_do_not_exist_say_nothing() {
    let cpuid = |leaf: u32, _| match leaf {
        0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
        0x8000_0000 => [0x8000_0000, 0, 0, 0],
        0x8000_0001 => [0, 0, 0, u32::MAX],
        _ => [0; 4],
    };
    let selection = Selection::of_boot_processor(&ModelCpu::new(model::Processor::new(Box::new(cpuid))));
    assert_eq!(selection.reason, Reason::NoLongMode);
}

#[test]
fn reasons_are_one_to_one_with_their_numbers_and_each_has_its_words() {
    for (number, reason) in (0_u32..).zip(Reason::ALL) {
        assert_eq!(reason as u32, number);
        assert_eq!(Reason::from_number(number), Some(reason));
    }
    let words: std::collections::BTreeSet<_> = Reason::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), Reason::ALL.len());
    assert_eq!(Reason::from_number(10), None);
}
