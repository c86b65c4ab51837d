//! Each kernel call that can fail does so in turn during a life cycle of the driver. Nothing is left behind, and the
//! next life cycle succeeds.

use std::collections::BTreeMap;

use protocol::{ALL_SOURCES, Code, SamplesRequest, SessionRequest, StopRequest};
use tests::{Lab, Probe, Reply, first_or_all, hex, is_soak};
use zerocopy::IntoBytes;

use crate::life::{header, start_request};
use crate::sampling::{Sampler, start_sampling, start_sampling_source};

/// Sends a request and returns the detail of its answer if it succeeded.
fn ask(probe: &mut Probe, handle: u32, code: Code, input: &str, room: usize) -> Option<[u64; 2]> {
    match probe.control(handle, code as u32, input, &room.to_string()).unwrap() {
        Reply::Done(bytes) => Some(header(&bytes)).filter(|header| header.status == 0).map(|header| header.detail),
        Reply::Failed(_) => None,
    }
}

/// Loads, counts, samples, fetches, stops, closes and unloads, each step only if the previous one succeeded. Returns
/// whether all did.
///
/// If unregistering the interrupt handler fails, a second session repeats it.
fn run_life_cycle(lab: &mut Lab, probe: &mut Probe) -> bool {
    if probe.service("load", "halprof").unwrap().is_err() {
        return false;
    }
    let mut complete = open_and_use(lab, probe);
    if lab.wire.handler().unwrap().registration.is_some() {
        complete = false;
        assert!(open_and_use(lab, probe), "the session after one that could not give the interrupt back");
    }
    probe.service("unload", "halprof").unwrap().unwrap();
    complete
}

fn open_and_use(lab: &mut Lab, probe: &mut Probe) -> bool {
    probe.open("").unwrap().is_ok_and(|handle| {
        let done = use_device(lab, probe, handle);
        probe.command(&format!("close {handle}")).unwrap();
        done
    })
}

fn use_device(lab: &mut Lab, probe: &mut Probe, handle: u32) -> bool {
    let hello = protocol::Hello { version: protocol::PROTOCOL_VERSION, reserved: 0 };
    if ask(probe, handle, Code::Hello, &hex(hello.as_bytes()), 72).is_none() {
        return false;
    }
    // Not the registers of a processor: how many calls that takes depends on the processor of this thread.
    let asked = ask(probe, handle, Code::ListHalSources, "-", 4_096).is_some();
    // ProfileTime and a source that needs a counter; then samples by time and by a counter.
    let counted = ask(probe, handle, Code::Start, &start_request(&[0, 6]), 4_096).is_some();
    let timed = ask(probe, handle, Code::Start, &start_sampling_source(0, 64, 10_000, 900), 4_096).is_some();
    lab.wire.tick(0, 1).unwrap();
    let sampled = ask(probe, handle, Code::Start, &start_sampling(64, 10_000, 900), 4_096);
    lab.wire.run(0, &[(0xC0, 0, 10_000)], &[]).unwrap();
    lab.wire.sleep().unwrap();
    lab.wire.wake(1).unwrap();
    let Some([session, _]) = sampled else { return false };
    let wanted = hex(SamplesRequest { session, wait: 0, reserved: 0 }.as_bytes());
    let fetched = ask(probe, handle, Code::Samples, &wanted, 4_096).is_some();
    let read = ask(probe, handle, Code::Read, &hex(SessionRequest { session }.as_bytes()), 4_096).is_some();
    let stop = hex(StopRequest { session, source: ALL_SOURCES, core_type: 0 }.as_bytes());
    let stopped = ask(probe, handle, Code::Stop, &stop, 4_096).is_some();
    asked && counted && timed && fetched && read && stopped
}

/// More calls than a life cycle makes.
const MAX_CALLS: u64 = 300;

#[test]
fn a_failure_of_any_kernel_call_leaves_nothing_behind() {
    for identity in first_or_all(&["haswell-4710mq", "zen4-7700x", "alder-lake-p-12900h"], 1) {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let mut probe = lab.probe().unwrap();
        probe.service("unload", "halprof").unwrap().unwrap();
        assert!(run_life_cycle(&mut lab, &mut probe), "{identity}: without a fault");
        let mut failed: BTreeMap<String, u32> = BTreeMap::new();
        let mut last = None;
        for nth in 1..MAX_CALLS {
            lab.wire.fail_call(Some(nth)).unwrap();
            let complete = run_life_cycle(&mut lab, &mut probe);
            let name = lab.wire.failed_call().unwrap();
            lab.wire.fail_call(None).unwrap();
            let Some(name) = name else {
                last = Some(complete);
                break;
            };
            lab.check_clean().unwrap_or_else(|error| panic!("{identity}, {name} (call {nth}): {error:#}"));
            let times = failed.entry(name.clone()).or_default();
            *times += 1;
            // One check per function is enough outside the soak: `check_clean` has already found anything left behind.
            if *times == 1 || is_soak() {
                assert!(run_life_cycle(&mut lab, &mut probe), "{identity}, after {name} (call {nth}): the next life");
            }
        }
        assert_eq!(last, Some(true), "{identity}: in the end nothing failed");
        for (name, least) in [
            ("ExAllocatePool2", 20),
            ("ExCreateCallback", 1),
            ("ExRegisterCallback", 1),
            ("HalAllocateHardwareCounters", 1),
            ("HalFreeHardwareCounters", 1),
            ("HalSetSystemInformation", 2), // registering and unregistering
            ("IoAllocateWorkItem", 2),
            ("IoCreateDevice", 1),
            ("IoCreateSymbolicLink", 1),
            ("KeRegisterProcessorChangeCallback", 1),
            ("KeSetTargetProcessorDpcEx", 4),
            ("MmMapIoSpaceEx", 1),
            ("MmMapLockedPagesSpecifyCache", 1),
            ("ObReferenceObjectByHandle", 1),
            ("PsCreateSystemThread", 1),
        ] {
            assert!(failed.get(name).is_some_and(|times| *times >= least), "{identity}: {name}, of {failed:?}");
        }
        drop(probe);
        lab.check_clean().unwrap();
        // Wine keeps the file of a driver after a failed DriverEntry, so the bench is not reused.
    }
}

#[test]
fn a_driver_stays_loaded_while_the_hal_calls_its_handler() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    for nth in 1..MAX_CALLS {
        let mut sampler = Sampler::start(&lab, 64, 10_000, 900);
        lab.wire.fail_call(Some(nth)).unwrap();
        sampler.stop();
        drop(sampler);
        let failed = lab.wire.failed_call().unwrap();
        lab.wire.fail_call(None).unwrap();
        if failed.as_deref() == Some("HalSetSystemInformation") {
            break;
        }
    }
    assert!(lab.wire.handler().unwrap().registration.is_some());
    // Not with the client, which waits for ten seconds before it reports the failure.
    lab.wine().run("sc", &["stop", "halprof"]).unwrap();
    assert!(lab.wire.images().unwrap().iter().any(|image| image.starts_with("halprof")), "its code is still there");
    // Wine can no longer stop the driver, so the bench is not reused.
}
