//! The order of steps in serving an interrupt, and the registers that it must not touch.

use model::Processor;
use pmu::state::CounterSet;
use pmu::{Kind, ProcessorIndex};

use super::bench::{
    Access, Bench, FIXED_CTR_CTRL, FIXED_CTR0, GLOBAL_CTRL, LONG, SHORT, processor_of, with_counters,
    with_global_registers,
};
use simulation::boot;

/// LVT entry of the Windows HAL, unmasked.
const OPEN: u32 = 0xFE;

/// Returns the position of an access, which must occur exactly once in the log.
fn place(log: &[Access], wanted: impl Fn(&Access) -> bool) -> usize {
    let mut found = log.iter().enumerate().filter(|(_, access)| wanted(access)).map(|(place, _)| place);
    let first = found.next().unwrap();
    assert_eq!(found.next(), None, "{log:x?}");
    first
}

#[test]
fn the_entry_is_unmasked_after_the_status_is_clear_and_before_a_counter_can_overflow_again() {
    for identity in with_counters().filter(|identity| identity.expected.interface != "Amd64") {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        assert!(bench.model().take_interrupt(), "{}", identity.name);
        bench.take_log();
        assert_eq!(bench.serve(), [counter], "{}", identity.name);
        let log = bench.take_log();
        let unmasked = place(&log, |access| *access == Access::Entry(OPEN));
        let first = |wanted: &dyn Fn(&Access) -> bool| log.iter().position(wanted).unwrap();
        let last = |wanted: &dyn Fn(&Access) -> bool| log.iter().rposition(wanted).unwrap();
        let loaded = first(&|access| matches!(access, Access::Write(msr, _) if *msr == bench.counter(counter)));
        let read = first(&|access| matches!(access, Access::Counter(_)));
        let order = if let Some(global) = bench.global {
            let left = bench.left();
            let on = |access: &Access| matches!(access, Access::Write(GLOBAL_CTRL, value) if *value != left);
            let off = place(&log, |access| *access == Access::Write(GLOBAL_CTRL, left));
            let status = place(&log, |access| *access == Access::Read(global.status));
            let clear = place(&log, |access| *access == Access::Write(global.clear, bench.bit(counter)));
            vec![off, status, read, loaded, clear, unmasked, place(&log, on)]
        } else {
            // No register stops all counters, so the entry must be unmasked before the first counter is read. Its own
            // register stops a counter from its last reading to its load.
            let own = bench.select(counter);
            let of_own = |access: &Access| matches!(access, Access::Write(msr, _) if *msr == own);
            let (off, on) = (first(&of_own), last(&of_own));
            let kept = last(&|access| matches!(access, Access::Counter(_)));
            if bench.kind() == Kind::NetBurst {
                vec![off, unmasked, kept, loaded, on]
            } else {
                vec![unmasked, read, off, kept, loaded, on]
            }
        };
        assert!(order.is_sorted(), "{}: {log:x?}", identity.name);
    }
}

#[test]
fn the_status_is_acknowledged_while_no_counter_is_active_and_not_after_release() {
    for (identity, global) in with_global_registers() {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(bench.anywhere(), Some(SHORT));
        bench.run(u64::from(SHORT));
        assert!(bench.hal.stop(boot(&bench), CounterSet::NONE.with(counter)).0.has(counter), "{}", identity.name);
        assert_eq!(bench.msr(global.status), bench.bit(counter), "{}", identity.name);
        assert!(bench.model().take_interrupt(), "{}", identity.name);
        bench.take_log();
        assert!(bench.serve().is_empty(), "{}", identity.name);
        let acknowledged = [Access::Read(global.status), Access::Write(global.clear, bench.bit(counter))];
        assert_eq!(bench.take_log()[..2], acknowledged, "{}", identity.name);
        assert_eq!((bench.msr(global.status), bench.model().lvt()), (0, OPEN), "{}", identity.name);

        bench.hal.save(boot(&bench));
        bench.take_log();
        bench.serve();
        assert_eq!(bench.take_log(), [], "{}: asleep", identity.name);
        bench.hal.restore(boot(&bench));
        bench.finish();
        bench.release();
        bench.take_log();
        bench.serve();
        assert_eq!(bench.take_log(), [], "{}: released", identity.name);
    }
}

/// Lets other software run the counter of slots until it overflows.
fn slots(bench: &Bench) -> bool {
    let slots = FIXED_CTR0 + 3;
    if bench.model().rdmsr(slots).is_err() {
        return false;
    }
    let control = bench.msr(GLOBAL_CTRL);
    bench.set_msr(slots, (1 << 48) - 1);
    bench.set_msr(FIXED_CTR_CTRL, bench.msr(FIXED_CTR_CTRL) | 0xB000);
    bench.set_msr(GLOBAL_CTRL, control | 1 << 35);
    bench.run(1);
    true
}

#[test]
fn foreign_counters_run_while_ours_are_frozen_or_served() {
    let mut seen = 0;
    for (identity, _) in with_global_registers() {
        let bench = Bench::idle(processor_of(identity));
        if !slots(&bench) {
            continue;
        }
        seen += 1;
        bench.initialize();
        let counter = bench.started(bench.anywhere(), Some(LONG));
        let (others, all) = (1_u64 << 35, 1 << 35 | bench.bit(counter));
        assert_eq!(bench.msr(GLOBAL_CTRL), all, "{}", identity.name);
        bench.hal.freeze(boot(&bench));
        assert_eq!(bench.msr(GLOBAL_CTRL), others, "{}: held", identity.name);
        bench.hal.unfreeze(boot(&bench));
        assert_eq!(bench.msr(GLOBAL_CTRL), all, "{}: let go", identity.name);
        bench.take_log();
        assert!(bench.serve().is_empty(), "{}", identity.name);
        let controls = bench.take_log().into_iter().filter(|access| matches!(access, Access::Write(GLOBAL_CTRL, _)));
        let wanted = [others, all].map(|value| Access::Write(GLOBAL_CTRL, value));
        assert_eq!(controls.collect::<Vec<_>>(), wanted, "{}: served", identity.name);
        assert_eq!(bench.msr(0x38E), others, "{}: the status of others stays", identity.name);
    }
    assert!(seen > 0, "no identity has a counter of slots");
}

#[test]
fn the_stale_status_of_one_counter_is_remembered_while_others_stop() {
    for (identity, global) in with_global_registers().filter(|(identity, _)| identity.expected.interface == "Emon") {
        for late in [true, false] {
            let bench = Bench::new(processor_of(identity));
            // The counter has overflowed: with an interval and not served, or without an interval.
            let first = bench.started(bench.anywhere(), late.then_some(SHORT));
            let second = bench.started(bench.anywhere(), Some(LONG));
            if !late {
                bench.set_counter(first, u64::MAX);
            }
            bench.run(u64::from(SHORT));
            for counter in [first, second] {
                bench.stop(CounterSet::NONE.with(counter));
            }
            bench.hal.free(ProcessorIndex::BOOT, CounterSet::NONE.with(first).with(second));
            assert_eq!(bench.msr(global.status), bench.bit(first), "{}", identity.name);
            assert_eq!(bench.started(bench.anywhere(), Some(LONG)), first);
            assert_eq!(bench.msr(global.status), 0, "{}: cleared before it counts again", identity.name);
            assert!(bench.serve().is_empty(), "{}", identity.name);
        }
    }
}

#[test]
fn the_global_registers_of_amd_are_touched_where_cpuid_has_all_of_them_alone() {
    for (core, version_2, hypervisor) in
        [false, true].into_iter().flat_map(|core| [(core, false), (core, true)]).flat_map(|(core, version_2)| {
            // No hypervisor; one without Microsoft's interface; Microsoft's, which offers counters.
            [None, Some(*b"KVM0"), Some(*b"Hv#1")].map(|hypervisor| (core, version_2, hypervisor))
        })
    {
        let cpuid = move |leaf: u32| match leaf {
            0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
            1 => [0, 0, u32::from(hypervisor.is_some()) << 31, 0],
            0x4000_0001 => [hypervisor.map_or(0, u32::from_le_bytes), 0, 0, 0],
            0x4000_0003 => [0, 0, 0, 1 << 2],
            0x8000_0000 => [0x8000_0022, 0, 0, 0],
            0x8000_0001 => [0x00A1_0F00, 0, u32::from(core) << 23, 1 << 29],
            0x8000_0022 => [u32::from(version_2), 6, 0, 0],
            _ => [0; 4],
        };
        // The model ignores accesses to absent registers here, so the test checks the log.
        let bench = Bench::idle(Processor::new(Box::new(move |leaf, _| cpuid(leaf))).with_absent_msrs_ignored());
        let global =
            |access: &Access| matches!(access, Access::Read(msr) | Access::Write(msr, _) if msr >> 4 == 0xC00_0030);
        let touched = bench.whole_life().iter().any(global);
        assert_eq!(touched, core && version_2, "PerfCtrExtCore {core}, PerfMonV2 {version_2}, {hypervisor:?}");
        assert_eq!(bench.counters(), if core { 6 } else { 4 });
    }
}
