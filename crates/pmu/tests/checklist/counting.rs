//! Counting and overflow.

use model::Mode;
use pmu::state::CounterSet;
use pmu::{ProcessorIndex, ProfileInterface, Source};
use proptest::prelude::*;

use super::bench::{
    Access, Bench, FIXED_CTR_CTRL, FIXED_CTR0, GLOBAL_CTRL, LONG, PLAIN, SHORT, amd, intel, leaf_a_eax, of_interface,
    processor_of, version_of, with_counters, with_equal_counters, with_global_registers,
};
use simulation::boot;

/// Returns a different number of occurrences for each event.
fn work(selected: model::Selected) -> u64 {
    1 + u64::from(selected.event) * 1_000 + u64::from(selected.umask)
}

/// Returns the number of events of [`work`] that a source counts, by the select of its table.
fn work_of(bench: &Bench, source: u64) -> u64 {
    let select = bench.hal.source_information(Source(source)).unwrap().source.select;
    let event = select & 0xFF | select >> 24 & 0xF00;
    1 + event * 1_000 + (select >> 8 & 0xFF)
}

/// Starts an interval on a counter of this width and returns the loaded value.
fn loaded(version: u8, width: u8, interval: u32) -> u64 {
    let bench = Bench::new(intel([leaf_a_eax(version, 2, width, 7), 0, 0, 0]));
    let counter = bench.started(bench.anywhere(), Some(interval));
    bench.msr(bench.counter(counter))
}

proptest! {
    #[test]
    fn d09_a_load_survives_the_sign_extension_of_32_bits(
        version in 1..=5_u8,
        width in prop::sample::select(vec![32_u8, 40, 48]),
        interval in 4_096..=0x7FFF_FFFF_u32,
    ) {
        prop_assert_eq!(loaded(version, width, interval), (1 << width) - u64::from(interval));
    }
}

#[test]
fn d09_a_load_of_the_edges_survives_the_sign_extension_of_32_bits() {
    let edges = [4_096, 4_097, 0xFFFF, 0x1_0000, 0x3FFF_FFFF, 0x4000_0000, 0x7FFF_FFFE, 0x7FFF_FFFF];
    for width in 32..64 {
        for interval in edges {
            for version in [1, 2] {
                let wanted = (1 << width) - u64::from(interval);
                assert_eq!(loaded(version, width, interval), wanted, "{width} bits, {interval:#x}");
            }
        }
    }
}

#[test]
fn d12_every_available_event_counts_on_every_counter_that_can_count_it() {
    for identity in with_equal_counters() {
        let bench = Bench::new(processor_of(identity));
        let mut used = CounterSet::NONE;
        for source in bench.sources() {
            let counters = bench.hal.source_information(Source(source)).unwrap().counters;
            assert!(!counters.is_empty(), "{} {source:#x}", identity.name);
            for counter in counters.iter() {
                bench.model().clear_ledger();
                bench.reserve_source_on(source, counter, None);
                bench.start([counter]);
                bench.run_events(&work);
                assert_eq!(bench.finish(), [work_of(&bench, source)], "{} {source:#x}", identity.name);
                let given: Vec<_> = bench.machine.ledger(0).iter().map(|entry| entry.counter).collect();
                assert_eq!(given, [bench.id(counter)], "{}: no other counted", identity.name);
                used = used.with(counter);
            }
        }
        assert_eq!(used, bench.usable(), "{}", identity.name);
    }
}

/// Profile sources of Emon by the fixed counter that counts them, by the HAL Emon interface and the manual.
const BY_FIXED: [&[u64]; 3] = [&[0x02, 0x1A], &[0x13, 0x19], &[0x1B]];

#[test]
fn d12_a_source_goes_to_the_fixed_counter_that_counts_it_and_then_to_general_ones_in_the_same_unit() {
    const REFERENCE_CYCLES: u64 = 0x1B;
    for identity in with_equal_counters() {
        let bench = Bench::new(processor_of(identity));
        let general: CounterSet = (0..bench.general()).collect();
        for source in bench.sources() {
            let fixed = (0..identity.expected.fixed).find(|number| BY_FIXED[usize::from(*number)].contains(&source));
            let general = bench.counters_of_family(source).and(general);
            let wanted = match fixed.map(|number| CounterSet::NONE.with(bench.general() + number)) {
                // At the rate of the time-stamp counter, which general counters cannot count.
                Some(fixed) if source == REFERENCE_CYCLES => fixed,
                Some(fixed) => general.or(fixed),
                None => general,
            };
            let counters = bench.hal.source_information(Source(source)).unwrap().counters;
            assert_eq!(counters, wanted, "{} {source:#x}", identity.name);
            let state = bench.hal.state_for(Source(source), 0, false).unwrap().with_owner(1);
            let order: Vec<_> = std::iter::from_fn(|| bench.hal.reserve(ProcessorIndex::BOOT, state)).collect();
            let fixed_first = counters.without(general).iter().chain(counters.and(general).iter());
            assert_eq!(order, fixed_first.collect::<Vec<_>>(), "{} {source:#x}", identity.name);
            bench.finish();
        }
    }
}

#[test]
fn d12_all_counters_count_at_once() {
    for identity in with_equal_counters() {
        let bench = Bench::new(processor_of(identity));
        let (all, usable) = (bench.sources(), bench.usable());
        for first in 0..all.len() {
            let mut wanted = std::collections::BTreeMap::new();
            for source in all.iter().cycle().skip(first) {
                if wanted.len() == usable.iter().count() {
                    break;
                }
                let state = bench.hal.state_for(Source(*source), 0, false).unwrap().with_owner(1);
                if let Some(counter) = bench.hal.reserve(ProcessorIndex::BOOT, state.with_user(true)) {
                    wanted.insert(counter, work_of(&bench, *source));
                }
            }
            let counters = bench.start(wanted.keys().copied());
            assert_eq!(counters, usable, "{}", identity.name);
            assert_eq!(bench.model().enabled_counters().len(), counters.iter().count(), "{}", identity.name);
            bench.run_events(&work);
            assert_eq!(bench.finish(), wanted.into_values().collect::<Vec<_>>(), "{}", identity.name);
        }
    }
}

#[test]
fn d14_each_counter_counts_in_its_own_modes() {
    let modes = [(false, false), (true, false), (false, true), (true, true)];
    for identity in with_equal_counters() {
        let bench = Bench::new(processor_of(identity));
        let usable: Vec<_> = bench.usable().iter().collect();
        for first in 0..modes.len() {
            bench.model().clear_ledger();
            // Every counter, in other modes than its neighbors.
            let mut wanted = Vec::new();
            for (counter, (user, kernel)) in usable.iter().zip(modes.iter().cycle().skip(first)) {
                bench.reserve_on(*counter, None);
                let cpu_counters = bench.hal.cpu_counters(ProcessorIndex::BOOT);
                cpu_counters.set(*counter, cpu_counters.get(*counter).with_user(*user).with_kernel(*kernel));
                wanted.push(u64::from(*user) * 30 + u64::from(*kernel) * 7);
            }
            bench.start(usable.iter().copied());
            bench.machine.run(0, Mode::User, &|_| 30);
            bench.machine.run(0, Mode::Kernel, &|_| 7);
            for (counter, (user, kernel)) in usable.iter().zip(modes.iter().cycle().skip(first)) {
                let (usr, os, ..) = bench.control(*counter);
                assert_eq!((usr, os), (*user, *kernel), "{}", identity.name);
            }
            let totals = bench.finish();
            let between = usable.iter().map(|counter| bench.between(*counter));
            let wanted: Vec<u64> = wanted.into_iter().zip(between).map(|(wanted, between)| wanted + between).collect();
            assert_eq!(totals, wanted, "{}", identity.name);
        }
    }
}

#[test]
fn d16_an_interval_overflows_after_exactly_that_many_events() {
    for identity in with_counters() {
        let usable = Bench::idle(processor_of(identity)).usable();
        let intervals = [4_096, 4_097, 65_536, 0x7FFF_FFFF];
        for (counter, interval) in usable.iter().flat_map(|counter| intervals.map(|interval| (counter, interval))) {
            let bench = Bench::new(processor_of(identity));
            bench.reserve_on(counter, Some(interval));
            bench.start([counter]);
            let name = identity.name;
            let id = bench.id(counter);
            let left = bench.model().until_overflow(id);
            assert_eq!(left, Some(u64::from(interval)), "{name}");
            bench.run(u64::from(interval) - 1);
            let width = bench.hal.interface().width_of(counter);
            assert_eq!(bench.msr(bench.counter(counter)), (1 << width) - 1, "{name}: all ones");
            assert_eq!((bench.deliver(), bench.serve()), (false, vec![]), "{name}");
            bench.run(1);
            assert_eq!(bench.msr(bench.counter(counter)), 0, "{name}");
            assert_eq!((bench.deliver(), bench.serve()), (true, vec![counter]), "{name}");
            assert_eq!(bench.finish(), [u64::from(interval)], "{name}");
        }
    }
}

/// Sets status bits that belong to other software: of the fixed counter of slots, from version 4 on others as well, and
/// on AMD the bit for frozen LBRs. Intel's is cleared with that for frozen counters.
fn foreign_status(bench: &Bench, version: u8) -> u64 {
    let slots = FIXED_CTR0 + 3;
    if bench.model().rdmsr(slots).is_ok() {
        let control = bench.msr(GLOBAL_CTRL);
        let [.., fixed] = bench.model().cpuid(0xA, 0);
        bench.set_msr(slots, (1 << (fixed >> 5 & 0xFF)) - 1);
        bench.set_msr(FIXED_CTR_CTRL, 0x3000);
        bench.set_msr(GLOBAL_CTRL, 1 << 35);
        bench.run(1);
        bench.set_msr(FIXED_CTR_CTRL, 0);
        bench.set_msr(GLOBAL_CTRL, control);
        assert_eq!(bench.global.map(|global| bench.msr(global.status)), Some(1 << 35));
    }
    if version >= 4 {
        bench.set_msr(0x391, 1 << 62 | 1 << 61);
    }
    if version == 0 && bench.model().cpuid(0x8000_0022, 0)[0] >> 2 & 1 == 1 {
        bench.set_msr(0xC000_0303, 1 << 58);
    }
    bench.global.map_or(0, |global| bench.msr(global.status))
}

#[test]
fn d17_an_overflow_sets_the_status_of_its_counter_and_serving_clears_that_and_nothing_of_others() {
    let mut foreign_seen = 0;
    for (identity, global) in with_global_registers() {
        let usable = Bench::idle(processor_of(identity)).usable();
        for due in usable.iter() {
            let bench = Bench::idle(processor_of(identity));
            let in_use_elsewhere = foreign_status(&bench, version_of(identity));
            foreign_seen |= in_use_elsewhere;
            bench.initialize();
            for counter in usable.iter() {
                bench.reserve_on(counter, Some(if counter == due { SHORT } else { LONG }));
            }
            bench.start(usable.iter());
            assert_eq!(bench.msr(global.status), in_use_elsewhere, "{}", identity.name);
            bench.run(u64::from(SHORT));
            let bit = bench.bit(due);
            assert_eq!(bench.msr(global.status), in_use_elsewhere | bit, "{}", identity.name);
            bench.take_log();
            assert_eq!(bench.serve(), [due], "{}", identity.name);
            assert_eq!(bench.msr(global.status), in_use_elsewhere, "{}", identity.name);
            assert!(bench.take_log().contains(&Access::Write(global.clear, bit)), "{}", identity.name);
            assert!(bench.serve().is_empty(), "{}: once", identity.name);
            bench.finish();
            bench.release();
            assert_eq!(bench.msr(global.status), in_use_elsewhere, "{}", identity.name);
        }
    }
    assert_eq!(foreign_seen, 1 << 62 | 1 << 61 | 1 << 58 | 1 << 35);
}

#[test]
fn d17_a_stale_status_of_a_plain_count_is_no_overflow_of_the_next_event() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::new(processor_of(identity));
        for counter in bench.usable().iter() {
            bench.reserve_on(counter, None);
            bench.start([counter]);
            bench.set_counter(counter, u64::MAX);
            bench.run(1);
            assert_eq!(bench.msr(global.status), bench.bit(counter), "{}", identity.name);
            bench.finish();
            bench.reserve_on(counter, Some(SHORT));
            bench.start([counter]);
            assert_eq!((bench.msr(global.status), bench.serve()), (0, vec![]), "{}", identity.name);
            bench.run(u64::from(SHORT));
            assert_eq!(bench.serve(), [counter], "{}", identity.name);
            bench.finish();
        }
    }
}

#[test]
fn d19_after_serving_the_next_overflow_interrupts_again_through_an_unmasked_entry() {
    const MASKED: u32 = 1 << 16;
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity).with_x2apic());
        let intel = identity.expected.interface != "Amd64";
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        for round in 1..=3 {
            bench.run(u64::from(SHORT));
            assert!(bench.model().take_interrupt(), "{}, round {round}", identity.name);
            let entry = bench.model().lvt();
            assert_eq!(entry & MASKED != 0, intel, "{}", identity.name);
            assert_eq!(bench.serve(), [counter], "{}", identity.name);
            assert_eq!(bench.model().lvt(), entry & !MASKED, "{}", identity.name);
            assert!(!bench.model().interrupt_pending(), "{}", identity.name);
        }
        bench.finish();
        bench.release();
        // IA32_APIC_BASE, and the registers of the APIC in x2APIC mode: EOI is 80BH, the LVT entry 834H.
        let apic = |access: &Access| match access {
            Access::Read(msr) | Access::Write(msr, _) => *msr == 0x1B || (0x800..=0x8FF).contains(msr),
            Access::Counter(_) | Access::Entry(_) => false,
        };
        assert!(!bench.take_log().iter().any(apic), "{}", identity.name);
    }
}

#[test]
fn d16_a_count_includes_the_events_between_an_overflow_and_its_reload() {
    for identity in with_counters() {
        let bench = Bench::new(processor_of(identity)).in_both_modes();
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        for late in [0, 1, 17, u64::from(SHORT), 1_000_000] {
            bench.run(u64::from(SHORT) + late);
            bench.deliver();
            assert_eq!(bench.serve(), [counter], "{}, {late}", identity.name);
            assert_eq!(bench.hal.count(boot(&bench), counter), bench.given(counter), "{}, {late}", identity.name);
        }
        assert_eq!(bench.finish(), [bench.given(counter)], "{}", identity.name);
    }
}

#[test]
fn d20_a_reload_of_a_counter_that_runs_takes_effect() {
    for name in PLAIN {
        let bench = Bench::named(name).in_both_modes();
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        for late in [0, 1, 17, u64::from(SHORT) - 1, u64::from(SHORT), 1_000_000] {
            bench.run(u64::from(SHORT) + late);
            assert_eq!(bench.model().enabled_counters().len(), 1, "{name}: it runs");
            assert_eq!(bench.serve(), [counter], "{name}, {late} late");
            let id = bench.id(counter);
            let left = bench.model().until_overflow(id);
            assert_eq!(left, Some(u64::from(SHORT)), "{name}, {late} late");
        }
        assert!(bench.deliver(), "{name}");
        bench.run(u64::from(SHORT) - 1);
        assert!(!bench.model().interrupt_pending(), "{name}");
        bench.run(1);
        assert!(bench.model().interrupt_pending(), "{name}");
        assert_eq!(bench.finish(), [bench.given(counter)], "{name}: what came late is counted too");
    }
}

#[test]
fn d24_every_counter_of_amd_counts_and_overflows_through_its_own_registers() {
    let identities = of_interface("Amd64").map(processor_of);
    let made_up = [
        amd(false, None),
        amd(true, None),
        amd(false, Some(6)),
        amd(true, Some(4)),
        amd(true, Some(6)),
        amd(true, Some(15)),
    ];
    for processor in identities.chain(made_up) {
        let bench = Bench::new(processor);
        let most = bench.counters();
        for sources in bench.sources().chunks(bench.sources_at_once()) {
            let counters: Vec<_> = sources.iter().map(|source| bench.reserve(*source, None)).collect();
            bench.start(counters);
            bench.run_events(&work);
            let wanted: Vec<_> = sources.iter().map(|source| work_of(&bench, *source)).collect();
            assert_eq!(bench.finish(), wanted);
            bench.run_events(&work); // the counter is stopped
        }
        for due in 0..most {
            let intervals = (0..most).map(|counter| if counter == due { SHORT } else { LONG });
            let counters: Vec<_> = intervals.map(|interval| bench.reserve(bench.anywhere(), Some(interval))).collect();
            bench.start(counters);
            bench.run(u64::from(SHORT) - 1);
            assert_eq!((bench.deliver(), bench.serve()), (false, vec![]));
            bench.run(1);
            assert_eq!((bench.deliver(), bench.serve()), (true, vec![due]));
            assert_eq!(bench.finish(), vec![u64::from(SHORT); most.into()]);
        }
        bench.release();
        assert_eq!(bench.model().enabled_counters(), []);
    }
}

#[test]
fn d24_the_k7_registers_alias_the_first_four_core_registers() {
    for name in ["bulldozer-fx8150", "zen3-5950x", "zen5-9800x3d"] {
        let bench = Bench::named(name);
        for counter in 0..4 {
            assert_eq!(bench.started(bench.anywhere(), Some(SHORT)), counter, "{name}");
            for (k7, core) in [(0xC001_0000, bench.select(counter)), (0xC001_0004, bench.counter(counter))] {
                assert_ne!(bench.msr(core), 0, "{name}");
                assert_eq!(bench.msr(k7 + u32::from(counter)), bench.msr(core), "{name}");
            }
        }
        let accessed =
            |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if msr >> 4 == 0xC00_1000);
        assert!(!bench.take_log().iter().any(accessed), "{name}: by one name only");
    }
}

#[test]
fn d24_a_foreign_value_of_amds_global_control_is_restored_and_stops_nothing() {
    for name in ["zen4-7700x", "zen5-9800x3d"] {
        for found in [0x3F, 0, 0b10] {
            let bench = Bench::idle(processor_of(cpuid_dumps::find(name).unwrap()));
            assert_eq!(bench.msr(0xC000_0301), 0x3F, "{name}: as it comes from reset");
            bench.set_msr(0xC000_0301, found);
            bench.initialize();
            let counters: Vec<_> = (0..2).map(|_| bench.reserve(bench.anywhere(), None)).collect();
            bench.start(counters);
            assert_eq!(bench.msr(0xC000_0301), 0b11, "{name}");
            bench.run(100);
            assert_eq!(bench.finish(), [100; 2], "{name}, {found:#x}");
            bench.release();
            assert_eq!(bench.msr(0xC000_0301), found, "{name}");
        }
    }
    // Bits of counters that RDPMC cannot read belong to other software.
    let bench = Bench::new(amd(true, Some(15)));
    bench.started(bench.anywhere(), Some(SHORT));
    bench.run(u64::from(SHORT));
    assert_eq!((bench.serve(), bench.msr(0xC000_0301)), (vec![0], 0x7FC1));
    bench.finish();
    bench.release();
    assert_eq!(bench.msr(0xC000_0301), 0x7FFF);
}

#[test]
fn d25_without_a_status_register_the_top_bit_of_the_counter_shows_the_overflow() {
    for name in PLAIN {
        let bench = Bench::named(name);
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        let width = bench.hal.interface().width();
        let top = 1 << (width - 1);
        for (value, overflowed) in [
            (top, false),
            (top + 1, false),
            (2 * top - 1, false),
            (2 * top - u64::from(SHORT), false),
            (0, true),
            (1, true),
            (0x7FFF_FFFF, true),
        ] {
            bench.set_counter(counter, 0);
            bench.run(value); // version 1 writes only 32 bits
            assert_eq!(bench.msr(bench.counter(counter)), value, "{name}");
            bench.take_log();
            assert_eq!(bench.hal.check_overflow(boot(&bench)).number() == 1, overflowed, "{name}: {value:#x}");
            assert_eq!(bench.take_log(), [Access::Counter(u32::from(counter))], "{name}");
            assert_eq!(bench.serve().len() == 1, overflowed, "{name}: {value:#x}");
            let select = bench.select(counter);
            let others = |access: &Access| matches!(access, Access::Read(msr) if *msr != select);
            assert!(!bench.take_log().iter().any(others), "{name}: no other register is read");
        }
    }
    for identity in of_interface("Amd64") {
        let bench = Bench::idle(processor_of(identity));
        let global =
            |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if msr >> 8 == 0xC0_0003);
        assert_eq!(bench.whole_life().iter().any(global), bench.global.is_some(), "{}", identity.name);
    }
}
