//! The bench behaves like Windows and the processor, and reports violations that would crash them. The driver is
//! faulty-driver.sys, as in `bench.rs`.

use std::time::Duration;

use bench_protocol::{Accesses, CounterOwner, HardwareCounters};
use tests::{Lab, wait_until};

use crate::bench::{BEGIN, Bench, END, REPORT, code};

const POWER: u32 = code(0x805);
const POWER_REPORT: u32 = code(0x806);
const PROCESSOR_CHANGE: u32 = code(0x807);
const PROCESSOR_CHANGE_REPORT: u32 = code(0x808);
const APIC: u32 = code(0x809);
const WRITE: u32 = code(0x80A);
const READ: u32 = code(0x80B);
const RESERVE: u32 = code(0x80C);
const MACHINE: u32 = code(0x80D);
const CALLS: u32 = code(0x80E) | 2;
const CALLS_REPORT: u32 = code(0x80F);
const LEAK: u32 = code(0x810);
const CONFIGURE: u32 = code(0x811);
const CONFIGURATION: u32 = code(0x812);

/// Control codes and inputs of the faulty driver; see its `lib.rs`.
const REGISTER: u32 = 0;
const UNREGISTER: u32 = 1;
const OPEN: u32 = 2;
const OPEN_OTHER: u32 = 3;
const NO_FLAGS: u32 = 0;
const ADD_EXISTING: u32 = 1;
const UNREGISTER_PROCESSOR_CHANGE: u32 = u32::MAX;
const MAP: u32 = 0;
const ENTRIES: u32 = 1;
const SET_ENTRIES: u32 = 2;
const UNMAP: u32 = 3;
const END_OF_INTERRUPT: u32 = 4;
const READ_WIDE: u32 = 5;
const MAP_WRONGLY: u32 = 6;
const ACQUIRE: u32 = 0;
const FREE: u32 = 1;
const INSECURE: u32 = 1;
const WORK_ITEM: u32 = 0;
const THREAD: u32 = 1;
const QUEUE_TOO_LATE: u32 = 2;

/// STATUS_UNSUCCESSFUL, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_INSUFFICIENT_RESOURCES, STATUS_DEVICE_BUSY,
/// STATUS_INVALID_PARAMETER, STATUS_BUFFER_TOO_SMALL, STATUS_WMI_ALREADY_ENABLED.
const UNSUCCESSFUL: u32 = 0xC000_0001;
const NOT_FOUND: u32 = 0xC000_0034;
const INSUFFICIENT: u32 = 0xC000_009A;
const BUSY: u32 = 0x8000_0011;
const INVALID: u32 = 0xC000_000D;
const TOO_SMALL: u32 = 0xC000_0023;
const ALREADY_ENABLED: u32 = 0xC000_0302;

/// AMD's PerfEvtSel0 and PerfCtr0, and an event.
const SELECT: u32 = 0xC001_0000;
const COUNTER: u32 = 0xC001_0004;
const SELECTED: u32 = 0x43_00C0;

const NOTHING: [&str; 0] = [];

impl Bench {
    /// Returns the performance counter and the interrupt time in milliseconds, the active and the maximum number of
    /// processors, and a bit for each processor on which KeIpiGenericCall ran.
    fn machine(&mut self) -> [u32; 5] {
        self.ask(MACHINE, &[], 5).try_into().unwrap()
    }

    /// Returns the number of handler calls.
    fn handler_calls(&mut self) -> u32 {
        self.ask(REPORT, &[], 9)[0]
    }

    fn entries(&mut self) -> Vec<u32> {
        self.ask(APIC, &[ENTRIES], 8)
    }

    /// Returns the calls of the processor change callback: stage, index, number, active processors and IRQL as digits,
    /// and the status.
    fn processor_changes(&mut self) -> Vec<(u32, u32)> {
        let report = self.ask(PROCESSOR_CHANGE_REPORT, &[], 33);
        let calls = report[1..].chunks_exact(2).map(|call| (call[0], call[1]));
        calls.take(report[0] as usize).collect()
    }
}

#[test]
fn power_callbacks_are_called_at_dispatch_level_around_a_sleep() {
    let mut bench = Bench::start();
    assert_eq!(bench.ask(POWER, &[REGISTER], 1), [0]);
    let before = bench.machine();
    bench.lab.wire.sleep().unwrap();
    assert_eq!(bench.ask(POWER_REPORT, &[], 4), [1, 3, 0, 2]);
    assert!(bench.lab.wire.sleep().is_err(), "it sleeps");
    bench.lab.wire.wake(60_000).unwrap();
    assert_eq!(bench.ask(POWER_REPORT, &[], 4), [2, 3, 1, 2]);
    assert!(bench.lab.wire.wake(1).is_err(), "it is awake");
    let after = bench.machine();
    for clock in 0..2 {
        assert!((60_000..75_000).contains(&(after[clock] - before[clock])), "{before:?} {after:?}");
    }
    bench.lab.wire.notify_power(5, 7).unwrap();
    assert_eq!(bench.ask(POWER_REPORT, &[], 4), [3, 5, 7, 2]);
    bench.ask(POWER, &[UNREGISTER], 1);
    bench.lab.wire.notify_power(1, 0).unwrap();
    assert_eq!(bench.ask(POWER_REPORT, &[], 4)[0], 3, "the callback is unregistered");
    bench.finish();
}

#[test]
fn a_sleep_resets_the_registers_and_forbids_accesses() {
    let mut bench = Bench::start();
    bench.ask(BEGIN, &[0, 0], 0);
    bench.lab.wire.set_lvt(1, 0x1_0000).unwrap();
    assert_eq!(bench.lab.enabled_counters().unwrap(), 2);
    bench.lab.wire.sleep().unwrap();
    assert_eq!(bench.lab.enabled_counters().unwrap(), 0);
    assert_eq!([0, 1].map(|processor| bench.lab.wire.lvt(processor).unwrap()), [0xFE; 2]);
    assert!(bench.lab.wire.run(0, &[], &[]).is_err() && bench.lab.wire.tick(0, 1).is_err());
    assert!(bench.lab.wire.add_processor().is_err());
    assert_eq!(bench.new_violations(), NOTHING);
    bench.ask(READ, &[COUNTER], 2);
    assert_eq!(bench.new_violations(), ["Rdmsr of 0xc0010004 while the machine sleeps"]);
    bench.lab.wire.wake(0).unwrap();
    assert_eq!(bench.ask(READ, &[COUNTER], 2), [0, 0]);
    bench.interrupt(0);
    assert_eq!(bench.handler_calls(), 0, "nothing counts any more");
    bench.ask(END, &[], 2);
    bench.finish();
}

#[test]
fn real_time_stands_still_during_a_sleep() {
    let mut bench = Bench::start();
    bench.lab.run_in_real_time().unwrap();
    bench.lab.wire.sleep().unwrap();
    for processor in 0..2 {
        bench.lab.wire.write_msr(processor, SELECT, SELECTED.into()).unwrap();
    }
    let counted = |lab: &mut Lab| [0, 1].map(|processor| *lab.ledger(processor, 0xC0, 0).unwrap().end());
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(counted(&mut bench.lab), [0, 0]);
    bench.lab.wire.wake(0).unwrap();
    wait_until("nothing counts", || counted(&mut bench.lab).iter().all(|count| *count > 0));
    bench.lab.run_by_script().unwrap();
    for processor in 0..2 {
        bench.lab.wire.write_msr(processor, SELECT, 0).unwrap();
    }
    bench.finish();
}

#[test]
fn callback_objects_are_found_by_name_and_leaks_are_reported() {
    let mut bench = Bench::start();
    assert_eq!(bench.ask(POWER, &[OPEN_OTHER], 1), [NOT_FOUND]);
    assert_eq!(bench.ask(POWER, &[OPEN], 1), [0]);
    let reference = "a driver was unloaded that had a reference of \\Callback\\PowerState";
    assert_eq!(bench.unload(), [reference]);
    let mut bench = Bench::start();
    assert_eq!(bench.ask(POWER, &[REGISTER], 1), [0]);
    let registered = "a driver was unloaded that had registered a callback, with ExRegisterCallback";
    assert_eq!(bench.unload(), [registered, reference]);
}

#[test]
fn added_processors_run_calls_interrupts_and_dpcs() {
    let mut bench = Bench::start_on("amd-legacy", |lab| {
        for (active, maximum) in [(0, 1), (3, 2), (1, 99)] {
            assert!(lab.wire.set_processors(active, maximum).is_err(), "{active} of {maximum}");
        }
        lab.wire.set_processors(1, 4).unwrap();
    });
    assert!(bench.lab.wire.set_processors(1, 1).is_err(), "a driver is loaded");
    assert_eq!(bench.lab.processors().unwrap(), 1);
    assert_eq!(bench.machine()[2..], [1, 4, 0b1]);
    assert_eq!(bench.ask(PROCESSOR_CHANGE, &[NO_FLAGS, 0], 1), [0]);
    assert_eq!(bench.processor_changes(), [], "not of those that run");
    for added in 1..4 {
        assert!(bench.lab.wire.add_processor().unwrap());
        let [.., start, complete] = bench.processor_changes()[..] else { panic!("two calls") };
        let call = |stage: u32, active: u32| (stage << 16 | added << 12 | added << 8 | active << 4, 0);
        assert_eq!([start, complete], [call(0, added), call(1, added + 1)]);
        assert_eq!(bench.machine()[2..], [added + 1, 4, (1 << (added + 1)) - 1]);
    }
    assert!(bench.lab.wire.add_processor().is_err(), "there can be four");
    bench.ask(PROCESSOR_CHANGE, &[UNREGISTER_PROCESSOR_CHANGE], 1);
    bench.ask(BEGIN, &[0, 0], 0);
    for processor in (0..4).rev() {
        bench.interrupt(processor);
        wait_until(&format!("no DPC on processor {processor}"), || bench.ask(REPORT, &[], 9)[7] == processor);
        assert_eq!(bench.ask(REPORT, &[], 9)[5..], [processor, 15, processor, 2]);
    }
    bench.ask(END, &[], 2);
    bench.finish();
}

#[test]
fn a_driver_can_reject_a_processor_and_be_notified_of_active_ones() {
    let mut bench = Bench::start_on("amd-legacy", |lab| lab.wire.set_processors(2, 3).unwrap());
    bench.ask(PROCESSOR_CHANGE, &[NO_FLAGS, 2 + 1], 1);
    assert!(!bench.lab.wire.add_processor().unwrap());
    assert_eq!(bench.processor_changes(), [(0x0_2220, 0), (0x2_2220, UNSUCCESSFUL)]);
    assert_eq!(bench.machine()[2..], [2, 3, 0b11]);
    bench.ask(PROCESSOR_CHANGE, &[UNREGISTER_PROCESSOR_CHANGE], 1);
    assert_eq!(bench.ask(PROCESSOR_CHANGE, &[ADD_EXISTING, 0], 1), [0]);
    assert_eq!(bench.processor_changes(), [(0x0_0020, 0), (0x0_1120, 0), (0x1_0020, 0), (0x1_1120, 0)]);
    bench.ask(PROCESSOR_CHANGE, &[UNREGISTER_PROCESSOR_CHANGE], 1);
    assert_eq!(bench.ask(PROCESSOR_CHANGE, &[ADD_EXISTING, 1 + 1], 1), [UNSUCCESSFUL]);
    assert_eq!(bench.processor_changes(), [(0x0_0020, 0), (0x0_1120, 0), (0x2_0020, UNSUCCESSFUL)]);
    assert_eq!(bench.ask(PROCESSOR_CHANGE, &[NO_FLAGS, 0], 1), [0]);
    let left = "a driver was unloaded that had registered a callback, with KeRegisterProcessorChangeCallback";
    assert_eq!(bench.unload(), [left]);
}

#[test]
fn each_processor_accesses_its_own_memory_mapped_apic() {
    let mut bench = Bench::start();
    assert_eq!(bench.ask(READ, &[0x1B], 2)[0] & !(1 << 8), 0xFEE0_0800);
    assert_eq!(bench.ask(APIC, &[MAP], 1), [1]);
    bench.lab.wire.set_lvt(1, 0x1_0400).unwrap();
    assert_eq!(bench.entries()[..2], [0xFE, 0x1_0400]);
    bench.ask(APIC, &[SET_ENTRIES, 0x1_0010], 0);
    assert_eq!([0, 1].map(|processor| bench.lab.wire.lvt(processor).unwrap()), [0x1_0010, 0x1_0011]);
    assert_eq!(bench.new_violations(), NOTHING);

    bench.ask(APIC, &[END_OF_INTERRUPT], 0);
    assert_eq!(bench.new_violations(), ["the APIC's register 0xb0 is written, which is the HAL's"]);
    bench.ask(APIC, &[READ_WIDE], 0);
    assert_eq!(bench.new_violations(), ["Mov_r64_rm64 at the APIC's register 0x340, which takes moves of 32 bits"]);
    assert_eq!(bench.ask(APIC, &[MAP_WRONGLY], 1), [0]);
    assert_eq!(bench.new_violations().len(), 3, "cached, too long, elsewhere");
    bench.lab.wire.sleep().unwrap();
    bench.entries();
    assert_eq!(bench.new_violations(), ["an access to the local vector table while the machine sleeps"; 2]);
    bench.lab.wire.wake(0).unwrap();

    bench.ask(APIC, &[UNMAP], 0);
    assert_eq!(bench.new_violations(), NOTHING);
    assert_eq!(bench.entries()[..2], [0, 0]);
    assert_eq!(bench.new_violations(), ["the APIC's register 0x340 is read, which is no longer mapped"; 2]);
    bench.ask(APIC, &[UNMAP], 0);
    assert!(bench.new_violations()[0].ends_with("which is not mapped"));
    assert_eq!(bench.ask(APIC, &[MAP], 1), [1]);
    assert_eq!(bench.unload(), ["a driver was unloaded that had mapped the APIC's registers"]);
}

#[test]
fn the_lvt_entry_is_an_msr_in_x2apic_mode() {
    let mut bench = Bench::start_on("haswell-4710mq", |lab| lab.wire.set_apic(true).unwrap());
    assert!(bench.lab.wire.set_apic(false).is_err(), "a driver is loaded");
    assert_eq!(bench.ask(READ, &[0x1B], 2)[0] & !(1 << 8), 0xFEE0_0C00);
    assert_eq!(bench.ask(READ, &[0x834], 2), [0xFE, 0]);
    bench.ask(WRITE, &[0x834, 0x1_00FE], 0);
    let mut entries = [0, 1].map(|processor| bench.lab.wire.lvt(processor).unwrap());
    entries.sort_unstable();
    assert_eq!(entries, [0xFE, 0x1_00FE]);
    assert_eq!(bench.ask(APIC, &[MAP], 1), [0]);
    assert_eq!(bench.new_violations(), ["MmMapIoSpaceEx of the APIC in x2APIC mode"]);
    bench.finish();
    // Setting an identity replaces the machine.
    let mut bench = Bench::start();
    bench.ask(READ, &[0x834], 2);
    assert!(bench.new_violations()[0].starts_with("Rdmsr of 0x834"));
    bench.finish();
}

#[test]
fn a_hal_that_leaves_the_entry_masked_delivers_one_interrupt() {
    let mut bench = Bench::start_on("intel-v1", |_| {});
    bench.ask(BEGIN, &[0, 0], 0);
    for interrupts in 1..4 {
        bench.interrupt(0);
        assert_eq!(bench.handler_calls(), interrupts);
    }
    bench.lab.wire.hal_unmasks(false).unwrap();
    for _ in 0..3 {
        bench.interrupt(0);
        assert_eq!((bench.handler_calls(), bench.lab.wire.lvt(0).unwrap()), (4, 0x1_00FE));
    }
    bench.lab.wire.set_lvt(0, 0xFE).unwrap();
    wait_until("the one that waits comes", || bench.handler_calls() >= 5);
    bench.lab.wire.set_lvt(0, 0x4FE).unwrap();
    bench.interrupt(0);
    assert_eq!(bench.handler_calls(), 5, "an entry that is not the HAL's delivers nothing to it");
    assert!(bench.new_violations().is_empty());
    bench.ask(END, &[], 2);
    bench.finish();
}

#[test]
fn counters_are_reserved_or_refused_with_the_set_status() {
    let mut bench = Bench::start();
    for status in [BUSY, INSUFFICIENT] {
        bench.lab.wire.refuse_counters(Some(status)).unwrap();
        assert_eq!(bench.ask(RESERVE, &[ACQUIRE], 1), [status]);
        assert!(!bench.lab.wire.counters_reserved().unwrap());
    }
    bench.lab.wire.refuse_counters(None).unwrap();
    assert_eq!(bench.ask(RESERVE, &[ACQUIRE], 1), [0]);
    assert_eq!(bench.ask(RESERVE, &[ACQUIRE], 1), [INSUFFICIENT], "they are taken");
    assert!(bench.lab.wire.counters_reserved().unwrap());
    bench.ask(WRITE, &[SELECT, SELECTED], 0);
    assert_eq!(bench.new_violations(), NOTHING);
    bench.ask(RESERVE, &[FREE], 1);
    assert!(!bench.lab.wire.counters_reserved().unwrap());
    for processor in 0..2 {
        bench.lab.wire.write_msr(processor, SELECT, 0).unwrap();
    }
    bench.ask(WRITE, &[SELECT, SELECTED], 0);
    assert_eq!(bench.new_violations(), ["0xc0010000, value 0x4300c0, starts a counter that is not reserved"]);
    for processor in 0..2 {
        bench.lab.wire.write_msr(processor, SELECT, 0).unwrap();
    }
    assert_eq!(bench.ask(RESERVE, &[ACQUIRE], 1), [0]);
    assert_eq!(bench.unload(), ["a driver was unloaded that had hardware counters"]);
}

#[test]
fn hardware_counters_are_configured_once_and_not_while_a_thread_profiles() {
    let mut bench = Bench::start();
    let configured =
        |owner, counters: &[u64], profiling| HardwareCounters { owner, counters: counters.to_vec(), profiling };
    assert_eq!(bench.ask(CONFIGURE, &[17], 1), [INVALID]);
    assert_eq!(bench.ask(CONFIGURE, &[3], 1), [0]);
    let three = configured(Some(CounterOwner::Driver), &[0, 1, 2], 1);
    assert_eq!(bench.ask(CONFIGURE, &[2], 1), [ALREADY_ENABLED]);
    assert_eq!(bench.ask(CONFIGURATION, &[2], 3), [TOO_SMALL, 3, 0]);
    assert_eq!(bench.ask(CONFIGURATION, &[16], 3), [0, 3, 3]);
    bench.lab.wire.pretend_profiling(true).unwrap();
    assert_eq!(bench.ask(CONFIGURE, &[0], 1), [ALREADY_ENABLED]);
    assert_eq!(bench.lab.wire.hardware_counters().unwrap(), three);
    bench.lab.wire.pretend_profiling(false).unwrap();
    assert_eq!(bench.ask(CONFIGURE, &[0], 1), [0]);
    bench.lab.wire.configure_hardware_counters(&[5]).unwrap();
    assert_eq!(bench.ask(CONFIGURE, &[1], 1), [ALREADY_ENABLED]);
    assert_eq!(bench.lab.wire.hardware_counters().unwrap(), configured(Some(CounterOwner::Another), &[5], 0));
    assert_eq!(bench.new_violations(), NOTHING);
    assert_eq!(bench.ask(CONFIGURE, &[0], 1), [0]);
    let cleared = "KeSetHardwareCounterConfiguration clears the configuration of another driver";
    assert_eq!(bench.new_violations(), [cleared]);
    assert_eq!(bench.ask(CONFIGURE, &[16], 1), [0]);
    let left = ["a driver was unloaded that had configured hardware counters for thread profiling"];
    assert_eq!(bench.unload(), left);
}

#[test]
fn accesses_by_the_test_are_not_counted() {
    let mut bench = Bench::start();
    bench.lab.wire.write_msr(1, COUNTER, 77).unwrap();
    assert_eq!([0, 1].map(|processor| bench.lab.wire.read_msr(processor, COUNTER).unwrap()), [0, 77]);
    assert!(bench.lab.wire.read_msr(0, 0x38F).is_err(), "not on AMD");
    assert!(bench.lab.wire.write_msr(2, COUNTER, 0).is_err(), "there are two processors");
    assert_eq!(bench.lab.wire.accesses().unwrap(), [Accesses::default(); 2]);
    bench.finish();
}

/// The calls that can fail, in the order in which the faulty driver makes them.
const FALLIBLE: [&str; 21] = [
    "ExAllocatePool2",
    "MmMapLockedPagesSpecifyCache",
    "IoCreateDevice",
    "IoCreateSymbolicLink",
    "ObOpenObjectByPointer",
    "ZwSetSecurityObject",
    "PsCreateSystemThread",
    "ObReferenceObjectByHandle",
    "IoAllocateWorkItem",
    "MmGetSystemRoutineAddress",
    "HalSetSystemInformation",
    "HalSetSystemInformation",
    "HalAllocateHardwareCounters",
    "HalFreeHardwareCounters",
    "KeSetHardwareCounterConfiguration",
    "MmMapIoSpaceEx",
    "ExCreateCallback",
    "ExRegisterCallback",
    "KeRegisterProcessorChangeCallback",
    "KeGetProcessorNumberFromIndex",
    "KeSetTargetProcessorDpcEx",
];

#[test]
fn each_call_that_can_fail_fails_on_request() {
    let mut bench = Bench::start();
    bench.ask(CALLS, &[], 1);
    assert_eq!(bench.ask(CALLS_REPORT, &[], 1), [0], "none was asked for");
    for (place, function) in FALLIBLE.into_iter().enumerate() {
        bench.lab.wire.fail_call(Some(place as u64 + 1)).unwrap();
        assert_eq!(bench.lab.wire.failed_call().unwrap(), None);
        bench.ask(CALLS, &[], 1);
        assert_eq!(bench.lab.wire.failed_call().unwrap().as_deref(), Some(function));
        assert_eq!(bench.ask(CALLS_REPORT, &[], 1), [1 << place], "{function}");
    }
    bench.lab.wire.fail_call(Some(FALLIBLE.len() as u64 + 1)).unwrap();
    bench.ask(CALLS, &[], 1);
    assert_eq!((bench.lab.wire.failed_call().unwrap(), bench.ask(CALLS_REPORT, &[], 1)), (None, vec![0]));
    bench.lab.wire.fail_call(None).unwrap();
    bench.finish();
}

#[test]
fn insecure_calls_are_reported() {
    let mut bench = Bench::start();
    bench.ask(CALLS, &[INSECURE], 1);
    assert_eq!(
        bench.new_violations(),
        [
            "MmMapLockedPagesSpecifyCache maps a client's pages as executable",
            "any user can open \\Device\\another\\x: IoCreateDevice without FILE_DEVICE_SECURE_OPEN",
        ]
    );
    bench.finish();
}

#[test]
fn leaked_work_items_and_threads_are_reported() {
    let mut bench = Bench::start();
    bench.ask(LEAK, &[QUEUE_TOO_LATE], 0);
    assert_eq!(bench.new_violations(), ["IoQueueWorkItem for a device that is deleted"]);
    bench.ask(LEAK, &[WORK_ITEM], 0);
    // Call 2 is ObReferenceObjectByHandle. If it fails, the lab starts the thread only after the unload, so it outlives
    // the driver.
    bench.lab.wire.fail_call(Some(2)).unwrap();
    bench.ask(LEAK, &[THREAD], 0);
    assert_eq!(bench.lab.wire.failed_call().unwrap().as_deref(), Some("ObReferenceObjectByHandle"));
    let left = ["a driver was unloaded while a thread of it ran", "a driver was unloaded that had work items"];
    assert_eq!(bench.unload(), left);
}
