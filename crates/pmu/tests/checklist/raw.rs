//! Raw events: the select register values on each generation.

use model::Selected;
use pmu::hal::MAX_RAW;
use pmu::source::RawEvent;
use pmu::state::CounterSet;
use pmu::{Hal, HalError, ProcessorIndex, Source, Support};

use super::bench::{Bench, SHORT, amd_of_family, intel, leaf_a_eax, processor_of};

/// An identity for each generation whose select registers take an event and a unit mask, and the bits of the event
/// number.
const GENERATIONS: [(&str, u32); 13] = [
    ("p6-coppermine", 8),
    ("intel-v1", 8),
    ("core2-6420", 8),
    ("nehalem-920", 8),
    ("haswell-4710mq", 8),
    ("sapphire-rapids-2475x", 8),
    ("intel-hybrid", 8),
    ("k8-clawhammer", 8),
    ("amd-legacy", 12),
    ("bulldozer-fx8150", 12),
    ("zen-1800x", 12),
    ("zen3-5950x", 12),
    ("zen4-7700x", 12),
];

fn raw(event: u16, umask: u8) -> RawEvent {
    RawEvent::new().with_event(event).with_umask(umask.into())
}

/// Returns the select value for both modes, enabled and with interrupt, by the figures in the manuals.
fn select_of(event: RawEvent) -> u64 {
    let flag = |is_set: bool, bit: u32| u64::from(is_set) << bit;
    let number = u64::from(event.event());
    (number % 0x100)
        | (u64::from(event.umask()) << 8)
        | (0b11 << 16)
        | flag(event.edge(), 18)
        | (1 << 20)
        | (1 << 22)
        | flag(event.inv(), 23)
        | (u64::from(event.cmask()) << 24)
        | ((number / 0x100) << 32)
}

/// Starts a raw event, returns its select register, and stops it.
fn selected(name: &str, bench: &Bench, event: RawEvent) -> Result<u64, HalError> {
    bench.hal.events.keep_raw(|_| false);
    let state = bench.hal.state_for(event.source(), 0, true)?.with_owner(1).with_user(true).with_kernel(true);
    let counter = bench.hal.reserve(ProcessorIndex::BOOT, state).unwrap();
    bench.start([counter]);
    // The first select register of P6 has the enable flag of both counters.
    let enable = if name == "p6-coppermine" && counter == 1 { 1 << 22 } else { 0 };
    let register = bench.msr(bench.select(counter)) | enable;
    bench.finish();
    Ok(register)
}

/// Returns whether a generation has an event that no general counter counts, or not alone: the events of fixed counters
/// (Intel's event files), two unit masks at once on family 15h (Linux, `amd_get_event_constraints_f15h`).
fn is_uncounted(name: &str, event: u8, umask: u8, support: Support) -> bool {
    match (name, event, support) {
        ("nehalem-920" | "haswell-4710mq" | "sapphire-rapids-2475x" | "intel-hybrid", 0, Support::NoCounter) => {
            (1..=3).contains(&umask)
        }
        ("bulldozer-fx8150", 0x31, Support::NoCounter) => umask.count_ones() > 1,
        _ => false,
    }
}

/// Every 16-bit event and unit mask. Fields do not overlap, so the value with all other bits set is the worst case.
#[test]
fn every_raw_event_writes_its_encoding_and_no_reserved_bit() {
    for (name, bits) in GENERATIONS {
        let bench = Bench::named(name);
        let mut refused = 0;
        for number in 0..=u16::MAX {
            let [low, umask] = number.to_le_bytes();
            let event = raw(low.into(), umask).with_cmask(0xFF).with_inv(true).with_edge(true);
            match selected(name, &bench, event) {
                Ok(register) => assert_eq!(register, select_of(event), "{name}: {event:?}"),
                Err(HalError::Unsupported(_, Support::NotOnThisFamily)) => refused += 1,
                Err(HalError::Unsupported(_, support @ Support::NoCounter)) => {
                    assert!(is_uncounted(name, low, umask, support), "{name}: {event:?}");
                }
                Err(HalError::Unsupported(_, Support::EventNotAvailable | Support::EventNotEnumerated)) => {
                    assert!(ARCHITECTURAL.contains(&(low.into(), umask)), "{name}: {event:?}");
                }
                // Slots and metrics, which have no fields but these two.
                Err(HalError::Unsupported(_, Support::NoMetrics)) => {
                    assert!(low == 0 && matches!(umask, 0x04 | 0x80..=0x87), "{name}: {event:?}");
                }
                Err(error) => panic!("{name}: {event:?}: {error}"),
            }
        }
        // Northbridge events, if the northbridge has its own counters.
        assert!([0, 0x2000].contains(&refused), "{name}: {refused}");
        for number in 0x100..=0xFFF {
            for umask in [0, 0xFF] {
                let event = raw(number, umask);
                match selected(name, &bench, event) {
                    Err(HalError::Unsupported(_, Support::NoSuchEvent)) => assert_eq!(bits, 8, "{name}: {event:?}"),
                    Err(HalError::Unsupported(_, Support::NotOnThisFamily)) => assert_eq!(refused, 0x2000, "{name}"),
                    // Merge, from family 17h on (Linux, `AMD_MERGE_EVENT`).
                    Err(HalError::Unsupported(_, Support::MergesCounters)) => {
                        assert!(name.starts_with("zen") && number == 0xFFF, "{name}: {event:?}");
                    }
                    told => assert_eq!((told, bits), (Ok(select_of(event)), 12), "{name}: {event:?}"),
                }
            }
        }
        assert_eq!(bench.model().accesses().faulted, 0, "{name}");
    }
}

#[test]
fn a_raw_event_counts_what_it_selects_and_nothing_else() {
    for (name, _) in GENERATIONS {
        let bench = Bench::named(name);
        let event = raw(0xA5, 0x03).with_cmask(2).with_edge(true);
        let other = raw(0xA5, 0x03).with_cmask(2);
        let counters = [event, other].map(|event| bench.reserve(event.source().0, None));
        let states = counters.map(|counter| bench.hal.cpu_counters(ProcessorIndex::BOOT).get(counter));
        assert_eq!(states.map(|state| bench.hal.source(state)), [event, other].map(RawEvent::source), "{name}");
        bench.start(counters);
        let meant = Selected { event: 0xA5, umask: 0x03, cmask: 2, invert: false, edge: true };
        bench.run_events(&|selected| if selected == meant { 1_234 } else { 5 });
        assert_eq!(bench.finish(), [1_234, 5], "{name}");
    }
}

#[test]
fn a_raw_event_is_sampled_in_the_modes_asked_for() {
    for (name, _) in GENERATIONS {
        let bench = Bench::named(name);
        let state = bench.hal.state_for(raw(0xA1, 1).source(), 0, true).unwrap();
        let state = state.with_owner(1).with_interval(SHORT).with_user(true);
        let counter = bench.hal.reserve(ProcessorIndex::BOOT, state).unwrap();
        bench.start([counter]);
        let (user, kernel, interrupt, _) = bench.control(counter);
        assert_eq!((user, kernel, interrupt), (true, false, true), "{name}");
        bench.run(u64::from(SHORT) + 7);
        assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{name}");
        assert_eq!(bench.finish(), [u64::from(SHORT) + 7], "{name}");
    }
}

#[test]
fn interfaces_without_such_registers_refuse_every_raw_event_and_touch_nothing() {
    for name in ["netburst-cedarmill", "netburst-irwindale", "pentium-p54c", "amd-no-long-mode", "zhaoxin-c4580"] {
        let bench = Bench::idle(processor_of(cpuid_dumps::find(name).unwrap()));
        if bench.hal.interface().kind() == pmu::Kind::Emon {
            continue; // other interfaces
        }
        let event = raw(0xC0, 0);
        let refusal = HalError::Unsupported(event.source(), Support::NoRawEvents);
        assert_eq!(bench.hal.state_for(event.source(), 0, false), Err(refusal), "{name}");
        let told = bench.hal.source_information(event.source()).unwrap();
        assert_eq!((told.support, told.counters), (Support::NoRawEvents, CounterSet::NONE), "{name}");
        assert_eq!(bench.take_log(), [], "{name}");
    }
}

/// SDM Vol. 3B, 21.2.3, "Pre-defined Architectural Performance Events", in the order of their bits in EBX.
const ARCHITECTURAL: [(u16, u8); 7] =
    [(0x3C, 0x00), (0xC0, 0x00), (0x3C, 0x01), (0x2E, 0x4F), (0x2E, 0x41), (0xC4, 0x00), (0xC5, 0x00)];

#[test]
fn an_architectural_event_that_cpuid_says_is_missing_is_missing_by_its_numbers_too() {
    let support = |length: u8, missing: u32, event: RawEvent| {
        let bench = Bench::idle(intel([leaf_a_eax(2, 4, 48, length), missing, 0, 0]));
        bench.hal.source_information(event.source()).unwrap().support
    };
    // Without the first event, Emon is not chosen.
    for (bit, (event, umask)) in (0..).zip(ARCHITECTURAL).skip(1) {
        for event in [raw(event, umask), raw(event, umask).with_cmask(1).with_inv(true)] {
            let all_others = 0x7E & !(1 << bit);
            assert_eq!(support(7, all_others, event), Support::Supported, "{event:?}");
            assert_eq!(support(7, 1 << bit, event), Support::EventNotAvailable, "{event:?}");
            assert_eq!(support(bit, 0, event), Support::EventNotEnumerated, "{event:?}");
        }
        assert_eq!(support(7, 0x7E, raw(event, umask ^ 0x80)), Support::Supported, "an event of the model's own");
    }
}

#[test]
fn raw_events_leave_the_fixed_counters_to_the_sources_that_they_count() {
    let bench = Bench::named("haswell-4710mq");
    let all = bench.hal.source_information(raw(0xC0, 0).source()).unwrap().counters;
    assert_eq!(all, CounterSet::first(bench.general()));
    let taken: Vec<_> = (0..bench.general()).map(|_| bench.reserve(raw(0xC0, 0).source().0, None)).collect();
    assert!(taken.iter().all(|counter| *counter < bench.general()));
    assert_eq!(bench.try_reserve(raw(0xC0, 0).source().0, None), None);
    assert!(bench.reserve(2, None) >= bench.general(), "TotalIssues has the fixed one still");
}

#[test]
fn equal_raw_events_share_a_slot_and_unused_slots_are_reused() {
    let bench = Bench::named("zen4-7700x");
    let event = |number: u16| {
        let [low, high] = number.to_le_bytes();
        raw(0xA0, low).with_cmask(high).source()
    };
    let index = |number: u16| bench.hal.state_for(event(number), 0, false).map(|state| state.event());
    let first = index(0).unwrap();
    assert_eq!(index(0), Ok(first));
    let places: Vec<_> = (0..MAX_RAW).map(|number| index(number).unwrap()).collect();
    assert!(places.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(index(MAX_RAW), Err(HalError::TooManyRaw(event(MAX_RAW))));
    let kept = places[7];
    bench.hal.events.keep_raw(|index| index == kept);
    assert_eq!(index(7), Ok(kept));
    let others: Vec<_> = (300..300 + MAX_RAW - 1).map(|number| index(number).unwrap()).collect();
    assert!(!others.contains(&kept));
    assert!(index(0).is_err());
}

#[test]
fn a_raw_event_keeps_no_interval() {
    let bench = Bench::idle(processor_of(cpuid_dumps::find("zen4-7700x").unwrap()));
    let source = raw(0xC0, 0).source();
    assert_eq!(bench.hal.set_interval(source, 5_000), Err(HalError::NoInterval(source)));
    assert_eq!(bench.hal.source_information(source).unwrap().interval, 65_536);
    assert_eq!(bench.take_log(), []);
}

#[test]
fn numbers_of_neither_a_source_nor_a_raw_event_are_unknown() {
    let hal: Hal = Bench::idle(amd_of_family(0x19, 0x21, 0, None)).hal;
    for number in [0xFFFF_FFFF, 0x7FFF_FFFF, 0xC000_0000, 0x4000_0000, 0x0000_0FFF] {
        assert_eq!(hal.startable(Source(number)), Err(HalError::UnknownSource(Source(number))), "{number:#x}");
    }
}
