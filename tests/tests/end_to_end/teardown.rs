//! Unloading the driver during activity.

use protocol::Code;
use protocol::trace::{LEVEL, PROVIDER_ID};
use tests::{Lab, Reply, rounds};

use crate::life::{connect, header};
use crate::sampling::start_sampling;

#[test]
fn nothing_runs_after_unloading_at_the_full_interrupt_rate() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    let (mut interrupted, mut events) = (0, 0);
    for identity in ["zen4-7700x", "haswell-4710mq"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let mut probe = lab.probe().unwrap();
        probe.service("unload", "halprof").unwrap().unwrap();
        for round in 0..rounds(20, 100) {
            probe.service("load", "halprof").unwrap().unwrap();
            match round / 2 % 2 {
                0 => lab.wire.disable_provider(PROVIDER_ID).unwrap(),
                _ => lab.wire.enable_provider(PROVIDER_ID, LEVEL, 0).unwrap(),
            }
            let handle = connect(&mut probe);
            // The shortest interval, which no machine can keep up with, and one with occasional interrupts.
            let input = start_sampling(64, if round % 2 == 0 { 4_096 } else { 100_000 }, 900);
            match probe.control(handle, Code::Start as u32, &input, "4096").unwrap() {
                Reply::Done(bytes) => assert_eq!(header(&bytes).status, 0, "{identity}, round {round}"),
                Reply::Failed(error) => panic!("{identity}, round {round}: {error}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(round as u64 % 7));
            probe.command(&format!("close {handle}")).unwrap();
            probe.service("unload", "halprof").unwrap().unwrap();
            lab.check_clean().unwrap();
            assert_eq!(lab.wire.providers().unwrap(), []);
            events += lab.wire.take_events().unwrap().len();
        }
        let ledger = lab.wire.ledger().unwrap();
        interrupted += ledger.iter().flatten().map(|entry| entry.interrupts).sum::<u64>();
        drop(probe);
        lab.run_by_script().unwrap();
        lab.uninstall().unwrap();
    }
    assert!(interrupted > 200 && events > 20, "{interrupted} interrupts, {events} events in all");
    lab.finish().unwrap();
}
