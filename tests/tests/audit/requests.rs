//! The stack that requests and the other code below DISPATCH_LEVEL need.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use object::read::pe::PeFile64;
use object::{Object, ObjectSection};
use protocol::{Code, REQUESTS};
use tests::{Image, Reach};

use crate::file::{bytes, entry, functions, image};
use crate::levels::is_entry_point;

/// Limit for the stack of a request, in bytes, with the work on each processor that it waits for, and without the stack
/// of the kernel's own functions. A kernel stack has 24 KiB, of which the system call, the I/O manager and filters use
/// a part, and interrupts come on top: [`levels`](crate::levels) has their limit.
const STACK: u64 = 6_872;

const DISPATCH: &str = "halprof::device::dispatch(";

/// The function that serves each request alone: the beginning of its name. The path that is measured leads through it.
fn server(code: Code) -> &'static str {
    match code {
        Code::Hello => "engine::engine::Engine::hello<",
        Code::Info => "engine::engine::Engine::info<",
        Code::ListSources => "engine::engine::Engine::list_sources<",
        Code::QuerySource => "engine::engine::Engine::query_source<",
        Code::SetInterval => "engine::engine::Engine::set_interval<",
        Code::Start => "engine::engine::Engine::start<",
        Code::Stop => "engine::sessions::Sessions::stop<",
        Code::Read => "engine::sessions::Sessions::read<",
        Code::ListSessions => "engine::engine::Engine::list_sessions<",
        Code::Samples => "halprof::waiting::begin(",
        Code::ControlArea => "engine::sessions::Sessions::serve_areas<",
        Code::ListCoreTypes => "engine::engine::Engine::list_core_types<",
        Code::ReadRegisters => "engine::sessions::Sessions::read_registers<",
        Code::ListHalSources => "engine::engine::Engine::list_hal_sources<",
        Code::ReadGroup => "engine::engine::Engine::read_group<",
    }
}

/// Requests that have no code.
const OTHER_REQUESTS: [(&str, &str); 3] = [
    ("open", "halprof::device::open("),
    ("close", "halprof::device::close("),
    ("ReadGroup, without the engine", "halprof::device::read_group("),
];

/// Other code that the kernel calls below DISPATCH_LEVEL, on a stack of which little is in use.
const ROUTINES: [(&str, &str); 5] = [
    ("unload", "halprof::unload("),
    ("the driver's thread", "halprof::nt::system_thread::run("),
    ("a work item of the System process", "halprof::nt::system_process::routine("),
    ("a processor that is added", "halprof::nt::processor_change::called("),
    ("a trace session that enables events", "halprof::nt::etw::enable("),
];

/// Functions that a function calls through pointers: the beginnings of the names of caller and targets. The linker may
/// fold equal functions, so that not every target is in the file.
const TARGETS: &[(&str, &[&str])] = &[
    ("pmu::placement::assign(", PLACEMENT),
    ("pmu::first_access::pass(", NOTES),
    ("sample_ring::memory::", &["halprof::nt::node_pool::free("]),
    ("engine::plan::Planner::add_ring<", &["halprof::nt::node_pool::free("]),
    ("halprof::nt::system_thread::run(", &["halprof::work("]),
    ("halprof::nt::processor_change::called(", &["halprof::processors_change("]),
    ("halprof::nt::etw::enable(", &["halprof::tracing::follow_trace_sessions("]),
    ("halprof::nt::system_process::routine(", WORK),
    ("halprof::cpu::bring(", &[WORKER]),
    // The HAL's table of functions, and ZwSetSystemInformation.
    ("halprof::nt::control_area::", KERNEL),
    ("halprof::nt::hal::", KERNEL),
    ("halprof::interrupt::impl$0::begin::closure$", KERNEL),
    ("core::ops::function::FnOnce::call_once<halprof::", KERNEL),
];

/// A function of the kernel, whose stack is its own affair.
const KERNEL: &[&str] = &[];

/// The counters that an event can have.
const PLACEMENT: &[&str] = &[
    "pmu::placement::assign_wanted::closure$",
    "pmu::interface::netburst::assignment::place::closure$",
    "pmu::interface::amd64::pairs::are_placed::closure$",
];

/// What receives the registers that are read for a diagnosis.
const NOTES: &[&str] = &[
    "core::ops::function::FnOnce::call_once<engine::registers::read_registers::",
    "engine::registers::read_registers::closure$",
];

/// Closures that run in the System process.
const WORK: &[&str] = &[
    "core::ops::function::FnOnce::call_once<halprof::",
    "halprof::nt::control_area::",
    "halprof::nt::hal::",
    "halprof::interrupt::impl$0::begin::closure$",
    "halprof::interrupt::impl$0::end::closure$",
    "halprof::interrupt::impl$2::end::closure$",
];

/// The work on each processor. The calling processor runs it on the stack of the request.
const WORKER: &str = "halprof::nt::processors::worker<";

/// The function that brings the work of others to processors. It calls each work, as far as the code shows.
const BROADCAST: &str = "halprof::nt::processors::Work::broadcast(";

/// Functions whose address the file has although neither the kernel nor one of the callers above calls them.
const NEVER_CALLED: [&str; 1] = [
    // Formatting code calls the destination's `write_str` and `write_char` alone.
    "core::fmt::Write::write_fmt<engine::session_events::Name>",
];

/// Functions whose address is in the data of the file, or taken by an instruction; with the functions that do so.
fn with_address_taken(
    file: &PeFile64,
    image: &Image,
    functions: &BTreeMap<u64, String>,
) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut taken: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let is_code = |address| image.code.iter().any(|(start, _)| *start == address);
    for section in file.sections().filter(|section| !is_code(section.address())) {
        for word in section.data().unwrap().chunks_exact(8) {
            let address = u64::from_le_bytes(word.try_into().unwrap());
            if functions.contains_key(&address) {
                taken.entry(address).or_default();
            }
        }
    }
    for (start, code) in &image.code {
        for instruction in Decoder::with_ip(64, code, *start, DecoderOptions::NONE) {
            let address = instruction.ip_rel_memory_address();
            let is_address = instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand();
            if is_address && functions.contains_key(&address) {
                let by = functions.range(..=instruction.ip()).next_back().map(|(function, _)| *function);
                taken.entry(address).or_default().extend(by);
            }
        }
    }
    taken
}

fn begins(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// An image whose calls through pointers are known.
struct Driver<'a> {
    functions: BTreeMap<u64, String>,
    image: Image<'a>,
    taken: BTreeMap<u64, BTreeSet<u64>>,
}

impl<'a> Driver<'a> {
    fn of(file: &PeFile64<'a>) -> Self {
        let (functions, mut image) = (functions(file), image(file));
        let taken = with_address_taken(file, &image, &functions);
        image.starts = functions.keys().copied().collect();
        for (function, name) in &functions {
            if let Some((caller, prefixes)) = TARGETS.iter().find(|(caller, _)| name.starts_with(caller)) {
                let called = taken.keys().filter(|target| begins(&functions[target], prefixes));
                let called: BTreeSet<u64> = called.copied().collect();
                assert_eq!(called.is_empty(), prefixes.is_empty(), "targets of {caller}");
                image.targets.insert(*function, called);
            }
            if name.starts_with(BROADCAST) {
                let workers = taken.keys().filter(|target| functions[target].starts_with(WORKER)).copied().collect();
                image.callbacks.insert((*function, "KeIpiGenericCall".to_owned()), workers);
            }
        }
        Self { functions, image, taken }
    }

    fn find(&self, prefix: &str) -> u64 {
        let found: Vec<u64> =
            self.functions.iter().filter(|(_, name)| name.starts_with(prefix)).map(|(at, _)| *at).collect();
        assert_eq!(found.len(), 1, "functions that begin with {prefix}");
        found[0]
    }

    /// Returns what a function reaches, whose stack is bounded then.
    fn reach(&self, function: u64) -> Reach {
        let reach = self.image.reach(function);
        let named = |at: &u64| {
            let place = self.functions.range(..=*at).next_back();
            place.map_or_else(|| format!("{at:#x}"), |(start, name)| format!("{name} + {:#x}", at - start))
        };
        let named = |places: &BTreeSet<u64>| places.iter().map(named).collect::<Vec<_>>();
        assert!(reach.unknown.is_empty(), "calls with unknown targets: {:#?}", named(&reach.unknown));
        assert!(reach.recursive.is_empty(), "functions that call themselves: {:#?}", named(&reach.recursive));
        reach
    }
}

#[test]
fn no_request_needs_more_than_a_third_of_a_kernel_stack() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let driver = Driver::of(&file);
    let dispatch = driver.find(DISPATCH);
    let reach = driver.reach(dispatch);
    let through = |function: &str| {
        let through = reach.stack_through(dispatch, driver.find(function));
        through.unwrap_or_else(|| panic!("no request reaches {function}"))
    };
    let codes = REQUESTS.iter().map(|request| (request.name, through(server(request.code))));
    let requests = codes.chain(OTHER_REQUESTS.map(|(name, function)| (name, through(function))));
    let routines = ROUTINES.map(|(name, function)| (name, driver.reach(driver.find(function)).stack));
    let load = ("load", driver.reach(entry(&file)).stack);
    let mut rows: Vec<(&str, u64)> = requests.chain(routines).chain([load]).collect();
    rows.sort_by_key(|(name, stack)| (std::cmp::Reverse(*stack), *name));
    for (name, stack) in &rows {
        println!("{stack:6} bytes: {name}");
    }
    assert_eq!(
        rows.iter().map(|(_, stack)| stack).max().max(Some(&reach.stack)),
        Some(&rows[0].1),
        "no row is missing"
    );
    let deep: Vec<_> = rows.iter().filter(|(_, stack)| *stack > STACK).collect();
    assert!(deep.is_empty(), "more than {STACK} bytes of stack: {deep:?}");
}

/// A new target of calls through pointers cannot be missing above.
#[test]
fn each_function_with_an_address_in_the_file_has_a_known_caller() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let driver = Driver::of(&file);
    let kernel = |name: &str| {
        is_entry_point(name)
            || name.starts_with(DISPATCH)
            || ROUTINES.iter().any(|(_, routine)| name.starts_with(routine))
    };
    let known = |name: &str| {
        kernel(name) || begins(name, &NEVER_CALLED) || TARGETS.iter().any(|(_, targets)| begins(name, targets))
    };
    let unknown: Vec<&String> =
        driver.taken.keys().map(|function| &driver.functions[function]).filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(driver.taken.len() > 50, "{} functions", driver.taken.len());
}
