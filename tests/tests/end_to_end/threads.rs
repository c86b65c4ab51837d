//! The bench schedules the threads of an unmodified program on its processors, and stands in for Windows' thread
//! profiling. The test configures and programs the counters as a driver does.

use std::mem::offset_of;
use std::process::Child;

use bench_protocol::{Accounting, HandleTarget, Refusal, Scheduling, ThreadLedger, ThreadScript, UserRdpmc};
use protocol::{
    Code, Event, EventRequest, GroupReply, Hello, PROTOCOL_VERSION, ReplyHeader, StartHeader, flags, modes,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tests::{Lab, artifacts, hex, package, wait_until};
use zerocopy::{FromBytes, IntoBytes};

use crate::bench::code;

/// AMD's PerfEvtSel0 and PerfCtr0; an event in user mode, and in both modes.
const SELECT: u32 = 0xC001_0000;
const COUNTER: u32 = 0xC001_0004;
const USER: u64 = 0x41_00C0;
const BOTH: u64 = 0x43_00C0;

/// The event that the program executes.
const EVENT: u16 = 0xC0;

/// Reads an MSR on the current processor; see `lab/bench/faulty-driver/src/lib.rs`.
const READ: u32 = code(0x80B);

/// ERROR_ACCESS_DENIED.
const DENIED: u32 = 5;

/// A region of thread-counts.exe.
#[derive(Debug, Deserialize)]
struct Region {
    counts: Vec<u64>,
    executed: u64,
    switches: u64,
    cycles: u64,
}

/// A thread of thread-counts.exe.
#[derive(Debug, Deserialize)]
struct ThreadCounts {
    thread: u32,
    regions: Vec<Region>,
    profiles: [bool; 2],
}

/// Boots a machine without a driver. On each processor, counter 0 counts in user mode, and counter 1 in both.
fn boot(processors: u32) -> Lab {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.wire.set_processors(processors, processors).unwrap();
    for processor in 0..processors {
        for (counter, select) in (0..).zip([USER, BOTH]) {
            lab.wire.write_msr(processor, COUNTER + counter, u64::from(processor * 1_000_003)).unwrap();
            lab.wire.write_msr(processor, SELECT + counter, select).unwrap();
        }
    }
    lab.wire.configure_hardware_counters(&[0, 1]).unwrap();
    lab
}

/// Checks that nothing is left, and that Windows did what it may.
fn finish(mut lab: Lab) {
    lab.wire.configure_hardware_counters(&[]).unwrap();
    for processor in 0..lab.processors().unwrap() {
        for counter in 0..2 {
            lab.wire.write_msr(processor, SELECT + counter, 0).unwrap();
        }
    }
    lab.finish().unwrap();
}

fn program() -> String {
    artifacts().unwrap().join("thread-counts.exe").to_string_lossy().into_owned()
}

fn script(scheduling: Scheduling) -> ThreadScript {
    ThreadScript { scheduling, ..ThreadScript::default() }
}

/// Programs may execute RDPMC.
fn kind() -> Scheduling {
    Scheduling { rdpmc: UserRdpmc::Works, ..Scheduling::default() }
}

fn unkind(seed: u64) -> Scheduling {
    Scheduling { seed, preempt: 25, migrate: 50, interrupt: 20, delay: 10, ..kind() }
}

#[test]
fn counts_are_those_of_the_thread_whatever_happens_to_it() {
    const EVENTS: u64 = 1_000_000;
    const REGIONS: usize = 10;
    let mut lab = boot(4);
    for rdpmc in [UserRdpmc::Works, UserRdpmc::WorksInProfiledThreads] {
        let script = script(Scheduling { rdpmc, ..unkind(7) });
        let arguments = ["count", "3", &REGIONS.to_string(), &EVENTS.to_string()];
        let (ran, ledgers) = lab.run_scheduled(&program(), &script, &arguments).unwrap();
        let threads: Vec<ThreadCounts> = serde_json::from_str(&ran.success().unwrap().out).unwrap();
        assert_eq!(threads.len(), 3);
        for ThreadCounts { thread, regions, profiles } in threads {
            assert_eq!((regions.len(), profiles), (REGIONS, [true, false]));
            for region in &regions {
                assert_eq!(region.counts[0], region.executed, "{region:?}");
                assert!((EVENTS..EVENTS + 100).contains(&region.executed), "{region:?}");
                assert!(region.counts[1] >= region.executed + EVENTS, "{region:?}");
                assert!(region.cycles >= 2 * EVENTS, "{region:?}");
            }
            let ledger = ledgers.iter().find(|ledger| ledger.thread == thread).unwrap();
            let in_regions: u64 = regions.iter().map(|region| region.executed).sum();
            assert!(ledger.user(EVENT, 0) >= in_regions && ledger.kernel(EVENT, 0) >= 10 * EVENTS, "{ledger:?}");
            assert!(ledger.interrupts(EVENT, 0) > 0 && ledger.migrations > 0, "{ledger:?}");
            let switches: u64 = regions.iter().map(|region| region.switches).sum();
            assert!((1..=ledger.switches).contains(&switches), "{switches} of {ledger:?}");
        }
    }
    finish(lab);
}

#[test]
fn truncated_accounting_loses_events_that_full_accounting_has() {
    const EVENTS: u64 = 6_000_000_000;
    let mut lab = boot(2);
    for (accounting, lost) in [(Accounting::Full, 0), (Accounting::Truncated, 1 << 32)] {
        let script = script(Scheduling { accounting, ..kind() });
        let (ran, _) = lab.run_scheduled(&program(), &script, &["count", "1", "1", &EVENTS.to_string()]).unwrap();
        let threads: Vec<ThreadCounts> = serde_json::from_str(&ran.success().unwrap().out).unwrap();
        let region = &threads[0].regions[0];
        assert_eq!((region.counts[0] + lost, region.switches), (region.executed, 0), "{accounting:?}");
    }
    finish(lab);
}

#[test]
fn missing_functions_are_not_found_and_refused_calls_fail() {
    const FUNCTIONS: [&str; 4] =
        ["EnableThreadProfiling", "DisableThreadProfiling", "QueryThreadProfiling", "ReadThreadProfilingData"];
    let mut lab = boot(2);
    let missing = |out: &str| serde_json::from_str::<Value>(out).unwrap()["missing"].clone();
    let arguments = ["count", "1", "1", "1"];
    let alone = lab.wine().run(&program(), &arguments).unwrap().success().unwrap();
    assert_eq!(missing(&alone.out), json!(FUNCTIONS), "Wine has none of them");
    for function in FUNCTIONS {
        let script = ThreadScript { missing: vec![function.to_owned()], ..ThreadScript::default() };
        let (ran, _) = lab.run_scheduled(&program(), &script, &arguments).unwrap();
        assert_eq!(missing(&ran.success().unwrap().out), json!([function]));
    }
    for function in ["EnableThreadProfiling", "ReadThreadProfilingData"] {
        let refusals = vec![Refusal { function: function.to_owned(), error: DENIED, times: 1 }];
        let script = ThreadScript { refusals, ..script(kind()) };
        let (ran, _) = lab.run_scheduled(&program(), &script, &arguments).unwrap();
        assert_eq!((ran.code, ran.err.as_str()), (1, &*format!("thread-counts: {function} failed with {DENIED}\n")));
    }
    finish(lab);
}

#[test]
fn a_program_that_executes_rdpmc_ends_as_on_windows() {
    let mut lab = boot(2);
    for rdpmc in [UserRdpmc::Faults, UserRdpmc::WorksOnProcessor0] {
        let script = script(Scheduling { rdpmc, preempt: 50, migrate: 100, ..Scheduling::default() });
        let (ran, _) = lab.run_scheduled(&program(), &script, &["count", "1", "50", "1000"]).unwrap();
        // Wine's debugger decides about the exit code.
        assert_ne!(ran.code, 0, "{rdpmc:?}: {}", ran.out);
        assert!(ran.err.contains("Unhandled privileged instruction"), "{rdpmc:?}: {}", ran.err);
        assert!(ran.err.contains("RDPMC in user mode, and CR4.PCE is clear"), "{}", ran.err);
    }
    finish(lab);
}

/// Returns a field of THREAD_PERFORMANCE_DATA, printed in hexadecimal.
fn field(memory: &Value, at: usize) -> u64 {
    let digits = &memory.as_str().unwrap()[2 * at..2 * at + 16];
    u64::from_str_radix(digits, 16).unwrap().swap_bytes()
}

#[test]
fn the_lab_writes_the_memory_of_a_profile_as_windows_does() {
    const EVENTS: u64 = 1_000;
    let mut lab = boot(2);
    lab.load("faulty-driver").unwrap();
    lab.wire.violations().unwrap();
    let read = format!("ioctl:{READ}:{}:8", hex([COUNTER, 0].as_bytes()));
    let execute = format!("execute:{EVENTS}");
    let steps = ["pin:1", "profile:3", "memory", &read, "memory", &execute, "pin:0", "memory", &read, "memory"];
    let calm = Scheduling { overhead: 0, kernel: 0, others: 0, ..Scheduling::default() };
    let (seen, _) = take(&mut lab, calm, r"\\.\faultydriver", &steps.map(String::from));
    let (first, last) = (&seen[4], &seen[9]);
    assert_eq!((&seen[2], &seen[7]), (first, last), "nothing was switched during the requests");
    assert_eq!([first, last].map(|memory| field(memory, 0)), [0x0001_01C0 | 1 << 48, 0x0001_01C0], "the processor");
    assert_eq!([first, last].map(|memory| field(memory, 8)), [2 << 32, 1 | 2 << 32], "switches, counters");
    assert!(field(last, 0x10) > field(first, 0x10), "updates");
    assert_eq!(field(last, 0x20), 0b11);
    let raw = |reply: &Value| u64::from_str_radix(&reply.as_str().unwrap()[..16], 16).unwrap().swap_bytes();
    let value = |memory: &Value, reply: &Value| field(memory, 0x50) + raw(reply) - field(memory, 0x48);
    assert_eq!(value(last, &seen[8]) - value(first, &seen[3]), EVENTS);
    lab.unload("faulty-driver").unwrap();
    finish(lab);
}

#[test]
fn a_selftest_of_threads_ends_with_an_answer_whatever_the_handle_points_to() {
    let client = package().unwrap().join("client.exe").to_string_lossy().into_owned();
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_processors(2, 2).unwrap();
    lab.install().unwrap();
    for (rdpmc, handle, reason) in [
        (UserRdpmc::Works, HandleTarget::Nothing, None),
        (UserRdpmc::Faults, HandleTarget::PerformanceData, None),
        (UserRdpmc::Faults, HandleTarget::Nothing, Some("does not point to memory")),
        (UserRdpmc::Faults, HandleTarget::Unreadable, Some("does not point to memory")),
        (UserRdpmc::Faults, HandleTarget::Garbage, Some("Size is 0xa5a5 instead of 0x1c0")),
    ] {
        let script = script(Scheduling { rdpmc, handle, ..Scheduling::default() });
        let (ran, _) = lab.run_scheduled(&client, &script, &["selftest", "--threads", "--json"]).unwrap();
        // The loops of the client execute nothing on the model, so no test of counts passes.
        assert_eq!(ran.code, 28, "{rdpmc:?} {handle:?}: {}{}", ran.out, ran.err);
        let json: Value = serde_json::from_str(&ran.out).unwrap();
        let checks = json["checks"].as_array().unwrap().iter();
        let of_threads: Vec<&Value> = checks.filter(|check| check["name"] == "instructions, thread").collect();
        let [check] = of_threads[..] else { panic!("{json}") };
        match reason {
            None => assert!(check["measured"].is_number(), "{rdpmc:?} {handle:?}: {check}"),
            Some(reason) => {
                let text = check["reason"].as_str().unwrap_or_default();
                assert!(check["verdict"] == "untested" && text.contains(reason), "{handle:?}: {check}");
            }
        }
        assert_eq!(json["verified_threads"], Value::Null);
        assert!(lab.wire.hardware_counters().unwrap().owner.is_none());
    }
    lab.finish().unwrap();
}

/// Takes steps of thread-counts.exe on a device. Returns what each printed, and the ledgers.
fn take(lab: &mut Lab, scheduling: Scheduling, device: &str, steps: &[String]) -> (Vec<Value>, Vec<ThreadLedger>) {
    let arguments: Vec<&str> = ["steps", device].into_iter().chain(steps.iter().map(String::as_str)).collect();
    let (ran, ledgers) = lab.run_scheduled(&program(), &script(scheduling), &arguments).unwrap();
    (serde_json::from_str(&ran.success().unwrap().out).unwrap(), ledgers)
}

#[test]
fn requests_arrive_on_the_processor_of_the_calling_thread() {
    let mut lab = boot(4);
    lab.load("faulty-driver").unwrap();
    lab.wire.violations().unwrap(); // one of its imports; see `bench.rs`
    for processor in 0..4 {
        lab.wire.write_msr(processor, COUNTER + 3, u64::from(100 + processor)).unwrap();
    }
    let read = format!("ioctl:{READ}:{}:8", hex([COUNTER + 3, 0].as_bytes()));
    let steps: Vec<String> = (0..4).flat_map(|processor| [format!("pin:{processor}"), read.clone()]).collect();
    let (seen, ledgers) = take(&mut lab, unkind(3), r"\\.\faultydriver", &steps);
    let reply = |processor: u32| hex([100 + processor, 0].as_bytes());
    let expected: Vec<Value> = (0..4).flat_map(|processor| [json!([processor, 4]), json!(reply(processor))]).collect();
    assert_eq!(seen, expected);
    let kernel: u64 = ledgers.iter().map(|ledger| ledger.kernel(EVENT, 0)).sum();
    assert!(kernel > 0, "system calls execute events in kernel mode: {ledgers:?}");
    lab.unload("faulty-driver").unwrap();
    finish(lab);
}

/// Starts a program with a thread that profiles, and waits until it does.
fn leave(lab: &mut Lab, arguments: &[&str]) -> Child {
    let profiles = |lab: &mut Lab, _: &str| lab.wire.hardware_counters().unwrap().profiling > 0;
    lab.scheduled_running(&program(), &script(unkind(1)), arguments, "it does not profile", profiles).unwrap()
}

#[test]
fn a_profile_ends_with_its_program() {
    let mut lab = boot(2);
    for kill in [true, false] {
        let mut child = leave(&mut lab, &["leave", "1000"]);
        assert!(lab.wire.configure_hardware_counters(&[]).is_err());
        if kill {
            child.kill().unwrap();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        wait_until("the thread still profiles", || lab.wire.hardware_counters().unwrap().profiling == 0);
        let ledgers = lab.wire.take_ledgers().unwrap();
        assert!(ledgers.iter().any(|ledger| ledger.user(EVENT, 0) >= 1000), "{ledgers:?}");
    }
    finish(lab);
}

/// TotalIssues, which is event C0.
const INSTRUCTIONS: u64 = 2;

/// Steps that start instructions in user mode on all processors, and keep the session.
fn start(flags: u32) -> Vec<String> {
    let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
    let header = StartHeader { flags, ..StartHeader::EMPTY };
    let event = EventRequest { event: Event::of(INSTRUCTIONS), modes: modes::USER, ..EventRequest::EMPTY };
    let request = hex(&[header.as_bytes(), event.as_bytes()].concat());
    vec![
        format!("ioctl:{}:{}:72", Code::Hello as u32, hex(hello.as_bytes())),
        format!("ioctl:{}:{request}:4096", Code::Start as u32),
        format!("keep:{}", offset_of!(ReplyHeader, detail)),
    ]
}

fn group(reply: &Value) -> GroupReply {
    let bytes: Vec<u8> = reply
        .as_str()
        .unwrap()
        .as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect();
    GroupReply::read_from_bytes(&bytes).unwrap_or_else(|_| panic!("{:?}", ReplyHeader::read_from_prefix(&bytes)))
}

#[test]
fn the_driver_reads_a_group_on_the_processor_of_the_thread() {
    const EVENTS: u64 = 12_345;
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.wire.set_processors(4, 4).unwrap();
    lab.install().unwrap();
    let read = format!("ioctl:{}:*0000000000000000:336", Code::ReadGroup as u32);
    let mut steps = start(0);
    let first = steps.len();
    for processor in 0..4 {
        let region = [format!("pin:{processor}"), read.clone(), format!("execute:{EVENTS}"), read.clone()];
        steps.extend(region);
    }
    let calm = Scheduling { overhead: 0, interrupt: 50, ..Scheduling::default() };
    let (seen, _) = take(&mut lab, calm, r"\\.\halprof", &steps);
    for (processor, region) in (0..).zip(seen[first..].chunks(4)) {
        let (before, after) = (group(&region[1]), group(&region[3]));
        assert_eq!([before.header.processor, after.header.processor], [processor; 2]);
        assert_eq!(after.counts[0] - before.counts[0], EVENTS, "kernel mode and other processors are not counted");
        assert_eq!(after.generation, before.generation);
    }
    lab.finish().unwrap();
}

#[test]
fn the_driver_configures_counters_that_windows_switches_with_the_thread() {
    const EVENTS: u64 = 54_321;
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.wire.set_processors(4, 4).unwrap();
    lab.install().unwrap();
    let mut steps = start(flags::THREADS);
    steps.extend(["profile:1", "read", "ledger", &format!("execute:{EVENTS}"), "read", "ledger"].map(String::from));
    let (seen, _) = take(&mut lab, unkind(5), r"\\.\halprof", &steps);
    let [first, known, _, last, executed] = &seen[seen.len() - 5..] else { panic!("{seen:?}") };
    let number = |value: &Value| value.as_u64().unwrap();
    let counted = number(&last[0][0]) - number(&first[0][0]);
    assert_eq!(counted, number(executed) - number(known));
    assert!((EVENTS..EVENTS + 100).contains(&counted), "{counted}");
    lab.finish().unwrap();
}

/// Starts a program that takes these steps and then hangs, and waits until it does.
fn hanging(lab: &mut Lab, steps: &[String]) -> Child {
    let arguments = ["steps", r"\\.\halprof"].into_iter().chain(steps.iter().map(String::as_str)).chain(["hang"]);
    let arguments: Vec<&str> = arguments.collect();
    let hangs = |_: &mut Lab, said: &str| said.trim_end() == "hanging";
    lab.scheduled_running(&program(), &script(unkind(1)), &arguments, &format!("after {steps:?}"), hangs).unwrap()
}

#[test]
fn a_program_that_ends_after_any_call_leaves_no_configuration() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    let read = format!("ioctl:{}:*0000000000000000:336", Code::ReadGroup as u32);
    let mut steps = start(flags::THREADS);
    steps.extend(["profile:1", &read, "read", "execute:1000", "read", &read].map(String::from));
    let whole = steps.len();
    for (taken, kill) in (0..=whole).map(|taken| (taken, true)).chain([(whole, false)]) {
        let mut child = hanging(&mut lab, &steps[..taken]);
        let is_configured = lab.wire.hardware_counters().unwrap().owner.is_some();
        assert_eq!(is_configured, taken >= 2, "after {taken} calls");
        if kill {
            child.kill().unwrap();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        wait_until(&format!("the configuration stays after {taken} calls"), || {
            lab.wire.hardware_counters().unwrap().owner.is_none() && lab.enabled_counters().unwrap() == 0
        });
    }
    lab.finish().unwrap();
}

#[test]
fn a_sleep_of_the_machine_is_seen_in_the_interrupt_time() {
    let mut lab = boot(2);
    lab.load("faulty-driver").unwrap();
    lab.wire.violations().unwrap();
    let steps = ["asleep".to_owned()];
    let asleep = |lab: &mut Lab| take(lab, Scheduling::default(), r"\\.\faultydriver", &steps).0[0].as_u64().unwrap();
    let before = asleep(&mut lab);
    lab.wire.sleep().unwrap();
    lab.wire.wake(5_000).unwrap();
    assert!((4_000..6_000).contains(&(asleep(&mut lab) - before)));
    lab.unload("faulty-driver").unwrap();
    finish(lab);
}
