//! Real and fictitious processors, from the choice of the interface to correct counts.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use cpuid_dumps::CpuIdentity;
use model::{Mode, Selected};
use pmu::debug_store::MissingFeature;
use pmu::state::CounterSet;
use pmu::{Hal, Kind, ProcessorIndex, ProfileInterface, Source, Support};
use simulation::{ModelCpu, SimMachine, boot};

/// Returns a different number of occurrences for each event.
fn work(selected: Selected) -> u64 {
    1 + u64::from(selected.event) * 1_000 + u64::from(selected.umask)
}

fn hal(machine: &SimMachine) -> Hal {
    Hal::new(machine.processor(0), 1).unwrap()
}

/// Starts these sources and returns their counters in the same order.
fn started(hal: &Hal, cpu: &ModelCpu, sources: &[Source]) -> Vec<u8> {
    simulation::access_first(hal, cpu, 0);
    assert!(hal.initialize(boot(cpu)));
    let counters = sources.iter().map(|source| {
        let state = hal.state_for(*source, 0, false).unwrap().with_owner(1).with_user(true).with_kernel(true);
        hal.reserve(ProcessorIndex::BOOT, state).unwrap()
    });
    let counters: Vec<u8> = counters.collect();
    hal.start(boot(cpu), counters.iter().copied().collect());
    counters
}

#[test]
fn each_processor_gets_the_interface_that_its_leaves_ask_for() {
    for identity in cpuid_dumps::all() {
        let CpuIdentity { name, expected, .. } = identity;
        let machine = SimMachine::named(name, 1);
        let hal = hal(&machine);
        let (selection, interface) = (hal.boot.selection, hal.interface());
        let outcome = (selection.windows10.name(), selection.interface.name());
        assert_eq!(outcome, (expected.windows10, expected.interface), "{name}: {}", expected.why);
        assert_eq!((interface.counters(), interface.width()), (expected.counters, expected.width), "{name}");
        let indexes = expected.counters + identity.metrics().map_or(0, |metrics| 1 + metrics);
        assert_eq!(hal.state_bytes(), 8 * usize::from(indexes), "{name}");
        let supported = hal.source_list().filter(|source| source.support == Support::Supported);
        let supported: Vec<u64> = supported.map(|source| source.source.source.0).collect();
        match selection.interface {
            Kind::Emon | Kind::Amd64 => assert_eq!(supported, [&[0], expected.supported].concat(), "{name}"),
            Kind::Default => assert_eq!(supported, [0], "{name}"),
            Kind::NetBurst | Kind::P6 | Kind::Pentium => {
                assert_eq!(supported, [&[0], expected.supported].concat(), "{name}");
            }
        }
    }
}

/// Returns whether the machine has counters. CPUID has no bit for AMD's legacy counters, so the interface may be chosen
/// without them.
fn has_pmu(machine: &SimMachine) -> bool {
    let selection = hal(machine).boot.selection;
    selection.interface != Kind::Default && {
        let select0 = match selection.interface {
            Kind::Amd64 => 0xC001_0000,
            Kind::NetBurst => 0x360,
            Kind::Pentium => 0x11,
            _ => 0x186,
        };
        machine.processor(0).model().rdmsr(select0).is_ok()
    }
}

/// Returns the number of events of [`work`] that a select of the table counts, by the manuals.
fn work_of(kind: Kind, select: u64) -> u64 {
    let (event, umask) = match kind {
        // The event select in bits 30:25, 16 bits of event mask in 24:9.
        Kind::NetBurst => (select >> 25 & 0x3F | select >> 17 << 8 & 0xFF00, select >> 9 & 0xFF),
        // ES0 in bits 5:0.
        Kind::Pentium => (select & 0x3F, 0),
        _ => (select & 0xFF | select >> 24 & 0xF00, select >> 8 & 0xFF),
    };
    1 + event * 1_000 + umask
}

/// Returns the hardware's number of a counter of the first thread.
fn number(hal: &Hal, counter: u8) -> u32 {
    let interface = hal.interface();
    match (interface.kind(), interface.counters()) {
        (Kind::NetBurst, 9) => [0, 1, 4, 5, 8, 9, 12, 13, 16][usize::from(counter)],
        _ => counter.into(),
    }
}

#[test]
fn every_supported_source_counts_what_the_model_counted_and_stops() {
    let mut ran = 0;
    for identity in cpuid_dumps::all().iter().filter(|identity| has_pmu(&SimMachine::new(identity, 1))) {
        let machine = SimMachine::new(identity, 1);
        let (hal, cpu) = (hal(&machine), machine.processor(0));
        let supported = hal.source_list().filter(|source| source.support == Support::Supported);
        let supported: Vec<Source> = supported.map(|source| source.source.source).skip(1).collect(); // ProfileTime
        assert!(!supported.is_empty(), "{}", identity.name);
        // On NetBurst and family 15h of AMD some sources exclude each other, and a fixed counter does not serve every
        // source.
        let kind = hal.boot.selection.interface;
        let general = usize::from(identity.expected.counters - identity.expected.fixed);
        let [signature, ..] = identity.cpuid().cpuid(1, 0);
        let is_alone = kind == Kind::NetBurst || kind == Kind::Amd64 && signature >> 20 & 0xFF == 6;
        let at_once = if is_alone { 1 } else { general };
        for sources in supported.chunks(at_once) {
            cpu.model().clear_ledger();
            let started = started(&hal, cpu, sources);
            let counters = started.iter().copied().collect();
            machine.run(0, Mode::User, &work);
            machine.run(0, Mode::Kernel, &work);
            hal.stop(boot(cpu), counters);
            assert_eq!(cpu.model().enabled_counters(), [], "{}: stopped", identity.name);
            machine.run(0, Mode::User, &work);
            for (counter, source) in started.into_iter().zip(sources) {
                let count = hal.total(ProcessorIndex::BOOT, counter);
                let select = hal.source_information(*source).unwrap().source.select;
                let events = 2 * work_of(kind, select) + machine.between(0, number(&hal, counter));
                let ledger = machine.counted(0, number(&hal, counter));
                assert_eq!((count, ledger), (events, events), "{} {source}", identity.name);
            }
            hal.free(ProcessorIndex::BOOT, counters);
            hal.release(boot(cpu));
            ran += sources.len();
        }
    }
    assert!(ran > 176, "{ran}");
}

#[test]
fn initialization_and_release_leave_every_select_register_clear() {
    for (name, select0, stride) in [
        ("amd-legacy", 0xC001_0000, 1),
        ("zen3-5950x", 0xC001_0200, 2),
        ("zen5-9800x3d", 0xC001_0200, 2),
        ("intel-v1", 0x186, 1),
        ("intel-v2", 0x186, 1),
    ] {
        let machine = SimMachine::named(name, 1);
        let (hal, cpu) = (hal(&machine), machine.processor(0));
        let selects = || (0..4).map(|index| cpu.model().rdmsr(select0 + stride * index).unwrap()).collect::<Vec<_>>();
        for index in 0..4 {
            cpu.model().wrmsr(select0 + stride * index, 0x0043_003C).unwrap();
        }
        simulation::access_first(&hal, cpu, 0);
        hal.initialize(boot(cpu));
        assert_eq!(selects(), [0; 4], "{name}");
        let sources: Vec<_> = [2, 6].map(Source).to_vec();
        let counters = started(&hal, cpu, &sources).into_iter().collect();
        assert_ne!(selects(), [0; 4], "{name}");
        hal.stop(boot(cpu), counters);
        hal.release(boot(cpu));
        assert_eq!(selects(), [0; 4], "{name}");
    }
}

#[test]
fn release_puts_the_global_control_register_back() {
    for (name, control, values) in [
        ("intel-v2", 0x38F, [0, 1, 0xF, 0x7_0000_000F]),
        ("zen4-7700x", 0xC000_0301, [0, 1, 0x20, 0x3F]),
        ("zen5-9800x3d", 0xC000_0301, [0, 1, 0x20, 0x3F]),
    ] {
        let machine = SimMachine::named(name, 1);
        let (hal, cpu) = (hal(&machine), machine.processor(0));
        for found in values {
            cpu.model().wrmsr(control, found).unwrap();
            let counters = started(&hal, cpu, &[Source(2)]).into_iter().collect();
            hal.stop(boot(cpu), counters);
            hal.free(ProcessorIndex::BOOT, counters);
            hal.release(boot(cpu));
            assert_eq!(cpu.model().rdmsr(control), Ok(found), "{name}");
        }
    }
}

#[test]
fn modes_are_counted_apart() {
    for name in [
        "amd-legacy",
        "zen3-5950x",
        "zen5-9800x3d",
        "intel-v1",
        "intel-v2",
        "netburst-cedarmill",
        "p6-coppermine",
        "pentium-p54c",
    ] {
        let machine = SimMachine::named(name, 1);
        let (hal, cpu) = (hal(&machine), machine.processor(0));
        simulation::access_first(&hal, cpu, 0);
        hal.initialize(boot(cpu));
        let base = hal.state_for(Source(2), 0, false).unwrap().with_owner(1);
        let [user, kernel] = [base.with_user(true), base.with_kernel(true)]
            .map(|state| hal.reserve(ProcessorIndex::BOOT, state).unwrap());
        hal.start(boot(cpu), [user, kernel].into_iter().collect());
        machine.run(0, Mode::User, &|_| 30);
        machine.run(0, Mode::Kernel, &|_| 7);
        assert_eq!(hal.count(boot(cpu), user), 30, "{name}");
        assert_eq!(hal.count(boot(cpu), kernel), 7 + machine.between(0, number(&hal, kernel)), "{name}");
    }
}

#[test]
fn a_counter_started_beside_others_leaves_them_undisturbed() {
    for name in [
        "amd-legacy",
        "zen3-5950x",
        "zen5-9800x3d",
        "intel-v1",
        "intel-v2",
        "netburst-cedarmill",
        "netburst-irwindale",
        "p6-coppermine",
        "p6-dothan",
        "pentium-p54c",
        "pentium-p55c",
    ] {
        let machine = SimMachine::named(name, 1);
        let (hal, cpu) = (hal(&machine), machine.processor(0));
        simulation::access_first(&hal, cpu, 0);
        hal.initialize(boot(cpu));
        let reserve = |owner| {
            let state = hal.state_for(Source(2), 0, false).unwrap().with_owner(owner).with_user(true);
            CounterSet::NONE.with(hal.reserve(ProcessorIndex::BOOT, state).unwrap())
        };
        let (first, second) = (reserve(1), reserve(2));
        let run = || machine.run(0, Mode::User, &|_| 100);
        hal.start(boot(cpu), first);
        run();
        hal.start(boot(cpu), second);
        run();
        hal.stop(boot(cpu), first);
        run();
        let counts = [first, second].map(|set| set.iter().map(|counter| hal.count(boot(cpu), counter)).sum::<u64>());
        assert_eq!(counts, [200, 200], "{name}");
    }
}

#[test]
fn every_support_value_and_missing_feature_has_its_number() {
    for (number, support) in (0..).zip(Support::ALL) {
        assert_eq!((support as u32, Support::from_number(number)), (number, Some(support)));
    }
    assert_eq!(Support::from_number(22), None);
    for (number, missing_feature) in (0..).zip(MissingFeature::ALL) {
        assert_eq!(missing_feature.numbers().0, number);
        let (number, detail) = missing_feature.numbers();
        assert_eq!(MissingFeature::from_numbers(number, detail), Some(missing_feature));
    }
    assert_eq!(MissingFeature::from_numbers(12, 0), None);
    assert_eq!(MissingFeature::from_numbers(7, 6), Some(MissingFeature::UnknownFormat(6)));
    assert_eq!(MissingFeature::from_numbers(8, 6), Some(MissingFeature::NotPrecise));
}
