//! What is written where, and what is left alone.

use super::bench::{
    Access, Bench, FIXED, amd, intel, leaf_a_eax, of_interface, processor_of, with_counters, with_global_registers,
};

/// What a life writes into registers that `meant` picks.
fn writes(life: &[Access], meant: impl Fn(u32) -> bool) -> Vec<u64> {
    let values = life.iter().filter_map(|access| match access {
        Access::Write(msr, value) if meant(*msr) => Some(*value),
        _ => None,
    });
    values.collect()
}

/// What is written into select registers in the whole life of each identity.
fn selects_of_each_life() -> impl Iterator<Item = (&'static str, Vec<u64>)> {
    with_counters().map(|identity| {
        let bench = Bench::idle(processor_of(identity));
        let life = bench.whole_life();
        let selects: Vec<_> = (0..bench.counters()).map(|counter| bench.select(counter)).collect();
        (identity.name, writes(&life, |msr| selects.contains(&msr)))
    })
}

/// What starting each source leaves in a select register: source, with an interval or without, value.
fn selects_of_each_source(bench: &Bench) -> Vec<(u32, bool, u64)> {
    let mut selects = Vec::new();
    for source in bench.sources() {
        for interval in [None, Some(4_096)] {
            let counter = bench.started(source, interval);
            selects.push((source, interval.is_some(), bench.msr(bench.select(counter))));
            bench.finish();
        }
    }
    selects
}

#[test]
fn d05_whatever_fixed_counters_there_are_the_general_ones_are_driven_alike() {
    let life = |ecx, edx| Bench::idle(intel([leaf_a_eax(5, 8, 48, 8), 0, ecx, edx])).whole_life();
    let none = life(0, 0);
    for contiguous in 0..=4 {
        for bitmap in 0..=0xF {
            assert_eq!(life(bitmap, 48 << 5 | contiguous), none, "{contiguous}, {bitmap:#x}");
        }
    }
}

#[test]
fn d05_fixed_counters_of_another_and_their_control_are_left_alone_and_go_on() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        if bench.model().rdmsr(0x309).is_err() {
            continue; // none
        }
        bench.set_msr(0x309, 12_345);
        bench.set_msr(0x38D, 0x3); // kernel and user
        let control = bench.msr(global.control) | 1 << 32;
        bench.set_msr(global.control, control);
        let fixed = |msr: u32| FIXED.iter().any(|range| range.contains(&msr));
        bench.initialize();
        assert_eq!(bench.msr(global.control), 1 << 32, "{}", identity.name);
        bench.take_log();
        let counter = bench.started(bench.anywhere(), Some(4_096));
        bench.run(4_096);
        bench.serve();
        assert_eq!(bench.msr(global.control), 1 << 32 | 1 << counter, "{}", identity.name);
        bench.finish();
        bench.release();
        let touched = |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if fixed(*msr));
        assert!(!bench.take_log().iter().any(touched), "{}", identity.name);
        let found = (bench.msr(0x309), bench.msr(0x38D), bench.msr(global.control));
        assert_eq!(found, (12_345 + 4_096, 0x3, control), "{}", identity.name);
    }
}

#[test]
fn d06_no_register_but_those_that_the_leaves_declare_is_ever_accessed() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let own = bench.own_registers();
        let numbers: Vec<u32> = (0..bench.counters()).map(|counter| bench.number(counter).into()).collect();
        for access in bench.whole_life() {
            match access {
                Access::Read(msr) | Access::Write(msr, _) => {
                    assert!(own.contains(&msr), "{}: {msr:#x}", identity.name);
                }
                Access::Counter(counter) => assert!(numbers.contains(&counter), "{}", identity.name),
            }
        }
        assert_eq!(bench.model().accesses().faulted, 0, "{}", identity.name);
    }
}

#[test]
fn d07_no_bit_but_those_of_general_counters_is_ever_set_in_global_registers() {
    // But for the one that lets frozen counters of AMD go on, which is cleared and never set.
    const FROZEN: u64 = 1 << 59;
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let general = (1 << identity.expected.counters) - 1;
        let life = bench.whole_life();
        let mut written = writes(&life, |msr| msr == global.control);
        written.extend(writes(&life, |msr| msr == global.clear).into_iter().map(|value| value & !FROZEN));
        assert_eq!(writes(&life, |msr| msr == global.set), [], "{}", identity.name);
        assert!(!written.is_empty(), "{}", identity.name);
        assert!(written.iter().all(|value| value & !general == 0), "{}: {written:x?}", identity.name);
    }
    for counters in 1..=10 {
        for version in [2, 3, 4, 5] {
            // No fixed counters: the model refuses their bits.
            Bench::idle(intel([leaf_a_eax(version, counters, 48, 7), 0, 0, 0])).whole_life();
        }
    }
}

#[test]
fn d08_the_reset_value_of_global_control_is_put_back() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = (1 << identity.expected.counters) - 1;
        assert_eq!(bench.msr(global.control), reset, "{}", identity.name);
        for _ in 0..3 {
            bench.initialize();
            assert_eq!(bench.msr(global.control), 0, "{}", identity.name);
            bench.started(bench.anywhere(), None);
            bench.finish();
            bench.release();
            assert_eq!(bench.msr(global.control), reset, "{}", identity.name);
        }
    }
    let none = Bench::idle(intel([leaf_a_eax(2, 0, 48, 7), 0, 0, 0x603]));
    assert_eq!(none.whole_life(), [], "no counters, nothing to put back");
    assert_eq!(none.msr(0x38F), 0);
}

#[test]
fn d10_no_value_written_to_a_counter_exceeds_its_width() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let life = bench.whole_life();
        let counters: Vec<_> = (0..bench.counters()).map(|counter| bench.counter(counter)).collect();
        let values = writes(&life, |msr| counters.contains(&msr));
        assert!(values.iter().any(|value| *value != 0), "{}", identity.name);
        assert!(values.iter().all(|value| value >> identity.expected.width == 0), "{}: {values:x?}", identity.name);
    }
}

#[test]
fn d11_rdpmc_asks_for_general_counters_that_exist_and_for_each() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let asked = bench.whole_life();
        for counter in 0..=255 {
            let exists = bench.usable().iter().any(|usable| bench.number(*usable) == counter);
            assert_eq!(asked.contains(&Access::Counter(u32::from(counter))), exists, "{}: {counter}", identity.name);
        }
    }
}

#[test]
fn d15_no_counter_mask_is_ever_set_nor_what_goes_with_it() {
    const MASK_INVERT_EDGE: u64 = 0xFF << 24 | 1 << 23 | 1 << 18;
    for (name, selects) in selects_of_each_life().filter(|(name, _)| !name.starts_with("netburst")) {
        assert!(selects.iter().all(|select| select & MASK_INVERT_EDGE == 0), "{name}: {selects:x?}");
    }
    for name in ["amd-legacy", "intel-v1", "intel-v2"] {
        let bench = Bench::named(name);
        let selects = selects_of_each_source(&bench);
        assert!(selects.iter().all(|(.., select)| select & MASK_INVERT_EDGE == 0), "{name}");
        bench.started(bench.anywhere(), None);
        bench.run(1);
        for (_, selected) in bench.model().enabled_counters() {
            assert_eq!((selected.cmask, selected.invert, selected.edge), (0, false, false), "{name}");
        }
    }
}

#[test]
fn d18_the_interrupt_is_asked_for_if_an_interval_is_armed_and_not_otherwise() {
    for name in ["amd-legacy", "zen4-7700x", "intel-v1", "intel-v2", "ice-lake-1065g7"] {
        let bench = Bench::named(name);
        for (source, armed, select) in selects_of_each_source(&bench) {
            assert_eq!(select >> 20 & 1 == 1, armed, "{name}, source {source:#x}");
            assert_eq!(select >> 22 & 1, 1, "{name}, source {source:#x}: enabled");
        }
        for interval in [None, Some(4_096)] {
            let counter = bench.started(bench.anywhere(), interval);
            bench.set_counter(counter, u64::MAX);
            bench.run(1);
            assert_eq!(bench.msr(bench.counter(counter)), 0, "{name}: it overflowed");
            assert_eq!(bench.deliver(), interval.is_some(), "{name}, interval {interval:?}");
            bench.finish();
        }
    }
}

#[test]
fn d22_no_select_ever_has_a_bit_above_31_but_those_of_events_of_12_bits_on_amd() {
    const EVENT_HIGH: u64 = 0xF << 32;
    for identity in with_counters() {
        let allowed = if identity.expected.interface == "Amd64" { EVENT_HIGH } else { 0 } | 0xFFFF_FFFF;
        let selects = selects_of_each_source(&Bench::new(processor_of(identity)));
        assert!(selects.iter().all(|(.., select)| select & !allowed == 0), "{}", identity.name);
    }
    for (name, selects) in selects_of_each_life() {
        assert!(selects.iter().any(|select| *select != 0), "{name}");
        assert!(selects.iter().all(|select| select & !(EVENT_HIGH | 0xFFFF_FFFF) == 0), "{name}: {selects:x?}");
    }
}

/// Happens 3 times for event 0C2H, and 1,000 times for 1C2H.
fn of_two_events(selected: model::Selected) -> u64 {
    match selected.event {
        0x0C2 => 3,
        0x1C2 => 1_000,
        _ => 0,
    }
}

#[test]
fn d26_event_1c2_is_not_0c2() {
    for name in ["zen4-7700x", "zen5-9800x3d"] {
        let bench = Bench::named(name);
        let [branches, microcode] = [6, 0x1006].map(|source| bench.reserve(source, None));
        bench.start([branches, microcode]);
        assert_eq!(bench.msr(bench.select(microcode)) & 0xF_0000_FFFF, 1 << 32 | 0xC2, "{name}");
        bench.run_events(&of_two_events);
        assert_eq!(bench.finish(), [3, 1_000], "{name}");
    }
    // What a predecessor left in the high bits is gone when the driver starts its own event.
    for processor in [amd(false, None), amd(true, None), amd(true, Some(6))] {
        let bench = Bench::new(processor);
        bench.set_msr(bench.select(0), 1 << 32 | 0x0003_00C2);
        let counter = bench.started(6, None);
        bench.run_events(&of_two_events);
        assert_eq!((counter, bench.finish()), (0, vec![3]));
    }
}

#[test]
fn d26_no_event_of_the_k8_exceeds_8_bits_and_each_source_is_written_as_it_is_told() {
    for identity in of_interface("Amd64") {
        let bench = Bench::new(processor_of(identity));
        let told: Vec<u64> = bench.hal.source_list().map(|source| source.source.select).collect();
        if told.len() == 176 {
            assert!(told.iter().all(|select| select >> 32 == 0), "{}", identity.name);
        }
        let selects = selects_of_each_source(&bench);
        assert_eq!(selects.len(), 2 * identity.expected.supported.len(), "{}", identity.name);
        for (source, armed, select) in selects {
            let row = bench.hal.source_information(profile::Source(source)).unwrap().source;
            let enabled_and_interrupt = 1 << 22 | u64::from(armed) << 20;
            assert_eq!(select, row.select | enabled_and_interrupt, "{} {}", identity.name, row.name);
        }
    }
}
