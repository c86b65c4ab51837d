//! Interrupt storms, and processors that are silenced because of them.

use engine::Engine;
use model::{InterruptMode, Mode, Selected};
use protocol::{ALL_EVENTS, RecordKind};
use simulation::{Client, SimMachine};

use super::scene::{
    SHORT, engine, event, fetched, info, interrupted, is_left_clean, is_sample, machine, machines, on, run, started,
    stopped,
};

/// The number of consecutive spurious interrupts that are tolerated.
const MOST: u64 = 64;

/// LVT entry of the Windows HAL, masked.
const MASKED: u32 = 0x1_00FE;
const OPEN: u32 = 0xFE;

/// Delivers spurious interrupts.
fn spurious(machine: &SimMachine, engine: &Engine<&SimMachine>, count: u64) {
    (0..count).for_each(|_| {
        machine.interrupt(engine, 0, &interrupted(0));
    });
}

fn silenced(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> usize {
    let (records, _) = fetched(client, engine, session);
    let told = records.iter().filter(|record| record.kind() == RecordKind::Silenced);
    told.inspect(|record| assert_eq!((record.processor(), record.event()), (0, ALL_EVENTS))).count()
}

#[test]
fn too_many_interrupts_in_a_row_silence_a_processor_until_a_session_starts_there() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let first = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        spurious(&machine, &engine, MOST);
        assert_eq!(silenced(client, &mut engine, first), 0, "{name}");
        run(&machine, &engine, 0, u64::from(SHORT) - 1);
        spurious(&machine, &engine, 1);
        assert_eq!(silenced(client, &mut engine, first), 1, "{name}");
        assert_eq!(machine.processor(0).model().interrupting_counters(), [], "{name}");
        assert_eq!(machine.processor(0).model().lvt(), MASKED, "{name}");
        assert_eq!(machine.processor(1).model().interrupting_counters().len(), 1, "{name}: a processor's own");

        // Neither ticks nor further interrupts change that, and it is reported once.
        for _ in 0..5 {
            machine.tick_sampling(&engine, 0);
            spurious(&machine, &engine, 2 * MOST);
            run(&machine, &engine, 0, SHORT.into());
        }
        assert_eq!(fetched(client, &mut engine, first).0, [], "{name}");
        assert_eq!(machine.processor(0).model().lvt(), MASKED, "{name}");

        // The next session resumes the first one as well, whether or not they share a counter.
        let second = started(client, &mut engine, 64, on(&[0]), &[event(6, SHORT)]);
        assert_eq!(machine.processor(0).model().lvt(), OPEN, "{name}");
        run(&machine, &engine, 0, SHORT.into());
        for session in [first, second] {
            assert!(fetched(client, &mut engine, session).0.iter().any(is_sample), "{name}");
        }
        spurious(&machine, &engine, MOST + 1);
        let third = started(client, &mut engine, 64, on(&[0]), &[event(2, SHORT)]);
        run(&machine, &engine, 0, SHORT.into());
        for session in [first, second, third] {
            assert!(fetched(client, &mut engine, session).0.iter().any(is_sample), "{name}");
        }
        let counts = stopped(client, &mut engine, first, None);
        let executed = 3 * u64::from(SHORT) - 1;
        assert_eq!((counts[0].count, counts[0].samples, counts[0].lost), (executed, 2, 0), "{name}: what ran counted");
    }
}

#[test]
fn a_session_with_a_full_ring_gets_the_silence_record_once_there_is_room() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        let roomy = started(client, &mut engine, 128, on(&[]), &[event(2, SHORT)]);
        (0..64).for_each(|_| run(&machine, &engine, 0, SHORT.into()));
        spurious(&machine, &engine, MOST + 1);
        assert_eq!(silenced(client, &mut engine, roomy), 1, "{name}");
        machine.tick_sampling(&engine, 0);
        assert_eq!(silenced(client, &mut engine, session), 0, "{name}: no room yet");
        for told in [1, 0] {
            machine.tick_sampling(&engine, 0);
            assert_eq!(silenced(client, &mut engine, session), told, "{name}");
        }
        assert_eq!(fetched(client, &mut engine, roomy).0, [], "{name}: once");
    }
}

#[test]
fn a_tick_or_an_overflow_in_between_begins_to_count_anew() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        for round in 0..10 {
            spurious(&machine, &engine, MOST);
            if round % 2 == 0 { machine.tick_sampling(&engine, 0) } else { run(&machine, &engine, 0, SHORT.into()) }
        }
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!((records.len(), records.iter().all(is_sample)), (5, true), "{name}");
        assert_eq!(info(client, &mut engine).spurious, 10 * MOST, "{name}");
    }
}

#[test]
fn counters_throttled_during_a_storm_are_not_resumed_by_the_next_tick() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        machine.set_pace(1_000_000);
        run(&machine, &engine, 0, SHORT.into());
        machine.set_pace(0);
        spurious(&machine, &engine, MOST + 1);
        machine.tick_sampling(&engine, 0);
        assert_eq!(machine.processor(0).model().enabled_counters(), [], "{name}");
        assert_eq!(silenced(client, &mut engine, session), 1, "{name}");
        stopped(client, &mut engine, session, None);
        assert!(is_left_clean(&machine), "{name}");
        assert_eq!(machine.processor(0).model().lvt(), OPEN, "{name}: as it was found");
    }
}

/// Fixed counter 3 (slots), which the driver does not use: counter register, control, and bit in the global registers.
const SLOTS: (u32, u64, u64) = (0x30C, 0xB000, 1 << 35);

#[test]
fn the_status_of_others_is_left_alone_and_makes_no_endless_loop() {
    for mode in InterruptMode::ALL {
        let machine = machine("sapphire-rapids-2475x", 1, mode);
        let (register, control, bit) = SLOTS;
        let write = |msr, value| machine.processor(0).model().wrmsr(msr, value).unwrap();
        let status = || machine.processor(0).model().rdmsr(0x38E).unwrap();
        write(register, (1 << 48) - 1);
        write(0x38D, control);
        write(0x38F, bit);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT), event(6, SHORT)]);
        let is_slots = |selected: Selected| (selected.event, selected.umask) == (0xA4, 0x01);
        machine.run(0, Mode::User, &|selected| u64::from(is_slots(selected)));
        let (interrupts, _) = machine.deliver(&engine, 0, &interrupted(0));
        let raises = mode == InterruptMode::RaisedOnUnmask;
        assert!(if raises { u64::from(interrupts) <= MOST + 3 } else { interrupts == 1 }, "{mode:?}: {interrupts}");
        assert_eq!((silenced(client, &mut engine, session) == 1, status()), (raises, bit), "{mode:?}");
        if raises {
            let selects = [0x186, 0x187].map(|select| machine.processor(0).model().rdmsr(select).unwrap());
            let fixed = machine.processor(0).model().rdmsr(0x38D).unwrap();
            assert_eq!((selects.map(|select| select >> 20 & 1), fixed), ([0; 2], control), "no interrupt bit of ours");
            assert_eq!(machine.processor(0).model().lvt(), MASKED);
        } else {
            run(&machine, &engine, 0, SHORT.into());
            assert_eq!(fetched(client, &mut engine, session).0.len(), 2, "{mode:?}");
        }
        stopped(client, &mut engine, session, None);
        assert_eq!(status(), bit, "{mode:?}: also at the end");
    }
}
