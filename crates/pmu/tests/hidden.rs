//! Counters of P cores that CPUID hides: two general counters, fixed counter 3 and its metrics.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::ops::Range;

use model::{CounterId, FaultingAccess, Movement, Processor, Quirk};
use pmu::first_access::{Access, Phase, RegisterGroup};
use pmu::interface::emon::hides_counters;
use pmu::source::RawEvent;
use pmu::state::{CounterSet, CounterState};
use pmu::{Hal, Interface, ProcessorIndex};
use simulation::{ModelCpu, SimMachine, access_first, boot, current};

/// P cores that hide general counters.
const P_CORES: [&str; 3] = ["alder-lake-12900k", "alder-lake-p-12900h", "raptor-lake-p-13900h"];

/// Addresses of the event select registers, the counters at both of their addresses, and fixed counter 3 with its
/// metrics.
const GENERAL: [u32; 6] = [0x18C, 0x18D, 0xC7, 0xC8, 0x4C7, 0x4C8];
const UNIT: [u32; 2] = [0x30C, 0x329];
/// RDPMC indexes of the same.
const INDEXES: [u32; 4] = [6, 7, 1 << 30 | 3, 1 << 29];
const FIXED_CTR_CTRL: u32 = 0x38D;
const GLOBAL_CTRL: u32 = 0x38F;

const SEVEN: u32 = 0x7F;
const EIGHT: u32 = 0xFF;
const SIX: u32 = 0x3F;

/// Returns the HAL after the first accesses of the boot processor.
fn accessed(cpu: &ModelCpu) -> Hal {
    let hal = Hal::new(cpu, 1).unwrap();
    hal.probe(boot(cpu));
    access_first(&hal, cpu, 0);
    hal
}

/// Returns the bitmap of the general counters, and whether there are slots.
fn found(interface: Interface) -> (u32, bool) {
    (interface.all().without(interface.fixed()).bits(), !interface.unit().is_empty())
}

/// A machine, and what is left of its counters.
struct Unkind {
    what: &'static str,
    set: fn(&mut Processor),
    general: u32,
    has_slots: bool,
}

fn without(model: &mut Processor, registers: &[u32], indexes: &[u32]) {
    let registers = registers.iter().flat_map(|register| FaultingAccess::without(*register));
    model.set_faulting(registers.chain(indexes.iter().map(|index| FaultingAccess::Rdpmc(*index))));
}

/// The global control register faults for these bits, which are clear.
fn refuse(model: &mut Processor, bits: u64) {
    model.wrmsr(GLOBAL_CTRL, 0).unwrap();
    model.set_quirks([Quirk::Faults { register: GLOBAL_CTRL, bits }]);
}

const UNKIND: [Unkind; 19] = [
    Unkind { what: "all of them count", set: |_| {}, general: EIGHT, has_slots: true },
    Unkind {
        what: "only fixed counter 3 answers",
        set: |model| without(model, &GENERAL, &[6, 7]),
        general: SIX,
        has_slots: true,
    },
    Unkind {
        what: "only the general counters answer",
        set: |model| without(model, &UNIT, &INDEXES[2..]),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "one select register faults",
        set: |model| without(model, &[0x18D], &[]),
        general: SEVEN,
        has_slots: true,
    },
    Unkind {
        what: "the counters fault at both addresses",
        set: |model| without(model, &GENERAL[2..], &[]),
        general: SIX,
        has_slots: true,
    },
    Unkind { what: "RDPMC faults", set: |model| without(model, &[], &INDEXES), general: SIX, has_slots: false },
    Unkind {
        what: "a select register does not keep a value",
        set: |model| model.set_quirks([Quirk::Drops { register: 0x18D, bits: 0x80 }]),
        general: SEVEN,
        has_slots: true,
    },
    Unkind {
        what: "a select register does not keep EN",
        set: |model| model.set_quirks([Quirk::Drops { register: 0x18D, bits: 1 << 22 }]),
        general: SEVEN,
        has_slots: true,
    },
    Unkind {
        what: "registers that read as zero and ignore writes",
        set: |model| {
            model.set_quirks(GENERAL.into_iter().chain(UNIT).map(|register| Quirk::Ignores { register }));
        },
        general: SIX,
        has_slots: false,
    },
    Unkind {
        what: "the global control register faults for the general counters",
        set: |model| refuse(model, 0xC0),
        general: SIX,
        has_slots: true,
    },
    Unkind {
        what: "the global control register drops the general counters",
        set: |model| model.set_quirks([Quirk::Drops { register: GLOBAL_CTRL, bits: 0xC0 }]),
        general: SIX,
        has_slots: true,
    },
    Unkind {
        what: "the global control register faults for fixed counter 3",
        set: |model| refuse(model, 1 << 35),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "the global control register faults for the metrics",
        set: |model| refuse(model, 1 << 48),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "the control register of the fixed counters faults for counter 3",
        set: |model| model.set_quirks([Quirk::Faults { register: FIXED_CTR_CTRL, bits: 0xF000 }]),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "the general counters stand still",
        set: |model| [6, 7].into_iter().for_each(|one| model.set_movement(CounterId::General(one), Movement::None)),
        general: SIX,
        has_slots: true,
    },
    Unkind {
        what: "one counts a half",
        set: |model| model.set_movement(CounterId::General(7), Movement::PerMille(500)),
        general: SEVEN,
        has_slots: true,
    },
    Unkind {
        what: "fixed counter 3 stands still",
        set: |model| model.set_movement(CounterId::Fixed(3), Movement::None),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "the metrics stand still",
        set: |model| (0..8).for_each(|metric| model.set_movement(CounterId::Metric(metric), Movement::None)),
        general: EIGHT,
        has_slots: false,
    },
    Unkind {
        what: "another program has enabled fixed counter 3",
        set: |model| model.wrmsr(FIXED_CTR_CTRL, 0x3000).unwrap(),
        general: EIGHT,
        has_slots: false,
    },
];

#[test]
fn counters_that_fail_a_trial_are_left_out_and_all_others_stay() {
    for (name, one) in P_CORES.iter().flat_map(|name| UNKIND.iter().map(move |one| (name, one))) {
        let machine = SimMachine::named(name, 1);
        let cpu = machine.processor(0);
        (one.set)(&mut cpu.model());
        let hal = accessed(cpu);
        let interface = hal.interface_of(ProcessorIndex::BOOT);
        assert_eq!(found(interface), (one.general, one.has_slots), "{name}: {}", one.what);
        // The fixed counters keep their indexes.
        assert_eq!(interface.fixed().bits(), 0b111 << 8, "{name}: {}", one.what);
        assert_eq!(u32::from(interface.countable()), one.general.count_ones() + 3, "{name}: {}", one.what);
    }
}

/// A later start accesses registers without a guard: what failed must not be among them.
#[test]
fn counters_that_fail_a_trial_are_not_accessed_again() {
    for one in &UNKIND[..6] {
        let machine = SimMachine::named("alder-lake-p-12900h", 1);
        let cpu = machine.processor(0);
        (one.set)(&mut cpu.model());
        let hal = accessed(cpu);
        let faulted = cpu.model().accesses().faulted;
        assert!(hal.in_use_elsewhere(boot(cpu)).is_none());
        assert!(hal.initialize(boot(cpu)));
        let states = hal.interface_of(ProcessorIndex::BOOT).all().iter().map(|counter| {
            let state = hal.state_for(RawEvent::new().with_event(0xC4).with_umask(counter.into()).source(), 0, true);
            state.unwrap().with_owner(1).with_user(true).with_kernel(true).with_interval(1_000)
        });
        let general = states.filter_map(|state| hal.reserve(ProcessorIndex::BOOT, state));
        let counters: CounterSet = general.collect();
        assert_eq!(counters.bits(), one.general, "{}", one.what);
        hal.start(boot(cpu), counters);
        hal.stop(boot(cpu), counters);
        hal.release(boot(cpu));
        assert_eq!(cpu.model().accesses().faulted, faulted, "{}", one.what);
    }
}

/// PERF_METRICS_AVAILABLE is clear on Meteor Lake, whose leaf 0x23 has the counters.
#[test]
fn hidden_metrics_are_tried_where_cpuid_has_the_counters() {
    for (still, has_slots) in [(false, true), (true, false)] {
        let machine = SimMachine::named("meteor-lake-155h", 1);
        let cpu = machine.processor(0);
        if still {
            cpu.model().set_movement(CounterId::Fixed(3), Movement::None);
        }
        assert_eq!(found(accessed(cpu).interface_of(ProcessorIndex::BOOT)), (EIGHT, has_slots));
    }
}

/// Returns CPUID of an identity with changes.
fn edited(name: &str, edit: fn(u32, u32, [u32; 4]) -> [u32; 4]) -> Processor {
    let identity = cpuid_dumps::find(name).unwrap();
    let dump = identity.cpuid();
    let cpuid = move |leaf, subleaf| edit(leaf, subleaf, dump.cpuid(leaf, subleaf));
    Processor::new(Box::new(cpuid)).with_perf_capabilities(identity.perf_capabilities())
}

fn with_hypervisor(leaf: u32, _: u32, [eax, ebx, ecx, edx]: [u32; 4]) -> [u32; 4] {
    [eax, ebx, if leaf == 1 { ecx | 1 << 31 } else { ecx }, edx]
}

/// The root partition of Microsoft's hypervisor, as with virtualization-based security.
fn with_root(leaf: u32, subleaf: u32, registers: [u32; 4]) -> [u32; 4] {
    match leaf {
        0x4000_0000 => [0x4000_000C, 0x7263_694D, 0x666F_736F, 0x7648_2074],
        0x4000_0001 => [0x3123_7648, 0, 0, 0],
        // CPU management, and counters.
        0x4000_0003 => [0, 1 << 12, 0, 1 << 2],
        _ => with_hypervisor(leaf, subleaf, registers),
    }
}

const ALL_GROUPS: [RegisterGroup; 4] =
    [RegisterGroup::Counters, RegisterGroup::LocalApic, RegisterGroup::DebugStoreFeatures, RegisterGroup::Metrics];

/// The registers do not exist there, or exist but ignore everything: neither may be accessed.
#[test]
fn under_a_hypervisor_none_of_these_registers_is_accessed() {
    for (name, edit) in P_CORES.iter().flat_map(|name| [(name, with_hypervisor as fn(_, _, _) -> _), (name, with_root)])
    {
        for ignores in [false, true] {
            let processor = edited(name, edit);
            let processor = if ignores { processor.with_absent_msrs_ignored() } else { processor };
            let machine = SimMachine::of([processor]);
            let cpu = machine.processor(0);
            cpu.require_guards(true);
            assert!(!hides_counters(cpu), "{name}");
            let hal = Hal::new(cpu, 1).unwrap();
            hal.probe(boot(cpu));
            assert_eq!(found(hal.interface_of(ProcessorIndex::BOOT)), (SIX, false), "{name}");
            for (group, phase) in ALL_GROUPS.into_iter().flat_map(|group| [(group, Phase::Read), (group, Phase::Write)])
            {
                let _ = hal.access_first(ProcessorIndex::BOOT, group, phase, cpu);
            }
            assert!(hal.initialize(boot(cpu)));
            hal.release(boot(cpu));
            assert_eq!(found(hal.interface_of(ProcessorIndex::BOOT)), (SIX, false), "{name}");
            assert_eq!(cpu.model().accesses().faulted, 0, "{name}");
            let touched = cpu.guarded_accesses();
            let is_hidden = |(access, number): &(Access, u32)| match access {
                Access::Counter => INDEXES.contains(number),
                _ => GENERAL.contains(number) || UNIT.contains(number),
            };
            assert!(touched.len() > 20 && !touched.iter().any(is_hidden), "{name}: {touched:x?}");
        }
    }
}

/// Some machines report all counters once their E cores are turned off, and others have none.
#[test]
fn nothing_is_tried_where_cpuid_reports_the_counters() {
    let machines = [
        SimMachine::of([edited("alder-lake-p-12900h", |leaf, _, [eax, ebx, ecx, edx]| match leaf {
            0xA => [eax & !0xFF00 | 0x0800, ebx, 0xF, edx & !0x1F | 4],
            _ => [eax, ebx, ecx, edx],
        })
        .with_perf_capabilities(0xF400)]),
        SimMachine::named("raptor-lake-e-6315p", 1),
        SimMachine::named("intel-hybrid", 1),
        SimMachine::named("sapphire-rapids-2475x", 1),
    ];
    for machine in machines {
        let cpu = machine.processor(0);
        cpu.require_guards(true);
        // The loop would count nothing.
        (0..8).for_each(|counter| cpu.model().set_movement(CounterId::General(counter), Movement::None));
        cpu.model().set_movement(CounterId::Fixed(3), Movement::None);
        assert_eq!(found(accessed(cpu).interface_of(ProcessorIndex::BOOT)), (EIGHT, true));
        let touched = cpu.guarded_accesses();
        assert!(!touched.iter().any(|(_, number)| UNIT.contains(number)), "{touched:x?}");
    }
}

#[test]
fn e_cores_have_the_counters_that_cpuid_reports() {
    let machine = SimMachine::named("alder-lake-p-12900h", 2);
    let (hal, cpu) = (Hal::new(machine.processor(0), 2).unwrap(), machine.processor(1));
    for number in 0..2 {
        hal.probe(current(machine.processor(number), number));
    }
    assert!(!hides_counters(cpu));
    access_first(&hal, cpu, 1);
    assert_eq!(cpu.model().accesses().faulted, 0);
    assert_eq!(found(hal.interface_of(ProcessorIndex::new(1))), (SIX, false));
    assert_eq!(found(hal.interface_of(ProcessorIndex::BOOT)), (EIGHT, true));
}

/// Counters 6 and 7 count what those of Golden Cove and Redwood Cove count (Linux, `intel_glc_event_constraints`).
#[test]
fn events_have_the_counters_of_the_core() {
    let events: [(u16, u16, u32); 8] = [
        (0xC0, 0x00, EIGHT),
        (0xC4, 0x00, EIGHT),
        (0x3C, 0x00, EIGHT),
        (0x2E, 0x41, EIGHT),
        (0xD1, 0x01, 0x0F),
        (0x48, 0x01, 0x0F),
        (0xCE, 0x01, 0x01),
        (0x43, 0x01, 0x0F),
    ];
    for name in P_CORES.into_iter().chain(["meteor-lake-155h", "sapphire-rapids-2475x"]) {
        let machine = SimMachine::named(name, 1);
        let hal = accessed(machine.processor(0));
        let fixed = hal.interface_of(ProcessorIndex::BOOT).fixed();
        for (event, umask, counters) in events {
            let source = RawEvent::new().with_event(event).with_umask(umask).source();
            let state: CounterState = hal.state_for(source, 0, false).unwrap();
            let found = hal.counters_for(ProcessorIndex::BOOT, state).without(fixed);
            assert_eq!(found.bits(), counters, "{name}: {event:#x}/{umask:#x}");
        }
    }
}

/// Every value that the trials may leave.
#[test]
fn trials_restore_the_registers() {
    const REGISTERS: [Range<u32>; 5] = [0xC1..0xC9, 0x186..0x18E, 0x309..0x30D, 0x329..0x32A, 0x38D..0x390];
    for one in &UNKIND {
        let machine = SimMachine::named("alder-lake-p-12900h", 1).without_time_between_accesses();
        let cpu = machine.processor(0);
        cpu.leave_stale_values();
        (one.set)(&mut cpu.model());
        let read = || -> Vec<_> {
            let all = REGISTERS.into_iter().flatten();
            cpu.model().uncounted(|model| all.map(|msr| (msr, model.rdmsr(msr).ok())).collect())
        };
        let before = read();
        let _ = accessed(cpu);
        assert_eq!(read(), before, "{}", one.what);
    }
}
