//! Leaf 0x23: the counters that it enumerates, UMASK2 and EQ.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use pmu::source::RawEvent;
use pmu::state::{CounterSet, FoundMsrs};
use pmu::{Cpuid, Hal, HalError, Interface, Kind, ProcessorIndex, ProfileInterface, Source, Support};
use raw_cpuid::CpuIdResult;
use simulation::{SimMachine, boot};

/// Lunar Lake with other values in leaf 0x23.
struct Edited<'a, C> {
    cpu: &'a C,
    /// Subleaves 0 and 1: EAX and EBX.
    leaf_23: [[u32; 2]; 2],
    has_leaf: bool,
}

impl<C: Cpuid> Cpuid for Edited<'_, C> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let mut registers = self.cpu.cpuid(leaf, subleaf);
        match (leaf, subleaf) {
            (0x23, 0) => [registers.eax, registers.ebx] = self.leaf_23[0],
            (0x23, 1) => [registers.eax, registers.ebx] = self.leaf_23[1],
            (7, 1) if !self.has_leaf => registers.eax &= !(1 << 8),
            _ => {}
        }
        registers
    }
}

/// The main leaf of Lunar Lake: subleaves 0, 1 and 3; UMASK2 and EQ.
const MAIN: [u32; 2] = [0xB, 3];

/// Returns the interface of Lunar Lake with another leaf 0x23, or without it.
fn interface(leaf_23: [[u32; 2]; 2], has_leaf: bool) -> Interface {
    let machine = SimMachine::named("lunar-lake-288v", 1);
    Interface::new(Kind::Emon, &Edited { cpu: machine.processor(0), leaf_23, has_leaf })
}

/// Returns the counters for last-level cache misses, which no fixed counter counts.
fn general(interface: &Interface) -> CounterSet {
    interface.counters_for(&interface.find(Source(10)).unwrap().1)
}

#[test]
fn the_counters_are_those_of_the_bitmaps() {
    for (name, general_counters, fixed) in [
        ("lunar-lake-288v", 10, 3),
        ("lunar-lake-288v-efficient", 8, 3),
        ("arrow-lake-h-285h", 10, 3),
        ("arrow-lake-h-285h-efficient", 8, 3),
        ("panther-lake-355", 10, 3),
        ("meteor-lake-155h", 8, 3),
    ] {
        let interface = Interface::new(Kind::Emon, SimMachine::named(name, 1).processor(0));
        assert_eq!(general(&interface), CounterSet::first(general_counters), "{name}");
        assert_eq!((interface.counters(), interface.fixed_counters()), (general_counters + fixed, fixed), "{name}");
    }
}

#[test]
fn a_bitmap_may_have_holes_and_more_counters_than_registers() {
    for (bitmaps, counters, indexes, fixed) in [
        ([0x0000_000F, 0b0111], 0x00F, 7, 3),
        ([0x0000_00F0, 0b0001], 0x0F0, 9, 1),
        ([0x0000_0155, 0b0101], 0x155, 12, 2),
        // Only ten have registers.
        ([0xFFFF_FFFF, 0xFFFF], 0x3FF, 13, 3),
        // Fixed counter 4 and later have no source.
        ([0x0000_0003, 0x0070], 0x003, 2, 0),
    ] {
        let interface = interface([MAIN, bitmaps], true);
        assert_eq!(general(&interface), CounterSet::from_bits(counters), "{bitmaps:x?}");
        assert_eq!((interface.counters(), interface.fixed_counters()), (indexes, fixed), "{bitmaps:x?}");
    }
}

#[test]
fn leaf_a_decides_where_leaf_23_or_its_subleaf_is_missing() {
    let bitmaps = [0x3FF, 0b0111];
    assert_eq!(interface([MAIN, bitmaps], true).counters(), 13);
    assert_eq!(interface([MAIN, bitmaps], false).counters(), 11, "not announced in leaf 7");
    assert_eq!(interface([[0b1001, 3], bitmaps], true).counters(), 11, "subleaf 1 is not valid");
}

#[test]
fn a_counter_in_a_hole_is_never_accessed() {
    let interface = interface([MAIN, [0x155, 0]], true);
    let machine = SimMachine::named("lunar-lake-288v", 1);
    let cpu = machine.processor(0);
    cpu.model().wrmsr(0x187, 0x0043_003C).unwrap();
    assert_eq!(interface.enabled(cpu), None, "IA32_PERFEVTSEL1 is not the interface's");
    interface.initialize(cpu, FoundMsrs::default());
    assert_eq!(cpu.model().rdmsr(0x187), Ok(0x0043_003C));
}

/// A raw event that compares for equality, and one with UMASK2: BR_MISP_RETIRED.INDIRECT_COST of Cougar Cove.
fn raw_events() -> [RawEvent; 2] {
    let event = RawEvent::new().with_event(0xC5);
    [event.with_cmask(8).with_eq(true), event.with_umask(0x8050)]
}

#[test]
fn umask2_and_eq_reach_the_select_register() {
    for name in ["lunar-lake-288v", "panther-lake-355", "panther-lake-355-efficient"] {
        let machine = SimMachine::named(name, 1);
        let (hal, cpu) = (Hal::new(machine.processor(0), 1).unwrap(), machine.processor(0));
        simulation::access_first(&hal, cpu, 0);
        assert!(hal.initialize(boot(cpu)));
        for (event, select) in raw_events().into_iter().zip([0x10_0843_00C5, 0x8000_0043_50C5]) {
            let state =
                hal.state_for(event.source(), 0, false).unwrap().with_owner(1).with_user(true).with_kernel(true);
            let counter = hal.reserve(ProcessorIndex::BOOT, state).unwrap();
            hal.start(boot(cpu), CounterSet::NONE.with(counter));
            assert_eq!(cpu.model().rdmsr(0x186 + u32::from(counter)), Ok(select), "{name} {event:?}");
            hal.stop(boot(cpu), CounterSet::NONE.with(counter));
        }
    }
}

#[test]
fn umask2_and_eq_are_refused_where_the_registers_lack_them() {
    for name in ["haswell-4710mq", "sapphire-rapids-2475x", "meteor-lake-155h", "zen5-9800x3d", "p6-dothan"] {
        let machine = SimMachine::named(name, 1);
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        let refusals = raw_events().map(|event| hal.startable(event.source()));
        let [eq, umask2] = raw_events().map(RawEvent::source);
        assert_eq!(
            refusals,
            [
                Err(HalError::Unsupported(eq, Support::NoEquality)),
                Err(HalError::Unsupported(umask2, Support::NoSecondUnitMask)),
            ],
            "{name}"
        );
    }
}
