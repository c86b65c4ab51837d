//! What is written where, and what is left alone.

use super::bench::{
    Access, Bench, FIXED, GLOBAL_CTRL, GLOBAL_OVF_CTRL, GLOBAL_STATUS, amd, intel, leaf_a_eax, of_interface,
    processor_of, version_of, with_counters, with_global_registers,
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
        let (life, selects) = (bench.whole_life(), bench.select(0)..=bench.select(bench.counters() - 1));
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
    for identity in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        if bench.model().rdmsr(0x309).is_err() {
            continue; // none
        }
        bench.set_msr(0x309, 12_345);
        bench.set_msr(0x38D, 0x3); // kernel and user
        let control = bench.msr(GLOBAL_CTRL) | 1 << 32;
        bench.set_msr(GLOBAL_CTRL, control);
        let fixed = |msr: u32| FIXED.iter().any(|range| range.contains(&msr));
        bench.initialize();
        assert_eq!(bench.msr(GLOBAL_CTRL), 1 << 32, "{}", identity.name);
        bench.take_log();
        let counter = bench.started(bench.anywhere(), Some(4_096));
        bench.run(4_096);
        bench.serve();
        assert_eq!(bench.msr(GLOBAL_CTRL), 1 << 32 | 1 << counter, "{}", identity.name);
        bench.finish();
        bench.release();
        let touched = |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if fixed(*msr));
        assert!(!bench.take_log().iter().any(touched), "{}", identity.name);
        let found = (bench.msr(0x309), bench.msr(0x38D), bench.msr(GLOBAL_CTRL));
        assert_eq!(found, (12_345 + 4_096, 0x3, control), "{}", identity.name);
    }
}

#[test]
fn d06_no_register_but_those_that_the_leaves_declare_is_ever_accessed() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let counters = u32::from(identity.expected.counters);
        let global = [GLOBAL_STATUS, GLOBAL_CTRL, GLOBAL_OVF_CTRL];
        let numbers: Vec<u32> = (0..bench.counters()).map(|counter| bench.number(counter).into()).collect();
        let own: Vec<u32> = match (identity.expected.interface, version_of(identity)) {
            ("Amd64", _) => (0xC001_0000..=0xC001_0007).collect(),
            ("NetBurst", _) => {
                let escrs = [0x3A0, 0x3A2, 0x3B8, 0x3CC];
                let seconds = escrs.map(|escr| escr + 1).into_iter().filter(|_| counters == 18); // both columns
                let own = numbers.iter().flat_map(|number| [0x300 + number, 0x360 + number]);
                own.chain(escrs).chain(seconds).chain([0x1A0]).collect()
            }
            (_, version) => {
                let general = (0x186..0x186 + counters).chain(0xC1..0xC1 + counters);
                general.chain(global.into_iter().filter(|_| version >= 2)).collect()
            }
        };
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
    for identity in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let general = (1 << identity.expected.counters) - 1;
        let written = writes(&bench.whole_life(), |msr| [GLOBAL_CTRL, GLOBAL_OVF_CTRL].contains(&msr));
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
    for identity in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = (1 << identity.expected.counters) - 1;
        assert_eq!(bench.msr(GLOBAL_CTRL), reset, "{}", identity.name);
        for _ in 0..3 {
            bench.initialize();
            assert_eq!(bench.msr(GLOBAL_CTRL), 0, "{}", identity.name);
            bench.started(bench.anywhere(), None);
            bench.finish();
            bench.release();
            assert_eq!(bench.msr(GLOBAL_CTRL), reset, "{}", identity.name);
        }
    }
    let none = Bench::idle(intel([leaf_a_eax(2, 0, 48, 7), 0, 0, 0x603]));
    assert_eq!(none.whole_life(), [], "no counters, nothing to put back");
    assert_eq!(none.msr(GLOBAL_CTRL), 0);
}

#[test]
fn d10_no_value_written_to_a_counter_exceeds_its_width() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let (life, counters) = (bench.whole_life(), bench.counter(0)..=bench.counter(bench.counters() - 1));
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
fn d22_no_select_ever_has_a_bit_above_31() {
    for (name, selects) in selects_of_each_life() {
        assert!(selects.iter().any(|select| *select != 0), "{name}");
        assert!(selects.iter().all(|select| select >> 32 == 0), "{name}: {selects:x?}");
    }
    for identity in with_counters() {
        let selects = selects_of_each_source(&Bench::new(processor_of(identity)));
        assert!(selects.iter().all(|(.., select)| select >> 32 == 0), "{}", identity.name);
    }
}

#[test]
fn d26_no_event_number_of_amd_exceeds_8_bits_and_0c2_is_not_1c2() {
    for identity in of_interface("Amd64") {
        let bench = Bench::new(processor_of(identity));
        let selects = selects_of_each_source(&bench);
        assert_eq!(selects.len(), 2 * 175, "{}", identity.name);
        assert!(selects.iter().all(|(.., select)| select & 0xF_0000_0000 == 0), "{}", identity.name);
    }
    // What a predecessor left in the high bits is gone when the driver starts its own event.
    let bench = Bench::new(amd(true, None));
    bench.set_msr(0xC001_0000, 1 << 32 | 0x0003_00C2);
    let counter = bench.started(6, None);
    let events = |selected: model::Selected| match selected.event {
        0x0C2 => 3,
        0x1C2 => 1_000,
        _ => 0,
    };
    bench.run_events(&events);
    assert_eq!((counter, bench.finish()), (0, vec![3]));
}
