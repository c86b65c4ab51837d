//! The register accesses of a read of one processor.

use engine::Ticks;
use model::Mode;
use protocol::{GroupReply, GroupRequest, group_flags};
use simulation::{Client, SimMachine};
use zerocopy::FromZeros;

use super::scene::{IDENTITIES, engine, event, started};

/// Returns RDMSR, WRMSR and RDPMC accesses of all processors.
fn accesses(machine: &SimMachine) -> [u64; 3] {
    machine
        .all()
        .map(|cpu| cpu.model().accesses())
        .fold([0; 3], |[rdmsr, wrmsr, rdpmc], one| [rdmsr + one.rdmsr, wrmsr + one.wrmsr, rdpmc + one.rdpmc])
}

/// Returns the registers that a comparison of n counters reads: as in a tick, without the status for overflows.
fn compared(name: &str, n: u64) -> u64 {
    match name {
        "amd-legacy" | "zen3-5950x" | "intel-v1" | "p6-coppermine" => n,
        "netburst-cedarmill" => 2 * n,
        "zen4-7700x" | "intel-v2" | "haswell-4710mq" => n + 2,
        _ => n + 3,
    }
}

#[test]
fn a_read_takes_one_rdpmc_for_each_counter_and_a_comparison_what_it_takes_in_a_tick() {
    for name in IDENTITIES {
        for n in 1..=2 {
            let machine = SimMachine::named(name, 2);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let events: Vec<_> = [2, 6].into_iter().take(n).map(|source| event(source, 0)).collect();
            let session = started(client, &mut engine, 0, &events);
            machine.run(1, Mode::User, &|_| 3);
            let n = n as u64;
            for (flags, rdmsr) in [(0, 0), (group_flags::COMPARE, compared(name, n))] {
                let (before, local) = (accesses(&machine), machine.processor(1).local_accesses());
                let request = GroupRequest { session, flags, reserved: 0 };
                let read = client.read_group_on(&machine, engine.sampler(), 1, request).unwrap();
                let after = accesses(&machine);
                assert_eq!(read.counts[0], 3, "{name}");
                let spent = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
                assert_eq!(spent, [rdmsr, 0, n], "{name}: {n}, {flags}");
                assert_eq!(machine.processor(1).local_accesses(), local, "{name}");
            }
            // What is refused touches nothing.
            let before = accesses(&machine);
            let request = GroupRequest { session: session + 1, flags: group_flags::COMPARE, reserved: 0 };
            assert!(client.read_group_on(&machine, engine.sampler(), 1, request).is_none());
            assert_eq!(accesses(&machine), before, "{name}");
        }
    }
}

#[test]
fn a_read_reads_the_clock_twice() {
    let machine = SimMachine::named("zen4-7700x", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 0, &[event(2, 0), event(6, 0)]);
    let reads = std::cell::Cell::new(0);
    let clock = || {
        reads.set(reads.get() + 1);
        Ticks(reads.get())
    };
    let request = GroupRequest { session, flags: group_flags::COMPARE, reserved: 0 };
    let mut read = GroupReply::new_zeroed();
    engine.sampler().read_group(machine.current(0), &clock, client.0, request, &mut read).unwrap();
    assert_eq!((reads.get(), read.time_before, read.time_after), (2, 1, 2));
}
