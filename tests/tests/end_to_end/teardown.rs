//! Unloading the driver during activity.

use std::time::Duration;

use bench_protocol::StopState;
use protocol::trace::{LEVEL, PROVIDER_ID};
use protocol::{Code, flags};
use tests::{Lab, Reply, rounds, wait_until};

use crate::groups;
use crate::life::{connect, header};
use crate::sampling::{Sampler, start_sampling};

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
            std::thread::sleep(Duration::from_millis(round as u64 % 7));
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

/// Waits until a stop that was pending is over.
fn wait_for_stop(lab: &mut Lab) {
    wait_until("the stop does not go on", || lab.wire.stop_state().unwrap() == StopState::Over);
}

#[test]
fn the_image_stays_if_the_hal_keeps_the_handler_after_a_stop_is_pending() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let sampler = Sampler::start(&lab, 64, 100_000, 900);
    assert_eq!(lab.wire.stop_driver().unwrap(), StopState::Pending);
    lab.wire.refuse_handler(true).unwrap();
    drop(sampler); // its process ends, and closes the last handle
    wait_for_stop(&mut lab);
    assert_eq!(lab.wire.violations().unwrap(), []);
    assert!(lab.wire.handler().unwrap().registration.is_some());
    assert_eq!(lab.wire.stop_driver().unwrap(), StopState::Refused);

    // Windows opens no handle any more. The bench does, to leave nothing behind.
    lab.wire.refuse_handler(false).unwrap();
    drop(Sampler::start(&lab, 64, 100_000, 900));
    lab.finish().unwrap();
}

#[test]
fn the_image_stays_if_thread_profiling_keeps_the_counters_after_a_stop_is_pending() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    assert_eq!(groups::start(&mut probe, handle, flags::THREADS, &[2]).cause, 0);
    lab.wire.pretend_profiling(true).unwrap();
    assert_eq!(lab.wire.stop_driver().unwrap(), StopState::Pending);
    drop(probe);
    wait_for_stop(&mut lab);
    assert_eq!(lab.wire.violations().unwrap(), []);
    assert_eq!(lab.wire.hardware_counters().unwrap().counters, [0], "the counters go on for the thread");
    assert!(lab.enabled_counters().unwrap() > 0);

    lab.wire.pretend_profiling(false).unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    let next = groups::start(&mut probe, handle, flags::THREADS, &[2]);
    assert_eq!(groups::stop(&mut probe, handle, next.detail[0]).cause, 0);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn a_stop_goes_on_at_the_last_close_and_leaves_nothing() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let sampler = Sampler::start(&lab, 64, 100_000, 900);
    assert_eq!(lab.wire.stop_driver().unwrap(), StopState::Pending);
    drop(sampler);
    wait_for_stop(&mut lab);
    assert_eq!(lab.wire.violations().unwrap(), []);
    assert!(lab.wire.handler().unwrap().registration.is_none());
    lab.finish().unwrap();
}
