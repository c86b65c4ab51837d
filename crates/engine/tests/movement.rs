//! Counters of guests that do not count, or only a part: another counter serves the event, or its count is marked.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{CounterId, Mode, Movement};
use protocol::{Code, CountRecord, ErrorCode, Event, EventRequest, InfoReply, ProcessorSet, StartHeader, flags, modes};
use simulation::{Client, SimMachine};

/// A guest with four general and three fixed counters, which have the indexes 4 to 6.
const GUEST: &str = "kvm-8650u";

const INSTRUCTIONS: u64 = 0x02;
const BRANCHES: u64 = 0x06;
const MISPREDICTIONS: u64 = 0x0B;
const CYCLES: u64 = 0x13;
const REFERENCE_CYCLES: u64 = 0x1B;

/// The marks of a count.
const COUNTS: u32 = 0;
const STANDS_STILL: u32 = 1;
const COUNTS_PART: u32 = 2;

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

fn set(machine: &SimMachine, processor: u32, counters: impl IntoIterator<Item = CounterId>, movement: Movement) {
    for counter in counters {
        machine.processor(processor).model().set_movement(counter, movement);
    }
}

fn general() -> impl Iterator<Item = CounterId> {
    (0..4).map(CounterId::General)
}

fn info(client: Client, engine: &mut Engine<&SimMachine>) -> InfoReply {
    let answer = client.ask(engine, Code::Info, &[], 4096);
    zerocopy::FromBytes::read_from_bytes(&answer.bytes).unwrap()
}

/// Starts the sources, lets 1,000 of each event happen, and returns counter, count and mark of each.
fn counted(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    machine: &SimMachine,
    sources: &[u64],
) -> Vec<(u32, u64, u32)> {
    let session = client.started(engine, 0, sources);
    let records = run(client, engine, machine, session);
    records.iter().map(|record| (record.counter, record.count, record.movement)).collect()
}

fn run(client: Client, engine: &mut Engine<&SimMachine>, machine: &SimMachine, session: u64) -> Vec<CountRecord> {
    for processor in 0..machine.active() {
        machine.run(processor, Mode::User, &|_| 1_000);
    }
    client.stop(engine, session, None).records()
}

#[test]
fn a_general_counter_serves_cycles_where_the_fixed_one_stands_still() {
    let machine = SimMachine::named(GUEST, 1);
    set(&machine, 0, [CounterId::Fixed(1)], Movement::None);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counted(client, &mut engine, &machine, &[INSTRUCTIONS, CYCLES]);
    assert_eq!(found, [(4, 1_000, COUNTS), (0, 1_000, COUNTS)]);
    let info = info(client, &mut engine);
    assert_eq!((info.still, info.partial), (1 << 5, 0));
    // The next session knows it.
    let before = machine.processor(0).model().accesses().wrmsr;
    counted(client, &mut engine, &machine, &[CYCLES]);
    let again = machine.processor(0).model().accesses().wrmsr - before;
    let before = machine.processor(0).model().accesses().wrmsr;
    counted(client, &mut engine, &machine, &[CYCLES]);
    assert_eq!(machine.processor(0).model().accesses().wrmsr - before, again);
}

/// AWS has guests with one fixed counter, and such whose second one stands still (intel/pcm issues 704 and 268).
#[test]
fn cycles_and_instructions_count_on_the_guests_of_aws() {
    let machine = SimMachine::named("aws-one-fixed", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counted(client, &mut engine, &machine, &[CYCLES, INSTRUCTIONS]);
    assert_eq!(found, [(0, 1_000, COUNTS), (4, 1_000, COUNTS)].repeat(2));
}

#[test]
fn an_event_that_no_other_counter_counts_is_marked_and_the_others_are_not() {
    let machine = SimMachine::named(GUEST, 2);
    set(&machine, 1, [CounterId::Fixed(2)], Movement::None);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counted(client, &mut engine, &machine, &[REFERENCE_CYCLES, CYCLES]);
    let fine = [(6, 1_000, COUNTS), (5, 1_000, COUNTS)];
    assert_eq!(found, [fine[0], fine[1], (6, 0, STANDS_STILL), fine[1]], "each processor by itself");
}

#[test]
fn a_counter_that_stood_still_for_a_time_is_used_again() {
    let machine = SimMachine::named(GUEST, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    set(&machine, 0, [CounterId::Fixed(2)], Movement::None);
    let session = client.started(&mut engine, 0, &[REFERENCE_CYCLES]);
    set(&machine, 0, [CounterId::Fixed(2)], Movement::All);
    let found = run(client, &mut engine, &machine, session);
    assert_eq!((found[0].count, found[0].movement), (1_000, STANDS_STILL), "the mark stays for the session");
    assert_eq!(counted(client, &mut engine, &machine, &[REFERENCE_CYCLES]), [(6, 1_000, COUNTS)]);
    // A counter with a substitute is tried again at the next start, and serves the one after.
    set(&machine, 0, [CounterId::Fixed(0)], Movement::None);
    assert_eq!(counted(client, &mut engine, &machine, &[INSTRUCTIONS]), [(0, 1_000, COUNTS)]);
    set(&machine, 0, [CounterId::Fixed(0)], Movement::All);
    assert_eq!(counted(client, &mut engine, &machine, &[INSTRUCTIONS]), [(0, 1_000, COUNTS)]);
    assert_eq!(counted(client, &mut engine, &machine, &[INSTRUCTIONS]), [(4, 1_000, COUNTS)]);
}

#[test]
fn a_share_of_the_events_is_no_count() {
    let machine = SimMachine::named(GUEST, 1);
    set(&machine, 0, general(), Movement::PerMille(600));
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counted(client, &mut engine, &machine, &[MISPREDICTIONS, INSTRUCTIONS]);
    assert_eq!(found, [(0, 600, COUNTS_PART), (4, 1_000, COUNTS)]);
    // A counter that counts everything is preferred.
    set(&machine, 0, [CounterId::General(2)], Movement::All);
    client.started(&mut engine, 0, &[MISPREDICTIONS]); // tries the others again
    engine.close(client.0);
    let client = Client::open(&mut engine, 1, 10);
    assert_eq!(counted(client, &mut engine, &machine, &[BRANCHES]), [(2, 1_000, COUNTS)]);
}

#[test]
fn a_filtered_event_is_marked_and_its_counter_serves_others() {
    let machine = SimMachine::named(GUEST, 1);
    machine.processor(0).model().set_filtered([(0xC4, 0)]);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counted(client, &mut engine, &machine, &[BRANCHES, MISPREDICTIONS]);
    assert_eq!(found, [(0, 0, STANDS_STILL), (1, 1_000, COUNTS)]);
    assert_eq!(info(client, &mut engine).still, 0, "the counters count");
    // Nor does a filter of what the loop is judged by.
    machine.processor(0).model().set_filtered([(0xC0, 0)]);
    assert_eq!(counted(client, &mut engine, &machine, &[BRANCHES]), [(0, 1_000, COUNTS)]);
    assert_eq!(counted(client, &mut engine, &machine, &[MISPREDICTIONS]), [(0, 1_000, COUNTS)]);
}

#[test]
fn where_nothing_counts_the_session_is_refused_and_leaves_nothing() {
    for name in [GUEST, "amd-kvm", "amd-kvm-perfmon-v2", "intel-kvm-hyperv"] {
        let machine = SimMachine::named(name, 2);
        let all = || (0..10).map(CounterId::General).chain((0..4).map(CounterId::Fixed));
        for processor in 0..2 {
            set(&machine, processor, all(), Movement::None);
        }
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for _ in 0..20 {
            let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(INSTRUCTIONS, modes::BOTH)]).header();
            assert_eq!(header.cause, ErrorCode::NoCounterCounts as u32, "{name}");
            assert!(!machine.is_reserved() && machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()));
        }
        // One processor on which something counts is enough.
        set(&machine, 1, all(), Movement::All);
        let found = counted(client, &mut engine, &machine, &[INSTRUCTIONS]);
        assert_eq!(
            found.iter().map(|(_, count, mark)| (*count, *mark)).collect::<Vec<_>>(),
            [(0, STANDS_STILL), (1_000, COUNTS)]
        );
    }
}

#[test]
fn more_events_than_counters_that_count_take_turns_or_are_marked() {
    let machine = SimMachine::named(GUEST, 1);
    set(&machine, 0, general().skip(2), Movement::None);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events: Vec<_> = [BRANCHES, MISPREDICTIONS, 0x0A]
        .map(|source| EventRequest { event: Event::of(source), modes: modes::BOTH, ..EventRequest::EMPTY })
        .into();
    let marks = |records: &[CountRecord]| -> Vec<(u32, u32)> {
        records.iter().map(|record| (record.counter, record.movement)).collect()
    };
    let start = |engine: &mut Engine<_>, flags| {
        let header = StartHeader { flags, ..StartHeader::EMPTY };
        client.start_with(engine, header, &events).header().detail[0]
    };
    let session = start(&mut engine, 0);
    let found = run(client, &mut engine, &machine, session);
    assert_eq!(marks(&found).iter().filter(|(_, mark)| *mark == STANDS_STILL).count(), 1, "{:?}", marks(&found));
    let session = start(&mut engine, flags::MULTIPLEX);
    let found = run(client, &mut engine, &machine, session);
    assert!(marks(&found).iter().all(|(counter, mark)| *counter < 2 && *mark == COUNTS), "{:?}", marks(&found));
}

/// RDPMC in a thread reads the same counter on every processor.
#[test]
fn a_counter_that_stands_still_on_one_processor_serves_threads_on_none() {
    for still in [0, 1] {
        let machine = SimMachine::named(GUEST, 2);
        set(&machine, still, [CounterId::General(0)], Movement::None);
        set(&machine, 1 - still, [CounterId::General(1)], Movement::PerMille(600));
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = client.started(&mut engine, flags::THREADS, &[BRANCHES]);
        let found = run(client, &mut engine, &machine, session);
        let found: Vec<_> = found.iter().map(|record| (record.counter, record.count, record.movement)).collect();
        assert_eq!(found, [(2, 1_000, COUNTS); 2], "general counter 0 stands still on CPU {still}");
    }
    // Where each one stands still on some processor, the mark tells it.
    let machine = SimMachine::named(GUEST, 2);
    for (processor, counter) in [(0, 0), (0, 1), (1, 2), (1, 3)] {
        set(&machine, processor, [CounterId::General(counter)], Movement::None);
    }
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = client.started(&mut engine, flags::THREADS, &[BRANCHES]);
    let found = run(client, &mut engine, &machine, session);
    assert_eq!(found[0].counter, found[1].counter);
    let marks: Vec<_> = found.iter().map(|record| (record.count, record.movement)).collect();
    let still = usize::from(found[0].counter >= 2);
    assert_eq!((marks[still], marks[1 - still]), ((0, STANDS_STILL), (1_000, COUNTS)));
}

#[test]
fn sessions_that_run_keep_exact_counts_while_others_start() {
    for name in [GUEST, "amd-kvm", "amd-kvm-perfmon-v2"] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let first = client.started(&mut engine, 0, &[INSTRUCTIONS]);
        for _ in 0..3 {
            counted(client, &mut engine, &machine, &[BRANCHES]);
        }
        let last: Vec<CountRecord> = client.stop(&mut engine, first, None).records();
        let (count, counter) = (last[0].count, last[0].counter);
        // The trial of its start counted in both modes.
        let happened = machine.counted(0, counter) - machine.between(0, counter) - 8_192;
        assert_eq!((count, last[0].disturbed_register, last[0].movement), (happened, 0, 0));
    }
}

#[test]
fn no_loop_runs_on_bare_metal() {
    let machine = SimMachine::named("skylake-u-6500u", 1);
    set(&machine, 0, [CounterId::Fixed(0)], Movement::None);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    assert_eq!(counted(client, &mut engine, &machine, &[INSTRUCTIONS]), [(4, 0, COUNTS)]);
    assert_eq!(info(client, &mut engine).tried, 0);
}
