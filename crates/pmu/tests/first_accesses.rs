//! What the guarded trials leave in the registers.

use std::ops::Range;

use cpuid_dumps::CpuIdentity;
use model::Quirk;
use pmu::debug_store::Modes;
use pmu::extra::Selector;
use pmu::first_access::{Phase, RegisterGroup};
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

/// MSR_PERF_METRICS, and the global control registers with one counter on.
const CONTROLS: [(u32, u64); 3] = [(0x329, 0x08), (0x38F, 0x08), (0xC000_0301, 0x08)];

/// The CCCRs of NetBurst.
const CCCRS: Range<u32> = 0x360..0x372;

/// Creates a processor on which each register holds a value that no trial leaves there.
fn stale_machine(identity: &'static CpuIdentity) -> SimMachine {
    let machine = SimMachine::new(identity, 1).with_x2apic().without_time_between_accesses();
    let cpu = machine.processor(0);
    cpu.leave_stale_values();
    cpu.model().set_lvt(MASKED);
    let event = CCCRS.map(|register| (register, 1 << 13));
    CONTROLS.into_iter().chain(event).for_each(|(register, value)| _ = cpu.write_foreign(register, value));
    machine
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
    let offcore = RawEvent::NONE.with_event(0xB7).with_umask(0x01).full();
    let offcore = hal.state_for_full(offcore.with_selector(Selector::OffcoreResponse as u8), 0x1_0001, false).ok();
    let has_extra = hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::OffcoreResponse, Phase::Write);
    let offcore = offcore.filter(|_| has_extra == Some(Ok(())));
    let with_interrupt = hal.interface().interrupts();
    let state = |source: &u32| hal.state_for(Source(*source), with_interrupt).ok();
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
    for identity in identities() {
        let machine = stale_machine(identity);
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
            let precise = TriedRecording::Precise(CounterSet::NONE.with(0));
            for recorded in [TriedRecording::Area(0x1_0000), TriedRecording::Branches(modes), precise] {
                let _ = hal.try_recording(ProcessorIndex::BOOT, recorded, cpu);
                check(&format!("{recorded:?}"));
            }
        }
    }
}

/// A hypervisor may have set what it does not let a guest write. Nothing could put that back.
#[test]
fn a_register_that_refuses_what_it_holds_is_not_changed() {
    let used = |identity| {
        let machine = stale_machine(identity);
        // IA32_FIXED_CTR_CTRL with fixed counter 0 on in user mode.
        machine.processor(0).write_foreign(0x38D, 0b10);
        machine
    };
    for identity in identities() {
        for (register, value) in read(used(identity).processor(0)) {
            let machine = used(identity);
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
fn an_entry_that_cannot_be_masked_is_refused() {
    for quirk in [Quirk::Faults { register: 0x834, bits: 1 << 16 }, Quirk::Drops { register: 0x834, bits: 1 << 16 }] {
        let machine = SimMachine::new(cpuid_dumps::find("skylake-6600k").unwrap(), 1).with_x2apic();
        let cpu = machine.processor(0);
        cpu.model().set_lvt(MASKED & !(1 << 16));
        cpu.model().set_quirks([quirk]);
        let hal = hal(cpu).unwrap();
        access_first(&hal, cpu, RegisterGroup::LocalApic);
        let accessed = hal.first_accessed(ProcessorIndex::BOOT, RegisterGroup::LocalApic, Phase::Write);
        assert!(matches!(accessed, Some(Err(fault)) if fault.number == 0x834), "{quirk:?}: {accessed:?}");
    }
}
