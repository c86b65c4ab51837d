//! Processors of two kinds in one machine: each is driven by its own CPUID leaves.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod core_types;

use engine::Engine;
use model::{Accesses, Mode, Processor, Selected};
use pmu::Support;
use pmu::state::CounterSet;
use pmu::{ProcessorIndex, ProfileInterface, Source};
use protocol::{CountRecord, ErrorCode, ProcessorSet, modes};
use simulation::{Client, SimMachine};

/// The identities of the two kinds: eight general and three fixed counters; six of another width and two fixed ones.
const KINDS: [&str; 2] = ["intel-hybrid", "intel-hybrid-efficient"];

/// LLCMisses, which the second kind does not support.
const MISSES: u64 = 29;

fn processor(name: &str) -> Processor {
    let dump = cpuid_dumps::find(name).unwrap().cpuid();
    Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
}

/// Returns a machine with four processors of alternating kinds, starting with this one.
fn machine(first: usize) -> SimMachine {
    SimMachine::of((0..4).map(|number| processor(KINDS[(first + number) % 2])))
}

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

fn events(selected: Selected) -> u64 {
    1 + u64::from(selected.event) * 1_000 + u64::from(selected.umask)
}

fn only(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    for processor in processors {
        assert!(set.insert(*processor));
    }
    set
}

#[test]
fn each_processor_has_the_counters_of_its_own_leaves_whichever_kind_boots() {
    for first in [0, 1] {
        let machine = machine(first);
        let engine = engine(&machine);
        let hal = engine.sampler().hal();
        for number in 0..4 {
            let kind = cpuid_dumps::find(KINDS[(first + number as usize) % 2]).unwrap().expected;
            let interface = hal.interface_of(ProcessorIndex::new(number));
            assert_eq!((interface.counters(), interface.width()), (kind.counters, kind.width), "{first}, {number}");
            assert_eq!(
                hal.cpu_counters(ProcessorIndex::new(number)).cells.len(),
                20,
                "{first}, {number}: room for the larger kind"
            );
        }
        assert_eq!(hal.state_bytes(), 4 * 8 * 20, "11 counters, slots, and 8 metrics");
        let untouched = Accesses::default();
        assert!(machine.all().all(|cpu| cpu.model().accesses() == untouched), "finding out touches no register");
    }
}

#[test]
fn every_counter_of_every_processor_counts_exactly_and_no_access_faults() {
    for first in [0, 1] {
        let machine = machine(first);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // Starts cycles until the smaller kind has no counter left: one fixed counter and all general ones.
        let mut sessions = Vec::new();
        for _ in 0..7 {
            let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(19, modes::BOTH)]).header();
            assert_eq!((header.status, header.cause), (0, 0));
            sessions.push(header.detail[0]);
        }
        let larger = u32::from(first == 1);
        let refused = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(19, modes::USER)]).header();
        assert_eq!((refused.cause, refused.processor), (ErrorCode::NoFreeCounter as u32, 1 - larger), "{first}");
        let more = only(&[larger, larger + 2]);
        assert_eq!(client.start(&mut engine, 0, more, &[(19, modes::USER), (19, modes::USER)]).header().status, 0);
        assert_eq!(
            client.start(&mut engine, 0, more, &[(19, modes::USER)]).header().cause,
            ErrorCode::NoFreeCounter as u32
        );
        for number in 0..4 {
            machine.run(number, Mode::User, &events);
            machine.run(number, Mode::Kernel, &events);
        }
        for session in sessions {
            let counts: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
            assert_eq!(counts.len(), 4);
            for count in counts {
                let given = machine.counted(count.processor, count.counter);
                let events = 2 * 60_001 + machine.between(count.processor, count.counter);
                assert_eq!((count.count, given), (events, events), "{first} {count:?}");
            }
        }
        engine.close(client.0);
        for cpu in machine.all() {
            assert_eq!(cpu.model().enabled_counters(), [], "{first}");
            assert_eq!(cpu.model().accesses().faulted, 0, "{first}");
        }
    }
}

#[test]
fn a_source_that_one_kind_lacks_is_refused_where_it_is_asked_of_that_kind_and_had_on_the_other() {
    for first in [0, 1] {
        let machine = machine(first);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let lacking = u32::from(first == 0);
        let everywhere = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(19, 3), (MISSES, 3)]).header();
        let refusal = (everywhere.cause, everywhere.source, everywhere.processor, everywhere.detail);
        let unavailable = [Support::EventNotAvailable as u64, 1];
        assert_eq!(refusal, (ErrorCode::UnsupportedSource as u32, MISSES, lacking, unavailable), "{first}");
        assert_eq!(
            engine.sampler().hal().cpu_counters(ProcessorIndex::new(1 - lacking)).counters(|state| !state.is_free()),
            CounterSet::NONE
        );
        let there = client.start(&mut engine, 0, only(&[1 - lacking, 3 - lacking]), &[(MISSES, modes::USER)]);
        assert_eq!(there.header().status, 0, "{first}");
        machine.run(1 - lacking, Mode::User, &events);
        let here = client.start(&mut engine, 0, only(&[lacking]), &[(MISSES, modes::USER)]).header();
        assert_eq!((here.cause, here.processor), (ErrorCode::UnsupportedSource as u32, lacking), "{first}");
        assert!(engine.sampler().hal().startable(Source(MISSES)).is_ok(), "{first}: somewhere");
    }
}

#[test]
fn a_processor_that_is_added_is_driven_as_its_own_leaves_say() {
    for first in [0, 1] {
        let machine = machine(first).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = client.started(&mut engine, 0, &[2, 19, 6]);
        for number in 1..4 {
            machine.add_processor(&mut engine);
            let kind = cpuid_dumps::find(KINDS[(first + number) % 2]).unwrap().expected;
            let interface = engine.sampler().hal().interface_of(ProcessorIndex::new(u32::try_from(number).unwrap()));
            assert_eq!((interface.counters(), interface.width()), (kind.counters, kind.width), "{first}, {number}");
        }
        (0..4).for_each(|number| machine.run(number, Mode::User, &events));
        let counts: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
        assert_eq!(counts.len(), 12, "{first}: on all");
        for count in counts {
            assert_eq!(count.count, machine.counted(count.processor, count.counter), "{first} {count:?}");
            assert!(count.count > 0, "{first} {count:?}");
        }
        assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0));
    }
}
