//! Sessions: counts match the model on every processor, and ended sessions leave nothing behind.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;

use engine::Engine;
use model::{Mode, Selected};
use proptest::prelude::*;
use protocol::{Code, CountRecord, ErrorCode, ProcessorSet, SessionEvent, flags, modes};
use simulation::{Client, SimMachine};

const PROCESSORS: u32 = 3;

/// More than the processors here have.
const MOST_COUNTERS: u32 = 8;

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

fn set(numbers: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    for number in numbers {
        assert!(set.insert(*number));
    }
    set
}

/// Returns the number of events that `work` causes on a processor.
fn events(selected: Selected, processor: u32) -> u64 {
    10_000 * (u64::from(processor) + 1) + u64::from(selected.event)
}

fn work(machine: &SimMachine) {
    for processor in 0..PROCESSORS {
        machine.run(processor, Mode::User, &|selected| events(selected, processor));
        machine.run(processor, Mode::Kernel, &|selected| 2 * events(selected, processor));
    }
}

fn nothing_counts(machine: &SimMachine) -> bool {
    machine.all().all(|cpu| cpu.model().enabled_counters().is_empty())
}

#[test]
fn a_session_counts_on_every_processor_what_the_model_counted() {
    for (name, sources) in [("amd-legacy", [2, 6, 8, 11]), ("intel-v1", [2, 6, 10, 11]), ("intel-v2", [2, 6, 10, 11])] {
        let machine = SimMachine::named(name, PROCESSORS);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = client.started(&mut engine, 0, &sources);
        machine.pass(500);
        work(&machine);
        let read = client.read(&mut engine, session);
        work(&machine);
        let last: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
        assert_eq!((read.len(), last.len()), (12, 12), "{name}");
        for (read, last) in read.iter().zip(&last) {
            let ledger = machine.counted(read.processor, read.counter);
            assert_eq!((last.count, read.count), (ledger, ledger / 2), "{name} {read:?}");
            assert_eq!(read.enabled, 500);
        }
        assert!(nothing_counts(&machine), "{name}");
    }
}

/// The simulation runs work in descending order of the processors, each after the latency.
#[test]
fn the_time_of_each_processor_is_that_between_its_own_start_and_reading() {
    const LATENCY: u64 = 1_000;
    let machine = SimMachine::named("intel-v2", PROCESSORS);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.set_latency(LATENCY);
    // The second session counts measured time, for which no processor is interrupted at a reading.
    let counted = client.started(&mut engine, 0, &[2]);
    let measured = client.started(&mut engine, flags::DETACHED, &[0]);
    machine.set_latency(0);
    machine.pass(50_000);
    let enabled = |records: &[CountRecord]| -> Vec<u64> { records.iter().map(|record| record.enabled).collect() };
    let since_started = [0, LATENCY, 2 * LATENCY].map(|earlier| 50_000 + earlier);
    assert_eq!(enabled(&client.read(&mut engine, measured)), since_started);
    machine.set_latency(LATENCY);
    let later = [3, 2, 1].map(|number| number * LATENCY);
    let read = client.read(&mut engine, counted);
    // The second session was started in between.
    let between = 3 * LATENCY;
    assert_eq!(enabled(&read), [0, 1, 2].map(|index| since_started[index] + between + later[index]));
    assert_eq!(enabled(&client.read(&mut engine, measured)), since_started.map(|time| time + 3 * LATENCY));
    let stopped = client.stop(&mut engine, counted, None).records();
    assert_eq!(enabled(&stopped), [0, 1, 2].map(|index| since_started[index] + between + 3 * LATENCY + later[index]));
}

#[test]
fn a_session_runs_on_its_own_processors_only() {
    let machine = SimMachine::named("amd-legacy", PROCESSORS);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = client.start(&mut engine, 0, set(&[0, 2]), &[(2, modes::USER)]).header();
    let [session, _] = header.detail;
    assert_eq!(machine.processor(1).model().enabled_counters(), []);
    work(&machine);
    let counts = client.read(&mut engine, session);
    let counts: Vec<_> = counts.iter().map(|record| (record.processor, record.count)).collect();
    assert_eq!(counts, [(0, 10_192), (2, 30_192)]);
}

#[test]
fn user_and_kernel_add_up_to_both() {
    let machine = SimMachine::named("intel-v1", PROCESSORS);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let wanted = [(2, modes::USER), (2, modes::KERNEL), (2, modes::BOTH)];
    let [session, _] = client.start(&mut engine, 0, ProcessorSet::EMPTY, &wanted).header().detail;
    work(&machine);
    let counts: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
    for of_processor in counts.chunks(3) {
        let [user, kernel, both] = of_processor else { panic!("three events") };
        let between = |count: &CountRecord| machine.between(count.processor, count.counter);
        assert_eq!(2 * user.count, kernel.count - between(kernel));
        assert_eq!(user.count + 2 * user.count, both.count - between(both));
        assert!(between(kernel) > 0 && between(both) > 0);
    }
}

#[test]
fn closing_a_handle_stops_its_sessions_and_no_others_and_closing_again_changes_nothing() {
    let machine = SimMachine::named("amd-legacy", PROCESSORS);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10 + u32::try_from(handle).unwrap()));
    first.started(&mut engine, 0, &[2, 6]);
    first.started(&mut engine, flags::DETACHED, &[8]);
    let kept = second.started(&mut engine, 0, &[11]);
    for _ in 0..2 {
        engine.close(first.0);
        let sessions: Vec<SessionEvent> = second.tell(&mut engine, Code::ListSessions);
        let sessions: Vec<_> =
            sessions.iter().map(|holder| (holder.event.source, holder.process, holder.flags)).collect();
        assert_eq!(sessions, [(8, 11, flags::DETACHED), (11, 12, 0)]);
    }
    work(&machine);
    assert_eq!(second.read(&mut engine, kept).len(), PROCESSORS as usize);
    second.started(&mut engine, 0, &[2, 6]); // the counters of the first client are free again
    engine.close(second.0);
    assert!(!nothing_counts(&machine), "the detached session goes on");
    let third = Client::open(&mut engine, 3, 13);
    let last: Vec<CountRecord> = third.stop(&mut engine, 0, Some(8)).records();
    assert_eq!(last.len(), PROCESSORS as usize);
    assert!(nothing_counts(&machine));
}

#[test]
fn no_client_reaches_a_session_of_another() {
    let machine = SimMachine::named("amd-legacy", PROCESSORS);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let session = first.started(&mut engine, 0, &[2]);
    assert_eq!(second.stop(&mut engine, session, None).header().cause, ErrorCode::NoSuchSession as u32);
    assert_eq!(second.stop(&mut engine, 0, None).records::<CountRecord>(), []);
    assert_eq!(second.read(&mut engine, session), []);
    assert!(!nothing_counts(&machine));
}

#[test]
fn a_source_of_a_session_stops_alone_and_the_session_ends_with_its_last() {
    let machine = SimMachine::named("intel-v2", PROCESSORS);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    client.started(&mut engine, flags::DETACHED, &[2, 6, 11]);
    for left in [2, 1, 0] {
        work(&machine);
        let source = [2, 6, 11][2 - left];
        let last: Vec<CountRecord> = client.stop(&mut engine, 0, Some(source)).records();
        assert!(last.iter().all(|record| record.event.source == source) && last.len() == 3);
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions).len(), left);
        for cpu in machine.all() {
            assert_eq!(cpu.model().enabled_counters().len(), left);
        }
    }
}

#[test]
fn a_refusal_for_lack_of_counters_lists_their_sessions_and_reserves_none() {
    let machine = SimMachine::named("amd-legacy", PROCESSORS);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 100 + u32::try_from(handle).unwrap()));
    first.start(&mut engine, 0, set(&[1]), &[(2, modes::USER), (6, modes::USER), (8, modes::USER)]);
    let answer = second.start(&mut engine, 0, ProcessorSet::EMPTY, &[(11, modes::USER), (9, modes::USER)]);
    let header = answer.header();
    assert_eq!((header.cause, header.source, header.processor), (ErrorCode::NoFreeCounter as u32, 9, 1));
    assert_eq!(header.detail, [4, 2]);
    let sessions: Vec<SessionEvent> = answer.records();
    let sessions: Vec<_> = sessions.iter().map(|holder| (holder.event.source, holder.modes, holder.process)).collect();
    assert_eq!(sessions, [(2, modes::USER, 101), (6, modes::USER, 101), (8, modes::USER, 101)]);
    assert_eq!(machine.processor(0).model().enabled_counters(), []);
    let others = second.start(&mut engine, 0, set(&[0, 2]), &[(2, modes::USER); 4]);
    assert_eq!(others.header().status, 0, "the other processors were not touched");
}

#[test]
fn profile_time_counts_intervals_of_measured_time_and_needs_no_timer() {
    for name in ["intel-no-leaf-a", "amd-hyperv-masked", "amd-legacy", "intel-v2"] {
        let machine = SimMachine::named(name, PROCESSORS);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let first = client.started(&mut engine, 0, &[0]);
        machine.pass(5 * 10_000 + 9_999);
        let second = client.started(&mut engine, flags::DETACHED, &[0]);
        machine.pass(7 * 10_000);
        let counts = |records: &[CountRecord]| -> Vec<u64> { records.iter().map(|record| record.count).collect() };
        assert_eq!(counts(&client.read(&mut engine, first)), [12; 3], "{name}");
        assert_eq!(counts(&client.read(&mut engine, second)), [7; 3], "{name}");
        machine.fall_asleep(&engine);
        machine.pass(1_000_000_000);
        machine.wake(&engine);
        machine.pass(10_000);
        assert_eq!(counts(&client.stop(&mut engine, first, None).records()), [13; 3], "{name}: without the sleep");
        assert_eq!(machine.timer(), None, "{name}");
        engine.shut_down();
        for cpu in machine.all() {
            let accesses = cpu.model().accesses();
            assert_eq!((accesses.wrmsr, accesses.rdmsr, accesses.rdpmc), (0, 0, 0), "{name}: no register touched");
        }
    }
}

#[test]
fn profile_time_takes_the_interval_that_is_set_when_it_starts() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let before = client.started(&mut engine, 0, &[0]);
    for (wanted, used) in
        [(0, 10_000), (1_221, 10_000), (10_001, 20_000), (1_000_000, 1_000_000), (u32::MAX, 1_000_000)]
    {
        let request = protocol::IntervalRequest { source: 0, interval: wanted, reserved: 0 };
        let records: Vec<protocol::SourceRecord> =
            client.ask(&mut engine, Code::SetInterval, zerocopy::IntoBytes::as_bytes(&request), 192).records();
        assert_eq!((records[0].interval, records[0].minimum, records[0].maximum), (used, 1_221, 1_000_000));
        let session = client.started(&mut engine, 0, &[0]);
        machine.pass(10_000_000);
        let last: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
        assert_eq!(last[0].count, 10_000_000 / u64::from(used));
    }
    let last: Vec<CountRecord> = client.stop(&mut engine, before, None).records();
    assert_eq!(last[0].count, 5_000, "a session keeps its interval");
}

#[test]
fn registers_that_drop_writes_are_detected_and_nothing_starts() {
    let of = |name: &str| {
        let dump = cpuid_dumps::find(name).unwrap().cpuid();
        model::Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
    };
    for (working, pretending, cause) in [
        // A hypervisor drops writes to absent registers, and not RDPMC.
        ("amd-kvm", of("amd-hyperv-masked").with_absent_msrs_ignored(), ErrorCode::RegisterFault),
        // Firmware has turned performance monitoring off.
        ("netburst-cedarmill", of("netburst-cedarmill").with_misc_enable(0), ErrorCode::CountersDoNotWork),
    ] {
        let machine = SimMachine::of([of(working), pretending, of(working)]);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for _ in 0..9 {
            // Nine times: leaked counters would run out.
            let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(2, modes::USER)]).header();
            assert_eq!((header.cause, header.processor), (cause as u32, 1));
            assert!(nothing_counts(&machine));
            assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), []);
        }
        client.started(&mut engine, 0, &[0]); // ProfileTime needs no counter
    }
}

#[test]
fn a_counter_of_40_bits_is_followed_beyond_its_width() {
    let machine = SimMachine::named("core2-6420", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = client.started(&mut engine, 0, &[6]); // no fixed counter counts it
    // Half the range: more would be a value that went backwards.
    let most = (1 << 39) - 1;
    for round in 1..=20_u64 {
        machine.run(0, Mode::User, &|_| most);
        engine.accumulate_counts();
        assert_eq!(machine.counted(0, 0), round * most);
    }
    let last: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
    assert_eq!((last[0].count, last[0].disturbed_register), (20 * most, 0));
}

#[test]
fn following_touches_nothing_where_nothing_counts() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    client.started(&mut engine, 0, &[0]); // ProfileTime takes no counter
    engine.accumulate_counts();
    let accesses = machine.processor(0).model().accesses();
    assert_eq!((accesses.rdmsr, accesses.wrmsr, accesses.rdpmc), (0, 0, 0));
}

#[test]
fn counters_that_a_hypervisor_does_not_enumerate_are_never_touched() {
    for (name, promised) in
        [("kvm-qemu-amd", false), ("amd-kvm", true), ("amd-hyperv-open", true), ("amd-legacy", true)]
    {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[(2, modes::USER)]).header();
        if promised {
            assert_eq!(header.cause, 0, "{name}");
            continue;
        }
        assert_eq!(header.cause, ErrorCode::CountersNotEnumerated as u32, "{name}");
        for cpu in machine.all() {
            let accesses = cpu.model().accesses();
            assert_eq!((accesses.rdmsr, accesses.wrmsr, accesses.rdpmc), (0, 0, 0), "{name}");
        }
        client.started(&mut engine, 0, &[0]); // ProfileTime needs none
    }
}

#[test]
fn between_sessions_the_registers_are_as_they_were_found() {
    let machine = SimMachine::named("ice-lake-1065g7", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for found in [0, 0b11, 0xF, 0x8_0000_00FF, 0xF_0000_000F] {
        for cpu in machine.all() {
            cpu.model().wrmsr(0x38F, found).unwrap(); // IA32_PERF_GLOBAL_CTRL
            cpu.model().wrmsr(0x186, 0x0043_003C).unwrap(); // IA32_PERFEVTSEL0, used by other software
        }
        let first = client.started(&mut engine, flags::FORCE, &[2]);
        let second = client.started(&mut engine, 0, &[6]);
        client.stop(&mut engine, first, None);
        let slots = found & 1 << 35; // a fixed counter that no source uses
        for cpu in machine.all() {
            assert_eq!(cpu.model().rdmsr(0x38F), Ok(slots | 0b1), "the second session goes on alone");
        }
        client.stop(&mut engine, second, None);
        for cpu in machine.all() {
            assert_eq!(cpu.model().rdmsr(0x38F), Ok(found));
            assert_eq!(cpu.model().rdmsr(0x186), Ok(0));
        }
    }
}

#[test]
fn shutting_down_stops_everything() {
    for name in ["amd-legacy", "intel-v1", "intel-v2"] {
        let machine = SimMachine::named(name, PROCESSORS);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        client.started(&mut engine, 0, &[2]);
        client.started(&mut engine, flags::DETACHED, &[6]);
        engine.shut_down();
        assert!(nothing_counts(&machine));
        engine.shut_down();
    }
}

/// A step of a client.
#[derive(Debug, Clone)]
enum Step {
    Start { client: usize, detached: bool, sources: Vec<u64>, processors: Vec<u32>, modes: u32 },
    Stop { session: usize, source: Option<u64> },
    Work,
    Read { session: usize },
    Close { client: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let source = prop::sample::select(vec![2_u64, 6, 10, 11, 19, 8]);
    prop_oneof![
        (
            0..3_usize,
            any::<bool>(),
            prop::collection::vec(source.clone(), 1..4),
            prop::collection::vec(0..PROCESSORS, 0..3),
            1..=3_u32
        )
            .prop_map(|(client, detached, sources, processors, modes)| Step::Start {
                client,
                detached,
                sources,
                processors,
                modes
            }),
        (0..6_usize, prop::option::of(source)).prop_map(|(session, source)| Step::Stop { session, source }),
        Just(Step::Work),
        Just(Step::Work),
        (0..6_usize).prop_map(|session| Step::Read { session }),
        (0..3_usize).prop_map(|client| Step::Close { client }),
    ]
}

/// Identifies a running event: session, processor, source and modes.
type Key = (u64, u32, u64, u32);

/// Events between the accesses of the driver by processor and counter, in the model's ledger.
type Between = BTreeMap<(u32, u32), u64>;

fn between(machine: &SimMachine) -> Between {
    let counters = (0..PROCESSORS).flat_map(|processor| (0..MOST_COUNTERS).map(move |counter| (processor, counter)));
    counters.map(|(processor, counter)| ((processor, counter), machine.between(processor, counter))).collect()
}

/// An event that runs.
struct Running {
    /// The runs of `work` since its start, which the test counts itself.
    runs: u64,
    /// Number of events of its session and source.
    events: usize,
    /// What there was between accesses before it started.
    before: Between,
}

proptest! {
    #[test]
    fn counts_are_what_happened_while_an_event_ran(
        name in prop::sample::select(vec!["amd-legacy", "intel-v1", "intel-v2"]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let machine = SimMachine::named(name, PROCESSORS);
        let mut engine = engine(&machine);
        let mut clients: Vec<_> = (0..3).map(|handle| Client::open(&mut engine, handle, 10)).collect();
        let mut sessions: Vec<(u64, Client, bool)> = Vec::new();
        let mut running: BTreeMap<Key, Running> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Start { client, detached, sources, processors, modes } => {
                    let wanted: Vec<_> = sources.iter().map(|source| (*source, modes)).collect();
                    let flags = u32::from(detached);
                    let before = between(&machine);
                    let header = clients[client].start(&mut engine, flags, set(&processors), &wanted).header();
                    if header.status == 0 {
                        let [session, _] = header.detail;
                        sessions.push((session, clients[client], detached));
                        let on: Vec<_> = if processors.is_empty() { (0..PROCESSORS).collect() } else { processors };
                        for processor in on {
                            for source in &sources {
                                let events = sources.iter().filter(|other| *other == source).count();
                                let event = Running { runs: 0, events, before: before.clone() };
                                running.insert((session, processor, *source, modes), event);
                            }
                        }
                    }
                }
                Step::Stop { session, source } => {
                    let Some((session, client, _)) = sessions.get(session).copied() else { continue };
                    let records: Vec<CountRecord> = client.stop(&mut engine, session, source).records();
                    // A counter stands still when it is read for the last time.
                    let now = between(&machine);
                    check(name, &records, &running, [&now, &now])?;
                    running.retain(|key, _| key.0 != session || source.is_some_and(|source| source != key.2));
                }
                Step::Work => {
                    work(&machine);
                    for event in running.values_mut() {
                        event.runs += 1;
                    }
                }
                Step::Read { session } => {
                    let Some((session, client, _)) = sessions.get(session).copied() else { continue };
                    let from = between(&machine);
                    let records = client.read(&mut engine, session);
                    check(name, &records, &running, [&from, &between(&machine)])?;
                }
                Step::Close { client } => {
                    let closed = clients[client];
                    engine.close(closed.0);
                    for (session, ..) in sessions.iter().filter(|(_, owner, detached)| owner.0 == closed.0 && !detached) {
                        running.retain(|key, _| key.0 != *session);
                    }
                    sessions.retain(|(_, owner, detached)| owner.0 != closed.0 || *detached);
                    clients[client] = Client::open(&mut engine, closed.0.0, 10);
                    // any remaining client can access detached sessions
                    for (_, owner, _) in &mut sessions {
                        if owner.0 == closed.0 { *owner = clients[client]; }
                    }
                }
            }
            let counting: usize = machine.all().map(|cpu| cpu.model().enabled_counters().len()).sum();
            prop_assert_eq!(counting, running.values().map(|event| event.events).sum::<usize>());
        }
        engine.shut_down();
        prop_assert!(nothing_counts(&machine));
    }
}

/// Returns the event select of a source, from docs/hal-spec.
fn event(name: &str, source: u64) -> u64 {
    match (name, source) {
        (_, 2) => 0xC0,
        ("amd-legacy", 6) => 0xC2,
        ("amd-legacy", 8) => 0x41,
        ("amd-legacy", 11) => 0xC3,
        (_, 6) => 0xC4,
        (_, 10) => 0x2E,
        (_, 11) => 0xC5,
        (_, 19) => 0x3C,
        _ => panic!("{source} runs on {name}"),
    }
}

/// Checks counts that were read while the events between accesses grew `from` some `until` others.
fn check(
    name: &str,
    records: &[CountRecord],
    running: &BTreeMap<Key, Running>,
    [from, until]: [&Between; 2],
) -> Result<(), TestCaseError> {
    for record in records {
        let key = (record.session, record.processor, record.event.source, record.modes);
        let Some(Running { runs, before, .. }) = running.get(&key) else {
            return Err(TestCaseError::fail(format!("{record:?} does not run")));
        };
        let of_modes = u64::from(record.modes); // user mode once, kernel mode twice
        let event = event(name, record.event.source);
        let per_time = of_modes * (10_000 * u64::from(record.processor + 1) + event);
        let place = (record.processor, record.counter);
        let [from, until] = [from, until].map(|at| runs * per_time + at[&place] - before[&place]);
        prop_assert!((from..=until).contains(&record.count), "{from} to {until}: {record:?}");
    }
    Ok(())
}
