//! Requests for samples that wait, seen from a client with more than one thread.

use std::time::{Duration, Instant};

use protocol::{Code, Sample, SamplesRequest, StopRequest};
use tests::{Lab, Reply, hex};
use zerocopy::IntoBytes;

use crate::life::header;
use crate::sampling::Sampler;

const INTERVAL: u32 = 10_000;

/// TotalIssues of both makes.
const INSTRUCTIONS: (u16, u8) = (0xC0, 0);

const ERROR_INVALID_HANDLE: u32 = 6;
const ERROR_OPERATION_ABORTED: u32 = 995;

/// The two kinds of handles.
const KINDS: [&str; 2] = ["", "overlapped"];

/// Longer than any test takes.
const LONG: u32 = 600_000;

/// Room for so many samples, as the probe takes it.
fn room(samples: usize) -> String {
    (48 + samples * size_of::<Sample>()).to_string()
}

/// A request for samples on a thread of its own, which waits until there are 32.
fn wait_aside(sampler: &mut Sampler) -> u32 {
    let input = hex(SamplesRequest { session: sampler.session, wait: LONG, reserved: 0 }.as_bytes());
    let aside = sampler.probe.aside(sampler.handle, Code::Samples as u32, &input, &room(64)).unwrap();
    std::thread::sleep(Duration::from_millis(50)); // so that it has come to the driver
    aside
}

fn overflow(lab: &mut Lab, times: u32) {
    let (event, umask) = INSTRUCTIONS;
    for _ in 0..times {
        lab.wire.run(0, &[(event, umask, INTERVAL.into())], &[]).unwrap();
    }
}

fn nothing_counts_soon(lab: &mut Lab) {
    let begun = Instant::now();
    while lab.counting().unwrap() != 0 || lab.wire.handler().unwrap().registration.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", lab.wire.enabled().unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_request_that_waits_can_be_cancelled_and_the_session_goes_on() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    for kind in KINDS {
        let mut sampler = Sampler::start_with(&lab, kind, 64, INTERVAL, 900);
        for round in 0..5 {
            let aside = wait_aside(&mut sampler);
            overflow(&mut lab, 3);
            assert_eq!(sampler.probe.say(&format!("cancel {}", sampler.handle)).unwrap(), "ok", "{kind} {round}");
            let cancelled = sampler.probe.join(aside).unwrap();
            assert_eq!(cancelled, Reply::Failed(ERROR_OPERATION_ABORTED), "{kind} {round}");
            assert_eq!(sampler.fetch(64).0.len(), 3, "{kind} {round}: nothing is lost with it");
        }
        let aside = wait_aside(&mut sampler);
        overflow(&mut lab, 32);
        let Reply::Done(bytes) = sampler.probe.join(aside).unwrap() else { panic!("{kind}: no samples") };
        assert_eq!((header(&bytes).status, header(&bytes).count), (0, 32), "{kind}");
        drop(sampler);
        nothing_counts_soon(&mut lab);
    }
    lab.finish().unwrap();
}

#[test]
fn a_stop_ends_what_waits_with_the_last_samples() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start_with(&lab, "overlapped", 64, INTERVAL, 900);
    let aside = wait_aside(&mut sampler);
    overflow(&mut lab, 5);
    let stop = StopRequest { session: sampler.session, source: protocol::ALL_SOURCES, reserved: 0 };
    let stopped = sampler.probe.control(sampler.handle, Code::Stop as u32, &hex(stop.as_bytes()), "4096").unwrap();
    assert!(matches!(stopped, Reply::Done(_)), "{stopped:?}");
    let Reply::Done(bytes) = sampler.probe.join(aside).unwrap() else { panic!("no samples") };
    let header = header(&bytes);
    assert_eq!((header.status, header.count, header.detail[0]), (0, 5, 1));
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_handle_closed_while_a_request_waits_ends_the_session() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    for kind in KINDS {
        let mut sampler = Sampler::start_with(&lab, kind, 64, INTERVAL, 900);
        let aside = wait_aside(&mut sampler);
        assert_eq!(sampler.probe.say(&format!("close {}", sampler.handle)).unwrap(), "ok", "{kind}");
        let ended = sampler.probe.join(aside).unwrap();
        assert!(matches!(ended, Reply::Failed(ERROR_OPERATION_ABORTED | ERROR_INVALID_HANDLE)), "{kind}: {ended:?}");
        nothing_counts_soon(&mut lab);
        drop(sampler);
    }
    lab.finish().unwrap();
}
