//! What the guarded trials leave in the registers.

use std::ops::Range;

use pmu::first_access::{Phase, RegisterGroup};
use pmu::{Hal, ProcessorIndex, Source};
use simulation::SimMachine;

/// Selects and counters of all makers: what a register contains is written to them before the trials.
const STALE: [Range<u32>; 9] = [
    0x11..0x14,
    0xC1..0xC9,
    0x186..0x18E,
    0x300..0x312,
    0x309..0x30D,
    0x3A0..0x3E2,
    0x834..0x835,
    0xC001_0000..0xC001_0008,
    0xC001_0200..0xC001_020C,
];

/// Registers of control, debugging and recording, which stay as they are after a reset.
const OTHERS: [Range<u32>; 5] = [0x1A6..0x1A8, 0x1D9..0x1DA, 0x329..0x372, 0x38D..0x392, 0x3F1..0x3F8];

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

/// Not enabled as a select register of any maker, and a small value as a counter.
const VALUE: u64 = 0x2E;

#[test]
fn trials_leave_every_register_as_it_was_found() {
    for identity in cpuid_dumps::all().iter().filter(|identity| identity.expected.counters > 0) {
        let machine = SimMachine::new(identity, 1);
        let cpu = machine.processor(0);
        let Ok(hal) = Hal::<()>::new(cpu, 1) else { continue };
        STALE.into_iter().flatten().for_each(|msr| _ = cpu.write_foreign(msr, VALUE));
        let read = || -> Vec<_> {
            let all = STALE.into_iter().chain(OTHERS).flatten();
            cpu.model().uncounted(|model| all.filter_map(|msr| Some((msr, model.rdmsr(msr).ok()?))).collect())
        };
        let before = read();
        let check = |what: &str| {
            let changed: Vec<_> = read().into_iter().zip(&before).filter(|(now, before)| now != *before).collect();
            assert!(changed.is_empty(), "{}, {what}: {changed:x?}", identity.name);
        };
        for group in GROUPS {
            for phase in [Phase::Read, Phase::Write] {
                let _ = hal.access_first(ProcessorIndex::BOOT, group, phase, cpu);
            }
            check(&format!("{group:?}"));
        }
        for source in identity.expected.supported {
            let Ok(state) = hal.state_for(Source(*source), true) else { continue };
            let state = state.with_owner(1).with_user(true).with_kernel(true).with_interval(1_000);
            for counter in hal.present_counters(ProcessorIndex::BOOT).iter() {
                for state in [state, state.with_merged(true)] {
                    let _ = hal.try_event(ProcessorIndex::BOOT, counter, state, cpu);
                    check(&format!("source {source:#x} on counter {counter}"));
                }
            }
        }
    }
}
