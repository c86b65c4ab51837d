//! Pending requests for samples, from a client with several threads.

use bench_protocol::CancelMoment;
use protocol::{Code, SampleRecord, SamplesRequest, StopRequest};
use tests::{Lab, Reply, hex, wait_until};
use zerocopy::IntoBytes;

use crate::life::header;
use crate::sampling::Sampler;

const INTERVAL: u32 = 10_000;

/// TotalIssues on Intel and AMD.
const INSTRUCTIONS: (u16, u16) = (0xC0, 0);

const ERROR_INVALID_HANDLE: u32 = 6;
const ERROR_OPERATION_ABORTED: u32 = 995;

/// The kinds of handles.
const KINDS: [&str; 2] = ["", "overlapped"];

/// A wait in milliseconds that is longer than any test.
const LONG: u32 = 600_000;

/// Returns the output length for this many samples, in the format of the probe.
fn room(samples: usize) -> String {
    (48 + samples * size_of::<SampleRecord>()).to_string()
}

/// Requests samples on a separate thread. The request completes with 32 samples or after `wait` milliseconds.
fn spawn_samples_request(sampler: &mut Sampler, wait: u32) -> u32 {
    let input = hex(SamplesRequest { session: sampler.session, wait, reserved: 0 }.as_bytes());
    sampler.probe.spawn_request(sampler.handle, Code::Samples as u32, &input, &room(64)).unwrap()
}

/// Requests samples on a separate thread and waits until the request is pending in the driver.
fn spawn_pending_request(lab: &mut Lab, sampler: &mut Sampler) -> u32 {
    let request = spawn_samples_request(sampler, LONG);
    wait_until("the driver does not let the request wait", || lab.wire.pending_requests().unwrap() != 0);
    request
}

/// Cancels the pending request and checks its result.
fn cancel(sampler: &mut Sampler, request: u32) {
    assert_eq!(sampler.probe.command(&format!("cancel {}", sampler.handle)).unwrap(), "ok");
    assert_eq!(sampler.probe.join(request).unwrap(), Reply::Failed(ERROR_OPERATION_ABORTED));
}

fn overflow(lab: &mut Lab, times: u32) {
    let (event, umask) = INSTRUCTIONS;
    for _ in 0..times {
        lab.wire.run(0, &[(event, umask, INTERVAL.into())], &[]).unwrap();
    }
}

fn wait_until_idle(lab: &mut Lab) {
    wait_until("the driver is not idle", || {
        lab.enabled_counters().unwrap() == 0 && lab.wire.handler().unwrap().registration.is_none()
    });
}

#[test]
fn a_pending_request_can_be_cancelled_and_the_session_continues() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    for kind in KINDS {
        let mut sampler = Sampler::start_with(&lab, kind, 64, INTERVAL, 900);
        for round in 0..5 {
            let request = spawn_pending_request(&mut lab, &mut sampler);
            overflow(&mut lab, 3);
            cancel(&mut sampler, request);
            assert_eq!(sampler.fetch(64).0.len(), 3, "{kind} {round}: nothing is lost with it");
        }
        let request = spawn_pending_request(&mut lab, &mut sampler);
        overflow(&mut lab, 32);
        let Reply::Done(bytes) = sampler.probe.join(request).unwrap() else { panic!("{kind}: no samples") };
        assert_eq!((header(&bytes).status, header(&bytes).count), (0, 32), "{kind}");
        drop(sampler);
        wait_until_idle(&mut lab);
    }
    lab.finish().unwrap();
}

#[test]
fn a_cancelled_request_frees_its_slot() {
    /// More than the maximum number of pending requests.
    const CANCELS: u32 = 40;
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start_with(&lab, "overlapped", 64, INTERVAL, 900);
    for _ in 0..CANCELS {
        let request = spawn_pending_request(&mut lab, &mut sampler);
        cancel(&mut sampler, request);
    }
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_racing_cancellation_completes_the_request_once() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start_with(&lab, "overlapped", 64, INTERVAL, 900);
    // The driver sets the cancel routine when it pends the request; later its thread clears and sets it again.
    for moment in [CancelMoment::BeforeSet, CancelMoment::AfterSet, CancelMoment::BeforeTake, CancelMoment::AfterTake] {
        lab.wire.cancel_at(Some(moment)).unwrap();
        let request = spawn_samples_request(&mut sampler, 3_000);
        let ended = sampler.probe.join(request).unwrap();
        assert_eq!(ended, Reply::Failed(ERROR_OPERATION_ABORTED), "{moment:?}");
        assert_eq!(lab.wire.violations().unwrap(), [], "{moment:?}");
        assert_eq!(lab.wire.pending_requests().unwrap(), 0, "{moment:?}");
    }
    overflow(&mut lab, 3);
    assert_eq!(sampler.fetch(64).0.len(), 3, "the session goes on");
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_stop_completes_the_pending_request_with_the_last_samples() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start_with(&lab, "overlapped", 64, INTERVAL, 900);
    let request = spawn_pending_request(&mut lab, &mut sampler);
    overflow(&mut lab, 5);
    // Else the driver would look by itself after 10 s, and hide that the stop does not wake it.
    lab.wire.hold_clocks(true).unwrap();
    let stop = StopRequest { session: sampler.session, source: protocol::ALL_SOURCES, core_type: 0, reserved: 0 };
    let stopped = sampler.probe.control(sampler.handle, Code::Stop as u32, &hex(stop.as_bytes()), "4096").unwrap();
    assert!(matches!(stopped, Reply::Done(_)), "{stopped:?}");
    let Reply::Done(bytes) = sampler.probe.join(request).unwrap() else { panic!("no samples") };
    lab.wire.hold_clocks(false).unwrap();
    let header = header(&bytes);
    assert_eq!((header.status, header.count, header.detail[0]), (0, 5, 1));
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn closing_a_handle_with_a_pending_request_ends_the_session() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    for kind in KINDS {
        let mut sampler = Sampler::start_with(&lab, kind, 64, INTERVAL, 900);
        let request = spawn_pending_request(&mut lab, &mut sampler);
        assert_eq!(sampler.probe.command(&format!("close {}", sampler.handle)).unwrap(), "ok", "{kind}");
        let ended = sampler.probe.join(request).unwrap();
        assert!(matches!(ended, Reply::Failed(ERROR_OPERATION_ABORTED | ERROR_INVALID_HANDLE)), "{kind}: {ended:?}");
        wait_until_idle(&mut lab);
        drop(sampler);
    }
    lab.finish().unwrap();
}
