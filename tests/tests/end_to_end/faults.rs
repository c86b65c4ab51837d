//! Each call of the kernel that can fail does so in turn, through a whole life of the driver: nothing is left behind,
//! and the next life works.

use std::collections::BTreeMap;

use protocol::{Code, SamplesRequest, SessionRequest};
use tests::{Lab, Probe, Reply, hex};
use zerocopy::IntoBytes;

use crate::life::{header, start_request};
use crate::sampling::start_sampling;

/// What a request was answered: whether it succeeded.
fn ask(probe: &mut Probe, handle: u32, code: Code, input: &str, room: usize) -> Option<[u64; 2]> {
    match probe.control(handle, code as u32, input, &room.to_string()).unwrap() {
        Reply::Done(bytes) => Some(header(&bytes)).filter(|header| header.status == 0).map(|header| header.detail),
        Reply::Failed(_) => None,
    }
}

/// Load, count, sample, fetch, stop, close, unload; each as far as the one before succeeded. Answers whether all did.
fn life(lab: &mut Lab, probe: &mut Probe) -> bool {
    if probe.service("load", "halprof").unwrap().is_err() {
        return false;
    }
    let done = probe.open("").unwrap().is_ok_and(|handle| {
        let done = lived(lab, probe, handle);
        probe.say(&format!("close {handle}")).unwrap();
        done
    });
    probe.service("unload", "halprof").unwrap().unwrap();
    done
}

fn lived(lab: &mut Lab, probe: &mut Probe, handle: u32) -> bool {
    let hello = protocol::Hello { version: protocol::PROTOCOL_VERSION, reserved: 0 };
    if ask(probe, handle, Code::Hello, &hex(hello.as_bytes()), 72).is_none() {
        return false;
    }
    // ProfileTime beside a counter.
    let counted = ask(probe, handle, Code::Start, &start_request(&[0, 6]), 4_096).is_some();
    let sampled = ask(probe, handle, Code::Start, &start_sampling(64, 10_000, 900), 4_096);
    lab.wire.run(0, &[(0xC0, 0, 10_000)], &[]).unwrap();
    lab.wire.sleep().unwrap();
    lab.wire.wake(1).unwrap();
    let Some([session, _]) = sampled else { return false };
    let wanted = hex(SamplesRequest { session, wait: 0, reserved: 0 }.as_bytes());
    let fetched = ask(probe, handle, Code::Samples, &wanted, 4_096).is_some();
    let read = ask(probe, handle, Code::Read, &hex(SessionRequest { session }.as_bytes()), 4_096).is_some();
    counted && fetched && read
}

#[test]
fn each_call_that_can_fail_fails_in_turn_and_nothing_is_left_behind() {
    // More than there are in a life.
    const MOST: u64 = 300;
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in ["haswell-4710mq", "zen4-7700x"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let mut probe = lab.probe().unwrap();
        probe.service("unload", "halprof").unwrap().unwrap();
        assert!(life(&mut lab, &mut probe), "{identity}: without a fault");
        let mut failed: BTreeMap<String, u32> = BTreeMap::new();
        let mut survived = false;
        for nth in 1..MOST {
            lab.wire.fail_call(Some(nth)).unwrap();
            let whole = life(&mut lab, &mut probe);
            let name = lab.wire.failed_call().unwrap();
            lab.wire.fail_call(None).unwrap();
            let Some(name) = name else {
                assert!(whole, "{identity}: nothing failed");
                survived = true;
                break;
            };
            if name == "HalSetSystemInformation" && lab.wire.images().unwrap().iter().any(|image| image == "halprof") {
                // It could not give the interrupt back, and stays.
                break;
            }
            lab.left_nothing().unwrap_or_else(|error| panic!("{identity}, {name} (call {nth}): {error:#}"));
            assert!(life(&mut lab, &mut probe), "{identity}, after {name} (call {nth}): the next life");
            *failed.entry(name).or_default() += 1;
        }
        println!("{identity}: {failed:?}");
        assert!(survived, "{identity}: there were more calls than {MOST}");
        for name in [
            "ExAllocatePool2",
            "ExCreateCallback",
            "ExRegisterCallback",
            "HalAllocateHardwareCounters",
            "HalSetSystemInformation",
            "IoAllocateWorkItem",
            "IoCreateDevice",
            "IoCreateSymbolicLink",
            "KeRegisterProcessorChangeCallback",
            "MmMapIoSpaceEx",
            "PsCreateSystemThread",
        ] {
            assert!(failed.contains_key(name), "{identity}: {name} did not fail; {failed:?}");
        }
        drop(probe);
        lab.client(&["uninstall"]).unwrap().success().unwrap();
    }
    lab.finish().unwrap();
}
