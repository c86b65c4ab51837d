//! The bench itself: what it must allow and what it must report at the IRQL of the profile interrupt. The driver is
//! faulty-driver.sys, which breaks rules on request.

use std::time::Duration;

use bench_protocol::{InterruptSite, Violation};
use tests::{Lab, Probe, Reply, hex, wait_until};
use zerocopy::IntoBytes;

use crate::interrupt_sites::totals;

/// Control codes of the faulty driver, from their function numbers.
pub const fn code(function: u32) -> u32 {
    0x8000 << 16 | function << 2
}

pub const BEGIN: u32 = code(0x800);
pub const REPORT: u32 = code(0x801);
pub const END: u32 = code(0x802);
const PEND: u32 = code(0x803);
const BREAK_COMPLETION: u32 = code(0x804);

/// Its actions at HIGH_LEVEL: the functions that each calls above their maximum IRQLs, and these IRQLs.
const ACTIONS: [&[(&str, u8)]; 10] = [
    &[],
    &[("ExAllocatePool2", 2), ("ExFreePool", 2)],
    &[("KeSetEvent", 2)],
    &[("KeAcquireSpinLockRaiseToDpc", 2)],
    &[("DbgPrint", 12)],
    &[("KeWaitForSingleObject", 2)],
    &[("IofCompleteRequest", 2)],
    &[("HalSetSystemInformation", 0)],
    &[("KeIpiGenericCall", 13)],
    &[("ExAcquireFastMutex", 1)],
];

const HIGH_LEVEL: u8 = 15;

/// Number of events until its counter overflows.
const PERIOD: u64 = 1_000_000;

/// The action that completes a request.
const COMPLETE_PENDING: usize = 6;

/// A machine with the faulty driver loaded and its device open.
pub struct Bench {
    pub lab: Lab,
    probe: Probe,
    handle: u32,
}

impl Bench {
    pub fn start() -> Self {
        Self::start_on("amd-legacy", |_| {})
    }

    /// Starts on a machine of this identity, which `prepare` sets up before the faulty driver is loaded.
    pub fn start_on(identity: &str, prepare: impl FnOnce(&mut Lab)) -> Self {
        let mut lab = Lab::boot(identity).unwrap();
        prepare(&mut lab);
        lab.load("faulty-driver").unwrap();
        let unknown =
            "faulty-driver.sys imports IoGetCurrentProcess, which has an IRQL limit that the lab does not know";
        assert_eq!(lab.wire.violations().unwrap(), [Violation::Other(unknown.to_owned())]);
        let mut probe = lab.probe().unwrap();
        let handle = probe.open("\\\\.\\faultydriver").unwrap().unwrap();
        Self { lab, probe, handle }
    }

    pub fn ask(&mut self, code: u32, input: &[u32], output: usize) -> Vec<u32> {
        let input = if input.is_empty() { "-".to_owned() } else { hex(input.as_bytes()) };
        match self.probe.control(self.handle, code, &input, &(4 * output).to_string()).unwrap() {
            Reply::Done(bytes) => {
                bytes.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
            }
            Reply::Failed(error) => panic!("{code:#x} {input} failed: {error}"),
        }
    }

    /// Raises an interrupt on a processor.
    pub fn interrupt(&mut self, processor: u32) {
        self.lab.wire.run(processor, &[(0xC0, 0, PERIOD)], &[]).unwrap();
    }

    fn violations(&mut self) -> Vec<Violation> {
        self.lab.wire.violations().unwrap()
    }

    /// Returns the violations since the last call, as text.
    pub fn new_violations(&mut self) -> Vec<String> {
        self.violations().iter().map(ToString::to_string).collect()
    }

    /// Unloads a driver that leaves something behind, and returns the violations.
    pub fn unload(self) -> Vec<String> {
        let Self { mut lab, probe, .. } = self;
        drop(probe);
        lab.unload("faulty-driver").unwrap();
        let noticed = lab.wire.violations().unwrap().iter().map(ToString::to_string).collect();
        lab.finish().unwrap();
        noticed
    }

    pub fn finish(self) {
        assert_eq!(self.unload(), [""; 0]);
    }
}

fn level(function: &str, level: u8, allowed: u8) -> Violation {
    Violation::Level { function: function.to_owned(), level, allowed }
}

#[test]
fn a_handler_gets_the_interrupted_state_and_its_dpc_runs_on_its_processor() {
    let mut bench = Bench::start();
    bench.ask(BEGIN, &[0, 0], 0);
    // Each interrupt is on another processor than the one before, so that the report shows when its DPC has run. A DPC
    // that is still queued is not queued again.
    for (processor, user) in [(0, false), (1, true), (0, true), (1, false)] {
        let place = InterruptSite {
            ip: 0x1234_5678 + u64::from(processor),
            user,
            process: 40 + processor,
            thread: 50,
            weight: 1,
        };
        bench.lab.wire.set_interrupt_sites(processor, &[place]).unwrap();
        bench.interrupt(processor);
        let mut report = Vec::new();
        wait_until("the DPC does not run", || {
            report = bench.ask(REPORT, &[], 9);
            report[7..9] == [processor, 2]
        });
        let cs = if user { 0x33 } else { 0x10 };
        let expected = [0x1234_5678 + processor, cs, 40 + processor, 50, processor, 15, processor, 2];
        assert_eq!(report[1..], expected, "{place:?}");
    }
    assert_eq!(bench.ask(REPORT, &[], 9)[0], 4, "interrupts");
    bench.ask(END, &[], 2);
    bench.interrupt(0);
    assert_eq!(bench.ask(REPORT, &[], 9)[0], 4, "no more");
    assert_eq!(bench.violations(), []);
    bench.finish();
}

#[test]
fn only_calls_that_high_level_forbids_are_reported() {
    let mut bench = Bench::start();
    for (action, functions) in (0_u32..).zip(ACTIONS) {
        let pending = (action as usize == COMPLETE_PENDING)
            .then(|| bench.probe.spawn_request(bench.handle, PEND, "-", "0").unwrap())
            .inspect(|_| wait_until("nothing pends", || bench.lab.wire.pending_requests().unwrap() == 1));
        bench.ask(BEGIN, &[action, 0], 0);
        bench.interrupt(1);
        let expected: Vec<Violation> =
            functions.iter().map(|(function, allowed)| level(function, HIGH_LEVEL, *allowed)).collect();
        // Actions that change the IRQL may cause further violations.
        assert_eq!(bench.violations()[..expected.len()], expected, "action {action}");
        bench.ask(END, &[], 2);
        bench.violations();
        if let Some(pending) = pending {
            assert_eq!(bench.probe.join(pending).unwrap(), Reply::Done(vec![]));
        }
    }
    bench.finish();
}

#[test]
fn violations_of_the_completion_rules_are_reported() {
    let mut bench = Bench::start();
    let rules = [
        "was reported as pending and not marked pending",
        "was marked pending and not reported as pending",
        "was completed and can still be cancelled",
        "a request failed with 0xc0000001 and 4 bytes of information",
        "IofCompleteRequest of a request that the driver does not have",
        "was completed with STATUS_PENDING",
    ];
    for (rule, what) in (0_u32..).zip(rules) {
        let request = bench.probe.spawn_request(bench.handle, BREAK_COMPLETION, &hex(rule.as_bytes()), "4").unwrap();
        let mut violations = Vec::new();
        wait_until(what, || {
            violations = bench.violations();
            !violations.is_empty()
        });
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        assert!(first.ends_with(what), "{rule}: {violations:?}");
        if rule < 5 {
            bench.probe.join(request).unwrap();
        }
    }
    let Bench { mut lab, probe, .. } = bench;
    drop(probe);
    lab.unload("faulty-driver").unwrap();
    lab.wire.violations().unwrap();
    lab.finish().unwrap();
}

#[test]
fn keipigenericcall_returns_when_no_unregistered_handler_runs() {
    let mut bench = Bench::start();
    bench.lab.run_in_real_time().unwrap();
    let mut before = 0;
    // A slow handler runs most of the time even on a busy machine.
    wait_until("the handler does not run when it is unregistered", || {
        bench.ask(BEGIN, &[0, 20], 0);
        std::thread::sleep(Duration::from_millis(20));
        let ran = bench.ask(END, &[], 2);
        before += ran[0];
        assert_eq!(ran[1], 0, "after the call");
        before >= 5
    });
    bench.lab.run_by_script().unwrap();
    bench.finish();
}

#[test]
fn freeing_memory_that_a_handler_may_still_use_is_reported() {
    let mut bench = Bench::start();
    for (early, noticed) in [(0, 0), (1, 1), (0, 0)] {
        bench.ask(BEGIN, &[0, 0], 0);
        bench.ask(END, &[early], 2);
        let violations = bench.new_violations();
        assert_eq!(violations.len(), noticed, "{violations:?}");
        assert!(violations.iter().all(|text| text.contains("ExFreePool before a call on all processors")));
    }
    bench.finish();
}

#[test]
fn a_processor_with_a_slow_handler_falls_behind_and_reports_the_skipped_time() {
    // One processor: with slow handlers on both, nothing else would run.
    let mut bench = Bench::start_on("amd-legacy", |lab| lab.wire.set_processors(1, 1).unwrap());
    assert_eq!(bench.lab.wire.skipped().unwrap(), [0]);
    bench.lab.run_in_real_time().unwrap();
    // The handler takes 3 ms, and an overflow occurs every 0.3 ms.
    bench.ask(BEGIN, &[0, 3], 0);
    wait_until("a processor does not fall behind", || !bench.lab.wire.skipped().unwrap().contains(&0));
    bench.ask(END, &[], 2);
    bench.lab.run_by_script().unwrap();
    let skipped = bench.lab.wire.skipped().unwrap();
    let delivered = bench.lab.wire.handler().unwrap().delivered;
    for (processor, ledger) in bench.lab.wire.ledger().unwrap().iter().enumerate() {
        let [_, overflows, interrupts] = totals(ledger);
        assert!(skipped[processor] > 0, "processor {processor}: {overflows}");
        assert_eq!(interrupts, overflows, "processor {processor}");
        assert!(overflows - delivered[processor] <= 1, "processor {processor}: one may have come after the end");
    }
    bench.finish();
}
