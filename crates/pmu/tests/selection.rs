//! The choice of a profile interface.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pmu::{Kind, Reason, Selection};
use simulation::ModelCpu;

/// The CPUID leaves on which the choice depends.
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
    /// EAX and EDX of leaf 1.
    signature: u32,
    features: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Hypervisor {
    None,
    /// A hypervisor without the Hv#1 interface.
    Other,
    /// Hv#1 with EDX[2] of leaf 0x40000003 clear.
    Masking,
    /// Hv#1 with EDX[2] of leaf 0x40000003 set.
    Open,
    /// The leaves of a hypervisor that hides the PMU, but with CPUID.1:ECX[31] clear: no hypervisor.
    Absent,
    /// KVM with Hyper-V enlightenments: as `Masking`, with KVM's leaves behind those of Microsoft's interface.
    Kvm,
}

const HYPERVISORS: [Hypervisor; 6] =
    [Hypervisor::None, Hypervisor::Other, Hypervisor::Masking, Hypervisor::Open, Hypervisor::Absent, Hypervisor::Kvm];

/// Registers of the first leaf of KVM.
const KVM: [u32; 4] = [0x4000_0101, 0x4B4D_564B, 0x564B_4D56, 0x0000_004D];

/// Number of counters, their width, and the length of the EBX vector.
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
            1 => [self.signature, 0, u32::from(present) << 31, self.features],
            0xA if self.highest >= 0xA => {
                [self.length << 24 | self.width << 16 | self.counters << 8 | self.version, self.ebx, 0, 0]
            }
            0x4000_0001 if self.hypervisor == Hypervisor::Other => [u32::from_le_bytes(*b"KVM0"), 0, 0, 0],
            0x4000_0001 if self.hypervisor != Hypervisor::None => [u32::from_le_bytes(*b"Hv#1"), 0, 0, 0],
            0x4000_0003 if self.hypervisor == Hypervisor::Open => [0, 0, 0, 1 << 2],
            0x4000_0100 if self.hypervisor == Hypervisor::Kvm => KVM,
            0x8000_0000 => [0x8000_0001, 0, 0, 0],
            0x8000_0001 => [0, 0, 0, u32::from(self.long_mode) << 29],
            _ => [0; 4],
        }
    }

    fn selection(self) -> Selection {
        let processor = model::Processor::new(Box::new(move |leaf, _| self.cpuid(leaf)));
        Selection::of_boot_processor(&ModelCpu::new(processor))
    }

    /// Returns the expectation for an Intel processor without leaf 0xA, by type, family and model from leaf 1.
    fn old(self) -> Option<(Kind, Kind, Reason)> {
        const MSR_AND_TSC: u32 = 0x30;
        let bare = matches!(self.hypervisor, Hypervisor::None | Hypervisor::Absent);
        let [family, model] = [8, 4].map(|at| self.signature >> at & 0xF);
        let (extended_family, extended_model) = (self.signature >> 20 & 0xFF, self.signature >> 16 & 0xF);
        match (family, model) {
            _ if !bare || extended_family != 0 => None,
            (15, _) => Some((Kind::Default, Kind::NetBurst, Reason::NetBurst)),
            _ if extended_model != 0 => None,
            (6, 1 | 3 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 13) => Some((Kind::Default, Kind::P6, Reason::P6)),
            (5, 1..=8) if self.features & MSR_AND_TSC == MSR_AND_TSC => {
                Some((Kind::Default, Kind::Pentium, Reason::Pentium))
            }
            _ => None,
        }
    }

    /// Returns the interface that the first Windows 10 HAL selects, the one that halprof selects, and the reason.
    fn expected(self) -> (Kind, Kind, Reason) {
        let (masked, kvm) = (self.hypervisor == Hypervisor::Masking, self.hypervisor == Hypervisor::Kvm);
        let default = |reason| (Kind::Default, Kind::Default, reason);
        match self.vendor {
            b"AuthenticAMD" if !self.long_mode => default(Reason::NoLongMode),
            // PerfCtrExtCore is clear in these leaves.
            b"AuthenticAMD" if masked || kvm => default(Reason::MaskedByHypervisor),
            b"AuthenticAMD" => (Kind::Amd64, Kind::Amd64, Reason::Amd),
            b"GenuineIntel" if self.highest < 10 => self.old().unwrap_or(default(Reason::NoLeafA)),
            b"GenuineIntel" if self.version == 0 => self.old().unwrap_or(default(Reason::VersionZero)),
            b"GenuineIntel" if self.length == 0 => default(Reason::NoEvents),
            b"GenuineIntel" if self.ebx % 2 == 1 => default(Reason::NoCycles),
            b"GenuineIntel" if masked => default(Reason::MaskedByHypervisor),
            b"GenuineIntel" if kvm && self.counters == 0 => default(Reason::ZeroCounters),
            b"GenuineIntel" if kvm => (Kind::Default, Kind::Emon, Reason::Kvm),
            b"GenuineIntel" if self.counters == 0 => (Kind::Emon, Kind::Default, Reason::ZeroCounters),
            b"GenuineIntel" => (Kind::Emon, Kind::Emon, Reason::Intel),
            _ => default(Reason::OtherVendor),
        }
    }
}

#[test]
fn every_combination_of_conditions_selects_the_interface_that_the_hal_selects() {
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
                                    signature: 0x0006_06A6,
                                    features: 0,
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
    assert_eq!(seen, 6 * 2 * 7 * 5 * COUNTERS.len() * 5 * HYPERVISORS.len());
}

#[test]
fn an_old_interface_is_selected_by_its_family_alone_without_leaf_a_and_hypervisor() {
    let mut taken = std::collections::BTreeMap::new();
    // Every family and model of two types, including extended ones.
    for signature in 0..0x200_u32 {
        for extended in [0, 1, 2, 0xF, 0x10, 0x20, 0xFF0] {
            for features in [0, 0x10, 0x20, 0x30, u32::MAX] {
                for (highest, version) in [(1, 2), (9, 2), (10, 0), (10, 2)] {
                    for hypervisor in [Hypervisor::None, Hypervisor::Other, Hypervisor::Open, Hypervisor::Absent] {
                        let leaves = Leaves {
                            vendor: b"GenuineIntel",
                            long_mode: false,
                            highest,
                            version,
                            counters: 2,
                            width: 40,
                            length: 7,
                            ebx: 0,
                            hypervisor,
                            signature: extended << 16 | signature << 4,
                            features,
                        };
                        let Selection { windows10, interface, reason } = leaves.selection();
                        assert_eq!((windows10, interface, reason), leaves.expected(), "{leaves:x?}");
                        *taken.entry(interface as u32).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    assert_eq!(taken.len(), 5, "each of them, Default and Emon: {taken:?}");
    let other = Leaves {
        vendor: b"CentaurHauls",
        long_mode: false,
        highest: 1,
        version: 0,
        counters: 0,
        width: 0,
        length: 0,
        ebx: 0,
        hypervisor: Hypervisor::None,
        signature: 0x0F4A,
        features: u32::MAX,
    };
    assert_eq!(other.selection().interface, Kind::Default, "another vendor's family 15");
}

#[test]
fn a_hypervisor_is_detected_by_its_leaves_and_the_root_partition_by_cpu_management_alone() {
    const CPU_MANAGEMENT: u32 = 1 << 12;
    for (present, interface, privileges, wanted) in [
        (false, *b"Hv#1", CPU_MANAGEMENT, pmu::Hypervisor::None),
        (true, *b"KVM0", CPU_MANAGEMENT, pmu::Hypervisor::Other),
        (true, *b"Hv#1", 0, pmu::Hypervisor::Guest),
        (true, *b"Hv#1", !CPU_MANAGEMENT, pmu::Hypervisor::Guest),
        (true, *b"Hv#1", CPU_MANAGEMENT, pmu::Hypervisor::Root),
        (true, *b"Hv#1", u32::MAX, pmu::Hypervisor::Root),
    ] {
        let cpuid = move |leaf, _| match leaf {
            1 => [0, 0, u32::from(present) << 31, 0],
            0x4000_0001 => [u32::from_le_bytes(interface), 0, 0, 0],
            0x4000_0003 => [0, privileges, 0, 0],
            _ => [0; 4],
        };
        let cpu = ModelCpu::new(model::Processor::new(Box::new(cpuid)));
        assert_eq!(pmu::Hypervisor::of(&cpu), wanted, "{present}, {interface:?}, {privileges:#x}");
    }
}

#[test]
fn kvm_is_found_behind_microsofts_interface_wherever_its_leaves_begin() {
    let kind = |at, privileges, registers| {
        let cpuid = move |leaf, _| match leaf {
            1 => [0, 0, 1 << 31, 0],
            0x4000_0001 => [u32::from_le_bytes(*b"Hv#1"), 0, 0, 0],
            0x4000_0003 => [0, privileges, 0, 0],
            leaf if leaf == at => registers,
            _ => [0; 4],
        };
        pmu::Hypervisor::of(&ModelCpu::new(model::Processor::new(Box::new(cpuid))))
    };
    for at in (0x4000_0100..=0x4000_FF00).step_by(0x100) {
        assert_eq!(kind(at, 0, KVM), pmu::Hypervisor::Kvm, "{at:#x}");
    }
    for at in [0x4000_0000, 0x4000_0101, 0x4001_0000] {
        assert_eq!(kind(at, 0, KVM), pmu::Hypervisor::Guest, "{at:#x}");
    }
    let [eax, ebx, ecx, edx] = KVM;
    assert_eq!(kind(0x4000_0100, 0, [eax, ebx, edx, ecx]), pmu::Hypervisor::Guest, "another name");
    assert_eq!(kind(0x4000_0100, 1 << 12, KVM), pmu::Hypervisor::Root, "Hyper-V inside a guest of KVM");
}

#[test]
fn the_counters_of_amd_are_promised_but_under_a_hypervisor_that_is_not_microsofts_and_does_not_lend_them() {
    for (vendor, hypervisor) in
        [b"AuthenticAMD", b"GenuineIntel"].into_iter().flat_map(|vendor| HYPERVISORS.map(|kind| (vendor, kind)))
    {
        for core in [false, true] {
            let leaves = Leaves {
                vendor,
                long_mode: true,
                highest: 10,
                version: 2,
                counters: 4,
                width: 48,
                length: 7,
                ebx: 0,
                hypervisor,
                signature: 0x0006_06A6,
                features: 0,
            };
            let cpuid = move |leaf, _| match (leaf, leaves.cpuid(leaf)) {
                (0x8000_0001, [eax, ebx, ecx, edx]) => [eax, ebx, ecx | u32::from(core) << 23, edx],
                (_, registers) => registers,
            };
            let hal = pmu::Hal::new(&ModelCpu::new(model::Processor::new(Box::new(cpuid))), 1).unwrap();
            let is_amd64 = hal.boot.selection.interface == Kind::Amd64;
            let wanted = !is_amd64 || hypervisor != Hypervisor::Other || core;
            assert_eq!(hal.boot.is_enumerated, wanted, "{leaves:?}, PerfCtrExtCore {core}");
            if hypervisor == Hypervisor::Kvm {
                let is_amd = vendor == b"AuthenticAMD";
                assert_eq!(hal.boot.selection.interface != Kind::Default, core || !is_amd, "{leaves:?}, {core}");
                assert_eq!(hal.boot.selection.windows10, Kind::Default, "{leaves:?}, {core}");
            }
        }
    }
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
    assert_eq!(Reason::from_number(15), None);
}
