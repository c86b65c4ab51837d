//! What the counters of an Intel processor are, by single bits of CPUID.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pmu::Cpuid;
use pmu::interface::emon::PmuCapabilities;
use pmu::state::CounterSet;
use pmu::{Interface, Kind, ProfileInterface};
use raw_cpuid::CpuIdResult;
use simulation::{ModelCpu, SimMachine};

/// Leaf and subleaf, register (0 EAX to 3 EDX), the bits to replace and their new value.
type Edit = (u32, u32, usize, u32, u32);

/// A processor with other values in some leaves.
struct Edited<'a> {
    cpu: &'a ModelCpu,
    edits: &'a [Edit],
}

impl Cpuid for Edited<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let CpuIdResult { eax, ebx, ecx, edx } = self.cpu.cpuid(leaf, subleaf);
        let mut registers = [eax, ebx, ecx, edx];
        for (_, _, register, mask, value) in self.edits.iter().filter(|edit| (edit.0, edit.1) == (leaf, subleaf)) {
            let register = registers.get_mut(*register).unwrap();
            *register = *register & !mask | value;
        }
        let [eax, ebx, ecx, edx] = registers;
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

fn capabilities(identity: &str, edits: &[Edit]) -> PmuCapabilities {
    let machine = SimMachine::named(identity, 1);
    PmuCapabilities::of(&Edited { cpu: machine.processor(0), edits })
}

/// Returns the interface of a processor with these edits.
fn interface(identity: &str, edits: &[Edit]) -> Interface {
    let machine = SimMachine::named(identity, 1);
    Interface::new(Kind::Emon, &Edited { cpu: machine.processor(0), edits })
}

const fn version(version: u32) -> Edit {
    (0xA, 0, 0, 0xFF, version)
}

/// EDX[15] of leaf 0xA: AnyThread is deprecated.
const fn no_any_thread(set: bool) -> Edit {
    (0xA, 0, 3, 1 << 15, (set as u32) << 15)
}

/// EDX[4:0] of leaf 0xA: the number of contiguous fixed counters.
const fn fixed_counters(count: u32) -> Edit {
    (0xA, 0, 3, 0x1F, count)
}

/// ECX of leaf 0xA: a bit for each fixed counter.
const fn fixed_bitmap(bitmap: u32) -> Edit {
    (0xA, 0, 2, u32::MAX, bitmap)
}

/// EDX[12:5] of leaf 0xA.
const fn fixed_width(width: u32) -> Edit {
    (0xA, 0, 3, 0xFF << 5, width << 5)
}

/// ECX[15] of leaf 1: IA32_PERF_CAPABILITIES exists.
const NO_PERF_CAPABILITIES: Edit = (1, 0, 2, 1 << 15, 0);

/// ECX[31] of leaf 1: a hypervisor, whose fixed counters are taken as CPUID reports them.
const HYPERVISOR: Edit = (1, 0, 2, 1 << 31, 1 << 31);

/// EAX of leaf 1: family 6 and this model.
const fn model(model: u32) -> Edit {
    (1, 0, 0, u32::MAX, 6 << 8 | (model >> 4) << 16 | (model & 0xF) << 4)
}

#[test]
fn version_3_has_any_thread_unless_it_is_deprecated() {
    for number in 1..=5 {
        for deprecated in [false, true] {
            let found = capabilities("skylake-6600k", &[version(number), no_any_thread(deprecated)]);
            assert_eq!(found.any_thread(), number >= 3 && !deprecated, "version {number}, {deprecated}");
        }
    }
}

#[test]
fn the_bitmap_of_fixed_counters_counts_from_version_5_on() {
    for (number, contiguous, bitmap, wanted) in [
        (1, 3, 0b111, 0),
        (2, 2, 0b100, 0b011),
        (3, 1, 0b100, 0b001),
        (4, 0, 0b111, 0),
        (5, 1, 0b100, 0b101),
        (5, 0, 0b010, 0b010),
        (6, 2, 0b000, 0b011),
    ] {
        let edits = [HYPERVISOR, version(number), fixed_counters(contiguous), fixed_bitmap(bitmap)];
        assert_eq!(capabilities("skylake-6600k", &edits).fixed(), wanted, "{edits:?}");
    }
}

/// Slots need fixed counter 3 with 48 bits, the global registers, IA32_PERF_CAPABILITIES, and a microarchitecture whose
/// metrics are known.
#[test]
fn a_processor_without_one_of_the_conditions_has_no_slots() {
    const ICE_LAKE: u32 = 0x7E;
    const SKYLAKE: u32 = 0x5E;
    const NONE_YET: u32 = 0xFD;
    let four = [fixed_counters(4), fixed_width(48), fixed_bitmap(0)];
    for (edit, has_slots) in [
        (version(5), true),
        (version(1), false),
        (fixed_width(47), false),
        (fixed_width(40), false),
        (fixed_counters(3), false),
        (fixed_counters(0), false),
        (fixed_bitmap(0b1000), true),
        (NO_PERF_CAPABILITIES, false),
        (model(ICE_LAKE), true),
        (model(SKYLAKE), false),
        (model(NONE_YET), false),
    ] {
        let edits = [&four[..], &[edit]].concat();
        assert_eq!(capabilities("ice-lake-1065g7", &edits).slots(), has_slots, "{edit:?}");
        let unit = interface("ice-lake-1065g7", &edits).unit();
        assert_eq!(unit.is_empty(), !has_slots, "{edit:?}: {unit:?}");
    }
    let by_bitmap = [fixed_counters(0), fixed_width(48), fixed_bitmap(0b1000)];
    assert!(capabilities("ice-lake-1065g7", &by_bitmap).slots());
}

/// Slots follow fixed counter 2, and the four metrics of Ice Lake follow slots.
#[test]
fn the_unit_has_the_indexes_behind_the_counters() {
    let interface = interface("ice-lake-1065g7", &[]);
    let counters = interface.counters();
    assert_eq!(interface.unit(), CounterSet::first(counters + 5).without(CounterSet::first(counters)));
    assert_eq!(interface.indexes(), counters + 5);
}

#[test]
fn the_servers_of_sandy_bridge_and_ivy_bridge_have_more_off_core_responses() {
    let valid = |number: u32| {
        let found = capabilities("skylake-6600k", &[model(number)]);
        (found.is_server(), found.extra_events().iter().map(|event| event.valid).max().unwrap())
    };
    for (client, server) in [(0x2A, 0x2D), (0x3A, 0x3E)] {
        let ((client_is, of_client), (server_is, of_server)) = (valid(client), valid(server));
        assert!(!client_is && server_is, "{client:#x} {server:#x}");
        assert!(of_client < of_server && of_client & !of_server == 0, "{of_client:#x} {of_server:#x}");
    }
    assert!(!valid(0x3C).0, "Haswell");
}

/// From CPUID leaf 0xA EBX: a set bit is an event that the processor lacks, and bits behind the length say nothing.
#[test]
fn an_event_is_missing_if_its_bit_is_set_within_the_length() {
    for (length, bits) in [(7, 0), (7, 0b000_0101), (7, 0b111_1111), (3, 0b000_0110), (0, 0b111_1111)] {
        let edits = [(0xA, 0, 0, 0xFF << 24, length << 24), (0xA, 0, 1, u32::MAX, bits)];
        let found = capabilities("skylake-6600k", &edits);
        for bit in 0..7 {
            assert_eq!(found.enumerates(bit), u32::from(bit) < length, "length {length}, bit {bit}");
            assert_eq!(found.lacks(bit), bits >> bit & 1 == 1, "bits {bits:#b}, bit {bit}");
        }
    }
}
