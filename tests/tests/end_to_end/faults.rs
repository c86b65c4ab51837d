//! Calls of the kernel that can fail do so once with each call stack, in every kind of request. Nothing is left behind,
//! and the same request succeeds next.

use std::collections::BTreeMap;

use protocol::{Code, ErrorCode, Hello, PROTOCOL_VERSION, ReplyHeader};
use request_generator::{ADDED, SCENE_INTERVAL, SCENES, Scene, SceneClient, count_and_sample, queries};
use tests::{Lab, Probe, Reply, first_or_all, hex};
use zerocopy::IntoBytes;

use crate::life::header;
use crate::sampling::Sampler;

/// STATUS_MEMORY_NOT_ALLOCATED (ntstatus.h).
const STATUS_MEMORY_NOT_ALLOCATED: u32 = 0xC000_00A0;

/// More calls than a stop makes.
const MAX_CALLS: u64 = 300;

/// Number of processors, and of those that can be added.
const PROCESSORS: (u32, u32) = (2, 3);

/// From where on a call can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// Not at all.
    Nowhere,
    /// After the driver was loaded.
    Scene,
    /// Before the driver is loaded. Wine keeps its image if that fails, so that the processors cannot be replaced.
    Load,
}

/// A driver from its load to its unload, and a client with one handle.
struct Life<'a> {
    lab: &'a mut Lab,
    probe: &'a mut Probe,
    handle: u32,
    /// Status and error code of each request, in order. Empty in the first life, which records them.
    expected: Vec<(u32, u32)>,
    next: usize,
    /// Whether a request had another outcome than expected. It is sent again, once in a life.
    repeated: bool,
}

impl Life<'_> {
    /// Sends a request. If its outcome is not the expected one because a call of the kernel failed, sends it again.
    fn ask(&mut self, code: Code, input: &[u8]) -> (ReplyHeader, Vec<u8>) {
        let (reply, bytes) = self.send(code, input);
        let outcome = (reply.status, reply.cause);
        match self.expected.get(self.next) {
            None => self.expected.push(outcome),
            Some(expected) if *expected == outcome => {}
            Some(expected) => {
                let failed = self.lab.wire.failed_call().unwrap();
                let cause = ErrorCode::from_number(reply.cause);
                assert!(failed.is_some() && !self.repeated, "{code:?}: {outcome:x?} ({cause:?}), not {expected:x?}");
                let expected = *expected;
                self.repeated = true;
                let (reply, bytes) = self.send(code, input);
                let second = (reply.status, reply.cause);
                // An area that could not be freed is no longer the client's. The driver frees it later.
                let is_freed = code == Code::ControlArea && second.0 == STATUS_MEMORY_NOT_ALLOCATED;
                assert!(is_freed || second == expected, "{code:?} after {failed:?}: {second:x?}, first {cause:?}");
                self.next += 1;
                return (reply, bytes);
            }
        }
        self.next += 1;
        (reply, bytes)
    }

    fn send(&mut self, code: Code, input: &[u8]) -> (ReplyHeader, Vec<u8>) {
        let input = if input.is_empty() { "-".to_owned() } else { hex(input) };
        match self.probe.control(self.handle, code as u32, &input, "16384").unwrap() {
            Reply::Done(bytes) => (header(&bytes), bytes),
            // The driver could not answer at all, for example because it could not map the output.
            Reply::Failed(error) => (ReplyHeader { status: error, ..header(&[0; 48]) }, Vec::new()),
        }
    }

    /// Opens the device, again if that fails once.
    fn open(&mut self) {
        for _ in 0..2 {
            if let Ok(handle) = self.probe.open("").unwrap() {
                self.handle = handle;
                // Wine returns a handle although the driver refused to open it.
                let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
                if self.send(Code::Hello, hello.as_bytes()).0.status == 0 {
                    return;
                }
                self.close();
            }
        }
        panic!("the device does not open");
    }

    fn close(&mut self) {
        self.probe.command(&format!("close {}", self.handle)).unwrap();
    }

    /// Loads the driver, plays the scene and unloads the driver. From the given point on, a new stack fails.
    fn run(&mut self, scene: Scene, from: From) {
        if from != From::Load {
            let (active, maximum) = PROCESSORS;
            self.lab.wire.set_processors(active, maximum).unwrap();
        }
        (self.next, self.repeated) = (0, false);
        self.lab.wire.fail_new_stack(from == From::Load).unwrap();
        let loaded = self.probe.service("load", "halprof").unwrap();
        if self.lab.wire.failed_call().unwrap().is_some() {
            // The driver may have loaded with fewer abilities.
            if loaded.is_ok() {
                self.probe.service("unload", "halprof").unwrap().unwrap();
            }
            self.lab.check_clean().unwrap();
            self.probe.service("load", "halprof").unwrap().unwrap();
        } else {
            loaded.unwrap();
        }
        if from == From::Scene {
            self.lab.wire.fail_new_stack(true).unwrap();
        }
        self.open();
        scene(self);
        self.close();
        // What could not be given back is given back after the next session.
        if self.lab.wire.handler().unwrap().registration.is_some() || self.lab.wire.counters_reserved().unwrap() {
            self.open();
            count_and_sample(self);
            self.close();
        }
        self.probe.service("unload", "halprof").unwrap().unwrap();
    }
}

impl SceneClient for Life<'_> {
    fn ask(&mut self, code: Code, input: &[u8]) -> ReplyHeader {
        self.ask(code, input).0
    }

    fn open(&mut self) {
        self.open();
    }

    fn close(&mut self) {
        self.close();
    }

    /// TotalIssues is event 0xC0 on Intel's and AMD's processors.
    fn overflow(&mut self) {
        self.lab.wire.run(0, &[(0xC0, 0, SCENE_INTERVAL.into())], &[]).unwrap();
    }

    fn sleep(&mut self) {
        self.lab.wire.sleep().unwrap();
        self.lab.wire.wake(1).unwrap();
    }

    fn add_processor(&mut self) {
        self.lab.wire.add_processor().unwrap();
    }

    fn expire(&mut self, times: u64) {
        for processor in 0..PROCESSORS.0 {
            self.lab.wire.tick(processor, times).unwrap();
        }
    }

    fn branch(&mut self) {
        self.lab.wire.branch(0, false, 0x1000, 16, 100).unwrap();
    }
}

/// Takes the violations after a failure while a processor was added. The HAL has then refused to free the counters
/// before, or to reserve them again afterwards, and the sessions go on: the driver documents both.
fn check_reservation(lab: &mut Lab, function: &str) {
    for violation in lab.wire.violations().unwrap() {
        let text = violation.to_string();
        let is_known = match function {
            "HalFreeHardwareCounters" => text.ends_with("subtracts on processor 2, which has none"),
            _ => text.ends_with("starts a counter that is not reserved"),
        };
        assert!(is_known, "{function}: {text}");
    }
}

#[test]
fn a_failure_with_any_call_stack_leaves_nothing_behind_and_the_request_works_next() {
    for identity in first_or_all(&["haswell-4710mq", "zen4-7700x", "alder-lake-p-12900h"], 1) {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let mut probe = lab.probe().unwrap();
        probe.service("unload", "halprof").unwrap().unwrap();
        let mut failed: BTreeMap<String, u32> = BTreeMap::new();
        let (mut lives, mut requests) = (0, 0);
        let scenes = SCENES.into_iter().map(|(name, scene)| (name, scene, From::Scene));
        let load: (_, Scene, _) = ("load", queries, From::Load);
        for (name, scene, from) in scenes.chain([load]) {
            let mut life =
                Life { lab: &mut lab, probe: &mut probe, handle: 0, expected: Vec::new(), next: 0, repeated: false };
            life.run(scene, From::Nowhere);
            loop {
                life.run(scene, from);
                let function = life.lab.wire.failed_call().unwrap();
                life.lab.wire.fail_new_stack(false).unwrap();
                (lives, requests) = (lives + 1, requests + life.next);
                let Some(function) = function else { break };
                if name == ADDED {
                    check_reservation(life.lab, &function);
                }
                life.lab.check_clean().unwrap_or_else(|error| panic!("{identity}, {name}, {function}: {error:#}"));
                *failed.entry(function).or_default() += 1;
            }
        }
        println!(
            "{identity}: {} stacks in {lives} lives with {requests} requests: {failed:?}",
            failed.values().sum::<u32>()
        );
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
            ("KeSetTargetProcessorDpcEx", 2),
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
