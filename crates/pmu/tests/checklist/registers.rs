//! The values written to registers, and the registers that are not touched.

use model::CounterId;
use pmu::{ProfileInterface, Source};

use super::bench::{
    Access, Bench, FIXED_CTR_CTRL, FIXED_CTR0, GLOBAL_CTRL, PERF_CAPABILITIES, amd, intel, leaf_a_eax, of_interface,
    processor_of, with_counters, with_fixed_counters, with_global_registers,
};
use simulation::boot;

/// Returns the values that a life cycle writes to the registers that `meant` selects.
fn writes(life: &[Access], meant: impl Fn(u32) -> bool) -> Vec<u64> {
    let values = life.iter().filter_map(|access| match access {
        Access::Write(msr, value) if meant(*msr) => Some(*value),
        _ => None,
    });
    values.collect()
}

/// Returns the values written to select registers in the life cycle of each identity.
fn selects_of_each_life() -> impl Iterator<Item = (&'static str, Vec<u64>)> {
    with_counters().map(|identity| {
        let bench = Bench::idle(processor_of(identity));
        let life = bench.whole_life();
        let selects: Vec<_> = (0..bench.general()).map(|counter| bench.select(counter)).collect();
        (identity.name, writes(&life, |msr| selects.contains(&msr)))
    })
}

/// Returns the select register values after starting each source: source, whether with an interval, value.
fn selects_of_each_source(bench: &Bench) -> Vec<(u64, bool, u64)> {
    let mut selects = Vec::new();
    for source in bench.sources() {
        let counters = bench.hal.source_information(Source(source)).unwrap().counters;
        let Some(counter) = counters.iter().find(|counter| matches!(bench.id(*counter), CounterId::General(_))) else {
            continue;
        };
        for interval in [None, Some(4_096)] {
            bench.reserve_source_on(source, counter, interval);
            bench.start([counter]);
            selects.push((source, interval.is_some(), bench.msr(bench.select(counter))));
            bench.finish();
        }
    }
    selects
}

#[test]
fn d05_a_fixed_counter_is_used_if_edx_or_from_version_5_on_ecx_has_it_and_it_is_one_of_the_first_three() {
    for version in [1, 2, 3, 4, 5, 6] {
        for contiguous in 0..=5_u32 {
            for bitmap in 0..=0x1F_u32 {
                let leaf = [leaf_a_eax(version, 8, 48, 8), 0, bitmap, 40 << 5 | contiguous];
                let bench = Bench::idle(intel(leaf));
                let life = bench.whole_life();
                for number in 0..16 {
                    let by_bitmap = version >= 5 && bitmap >> number & 1 == 1;
                    let contiguous = if version < 5 { contiguous.max(3) } else { contiguous };
                    let there = version >= 2 && (number < contiguous || by_bitmap);
                    let name = format!("version {version}, {contiguous}, {bitmap:#x}: {number}");
                    assert_eq!(bench.model().rdmsr(FIXED_CTR0 + number).is_ok(), there, "{name}, by the model");
                    let register = Access::Counter(1 << 30 | number);
                    assert_eq!(life.contains(&register), there && number < 3, "{name}");
                    let loads = writes(&life, |msr| msr == FIXED_CTR0 + number);
                    assert_eq!(!loads.is_empty(), there && number < 3, "{name}");
                }
            }
        }
    }
}

#[test]
fn d05_fixed_counters_too_narrow_for_an_interval_are_not_used() {
    for width in 0..=64_u32 {
        let bench = Bench::idle(intel([leaf_a_eax(2, 4, 48, 7), 0, 0, width << 5 | 3]));
        assert_eq!(bench.counters(), if width < 32 { 4 } else { 7 }, "{width}");
        assert!((4..bench.counters()).all(|counter| u32::from(bench.hal.interface().width_of(counter)) == width));
    }
}

/// The first fixed counter that no source uses: slots.
const SLOTS: u32 = 3;

#[test]
fn d05_an_unneeded_fixed_counter_and_its_control_are_left_unchanged() {
    let mut seen = 0;
    for identity in with_fixed_counters() {
        let bench = Bench::idle(processor_of(identity)).in_both_modes();
        if bench.model().rdmsr(FIXED_CTR0 + SLOTS).is_err() {
            continue; // no such counter
        }
        seen += 1;
        bench.set_msr(FIXED_CTR0 + SLOTS, 12_345);
        bench.set_msr(FIXED_CTR_CTRL, 0x3000); // kernel and user
        let control = bench.msr(GLOBAL_CTRL) | 1 << 35;
        bench.set_msr(GLOBAL_CTRL, control);
        assert_eq!(bench.hal.in_use_elsewhere(boot(&bench)), None, "{}: in use by no other program", identity.name);
        bench.initialize();
        assert_eq!((bench.msr(GLOBAL_CTRL), bench.msr(FIXED_CTR_CTRL)), (1 << 35, 0x3000), "{}", identity.name);
        bench.take_log();
        let counter = bench.started(0x19, Some(4_096));
        assert_eq!(bench.msr(FIXED_CTR_CTRL), 0x30B0, "{}: core cycles besides, with interrupt", identity.name);
        bench.run(4_096);
        bench.serve();
        assert_eq!(bench.msr(GLOBAL_CTRL), 1 << 35 | bench.bit(counter), "{}", identity.name);
        bench.hal.save(boot(&bench));
        bench.hal.restore(boot(&bench));
        assert_eq!(bench.msr(FIXED_CTR_CTRL), 0x30B0, "{}: over a sleep that was called off", identity.name);
        bench.finish();
        bench.release();
        let slots = FIXED_CTR0 + SLOTS;
        let touched = |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if *msr == slots);
        assert!(!bench.take_log().iter().any(touched), "{}", identity.name);
        // The counter of another program counts what occurs between the accesses of the driver too, and its known loop.
        let all: u64 = bench
            .machine
            .ledger(0)
            .iter()
            .filter(|entry| entry.counter == CounterId::Fixed(3))
            .map(|entry| entry.counted)
            .sum();
        let found = (bench.msr(slots), bench.msr(FIXED_CTR_CTRL), bench.msr(GLOBAL_CTRL));
        assert_eq!(found, (12_345 + all, 0x3000, control), "{}", identity.name);
    }
    assert!(seen > 0);
}

#[test]
fn d05_a_foreign_fixed_counter_is_reported_and_stays_off_after_it_was_taken() {
    for identity in with_fixed_counters() {
        for fixed in 0..identity.expected.fixed {
            let bench = Bench::idle(processor_of(identity));
            let counter = bench.general() + fixed;
            for field in 1..=0xF_u64 {
                let any_thread = field & 4 != 0;
                let control = field << (4 * fixed);
                if any_thread && bench.model().wrmsr(FIXED_CTR_CTRL, control).is_err() {
                    continue; // no such bit
                }
                bench.set_msr(FIXED_CTR_CTRL, control);
                let found = bench.hal.in_use_elsewhere(boot(&bench)).map(|enabled| (enabled.counter, enabled.value));
                assert_eq!(found, Some((counter, control)), "{}", identity.name);
            }
            bench.set_msr(GLOBAL_CTRL, bench.bit(counter));
            bench.initialize();
            assert_eq!((bench.msr(FIXED_CTR_CTRL), bench.msr(GLOBAL_CTRL)), (0, 0), "{}", identity.name);
            bench.release();
            assert_eq!(bench.model().enabled_counters(), [], "{}", identity.name);
            assert_eq!(bench.hal.in_use_elsewhere(boot(&bench)), None, "{}", identity.name);
        }
    }
}

#[test]
fn d06_no_register_but_those_that_the_leaves_declare_is_ever_accessed() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let (general, fixed) = (bench.general(), identity.expected.fixed);
        let own = bench.own_registers(fixed);
        let numbers: Vec<u32> = (0..general).map(|counter| bench.number(counter).into()).collect();
        for access in bench.whole_life() {
            match access {
                Access::Read(msr) | Access::Write(msr, _) => {
                    assert!(own.contains(&msr), "{}: {msr:#x}", identity.name);
                }
                Access::Counter(counter) => {
                    let exists = numbers.contains(&counter) || (1 << 30..1 << 30 | u32::from(fixed)).contains(&counter);
                    assert!(exists, "{}: {counter:#x}", identity.name);
                }
                Access::Entry(_) => {}
            }
        }
        assert_eq!(bench.model().accesses().faulted, 0, "{}", identity.name);
    }
}

#[test]
fn d07_no_bit_but_those_of_the_counters_is_ever_set_in_control_and_global_registers() {
    // Except the bits that unfreeze counters and last branch records, which are cleared and never set.
    const FROZEN: u64 = 1 << 59 | 1 << 58;
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let (general, fixed) = (bench.general(), identity.expected.fixed);
        let own = ((1 << general) - 1) | (((1 << fixed) - 1) << 32) | bench.left();
        let life = bench.whole_life();
        let mut written = writes(&life, |msr| msr == global.control);
        written.extend(writes(&life, |msr| msr == global.clear).into_iter().map(|value| value & !FROZEN));
        assert!(written.iter().fold(0, |all, value| all | value) == own, "{}: {written:x?}", identity.name);
        assert!(writes(&life, |msr| msr == global.set).is_empty(), "{}", identity.name);
        let control = writes(&life, |msr| msr == FIXED_CTR_CTRL);
        assert_eq!(control.is_empty(), fixed == 0, "{}", identity.name);
        // ANY, which version 5 and later do not have, is bit 2 of each field.
        let fields = (0..fixed).fold(0, |all, number| all | 0xB << (4 * number));
        assert!(control.iter().all(|value| value & !fields == 0), "{}: {control:x?}", identity.name);
    }
    for counters in 1..=10 {
        for version in [2, 3, 4, 5] {
            for fixed in 0..=4 {
                // The model refuses bits of absent counters.
                Bench::idle(intel([leaf_a_eax(version, counters, 48, 7), 0, 0, 0x8600 | fixed])).whole_life();
            }
        }
    }
}

#[test]
fn d08_the_reset_value_of_global_control_is_restored() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        let reset = ((1 << bench.general()) - 1) | bench.left();
        assert_eq!(bench.msr(global.control), reset, "{}", identity.name);
        for _ in 0..3 {
            bench.initialize();
            assert_eq!(bench.msr(global.control), bench.left(), "{}", identity.name);
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
        let mut loaded = false;
        for counter in bench.usable().iter() {
            let (register, width) = (bench.counter(counter), bench.hal.interface().width_of(counter));
            let values = writes(&life, |msr| msr == register);
            assert!(!values.is_empty(), "{}", identity.name);
            assert!(values.iter().all(|value| value >> width == 0), "{}: {values:x?}", identity.name);
            loaded |= values.iter().any(|value| *value != 0);
        }
        assert!(loaded, "{}", identity.name);
    }
}

#[test]
fn d10_full_width_writes_are_used_only_if_the_capabilities_report_them() {
    for version in 1..=5 {
        for (width, fixed_width) in [(32, 48), (40, 32), (48, 40), (48, 48), (63, 63)] {
            for capabilities in [0, 1 << 13, !0, !(1 << 13)] {
                let leaf = [leaf_a_eax(version, 10, width, 7), 0, 0, fixed_width << 5 | 3];
                let bench = Bench::idle(intel(leaf).with_perf_capabilities(capabilities));
                let life = bench.whole_life();
                let loads = |first: u32| writes(&life, |msr| (first..first + 10).contains(&msr)).len();
                let (narrow, whole) = (loads(0xC1), loads(0x4C1));
                assert_eq!((narrow == 0, whole == 0), (capabilities >> 13 & 1 == 1, capabilities >> 13 & 1 == 0));
                let is_read = life.contains(&Access::Read(PERF_CAPABILITIES));
                assert!(!is_read, "the first accesses have read it");
            }
        }
    }
    for identity in with_counters().filter(|identity| identity.cpuid().cpuid(1, 0)[2] >> 15 & 1 == 0) {
        let life = Bench::idle(processor_of(identity)).whole_life();
        assert!(!life.contains(&Access::Read(PERF_CAPABILITIES)), "{}: there is no such register", identity.name);
    }
}

#[test]
fn d10_a_full_width_write_loads_the_same_value_as_a_narrow_one() {
    for interval in [4_096, 0xFFFF, 0x1_0000, 0x7FFF_FFFF] {
        let held = [0, 1 << 13].map(|capabilities| {
            let bench = Bench::new(intel([leaf_a_eax(4, 2, 48, 7), 0, 0, 0]).with_perf_capabilities(capabilities));
            let counter = bench.started(bench.anywhere(), Some(interval));
            bench.msr(bench.counter(counter))
        });
        assert_eq!(held, [(1 << 48) - u64::from(interval); 2]);
    }
}

#[test]
fn d11_rdpmc_reads_every_existing_counter_and_no_other() {
    for identity in with_counters() {
        let bench = Bench::idle(processor_of(identity));
        let asked = bench.whole_life();
        let ids: Vec<_> = bench.usable().iter().map(|counter| bench.id(counter)).collect();
        for number in 0..=255 {
            let general = asked.contains(&Access::Counter(u32::from(number)));
            assert_eq!(general, ids.contains(&CounterId::General(number)), "{}: {number}", identity.name);
            let fixed = asked.contains(&Access::Counter(1 << 30 | u32::from(number)));
            assert_eq!(fixed, ids.contains(&CounterId::Fixed(number)), "{}: {number}", identity.name);
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
fn d18_the_interrupt_bit_is_set_only_with_an_interval() {
    for name in ["amd-legacy", "zen4-7700x", "intel-v1", "intel-v2", "ice-lake-1065g7"] {
        let bench = Bench::named(name).in_both_modes();
        for (source, armed, select) in selects_of_each_source(&bench) {
            assert_eq!(select >> 20 & 1 == 1, armed, "{name}, source {source:#x}");
            assert_eq!(select >> 22 & 1, 1, "{name}, source {source:#x}: enabled");
        }
        for (counter, interval) in bench.usable().iter().flat_map(|counter| [(counter, None), (counter, Some(4_096))]) {
            bench.reserve_on(counter, interval);
            bench.start([counter]);
            assert_eq!(bench.control(counter), (true, true, interval.is_some(), true), "{name}, counter {counter}");
            bench.set_counter(counter, u64::MAX);
            bench.run(1);
            assert_eq!(bench.msr(bench.counter(counter)), 0, "{name}: it overflowed");
            assert_eq!(bench.deliver(), interval.is_some(), "{name}, counter {counter}, interval {interval:?}");
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

/// Returns 3 occurrences for event 0C2H, and 1,000 for 1C2H.
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
    // Starting an event clears high bits that earlier software left.
    for processor in [amd(false, None), amd(true, None), amd(true, Some(6))] {
        let bench = Bench::new(processor);
        bench.set_msr(bench.select(0), 1 << 32 | 0x0003_00C2);
        let counter = bench.started(6, None);
        bench.run_events(&of_two_events);
        assert_eq!((counter, bench.finish()), (0, vec![3]));
    }
}

#[test]
fn d26_no_event_of_the_k8_exceeds_8_bits_and_each_source_is_written_as_reported() {
    for identity in of_interface("Amd64") {
        let bench = Bench::new(processor_of(identity)).in_both_modes();
        let told: Vec<u64> = bench.hal.source_list().map(|source| source.source.select).collect();
        if told.len() == 176 {
            assert!(told.iter().all(|select| select >> 32 == 0), "{}", identity.name);
        }
        let selects = selects_of_each_source(&bench);
        assert_eq!(selects.len(), 2 * identity.expected.supported.len(), "{}", identity.name);
        for (source, armed, select) in selects {
            let row = bench.hal.source_information(Source(source)).unwrap().source;
            let enabled_and_interrupt = 1 << 22 | u64::from(armed) << 20;
            assert_eq!(select, row.select | enabled_and_interrupt, "{} {}", identity.name, row.name);
        }
    }
}
