//! Precise events: the records of the client, and the counts.

use model::{CounterId, Mode};
use pmu::source::RawEvent;
use protocol::{ErrorCode, Event, EventRequest, Mode as WireMode, PreciseKind, Record, UNKNOWN, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    BUFFER, FORMATS, INSTRUCTIONS, INTERVAL, TO_RECORD, branch, branches, counted, engine, fetched, header,
    interrupted, is_left_clean, machine, precise, precise_sample, records, run, started, stopped,
};

/// BranchInstructionRetired.
const BRANCHES: u64 = 0x1E;

/// TotalCycles.
const CYCLES: u64 = 0x13;

#[test]
fn a_record_has_the_instruction_of_the_event_in_every_format() {
    for (name, format, exact) in FORMATS {
        let machine = machine(name, format, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
        for step in 0..40 {
            let ip = if step % 2 == 0 { 0x40_0000 } else { 0xFFFF_F800_0000_0000 } + step * 0x10;
            run(&machine, &engine, 1, ip, TO_RECORD);
        }
        let samples = fetched(client, &mut engine, session);
        assert_eq!(samples.len(), 40, "{name} {format}");
        let kind = if exact { PreciseKind::Precise } else { PreciseKind::PreciseNext };
        for (step, sample) in (0..).zip(samples.iter().map(precise_sample)) {
            let (base, mode) =
                if step % 2 == 0 { (0x40_0000, WireMode::User) } else { (0xFFFF_F800_0000_0000, WireMode::Kernel) };
            let ip = base + step * 0x10 + if exact { 0 } else { model::INSTRUCTION_LENGTH };
            assert_eq!((sample.ip, sample.kind, sample.mode), (ip, kind, mode), "{name} {format}");
            assert_eq!((sample.process, sample.thread, sample.processor), (101, 200, 1), "who was interrupted made it");
            assert_eq!((sample.number, sample.event, sample.interval), (step, 0, INTERVAL));
        }
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[1].samples, counts[1].lost, counts[1].count), (40, 0, 40 * TO_RECORD));
        assert_eq!(fetched(client, &mut engine, session), []);
        assert!(is_left_clean(&machine), "{name} {format}");
    }
}

#[test]
fn counts_are_exact_at_every_read() {
    for (name, format, _) in FORMATS {
        for batch in [1, 7] {
            let machine = machine(name, format, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let session = started(client, &mut engine, &header(batch), &[precise(INSTRUCTIONS, INTERVAL)]);
            let mut records = 0;
            for step in [1, 4_094, 1, 1, 5_000, 3, 4_097 * 3, 9_999, 4_095, 1, 1, 4_097, 20_000] {
                run(&machine, &engine, 0, 0x1000, step);
                let read = client.read(&mut engine, session);
                assert_eq!(read[0].count, counted(&machine, 0, read[0].counter), "{name} {format} {batch} {step}");
                records = records.max(read[0].samples);
            }
            let counter = client.read(&mut engine, session)[0].counter;
            let counts = stopped(client, &mut engine, session, None);
            assert_eq!(counts[0].count, counted(&machine, 0, counter), "{name} {format} {batch}");
            assert_eq!(counts[0].samples, super::scene::records(&machine, 0));
            assert_eq!(counts[0].samples, counts[0].count / TO_RECORD);
            assert!(records > 0);
        }
    }
}

#[test]
fn an_overflow_without_a_record_before_the_stop_is_a_lost_sample() {
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for _ in 0..2 {
            let session = started(client, &mut engine, &header(10), &[precise(INSTRUCTIONS, INTERVAL)]);
            run(&machine, &engine, 0, 0x1000, TO_RECORD + u64::from(INTERVAL));
            assert_eq!(client.read(&mut engine, session)[0].count, TO_RECORD + u64::from(INTERVAL), "{name} {format}");
            let counts = stopped(client, &mut engine, session, None);
            // Fixed counter 0 makes the record at the overflow itself.
            let expected = if format < 4 { (1, 1, 0) } else { (2, 0, 0) };
            assert_eq!((counts[0].samples, counts[0].lost, counts[0].throttled), expected, "{name} {format}");
            assert_eq!(counts[0].count, TO_RECORD + u64::from(INTERVAL), "{name} {format}");
            assert!(is_left_clean(&machine), "{name} {format}");
        }
    }
}

#[test]
fn an_interrupt_comes_after_a_batch_and_its_records_have_no_thread() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(10), &[precise(INSTRUCTIONS, INTERVAL)]);
    for step in 1..=25 {
        run(&machine, &engine, 0, 0x1000 + step, TO_RECORD);
        let told = fetched(client, &mut engine, session);
        assert_eq!(told.len(), if step % 10 == 0 { 10 } else { 0 }, "{step}");
        assert!(told.iter().map(precise_sample).all(|sample| (sample.process, sample.thread) == (UNKNOWN, UNKNOWN)));
    }
    stopped(client, &mut engine, session, None);
    let rest: Vec<_> = fetched(client, &mut engine, session).iter().map(precise_sample).collect();
    let rest: Vec<_> = rest.iter().map(|sample| (sample.ip, sample.number)).collect();
    assert_eq!(rest, [(0x1015, 20), (0x1016, 21), (0x1017, 22), (0x1018, 23), (0x1019, 24)], "fetched at the stop");
}

#[test]
fn ordinary_samples_say_how_many_records_were_written_before_them() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let ordinary =
        EventRequest { event: Event::of(CYCLES), modes: modes::USER, interval: 10_000, ..EventRequest::EMPTY };
    let session = started(client, &mut engine, &header(100), &[precise(INSTRUCTIONS, INTERVAL), ordinary]);
    for _ in 0..50 {
        run(&machine, &engine, 0, 0x1000, 1_000);
        let written = records(&machine, 0);
        for record in fetched(client, &mut engine, session) {
            let Record::Sample(sample) = record else { panic!("{record:?}") };
            assert_eq!((sample.event, u64::from(sample.pebs_sequence)), (1, written));
            assert_eq!((sample.ip, sample.process), (0xBAD, 100));
        }
    }
    let counts = stopped(client, &mut engine, session, None);
    assert_eq!((counts[0].samples, counts[1].samples), (12, 5));
    let numbers: Vec<u64> =
        fetched(client, &mut engine, session).iter().map(|record| precise_sample(record).number).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<_>>());
}

#[test]
fn two_precise_events_have_records_of_their_own() {
    for (name, format, _) in FORMATS.into_iter().filter(|(_, format, _)| *format > 0) {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let events = [precise(INSTRUCTIONS, INTERVAL), precise(BRANCHES, 5_000)];
        let session = started(client, &mut engine, &header(0), &events);
        for _ in 0..100 {
            run(&machine, &engine, 0, 0x1000, 1_000);
        }
        let counts = stopped(client, &mut engine, session, None);
        let told = fetched(client, &mut engine, session);
        for (count, interval) in counts.iter().zip([4_096, 5_000]) {
            let own = told.iter().filter(|sample| sample.event() == count.index);
            // At the overflow itself: fixed counter 0, and counter 0 of Golden Cove and Lion Cove with the branches.
            let is_distributed = format >= 4;
            let period = interval + u64::from(!is_distributed);
            assert_eq!((count.count, count.samples), (100_000, 100_000 / period), "{name} {format}");
            let as_long = own.filter(|record| u64::from(precise_sample(record).interval) == interval);
            assert_eq!(as_long.count() as u64, count.samples);
        }
    }
}

#[test]
fn a_frequency_moves_the_interval_from_the_next_load_on() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = EventRequest { frequency: 1_000, ..precise(INSTRUCTIONS, INTERVAL) };
    let session = started(client, &mut engine, &header(0), &[event]);
    let mut expected = 0;
    for _ in 0..40 {
        (0..50).for_each(|_| run(&machine, &engine, 0, 0x1000, 4_000));
        machine.pass(100_000);
        machine.tick_sampling(&engine, 0);
        expected += 200_000;
        assert_eq!(client.read(&mut engine, session)[0].count, expected);
    }
    let samples = fetched(client, &mut engine, session);
    let recent: Vec<u32> = samples.iter().rev().take(20).map(|sample| precise_sample(sample).interval).collect();
    // 20 million events per second at a thousand samples per second.
    assert!(recent.iter().all(|interval| (15_000..25_000).contains(interval)), "{recent:?}");
    let lost = stopped(client, &mut engine, session, None)[0].lost;
    assert_eq!(samples.len() as u64 + lost, records(&machine, 0));
}

#[test]
fn a_record_fetched_at_a_stop_has_no_thread_and_its_interrupt_is_late() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    machine.processor(0).model().set_place(0x1234, 0);
    machine.run(0, Mode::User, &|_| TO_RECORD);
    let counts = stopped(client, &mut engine, session, None);
    assert_eq!((counts[0].samples, counts[0].lost), (1, 0));
    let told = fetched(client, &mut engine, session);
    let sample = precise_sample(&told[0]);
    assert_eq!((told.len(), sample.ip, sample.process), (1, 0x1234, UNKNOWN));
    machine.deliver(&engine, 0, &interrupted(0));
    assert!(is_left_clean(&machine));
}

#[test]
fn precise_events_get_the_counters_that_record_before_others_get_them() {
    let machine = SimMachine::named("skylake-6600k", 1).with_interrupt_mode(super::MODE);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let plain = |source| EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY };
    // Without precision, the fixed counters of instructions and cycles would suffice for the others.
    let events = [plain(0x1C), plain(0x1D), precise(INSTRUCTIONS, INTERVAL), plain(INSTRUCTIONS), plain(CYCLES)];
    let session = started(client, &mut engine, &header(0), &events);
    let counters: Vec<u32> = client.read(&mut engine, session).iter().map(|count| count.counter).collect();
    assert_eq!(counters[2], 1, "general, though there is a fixed one for it: {counters:?}");
    assert!(counters[3] >= 4 && counters[4] >= 4, "{counters:?}");
}

#[test]
fn a_record_has_a_thread_only_if_it_alone_caused_the_interrupt() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let nobody_s = |engine: &mut engine::Engine<&SimMachine>, session, expected: usize| {
        let told = fetched(client, engine, session);
        let precise: Vec<_> =
            told.iter().filter(|record| matches!(record, Record::Precise(_))).map(precise_sample).collect();
        assert_eq!(precise.len(), expected);
        assert!(precise.iter().all(|sample| (sample.process, sample.thread) == (UNKNOWN, UNKNOWN)));
    };
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    machine.run(0, Mode::User, &|_| 2 * TO_RECORD); // the second overflow preceded the interrupt
    machine.deliver(&engine, 0, &interrupted(0));
    nobody_s(&mut engine, session, 2);
    stopped(client, &mut engine, session, None);
    let events = [branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)];
    let session = started(client, &mut engine, &header(10), &events);
    run(&machine, &engine, 0, 0x1000, TO_RECORD);
    (0..u64::from(BUFFER)).for_each(|number| branch(&machine, &engine, 0, Mode::User, number)); // raises the interrupt
    nobody_s(&mut engine, session, 1);
}

#[test]
fn a_ring_half_filled_by_a_read_is_reported_once_by_the_next_tick() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { ring: 64, ..header(50) };
    let session = started(client, &mut engine, &header, &[precise(INSTRUCTIONS, INTERVAL)]);
    (0..40).for_each(|_| run(&machine, &engine, 0, 0x1000, TO_RECORD));
    client.read(&mut engine, session);
    let tick = || engine.sampler().tick(machine.current(0), engine::Platform::clock(&&machine)).reader;
    assert_eq!([tick(), tick()], [true, false]);
}

#[test]
fn an_ambiguous_record_is_a_lost_sample_of_each_candidate() {
    /// First word of an adaptive record: the size is in bits 63:48.
    const LONG: u64 = 0x1000 << 48;
    for (name, format, offset, word, lost) in [
        ("nehalem-920", 1, 0x90, 0b11, [1, 1]),
        ("haswell-4710mq", 2, 0x90, 0b11, [1, 1]),
        ("skylake-6600k", 3, 0x90, 0b11, [1, 1]),
        ("skylake-6600k", 3, 0x90, 0b100, [0, 1]), // attributed to the first recording counter: 0 (branches)
        ("alder-lake-12900k", 4, 0x00, LONG, [0, 1]),
        ("alder-lake-12900k", 5, 0x00, LONG, [0, 1]),
    ] {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let events = [precise(INSTRUCTIONS, INTERVAL), precise(BRANCHES, 5_000)];
        let session = started(client, &mut engine, &header(0), &events);
        machine.run(0, Mode::User, &|_| TO_RECORD);
        let buffer = pmu::Cpu::save_area(machine.processor(0), 4);
        assert!(model::Memory::write(&host_memory::ProcessMemory, buffer + offset, word));
        machine.deliver(&engine, 0, &interrupted(0));
        let told = fetched(client, &mut engine, session);
        assert!(told.iter().all(|record| matches!(record, Record::Lost(_))), "{name} {format}: {told:?}");
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!([counts[0].samples, counts[1].samples], [0, 0], "{name} {format} {word:#x}");
        assert_eq!([counts[0].lost, counts[1].lost], lost, "{name} {format} {word:#x}");
    }
}

#[test]
fn no_fixed_counter_records_where_there_are_few_general_ones() {
    let dump = cpuid_dumps::find("haswell-4710mq").unwrap().cpuid();
    let leaves = move |leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        [if leaf == 0xA { eax & !0xFF00 | 0x200 } else { eax }, ebx, ecx, edx]
    };
    let mut processor = model::Processor::new(Box::new(leaves)).with_perf_capabilities(0x200);
    processor.set_memory(Box::new(host_memory::ProcessMemory));
    let machine = SimMachine::of([processor]).with_interrupt_mode(super::MODE);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    run(&machine, &engine, 0, 0x1000, TO_RECORD);
    let counts = stopped(client, &mut engine, session, None);
    assert_eq!((counts[0].counter, counts[0].samples), (1, 1));
}

/// At most the interval of the lost record is missing.
#[test]
fn an_ambiguous_record_makes_no_count_too_high() {
    for reads in [true, false] {
        let machine = machine("skylake-6600k", 3, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let events = [precise(INSTRUCTIONS, INTERVAL), precise(BRANCHES, 8_000)];
        let session = started(client, &mut engine, &header(0), &events);
        run(&machine, &engine, 0, 0x1000, 3_000);
        let counter = client.read(&mut engine, session)[0].counter;
        machine.run(0, Mode::User, &|_| 2_000);
        let buffer = pmu::Cpu::save_area(machine.processor(0), 4);
        assert!(model::Memory::write(&host_memory::ProcessMemory, buffer + 0x90, 0b11));
        machine.deliver(&engine, 0, &interrupted(0));
        let count = if reads {
            client.read(&mut engine, session)[0].count
        } else {
            stopped(client, &mut engine, session, None)[0].count
        };
        let all = counted(&machine, 0, counter);
        assert!(count <= all && all - count <= TO_RECORD, "{count} of {all}");
    }
}

#[test]
fn a_sample_has_the_interval_with_which_the_processor_had_loaded_the_counter() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = EventRequest { frequency: 1_000, ..precise(INSTRUCTIONS, INTERVAL) };
    let session = started(client, &mut engine, &header(0), &[event]);
    for step in 1..60 {
        let left = machine.processor(0).model().until_overflow(CounterId::General(1)).unwrap();
        run(&machine, &engine, 0, 0x1000, left + 1);
        let told = fetched(client, &mut engine, session);
        assert_eq!((told.len(), u64::from(precise_sample(&told[0]).interval)), (1, left), "{step}");
        if step % 7 == 0 {
            machine.pass(step * 1_000);
            machine.tick_sampling(&engine, 0);
        }
    }
}

/// TotalIssues, BranchInstructions, BranchMispredictions.
const NAMED: [u64; 3] = [2, 6, 0xB];

/// Returns event, unit mask and counter of each enabled counter of a processor, in ascending order.
fn counting(machine: &SimMachine, processor: u32) -> Vec<(u16, u16, CounterId)> {
    let enabled = machine.processor(processor).model().enabled_counters();
    let mut counting: Vec<_> = enabled.iter().map(|(id, selected)| (selected.event, selected.umask, *id)).collect();
    counting.sort_unstable();
    counting
}

/// Identity, the selects for instructions, branches and mispredictions, and whether fixed counter 0 records
/// instructions, else counter 1.
#[test]
fn named_events_are_recorded_by_the_encodings_and_on_the_counters_that_can() {
    let plain = [(0xC0, 0), (0xC4, 0), (0xC5, 0)];
    let precise_ones = [(0xC0, 1), (0xC4, 4), (0xC5, 4)];
    for (name, encodings, counter) in [
        ("sandy-bridge-2600k", precise_ones, CounterId::General(1)),
        ("ivy-bridge-3570k", precise_ones, CounterId::General(1)),
        ("haswell-4710mq", precise_ones, CounterId::General(1)),
        ("broadwell-6950x", precise_ones, CounterId::General(1)),
        ("skylake-6600k", precise_ones, CounterId::General(1)),
        ("cascade-lake-8269c", precise_ones, CounterId::General(1)),
        ("ice-lake-1065g7", plain, CounterId::Fixed(0)),
        ("tiger-lake-1135g7", plain, CounterId::Fixed(0)),
        ("alder-lake-12900k", plain, CounterId::Fixed(0)),
        ("sapphire-rapids-2475x", plain, CounterId::Fixed(0)),
        ("lunar-lake-288v", plain, CounterId::Fixed(0)),
        ("arrow-lake-s-265k-efficient", plain, CounterId::Fixed(0)),
    ] {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let machine = SimMachine::named(name, 1).with_interrupt_mode(super::MODE);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let events = order.map(|index| precise(NAMED[index], INTERVAL));
            let session = started(client, &mut engine, &header(0), &events);
            let counting = counting(&machine, 0);
            assert_eq!(
                counting.iter().map(|(event, umask, _)| (*event, *umask)).collect::<Vec<_>>(),
                encodings,
                "{name}"
            );
            assert_eq!(counting[0].2, counter, "{name}");
            (0..10).for_each(|_| run(&machine, &engine, 0, 0x1000, TO_RECORD));
            let counts = stopped(client, &mut engine, session, None);
            assert!(
                counts.iter().all(|count| (count.samples, count.count) == (10, 10 * TO_RECORD)),
                "{name}: {counts:?}"
            );
        }
    }
}

#[test]
fn an_event_that_is_not_precise_keeps_its_encoding_beside_one_that_is() {
    let machine = SimMachine::named("skylake-6600k", 1).with_interrupt_mode(super::MODE);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let plain = |source| EventRequest {
        event: Event::of(source),
        modes: modes::USER,
        interval: INTERVAL,
        ..EventRequest::EMPTY
    };
    let session = started(client, &mut engine, &header(0), &[precise(6, INTERVAL), plain(6), plain(0xB)]);
    let encodings: Vec<_> = counting(&machine, 0).iter().map(|(event, umask, _)| (*event, *umask)).collect();
    assert_eq!(encodings, [(0xC4, 0), (0xC4, 4), (0xC5, 0)]);
    stopped(client, &mut engine, session, None);
}

#[test]
fn an_event_by_its_numbers_is_recorded_as_it_is_or_refused() {
    let raw = |event, umask| RawEvent::new().with_event(event).with_umask(umask).source().0;
    for (name, refused, recorded) in [
        ("skylake-6600k", [(0xC0, 0), (0xC4, 0), (0xC5, 0)], [(0xC0, 1), (0xC4, 4), (0xC5, 4)]),
        ("alder-lake-12900k", [(0xC0, 1), (0xC4, 4), (0xC5, 4)], [(0xC0, 0), (0xC4, 0), (0xC5, 0)]),
    ] {
        let machine = SimMachine::named(name, 1).with_interrupt_mode(super::MODE);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for (event, umask) in refused {
            let answer = client.start_with(&mut engine, header(0), &[precise(raw(event, umask), INTERVAL)]).header();
            assert_eq!(answer.cause, ErrorCode::NotPrecise as u32, "{name} {event:#x}/{umask:#x}");
        }
        let events = recorded.map(|(event, umask)| precise(raw(event, umask), INTERVAL));
        let session = started(client, &mut engine, &header(0), &events);
        run(&machine, &engine, 0, 0x1000, TO_RECORD);
        assert!(stopped(client, &mut engine, session, None).iter().all(|count| count.samples == 1), "{name}");
    }
}

#[test]
fn two_precise_events_of_instructions_need_the_one_counter_that_records_them() {
    let machine = SimMachine::named("skylake-6600k", 1).with_interrupt_mode(super::MODE);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events = [precise(2, INTERVAL), precise(INSTRUCTIONS, 5_000)];
    let answer = client.start_with(&mut engine, header(0), &events).header();
    assert_eq!((answer.cause, answer.detail), (ErrorCode::NoFreeCounter as u32, [1, 2]));
    assert!(is_left_clean(&machine));
}

#[test]
fn a_counter_that_records_does_not_interrupt_by_itself() {
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, &header(10), &[precise(INSTRUCTIONS, INTERVAL)]);
        let mut interrupts = 0;
        for _ in 0..30 {
            machine.run(0, Mode::User, &|_| TO_RECORD);
            interrupts += machine.deliver(&engine, 0, &interrupted(0)).0;
        }
        assert_eq!(interrupts, 3, "{name} {format}: one for ten records");
    }
}

/// Runs `work` in its own thread, so that the test fails if it hangs.
fn fails_if_it_hangs(work: impl FnOnce() + Send + 'static) {
    let (done, ended) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    let outcome = ended.recv_timeout(std::time::Duration::from_mins(2));
    assert_ne!(outcome, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it does not end");
    thread.join().unwrap();
}

/// Records are drained at PROFILE_LEVEL, so an unchecked index could keep the processor there forever.
#[test]
fn an_index_beyond_its_buffer_ends_the_fetch_at_the_end_of_the_buffer() {
    fails_if_it_hangs(|| {
        for (name, format, _) in FORMATS {
            for (far, maximum) in [8, 0x1000, 1 << 40, 1 << 62].into_iter().flat_map(|far| [(far, false), (far, true)])
            {
                let machine = machine(name, format, 1);
                let mut engine = engine(&machine);
                let client = Client::open(&mut engine, 1, 10);
                let events = [branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)];
                let session = started(client, &mut engine, &header(0), &events);
                let cpu = machine.processor(0);
                let word = |number| pmu::Cpu::save_area(cpu, number);
                let room = (word(6) - word(4)) / 0x20 + (word(2) - word(0)) / 24;
                for [index, end] in [[1, 2], [5, 6]] {
                    pmu::Cpu::set_save_area(cpu, index, word(end) + far);
                    pmu::Cpu::set_save_area(cpu, end, if maximum { word(index) } else { word(end) });
                }
                machine.interrupt(&engine, 0, &interrupted(0));
                let counts = stopped(client, &mut engine, session, None);
                let all: u64 = counts.iter().map(|count| count.samples + count.lost).sum();
                assert!(all <= room, "{name} {format} {far:#x} {maximum}: {all}");
                assert!(is_left_clean(&machine), "{name} {format} {far:#x} {maximum}");
            }
        }
    });
}

#[test]
fn a_buffer_that_was_full_costs_no_event_and_its_last_overflow_is_recorded_after_it_is_empty() {
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(1), &[precise(INSTRUCTIONS, INTERVAL)]);
        // The interrupt is late.
        machine.run(0, Mode::User, &|_| 500 * TO_RECORD);
        assert!(super::scene::stored(&machine, 0).records_refused > 0, "{name} {format}: it was not full");
        machine.tick_sampling(&engine, 0);
        machine.deliver(&engine, 0, &interrupted(0));
        run(&machine, &engine, 0, 0x1000, 3 * TO_RECORD);
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!(counts[0].count, counted(&machine, 0, counts[0].counter), "{name} {format}");
        let accounted = (counts[0].samples, counts[0].lost + counts[0].throttled);
        assert_eq!(accounted, (records(&machine, 0), super::scene::overflows(&machine, 0) - records(&machine, 0)));
    }
}

/// IA32_PERF_GLOBAL_STATUS has OvfBuffer in bit 62. Left set, it would be taken for a buffer that is full again.
#[test]
fn an_interrupt_leaves_no_status_of_the_buffer() {
    const STATUS: u32 = 0x38E;
    for (name, format, _) in FORMATS {
        for batch in [0, 1, 3] {
            let machine = machine(name, format, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let session = started(client, &mut engine, &header(batch), &[precise(INSTRUCTIONS, INTERVAL)]);
            for step in 0..6 {
                run(&machine, &engine, 0, 0x1000 + step, TO_RECORD);
                let status = machine.processor(0).model().uncounted(|model| model.rdmsr(STATUS));
                assert_eq!(status, Ok(0), "{name} {format} {batch} {step}");
            }
            stopped(client, &mut engine, session, None);
        }
    }
}

/// Without branches, IA32_DEBUGCTL is not the driver's: last branch records of another program stay on.
#[test]
fn the_end_of_precise_events_leaves_the_branch_records_of_another_program() {
    const DEBUGCTL: u32 = 0x1D9;
    const LBR: u64 = 1;
    for (name, format, _) in FORMATS {
        let machine = machine(name, format, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
        let debug_control = || machine.processor(0).model().uncounted(|model| model.rdmsr(DEBUGCTL)).ok();
        let Some(found) = debug_control() else { unreachable!("{name} has a Debug Store") };
        assert!(machine.processor(0).write_foreign(DEBUGCTL, found | LBR));
        run(&machine, &engine, 0, 0x1000, TO_RECORD);
        stopped(client, &mut engine, session, None);
        assert_eq!(debug_control().map(|value| value & LBR), Some(LBR), "{name} {format}");
    }
}
