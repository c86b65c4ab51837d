//! Discovery of counters and events, and refused sources.

use pmu::interface::emon;
use pmu::{Hal, HalError, Interface, Kind, ProfileInterface, Reason, Source, Support};

use super::bench::{Access, Bench, amd, amd_of_family, intel, leaf_a_eax, of_interface, processor_of, with_counters};
use simulation::boot;

/// EBX bits that the sources of Emon use.
const KNOWN_EVENTS: u8 = 7;

#[test]
fn d01_counters_and_width_come_from_leaf_a_and_discovery_touches_no_register() {
    for version in [1, 2, 3, 4, 5, 6] {
        for counters in 1..=10 {
            for width in [32, 40, 48] {
                let bench = Bench::idle(intel([leaf_a_eax(version, counters, width, 7), 0, 0, 0]));
                let interface = bench.hal.interface();
                // Versions 2 to 4 have three fixed counters, whatever they report.
                let fixed = if (2..5).contains(&version) { 3 } else { 0 };
                assert_eq!((interface.counters(), interface.width()), (counters + fixed, width));
                assert_eq!(interface.pmu_version(), version);
                assert_eq!(bench.take_log(), []);
            }
        }
    }
    for counters in 11..=255 {
        let bench = Bench::idle(intel([leaf_a_eax(2, counters, 48, 7), 0, 0, 0]));
        assert_eq!(bench.general(), 10, "IA32_PERFEVTSEL0 to 9 and IA32_PMC0 to 9 have addresses, no others");
    }
}

#[test]
fn d02_versions_from_2_on_are_driven_alike_with_full_width_writes_or_without() {
    for capabilities in [0, 1 << 13] {
        let life = |version| {
            let leaf = [leaf_a_eax(version, 4, 48, 7), 0, 0, 0x603];
            let mut life = Bench::idle(intel(leaf).with_perf_capabilities(capabilities)).whole_life();
            for access in &mut life {
                // From version 4 on, frozen counters and last branch records are unfrozen as well.
                if let Access::Write(0x390, value) = access {
                    *value &= !(0b11 << 58);
                }
            }
            life
        };
        let version_2 = life(2);
        for version in [3, 4, 5, 6, 7, 100, 255] {
            assert_eq!(life(version), version_2, "version {version}");
        }
        let address = |access: &Access| match access {
            Access::Read(msr) | Access::Write(msr, _) => Some(*msr),
            Access::Counter(_) | Access::Entry(_) => None,
        };
        let version_1 = life(1);
        let later = |msr| (0x38D..=0x392).contains(&msr) || (0x309..=0x318).contains(&msr);
        assert!(!version_1.iter().filter_map(address).any(later), "no global registers, no fixed counters");
        for life in [version_1, version_2] {
            let whole = life.iter().filter_map(address).any(|msr| (0x4C1..=0x4CA).contains(&msr));
            assert_eq!(whole, capabilities != 0, "the full-width names");
        }
    }
    let none = Bench::idle(intel([leaf_a_eax(0, 4, 48, 7), 0, 0, 0]));
    assert_eq!(
        (none.hal.boot.selection.interface, none.hal.boot.selection.reason),
        (Kind::Default, Reason::VersionZero)
    );
    assert_eq!(none.whole_life(), []);
}

#[test]
fn d03_an_event_is_there_if_its_bit_is_clear_and_below_the_length() {
    let lengths = (0..=KNOWN_EVENTS + 1).chain([31, 32, 33, 255]);
    for length in lengths {
        for mask in 0..=0xFF_u32 {
            for above in [0, 0xFFFF_FF00] {
                let leaf = [leaf_a_eax(2, 4, 48, length), mask | above, 0, 0];
                let machine = simulation::SimMachine::of([intel(leaf)]);
                let interface = Interface::new(Kind::Emon, machine.processor(0));
                for source in Kind::Emon.sources() {
                    let Some(bit) = emon::ebx_bit(source) else {
                        assert_eq!(interface.support(source), Support::Supported, "ProfileTime");
                        continue;
                    };
                    let wanted = match mask >> bit & 1 {
                        _ if bit >= length => Support::EventNotEnumerated,
                        1 => Support::EventNotAvailable,
                        _ => Support::Supported,
                    };
                    assert_eq!(interface.support(source), wanted, "{}: {length}, {mask:#x}", source.name);
                    let there = machine.processor(0).model().architectural_event(bit).is_some();
                    assert_eq!(wanted == Support::Supported, there, "by the model: {length}, {mask:#x}");
                }
            }
        }
    }
}

#[test]
fn d04_a_missing_event_is_refused_with_its_reason_and_no_register_is_touched() {
    for (name, length, mask) in [("cut", 1, 0), ("masked", 7, 0x7E), ("both", 4, 0x0A)] {
        let bench = Bench::idle(intel([leaf_a_eax(2, 4, 48, length), mask, 0, 0]));
        let mut refused = 0;
        for source in bench.hal.source_list() {
            let number = source.source.source;
            let reason = match emon::ebx_bit(&source.source) {
                Some(bit) if bit >= length => Support::EventNotEnumerated,
                Some(bit) if mask >> bit & 1 == 1 => Support::EventNotAvailable,
                _ => continue,
            };
            let refusal = HalError::Unsupported(number, reason);
            assert_eq!(bench.hal.startable(number), Err(refusal), "{name}");
            assert_eq!(bench.hal.set_interval(number, 5_000), Err(refusal), "{name}");
            for interrupt in [false, true] {
                assert_eq!(bench.hal.state_for(number, 0, interrupt), Err(refusal), "{name}");
            }
            refused += 1;
        }
        assert!(refused > 0, "{name}");
        assert_eq!(bench.take_log(), [], "{name}");
    }
}

#[test]
fn d23_amd_counters_are_those_of_its_leaves_and_discovery_touches_no_register() {
    let identities = of_interface("Amd64").map(|identity| (processor_of(identity), identity.expected.counters));
    let made_up = [(amd(false, None), 4), (amd(true, None), 6)];
    // PerfMonV2 without PerfCtrExtCore is ignored.
    let halves = (4..=15).map(|count| (amd(false, Some(count)), 4));
    let version_2 = (1..=15).map(|count| (amd(true, Some(count)), count.min(6)));
    for (processor, counters) in identities.chain(made_up).chain(halves).chain(version_2) {
        let bench = Bench::idle(processor);
        assert_eq!(bench.hal.boot.selection.interface, Kind::Amd64);
        assert_eq!((bench.counters(), bench.hal.interface().width()), (counters, 48));
        assert_eq!(bench.take_log(), []);
        let life = bench.whole_life();
        for register in bench.own_registers(0) {
            let touched =
                |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if *msr == register);
            assert!(life.iter().any(touched), "{register:#x}");
        }
    }
}

#[test]
fn d23_a_source_that_the_family_lacks_is_refused_with_that_reason_and_no_register_is_touched() {
    for (family, model, features, version_2, supported) in [
        (0x0F, 4, 0, None, 176),
        (0x0F, 4, 1 << 24, None, 133), // the northbridge has its own counters for 43 events
        (0x10, 2, 0, None, 171),
        (0x11, 3, 0, None, 156),
        (0x12, 1, 0, None, 141),
        (0x14, 1, 0, None, 109),
        (0x15, 2, 3 << 23, None, 87),
        (0x16, 0, 1 << 24, None, 83),
        (0x17, 1, 3 << 23, None, 54),
        (0x19, 0x21, 3 << 23, None, 73),
        (0x19, 0x61, 3 << 23, None, 76), // a hypervisor hides PerfMonV2
        (0x19, 0x61, 3 << 23, Some(6), 76),
        (0x1A, 0x44, 3 << 23, Some(6), 76),
        (0x1A, 0x50, 3 << 23, Some(6), 73),
    ] {
        let bench = Bench::idle(amd_of_family(family, model, features, version_2));
        let (mut had, mut refused) = (0, 0);
        for source in bench.hal.source_list() {
            let number = source.source.source;
            if source.support == Support::Supported {
                assert_ne!(source.source.select, 0, "{family:#x}, {}", source.source.name);
                had += 1;
                continue;
            }
            let refusal = HalError::Unsupported(number, Support::NotOnThisFamily);
            assert_eq!(bench.hal.startable(number), Err(refusal), "{family:#x}");
            assert_eq!(bench.hal.set_interval(number, 5_000), Err(refusal), "{family:#x}");
            assert_eq!(bench.hal.state_for(number, 0, true), Err(refusal), "{family:#x}");
            refused += 1;
        }
        let rows = if family < 0x17 { 176 } else { 176 + 42 };
        assert_eq!((had, had + refused), (supported, rows), "{family:#x}");
        assert_eq!(bench.take_log(), []);
    }
}

#[test]
fn d27_registers_that_drop_writes_are_detected() {
    let pretends = || {
        let nothing = model::Processor::new(Box::new(|_, _| [0; 4]));
        simulation::ModelCpu::new(nothing.with_absent_msrs_ignored())
    };
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let pretender = pretends();
        assert!(!bench.hal.initialize(boot(&pretender)), "{}", identity.name);
        bench.hal.release(boot(&pretender));
        assert!(bench.hal.initialize(boot(&bench)), "{}", identity.name);
        bench.release();
    }
    for (counters, width) in [(1, 32), (4, 40), (10, 48)] {
        let bench = Bench::idle(intel([leaf_a_eax(2, counters, width, 7), 0, 0, 0]));
        assert!(!bench.hal.initialize(boot(&pretends())));
        assert!(bench.hal.initialize(boot(&bench)));
    }
}

#[test]
fn d28_without_a_pmu_the_interface_is_default_and_nothing_is_touched() {
    for identity in cpuid_dumps::all().iter().filter(|identity| identity.expected.counters == 0) {
        let name = identity.name;
        let bench = Bench::idle(processor_of(identity));
        assert_eq!(bench.hal.boot.selection.interface, Kind::Default, "{name}");
        assert_eq!((bench.counters(), bench.hal.state_bytes(), bench.sources()), (0, 0, vec![]), "{name}");
        for source in (1..0x100).map(Source) {
            assert_eq!(bench.hal.state_for(source, 0, false), Err(HalError::UnknownSource(source)), "{name}");
        }
        assert_eq!(bench.whole_life(), [], "{name}");
        let accesses = bench.model().accesses();
        assert_eq!((accesses.rdmsr, accesses.wrmsr, accesses.rdpmc), (0, 0, 0), "{name}");
    }
    for (name, reason) in [
        ("amd-hyperv-masked", Reason::MaskedByHypervisor),
        ("intel-hyperv-masked", Reason::MaskedByHypervisor),
        ("vmware-6700k", Reason::NoCycles),
        ("firecracker-cascade-lake", Reason::VersionZero),
        ("intel-no-leaf-a", Reason::NoLeafA),
        ("intel-zero-counters", Reason::ZeroCounters),
    ] {
        let bench = Bench::idle(processor_of(cpuid_dumps::find(name).unwrap()));
        assert_eq!(bench.hal.boot.selection.reason, reason, "{name}");
    }
}

#[test]
fn d28_a_failed_allocation_for_no_counters_is_no_error() {
    let identity = cpuid_dumps::find("intel-hyperv-masked").unwrap();
    let machine = simulation::SimMachine::new(identity, 1);
    let hal = Hal::new(machine.processor(0), 2_048).unwrap();
    assert_eq!(hal.state_bytes(), 0);
    assert!(hal.startable(Source::TIME).is_ok());
}

#[test]
fn d31_these_identities_enumerate_more_events_than_the_table_knows_and_no_others() {
    let bits = Kind::Emon.sources().iter().filter_map(emon::ebx_bit);
    assert_eq!(bits.max(), Some(KNOWN_EVENTS - 1));
    let more = of_interface("Emon").filter(|identity| {
        let [_, _, _, length] = identity.cpuid().cpuid(0xA, 0)[0].to_le_bytes();
        length > KNOWN_EVENTS
    });
    let more: Vec<_> = more.map(|identity| (identity.name, identity.cpuid().cpuid(0xA, 0)[0] >> 24)).collect();
    // Bit 7 is top-down slots; Lion Cove has five more.
    for (name, length) in [
        ("ice-lake-1065g7", 8),
        ("tiger-lake-1135g7", 8),
        ("sapphire-rapids-2475x", 8),
        ("arrow-lake-245k", 13),
        ("panther-lake-355-efficient", 13),
    ] {
        assert!(more.contains(&(name, length)), "{name}");
    }
    assert!(more.iter().all(|(_, length)| [8, 13].contains(length)), "{more:?}");
    assert!(!more.iter().any(|(name, _)| name.contains("skylake")));
}
