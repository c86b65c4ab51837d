//! However recording ends, the registers are restored.

use engine::Engine;
use model::Mode;
use protocol::{Record, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    INSTRUCTIONS, INTERVAL, TO_RECORD, branch, branches, engine, fetched, header, interrupted, is_left_clean, machine,
    precise, precise_sample, records, registers, run, set_register, started, stopped, stored,
};

/// FREEZE_LBRS_ON_PMI of another program, which sessions leave alone. With LBR, an interrupt would end its recording on
/// this processor (SDM Vol. 3B, "Freezing LBR and Performance Counters on PMI": version 2 and 3).
const OTHERS: u64 = 1 << 11;

fn busy(machine: &SimMachine, engine: &mut Engine<&SimMachine>) -> (Client, u64) {
    let client = Client::open(engine, 1, 10);
    let session = started(client, engine, &header(0), &[branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)]);
    for processor in 0..2 {
        (0..100).for_each(|number| branch(machine, engine, processor, Mode::User, number));
        run(machine, engine, processor, 0x1000, 10_000);
        let [control, enabled, area] = registers(machine, processor).map(Option::unwrap);
        assert_ne!((control & !OTHERS, enabled, area), (0, 0, 0));
        assert_eq!(control & OTHERS, OTHERS);
    }
    (client, session)
}

#[test]
fn after_a_stop_a_close_and_an_unload_in_the_middle_the_registers_are_as_they_were_found() {
    for end in ["stop", "close", "unload", "sleep and stop", "sleep and unload"] {
        let machine = machine("haswell-4710mq", 2, 2);
        (0..2).for_each(|processor| set_register(&machine, processor, 0x1D9, OTHERS));
        let before = [0, 1].map(|processor| registers(&machine, processor));
        let mut engine = engine(&machine);
        let (client, session) = busy(&machine, &mut engine);
        if end.starts_with("sleep") {
            machine.fall_asleep(&engine);
        }
        match end {
            "stop" | "sleep and stop" => drop(stopped(client, &mut engine, session, None)),
            "close" => engine.close(client.0),
            _ => engine.shut_down(),
        }
        let asleep = end.starts_with("sleep"); // the registers were reset then, and not accessed since
        let expected = if asleep { [[Some(0); 3]; 2] } else { before };
        assert_eq!([0, 1].map(|processor| registers(&machine, processor)), expected, "{end}");
        if end == "sleep and unload" {
            assert!(machine.all().all(simulation::ModelCpu::has_area), "a register may point to them");
        } else {
            machine.wake(&engine);
            engine.accumulate_counts();
            assert!(is_left_clean(&machine), "{end}");
        }
        assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0), "{end}");
    }
}

#[test]
fn over_a_sleep_everything_goes_on_and_nothing_is_lost() {
    let machine = machine("skylake-6600k", 3, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events = [branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)];
    let session = started(client, &mut engine, &header(50), &events);
    for _ in 0..3 {
        for processor in 0..2 {
            (0..100).for_each(|number| branch(&machine, &engine, processor, Mode::User, number));
            run(&machine, &engine, processor, 0x1000, 50_000);
        }
        machine.fall_asleep(&engine);
        assert_eq!(registers(&machine, 0), [Some(0); 3]);
        machine.wake(&engine);
    }
    let counts = stopped(client, &mut engine, session, None);
    for (processor, counts) in (0..).zip(counts.chunks(2)) {
        assert_eq!((counts[0].samples, counts[0].lost), (300, 0));
        assert_eq!((counts[1].samples, counts[1].lost, counts[1].count), (records(&machine, processor), 0, 150_000));
        assert_eq!((stored(&machine, processor).branches, records(&machine, processor)), (300, 36));
    }
    let samples = fetched(client, &mut engine, session);
    assert_eq!(samples.len(), 2 * (300 + 36 + 3));
    machine.deliver(&engine, 0, &interrupted(0));
    assert!(is_left_clean(&machine));
}

#[test]
fn an_address_that_another_program_wrote_stays() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[precise(INSTRUCTIONS, INTERVAL)]);
    set_register(&machine, 0, 0x600, 0x5000);
    set_register(&machine, 0, 0x3F1, 2);
    engine.shut_down();
    let _ = session;
    assert_eq!(registers(&machine, 0), [Some(0), Some(2), Some(0x5000)]);
}

#[test]
fn modes_that_were_off_before_are_off_behind() {
    let off = 1 << 9 | 1 << 10;
    let machine = machine("haswell-4710mq", 2, 1);
    set_register(&machine, 0, 0x1D9, off);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    assert_eq!(registers(&machine, 0)[0], Some(0x1C0), "both modes are traced");
    stopped(client, &mut engine, session, None);
    assert_eq!(registers(&machine, 0)[0], Some(off));
}

/// Makes the driver drain the pending records of a session.
type Fetch = fn(&SimMachine, &mut Engine<&SimMachine>, Client, u64);

#[test]
fn whatever_is_fetched_tells_when() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events = [branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)];
    let fetch: [(&str, Fetch); 4] = [
        ("a read", |_, engine, client, session| drop(client.read(engine, session))),
        ("a tick", |machine, engine, _, _| {
            (0..200).for_each(|number| machine.processor(0).model().branch(Mode::User, any_branch(number)));
            machine.tick_sampling(engine, 0);
        }),
        ("a sleep", |machine, engine, _, _| {
            machine.fall_asleep(engine);
            machine.wake(engine);
        }),
        ("a stop", |_, engine, client, session| drop(stopped(client, engine, session, None))),
    ];
    let session = started(client, &mut engine, &header(100), &events);
    for (what, fetch) in fetch {
        machine.pass(1_000_000);
        machine.processor(0).model().branch(Mode::User, any_branch(1));
        machine.run(0, Mode::User, &|_| TO_RECORD);
        fetch(&machine, &mut engine, client, session);
        let told = fetched(client, &mut engine, session);
        assert!(!told.is_empty(), "{what}");
        assert!(told.iter().all(|sample| sample.time() == engine::Platform::clock(&&machine).0), "{what}: {told:?}");
    }
}

const fn any_branch(from: u64) -> model::Branch {
    model::Branch { from, to: 0, predicted: false }
}

#[test]
fn sessions_follow_each_other() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for round in 1..=20 {
        let session = started(client, &mut engine, &header(round), &[precise(INSTRUCTIONS, INTERVAL)]);
        run(&machine, &engine, 0, 0x1000, 3 * TO_RECORD);
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].samples, counts[0].count), (3, 3 * TO_RECORD), "{round}");
        let numbers: Vec<u64> =
            fetched(client, &mut engine, session).iter().map(|record| precise_sample(record).number).collect();
        assert_eq!(numbers, [0, 1, 2], "each begins to count anew");
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn a_session_that_is_stopped_asleep_records_no_more_when_awake() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events = [precise(INSTRUCTIONS, INTERVAL), precise(0x1E, INTERVAL)];
    let session = started(client, &mut engine, &header(0), &events);
    let counter = client.read(&mut engine, session)[1].counter;
    machine.fall_asleep(&engine);
    stopped(client, &mut engine, session, Some(INSTRUCTIONS));
    machine.wake(&engine);
    assert_eq!(registers(&machine, 0)[1], Some(1 << counter));
    run(&machine, &engine, 0, 0x1000, TO_RECORD);
    assert_eq!(
        fetched(client, &mut engine, session).iter().filter_map(Record::sample).filter(|sample| sample.ip != 0).count(),
        1
    );
}

#[test]
fn a_read_touches_no_register_of_a_processor_that_sleeps() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH), precise(INSTRUCTIONS, INTERVAL)]);
    run(&machine, &engine, 0, 0x1000, 10_000);
    machine.fall_asleep(&engine);
    let before = machine.processor(0).model().accesses();
    assert_eq!(client.read(&mut engine, session)[1].count, 10_000);
    assert_eq!(machine.processor(0).model().accesses(), before);
}
