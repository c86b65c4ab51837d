//! A processor whose entry of the local vector table is dead: the HAL did not set it up again after a sleep, or other
//! software has reset it.

use engine::Engine;
use protocol::{ErrorCode, PauseRecord, Record, RecordKind};
use simulation::{Client, SimMachine};

use super::scene::{
    SHORT, engine, event, fetched, header, interrupted, is_left_clean, is_sample, machines, on, overflows, run,
    started, stopped,
};

/// The entry after a reset: vector 0, masked.
const RESET: u32 = 0x1_0000;

/// The entry of the Windows HAL.
const OPEN: u32 = 0xFE;

/// Ticks and delivers the interrupts of processor 0 this often, 10 ms apart.
fn tick(machine: &SimMachine, engine: &Engine<&SimMachine>, times: u32) {
    for _ in 0..times {
        machine.pass(100_000);
        machine.tick_sampling(engine, 0);
        machine.deliver(engine, 0, &interrupted(0));
    }
}

/// Lets the machine sleep. The HAL leaves the entry of processor 0 as the reset leaves it.
fn sleep_and_forget(machine: &SimMachine, engine: &Engine<&SimMachine>) {
    machine.processor(0).model().set_lvt_forgotten(true);
    machine.fall_asleep(engine);
    machine.wake(engine);
}

/// Returns the kinds of the records of a processor that are not samples.
fn events_of(processor: u32, records: &[Record]) -> Vec<RecordKind> {
    let others = records.iter().filter(|record| record.processor() == processor && !is_sample(record));
    others.map(Record::kind).collect()
}

/// Stops a session and checks that it accounts for every overflow and event.
fn stop_and_check(name: &str, machine: &SimMachine, engine: &mut Engine<&SimMachine>, client: Client, session: u64) {
    for count in stopped(client, engine, session, None) {
        let raised = overflows(machine, count.processor, count.event.source);
        assert_eq!(count.samples + count.lost + count.throttled, raised, "{name}, {count:?}");
        assert_eq!(count.count, machine.counted(count.processor, count.counter), "{name}, {count:?}");
    }
    assert!(is_left_clean(machine), "{name}");
    assert_eq!(machine.processor(0).model().illegal_vectors(), 0, "{name}: an entry that is not the HAL's");
}

#[test]
fn a_session_is_told_of_an_entry_that_is_dead_after_a_wake_and_samples_again_when_it_is_back() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        sleep_and_forget(&machine, &engine);
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!(events_of(1, &records), [RecordKind::Slept], "{name}");
        assert_eq!(events_of(0, &records), [RecordKind::Disconnected, RecordKind::Slept], "{name}");
        for _ in 0..5 {
            run(&machine, &engine, 0, SHORT.into());
            tick(&machine, &engine, 2);
            assert_eq!(machine.processor(0).model().lvt(), RESET, "{name}: left alone");
        }
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!(events_of(0, &records), [RecordKind::Lost], "{name}: it is reported once");
        let read = client.read(&mut engine, session);
        assert_eq!((read[0].count, read[0].samples, read[0].lost), (5 * u64::from(SHORT), 0, 5), "{name}");

        machine.processor(0).model().initialize_lvt();
        tick(&machine, &engine, 2);
        run(&machine, &engine, 0, SHORT.into());
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!(records.iter().filter(|record| is_sample(record)).count(), 1, "{name}: {records:?}");
        assert_eq!(events_of(0, &records), [RecordKind::Reconnected], "{name}: {records:?}");
        let paused = records.iter().find_map(|record| match record {
            Record::Pause(PauseRecord { duration, .. }) => Some(*duration),
            _ => None,
        });
        assert_eq!(paused, Some(11 * 100_000), "{name}: eleven ticks");
        stop_and_check(&name, &machine, &mut engine, client, session);
    }
}

#[test]
fn an_entry_that_stays_dead_refuses_the_next_session_that_samples_and_no_other() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        sleep_and_forget(&machine, &engine);
        run(&machine, &engine, 0, SHORT.into());
        let refused = client.start_with(&mut engine, header(64, on(&[])), &[event(6, SHORT)]).header();
        assert_eq!(refused.cause, ErrorCode::InterruptNotEnabled as u32, "{name}");
        let counting = client.started(&mut engine, 0, &[6]);
        run(&machine, &engine, 0, 100);
        assert_eq!(client.read(&mut engine, counting)[0].count, 100, "{name}");
        client.stop(&mut engine, counting, None);
        stop_and_check(&name, &machine, &mut engine, client, session);
        assert_eq!(machine.processor(0).model().lvt(), RESET, "{name}: left alone");

        // Later sessions are not told of what came before them.
        machine.processor(0).model().initialize_lvt();
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        tick(&machine, &engine, 1);
        run(&machine, &engine, 0, SHORT.into());
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!((records.len(), records.iter().all(is_sample)), (1, true), "{name}: {records:?}");
    }
}

#[test]
fn an_entry_that_other_software_resets_is_reported_by_the_next_tick_once_there_is_room() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        let timed = started(client, &mut engine, 64, on(&[]), &[event(0, 10_000)]);
        (0..64).for_each(|_| run(&machine, &engine, 0, SHORT.into()));
        machine.processor(0).model().set_lvt(RESET);
        tick(&machine, &engine, 1);
        let (records, _) = fetched(client, &mut engine, session);
        assert!(records.iter().all(is_sample), "{name}: no room yet");
        for wanted in [&[RecordKind::Disconnected][..], &[]] {
            tick(&machine, &engine, 1);
            assert_eq!(events_of(0, &fetched(client, &mut engine, session).0), wanted, "{name}");
        }
        assert_eq!(fetched(client, &mut engine, timed).0, [], "{name}: sampling by time needs no interrupt");

        // A second time is reported as well.
        for _ in 0..2 {
            machine.processor(0).model().set_lvt(OPEN);
            tick(&machine, &engine, 1);
            machine.processor(0).model().set_lvt(RESET);
            tick(&machine, &engine, 1);
            let (records, _) = fetched(client, &mut engine, session);
            assert_eq!(events_of(0, &records), [RecordKind::Reconnected, RecordKind::Disconnected], "{name}");
        }
        client.stop(&mut engine, timed, None);
        stop_and_check(&name, &machine, &mut engine, client, session);
    }
}

#[test]
fn an_interrupt_that_arrives_late_unmasks_no_entry_of_others() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        machine.processor(0).model().set_lvt(RESET);
        machine.run(0, model::Mode::User, &|_| SHORT.into());
        machine.interrupt(&engine, 0, &interrupted(0));
        assert_eq!(machine.processor(0).model().lvt(), RESET, "{name}: left alone");
        stop_and_check(&name, &machine, &mut engine, client, session);
    }
}
