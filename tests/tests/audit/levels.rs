//! Code that the kernel calls above APC_LEVEL reaches only functions that may be called at that level.

use std::collections::BTreeMap;

use object::read::pe::PeFile64;
use tests::Reach;

use crate::file::{bytes, entry, functions, image};
use crate::imports::{Level, level};

/// Limit for the stack of each entry point, in bytes. A kernel stack has 24 KiB, part of which the interrupted code has
/// used. The deepest case is an interrupt storm that silences a processor that records precisely.
const STACK: u64 = 1_688;

/// The same limit for the work of requests on a processor, which begins on the stack of the request, or on one of which
/// an IPI uses little more. The deepest case is the end of a session that records precisely.
const WORK_STACK: u64 = 1_480;

/// The same limit for the DPCs that access registers, which run on the stack that the processor has for DPCs: none of
/// its 24 KiB is used yet. The deepest case is an expiry that repairs the counters of a processor that records
/// precisely.
const DPC_STACK: u64 = 1_656;

/// The DPCs with that limit.
const DPCS: [&str; 3] =
    ["halprof::interrupt::tick(", "halprof::interrupt::time_expired(", "halprof::interrupt::write_events("];

/// Functions that the kernel calls, or that other entries of this list jump to: the beginning of the name; the IRQL,
/// with HIGH_LEVEL as `Any`; and the minimum number of such functions in the driver.
const ENTRY_POINTS: &[(&str, Level, usize)] = &[
    ("interrupt_path::performance_interrupt(", Level::Any, 1),
    // Called by KeIpiGenericCall, by the DPC below, and by requests: all work on one or more processors.
    ("halprof::nt::processors::worker<", Level::Any, 10),
    // Calls the same work in a targeted DPC, and sets the event that ends the call.
    ("halprof::nt::targeted_calls::worker(", Level::Dispatch, 1),
    ("halprof::interrupt::power_changed(", Level::Dispatch, 1),
    ("halprof::interrupt::tick(", Level::Dispatch, 1),
    ("halprof::interrupt::time_expired(", Level::Dispatch, 1),
    ("halprof::interrupt::write_events(", Level::Dispatch, 1),
    ("interrupt_path::dpc::run(", Level::Dispatch, 1), // the linker folds that of `cpu_dpcs` into it
    ("halprof::nt::pending::cancel(", Level::Dispatch, 1),
    ("halprof::nt::power::called(", Level::Dispatch, 1),
    ("halprof::nt::timers::expired<", Level::Dispatch, 1),
    ("halprof::wake(", Level::Dispatch, 1),
];

/// Returns whether the kernel calls a function of this name above APC_LEVEL.
pub fn is_entry_point(name: &str) -> bool {
    ENTRY_POINTS.iter().any(|(prefix, ..)| name.starts_with(prefix))
}

/// Functions that call or jump to a function pointer. Its target is in the list above.
const FORWARDERS: [&str; 4] = [
    "halprof::nt::power::called(",
    "halprof::nt::targeted_calls::worker(",
    "halprof::nt::timers::expired<",
    "interrupt_path::dpc::run(",
];

fn check(name: &str, at: Level, reach: &Reach) {
    let forbidden: Vec<&String> = reach.imports.iter().filter(|import| level(import) < at).collect();
    assert!(forbidden.is_empty(), "{name}: {forbidden:?}");
    assert!(reach.endless.is_empty(), "{name}: {:x?}", reach.endless);
    assert!(reach.traps.is_empty(), "{name}: {:x?}", reach.traps);
    assert!(reach.recursive.is_empty(), "{name}: {:x?}", reach.recursive);
    let forwards = FORWARDERS.iter().any(|known| name.starts_with(known));
    assert_eq!(reach.unknown.len(), usize::from(forwards), "{name}: {:x?}", reach.unknown);
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let limit = if begins(&DPCS) {
        DPC_STACK
    } else if begins(&["halprof::nt::processors::worker<"]) {
        WORK_STACK
    } else {
        STACK
    };
    assert!(reach.stack <= limit, "{name}: {} bytes of stack", reach.stack);
}

#[test]
fn code_above_apc_level_calls_nothing_that_allocates_waits_prints_or_panics() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let (functions, image) = (functions(&file), image(&file));
    let mut found = BTreeMap::new();
    for (address, name) in &functions {
        if let Some((prefix, at, _)) = ENTRY_POINTS.iter().find(|(prefix, ..)| name.starts_with(prefix)) {
            check(name, *at, &image.reach(*address));
            *found.entry(*prefix).or_insert(0) += 1;
        }
    }
    for (prefix, _, least) in ENTRY_POINTS {
        assert!(found.get(prefix).is_some_and(|number| number >= least), "{prefix} of {found:?}");
    }
}

#[test]
fn the_handler_calls_only_five_kernel_functions_and_memcpy() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let functions = functions(&file);
    let handler = functions.iter().find(|(_, name)| name.starts_with("interrupt_path::performance_interrupt("));
    let reach = image(&file).reach(*handler.expect("the handler").0);
    let wanted = [
        "KeGetCurrentProcessorNumberEx",
        "KeInsertQueueDpc",
        "KeQueryPerformanceCounter",
        "PsGetCurrentProcessId",
        "PsGetCurrentThreadId",
    ];
    let others: Vec<&String> = reach.imports.iter().filter(|name| !wanted.contains(&name.as_str())).collect();
    assert!(others.iter().all(|name| *name == "memcpy"), "{others:?}");
    assert!(wanted.iter().all(|name| reach.imports.contains(*name)), "{:?}", reach.imports);
    println!("{} functions, {} bytes of stack", reach.functions.len(), reach.stack);
}

#[test]
fn the_walk_finds_what_the_entry_of_the_driver_calls() {
    // A test of the walk: from an entry point that allocates memory, it finds the functions that it must not find
    // above.
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let reach = image(&file).reach(entry(&file));
    for name in ["ExAllocatePool2", "IoCreateDevice", "PsCreateSystemThread"] {
        assert!(reach.imports.contains(name), "{name} is not in {:?}", reach.imports);
    }
    assert!(reach.functions.len() > 10);
}
