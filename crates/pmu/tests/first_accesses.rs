//! What the guarded trials leave in the registers.

use std::ops::Range;

use cpuid_dumps::CpuIdentity;
use debug_store::pebs::Format;
use model::Quirk;
use pmu::debug_store::{Modes, Numbering, Place};
use pmu::extra::Selector;
use pmu::first_access::{Access, Phase, RegisterGroup};
use pmu::hal::TriedRecording;
use pmu::source::RawEvent;
use pmu::state::CounterSet;
use pmu::{Hal, ProcessorIndex, ProfileInterface, Source};
use simulation::{ModelCpu, SimMachine, boot};

/// Every register that a trial may write.
const REGISTERS: [Range<u32>; 15] = [
    0x11..0x14,
    0xC1..0xC9,
    0x186..0x18E,
    0x1A6..0x1A8,
    0x1D9..0x1DA,
    0x300..0x312,
    0x329..0x372,
    0x38D..0x392,
    0x3A0..0x3E2,
    0x3F1..0x3F8,
    0x600..0x601,
    0x834..0x835,
    0xC000_0300..0xC000_0304,
    0xC001_0000..0xC001_0008,
    0xC001_0200..0xC001_020C,
];

const GROUPS: [RegisterGroup; 9] = [
    RegisterGroup::Counters,
    RegisterGroup::LocalApic,
    RegisterGroup::DebugStoreFeatures,
    RegisterGroup::SaveArea,
    RegisterGroup::DebugStore,
    RegisterGroup::OffcoreResponse,
    RegisterGroup::LoadLatency,
    RegisterGroup::FrontEnd,
    RegisterGroup::Metrics,
];

/// A masked entry of Windows: the first accesses leave the entry masked and unmasked.
const MASKED: u32 = 0x100FE;

/// IA32_FIXED_CTR3, which counts slots, and MSR_PERF_METRICS, which is their shares unless there are none.
const SLOTS: u32 = 0x30C;
const METRICS: u32 = 0x329;

/// MSR_PERF_METRICS, and the global control registers with one counter on.
const CONTROLS: [(u32, u64); 3] = [(0x329, 0x08), (0x38F, 0x08), (0xC000_0301, 0x08)];

/// The CCCRs of NetBurst, and their counters in the same order.
const CCCRS: Range<u32> = 0x360..0x372;
const COUNTERS: Range<u32> = 0x300..0x312;

/// What each CCCR contains: an event.
const CCCR: u64 = 1 << 13;

/// Creates a processor on which each register holds a value that no trial leaves there.
fn stale_machine(identity: &'static CpuIdentity) -> SimMachine {
    let machine = SimMachine::new(identity, 1).with_x2apic().without_time_between_accesses();
    let cpu = machine.processor(0);
    cpu.leave_stale_values();
    cpu.model().set_lvt(MASKED);
    let event = CCCRS.map(|register| (register, CCCR));
    CONTROLS.into_iter().chain(event).for_each(|(register, value)| _ = cpu.write_foreign(register, value));
    machine
}

/// Creates the same, and one on which no slots were counted: MSR_PERF_METRICS contains what was written.
fn stale_machines(identity: &'static CpuIdentity) -> impl Iterator<Item = SimMachine> {
    [false, true].into_iter().filter_map(move |is_empty| {
        let machine = stale_machine(identity);
        let cpu = machine.processor(0);
        let is_there = !is_empty || cpu.write_foreign(SLOTS, 0) && cpu.write_foreign(METRICS, 0x08);
        is_there.then_some(machine)
    })
}

/// Reads every register that the processor has.
fn read(cpu: &ModelCpu) -> Vec<(u32, u64)> {
    let all = REGISTERS.into_iter().flatten();
    cpu.model().uncounted(|model| all.filter_map(|msr| Some((msr, model.rdmsr(msr).ok()?))).collect())
}

fn access_first(hal: &Hal, cpu: &ModelCpu, group: RegisterGroup) {
    for phase in [Phase::Read, Phase::Write] {
        let _ = hal.access_first(ProcessorIndex::BOOT, group, phase, cpu);
    }
}

fn identities() -> impl Iterator<Item = &'static CpuIdentity> {
    cpuid_dumps::all().iter().filter(|identity| identity.expected.counters > 0)
}

fn hal(cpu: &ModelCpu) -> Option<Hal> {
    let hal = Hal::new(cpu, 1).ok()?;
    hal.probe(boot(cpu));
    Some(hal)
}

/// Tries what sessions with each source, and with an off-core response, will write. `check` gets each state.
fn try_events(hal: &Hal, cpu: &ModelCpu, identity: &CpuIdentity, check: impl Fn(&str)) {
    let offcore = RawEvent::new().with_event(0xB7).with_umask(0x01).with_selector(Selector::OffcoreResponse as u8);
    let offcore = hal.state_for(offcore.source(), 0x1_0001, false).ok();
    let has_extra = hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::OffcoreResponse, Phase::Write);
    let offcore = offcore.filter(|_| has_extra == Some(Ok(())));
    let with_interrupt = hal.interface().interrupts();
    let state = |source: &u64| hal.state_for(Source(*source), 0, with_interrupt).ok();
    let sources = identity.expected.supported.iter().filter_map(state);
    for state in sources.chain(offcore) {
        let state = state.with_owner(1).with_user(true).with_kernel(true).with_interval(1_000);
        for counter in hal.present_counters(ProcessorIndex::BOOT).iter() {
            for state in [state, state.with_merged(true)] {
                let _ = hal.try_event(ProcessorIndex::BOOT, counter, state, cpu);
                check(&format!("{state:?} on counter {counter}"));
            }
        }
    }
}

#[test]
fn trials_leave_every_register_as_it_was_found() {
    for (identity, machine) in identities().flat_map(|identity| stale_machines(identity).map(move |it| (identity, it)))
    {
        let cpu = machine.processor(0);
        let Some(hal) = hal(cpu) else { continue };
        let before = read(cpu);
        let check = |what: &str| {
            let changed: Vec<_> = read(cpu).into_iter().zip(&before).filter(|(now, before)| now != *before).collect();
            assert!(changed.is_empty(), "{}, {what}: {changed:x?}", identity.name);
        };
        for group in GROUPS {
            access_first(&hal, cpu, group);
            check(&format!("{group:?}"));
        }
        try_events(&hal, cpu, identity, check);
        if hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::DebugStore, Phase::Write) == Some(Ok(())) {
            let modes = Modes { user: true, kernel: false };
            let numbering = Numbering { format: Format::Skylake, first_fixed: 8, accesses: None };
            let precise = TriedRecording::Precise(numbering, CounterSet::NONE.with(0));
            let place = Place { area: Some(0x1_0000), ..Place::default() };
            for recorded in [
                TriedRecording::Place(place),
                TriedRecording::Place(Place { has_accesses: true, ..place }),
                TriedRecording::Branches(modes),
                precise,
            ] {
                let _ = hal.try_recording(ProcessorIndex::BOOT, recorded, cpu);
                check(&format!("{recorded:?}"));
            }
        }
    }
}

/// A hypervisor may have set what it does not let a guest write. Nothing could put that back.
#[test]
fn a_register_that_refuses_what_it_holds_is_not_changed() {
    let used = |identity, kind| {
        let machine = stale_machines(identity).nth(kind)?;
        // IA32_FIXED_CTR_CTRL with fixed counter 0 on in user mode.
        machine.processor(0).write_foreign(0x38D, 0b10);
        Some(machine)
    };
    for (identity, kind) in identities().flat_map(|identity| [(identity, 0), (identity, 1)]) {
        let Some(machine) = used(identity, kind) else { continue };
        let all = read(machine.processor(0)).into_iter();
        // Only these differ on the second machine.
        for (register, value) in all.filter(|(register, _)| kind == 0 || [SLOTS, METRICS].contains(register)) {
            let Some(machine) = used(identity, kind) else { continue };
            let cpu = machine.processor(0);
            let Some(hal) = hal(cpu) else { continue };
            let quirk =
                if value == 0 { Quirk::FaultsAtZero { register } } else { Quirk::Faults { register, bits: value } };
            cpu.model().set_quirks([quirk]);
            let check = |what: &str| {
                let now = cpu.model().uncounted(|model| model.rdmsr(register));
                assert_eq!(now, Ok(value), "{}, {register:#x}, {what}", identity.name);
            };
            for group in GROUPS {
                access_first(&hal, cpu, group);
                check(&format!("{group:?}"));
            }
            if hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::Counters, Phase::Write) == Some(Ok(())) {
                try_events(&hal, cpu, identity, check);
            }
        }
    }
}

/// Interrupts mask and unmask the entry.
#[test]
fn an_entry_that_cannot_be_masked_or_unmasked_is_refused() {
    let (register, bits) = (0x834, 1 << 16);
    for (found, quirk) in [
        (MASKED & !(1 << 16), Quirk::Faults { register, bits }),
        (MASKED & !(1 << 16), Quirk::Drops { register, bits }),
        (MASKED, Quirk::Sets { register, bits }),
    ] {
        let machine = SimMachine::new(cpuid_dumps::find("skylake-6600k").unwrap(), 1).with_x2apic();
        let cpu = machine.processor(0);
        cpu.model().set_lvt(found);
        cpu.model().set_quirks([quirk]);
        let hal = hal(cpu).unwrap();
        access_first(&hal, cpu, RegisterGroup::LocalApic);
        let accessed = hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::LocalApic, Phase::Write);
        assert!(matches!(accessed, Some(Err(fault)) if fault.number == 0x834), "{quirk:?}: {accessed:?}");
    }
}

/// Returns the fault of the first accesses to the counters of a stale machine under a hypervisor.
fn fault_of_counters(machine: &SimMachine, quirk: Quirk) -> Option<u32> {
    let cpu = machine.processor(0);
    let hal = hal(cpu)?;
    cpu.model().set_quirks([quirk]);
    access_first(&hal, cpu, RegisterGroup::Counters);
    let accessed = hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::Counters, Phase::Write);
    accessed.and_then(Result::err).map(|fault| fault.number)
}

/// A session writes zero to each CCCR, and loads each counter with bits of all kinds.
#[test]
fn registers_of_netburst_that_refuse_what_a_session_writes_are_refused() {
    let mut refused = 0;
    for identity in identities().filter(|identity| identity.expected.interface == "NetBurst") {
        // The counters of a thread are not the first ones of the core.
        let machine = stale_machine(identity);
        machine.processor(0).require_guards(true);
        let Some(hal) = hal(machine.processor(0)) else { continue };
        access_first(&hal, machine.processor(0), RegisterGroup::Counters);
        let tried = machine.processor(0).guarded_accesses();
        for (register, counter) in CCCRS.zip(COUNTERS).filter(|(cccr, _)| tried.contains(&(Access::Write, *cccr))) {
            let fault = |quirk| fault_of_counters(&stale_machine(identity), quirk);
            assert_eq!(fault(Quirk::FaultsAtZero { register }), Some(register), "{}", identity.name);
            // Bits of both halves.
            for bits in [1 << 38, 1 << 0] {
                let quirk = Quirk::Drops { register: counter, bits };
                assert_eq!(fault(quirk), Some(counter), "{}, {bits:#x}", identity.name);
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

/// The start of a session clears the fields of its fixed counters, which may be all that are set.
#[test]
fn a_control_register_of_fixed_counters_that_cannot_be_cleared_is_refused() {
    const FIXED_CTR_CTRL: u32 = 0x38D;
    let mut refused = 0;
    for identity in identities().filter(|identity| identity.expected.fixed > 0) {
        let machine = stale_machine(identity);
        machine.processor(0).write_foreign(FIXED_CTR_CTRL, 0b10);
        let fault = fault_of_counters(&machine, Quirk::FaultsAtZero { register: FIXED_CTR_CTRL });
        assert_eq!(fault, Some(FIXED_CTR_CTRL), "{}", identity.name);
        refused += 1;
    }
    assert!(refused > 0);
}

/// The enable flag of P6 is one for both counters, so that the second one would count the events of its trial.
#[test]
fn trials_of_p6_let_no_counter_count() {
    for identity in identities().filter(|identity| identity.expected.interface == "P6") {
        let machine = SimMachine::new(identity, 1);
        let cpu = machine.processor(0);
        // PERF_EVT_SEL0 with the enable flag, and a value in PERF_CTR1.
        assert!(cpu.write_foreign(0x186, 1 << 22) && cpu.write_foreign(0xC2, 0x08), "{}", identity.name);
        let Some(hal) = hal(cpu) else { continue };
        access_first(&hal, cpu, RegisterGroup::Counters);
        let left = [0x186, 0x187, 0xC2].map(|msr| cpu.model().uncounted(|model| model.rdmsr(msr)));
        assert_eq!(left, [Ok(1 << 22), Ok(0), Ok(0x08)], "{}", identity.name);
    }
}

/// Numbers the guarded writes, of which one fails.
mod failing {
    use std::cell::Cell;

    thread_local! {
        static WRITES: Cell<u32> = const { Cell::new(0) };
    }

    /// Makes the write with this number fail from now on, if it is not 0.
    pub fn set(number: u32) {
        WRITES.set(number);
    }

    /// Returns whether a call fails.
    pub fn fails(function: &'static str) -> bool {
        if function != "try_wrmsr" {
            return false;
        }
        let left = WRITES.get();
        WRITES.set(left.saturating_sub(1));
        left == 1
    }

    /// Returns whether the write that fails was reached.
    pub fn is_over() -> bool {
        WRITES.get() == 0
    }
}

/// A hypervisor may refuse a write for a moment, while it moves the guest to another host.
#[test]
fn a_fault_that_passes_leaves_every_register_as_it_was_found() {
    simulation::decide_faults(Some(failing::fails));
    for name in ["skylake-6600k", "zen4-7700x", "amd-legacy", "p6-coppermine"] {
        let identity = cpuid_dumps::find(name).unwrap();
        for number in 1.. {
            let machine = stale_machine(identity);
            let cpu = machine.processor(0);
            let (hal, before) = (hal(cpu).unwrap(), read(cpu));
            failing::set(number);
            for group in GROUPS {
                access_first(&hal, cpu, group);
            }
            let changed: Vec<_> = read(cpu).into_iter().zip(before).filter(|(now, before)| now != before).collect();
            assert!(changed.is_empty(), "{name}, write {number}: {changed:x?}");
            if !failing::is_over() {
                break;
            }
        }
        failing::set(0);
    }
    simulation::decide_faults(None);
}
