//! The LVT performance entry of the local APIC.

use protocol::ErrorCode;
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, NOWHERE, SHORT, engine, event, header, on, run, started};

const OF_WINDOWS: u32 = 0xFE;
const MASKED: u32 = 1 << 16;
/// Guests of KVM with Hyper-V enlightenments: the HAL finds no counters and enables no entry.
const KVM: [&str; 2] = ["intel-kvm-hyperv", "amd-kvm-hyperv"];
const NMI: u32 = 4 << 8;

#[test]
fn sampling_is_refused_where_the_hal_has_not_enabled_the_entry_and_counting_is_not() {
    for (name, hypervisor) in IDENTITIES.map(|name| (name, 0)).into_iter().chain(KVM.map(|name| (name, 4))) {
        for entry in [MASKED, MASKED | 0xFD, 0xFD, NMI | 0xFE, NMI | MASKED, 0] {
            let machine = SimMachine::named(name, 3);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            machine.processor(1).model().set_lvt(entry);
            let refused = client.start_with(&mut engine, header(0, true, on(&[])), &[event(2, SHORT)]).header();
            assert_eq!(refused.cause, ErrorCode::InterruptNotEnabled as u32, "{name}, {entry:#x}");
            assert_eq!((refused.processor, refused.detail), (1, [entry.into(), hypervisor]), "{name}");
            assert_eq!(machine.processor(1).model().lvt(), entry, "{name}: left as it is");
            assert!(!machine.is_in_use() && !machine.is_sampling(), "{name}");
            client.started(&mut engine, 0, &[2]);
            started(client, &mut engine, on(&[0, 2]), &[event(6, SHORT)]);
        }
    }
}

#[test]
fn an_entry_of_windows_that_is_masked_is_unmasked_and_stays_so_after_every_interrupt() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.processor(0).model().set_lvt(OF_WINDOWS | MASKED);
        let session = started(client, &mut engine, on(&[]), &[event(2, SHORT)]);
        for _ in 0..5 {
            run(&machine, &engine, 0, u64::from(SHORT));
        }
        let late = engine.sampler().interrupt(machine.current(0), || engine::Ticks(0), &NOWHERE);
        assert_eq!(late, engine::Deferred::default());
        assert_eq!(machine.processor(0).model().lvt(), OF_WINDOWS, "{name}");
        assert_eq!(client.read(&mut engine, session)[0].samples, 5, "{name}: each came through");
    }
}
