//! Branches: all branches of the requested modes, in order.

use model::Mode;
use protocol::{
    BRANCH_STORE, BRANCHES, Event, EventRequest, LostRecord, Mode as WireMode, Prediction, Record, RecordKind, UNKNOWN,
    modes,
};
use simulation::Client;

use super::scene::{
    BUFFER, branch, branch_record, branches, engine, fetched, header, interrupted, is_left_clean, machine,
    machine_with, started, stopped, stored,
};

const KERNEL: u64 = 0xFFFF_F800_0000_0000;

#[test]
fn every_branch_of_the_modes_comes_once_and_in_order() {
    for (modes, expected) in [(modes::BOTH, 500), (modes::USER, 250), (modes::KERNEL, 250)] {
        let machine = machine("haswell-4710mq", 2, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &header(0), &[branches(modes)]);
        for number in 0..500 {
            let (mode, base) = if number % 2 == 0 { (Mode::User, 0) } else { (Mode::Kernel, KERNEL) };
            branch(&machine, &engine, 1, mode, base + number * 8);
        }
        let counts = stopped(client, &mut engine, session, None);
        let samples = fetched(client, &mut engine, session);
        assert_eq!((samples.len() as u64, stored(&machine, 1).branches), (expected, expected), "{modes}");
        let wanted = (0..500_u64).filter(|number| if number % 2 == 0 { modes & 1 != 0 } else { modes & 2 != 0 });
        for (number, record) in wanted.zip(samples) {
            let (mode, base) = if number % 2 == 0 { (WireMode::User, 0) } else { (WireMode::Kernel, KERNEL) };
            let (branch, from) = (branch_record(&record), base + number * 8);
            assert_eq!((branch.from, branch.to, branch.mode), (from, from + 0x100, mode));
            assert_eq!((branch.event, branch.processor), (0, 1));
            assert_eq!(branch.prediction == Prediction::Predicted, from & 0x10 != 0);
            assert_eq!((branch.process, branch.thread), (UNKNOWN, UNKNOWN));
        }
        assert_eq!((counts[1].count, counts[1].samples, counts[1].counter), (expected, expected, BRANCH_STORE));
        assert_eq!((counts[0].count, counts.len()), (0, 2));
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn an_interrupt_comes_when_the_buffer_is_full_and_not_before() {
    let machine = machine("nehalem-920", 1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    for number in 1..=200_u64 {
        branch(&machine, &engine, 0, Mode::User, number);
        let told = fetched(client, &mut engine, session).len() as u64;
        assert_eq!(told, if number.is_multiple_of(BUFFER.into()) { u64::from(BUFFER) } else { 0 }, "{number}");
    }
}

#[test]
fn a_full_ring_loses_samples_and_reports_how_many() {
    let machine = machine("nehalem-920", 1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { ring: 64, ..header(0) };
    let session = started(client, &mut engine, &header, &[branches(modes::BOTH)]);
    for number in 0..256 {
        branch(&machine, &engine, 0, Mode::User, number);
    }
    let counts = stopped(client, &mut engine, session, None);
    assert_eq!((counts[0].samples, counts[0].lost, counts[0].full, counts[0].count), (64, 192, 192, 256));
    let told = fetched(client, &mut engine, session);
    assert_eq!(told.len(), 65);
    assert!(matches!(told[64], Record::Lost(LostRecord { count: 192, event: 0, .. })), "{:?}", told[64]);
}

#[test]
fn a_processor_over_its_budget_records_no_branches_until_the_next_tick() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { budget: 100, ..header(0) };
    let session = started(client, &mut engine, &header, &[branches(modes::BOTH)]);
    machine.set_pace(20_000); // each clock reading is 2 ms after the previous one, more than a tenth of a tick
    for number in 0..u64::from(BUFFER) * 3 {
        branch(&machine, &engine, 0, Mode::User, number);
    }
    assert_eq!(stored(&machine, 0).branches, u64::from(BUFFER), "none after the first interrupt");
    machine.set_pace(0);
    machine.tick_sampling(&engine, 0);
    branch(&machine, &engine, 0, Mode::User, 7);
    stopped(client, &mut engine, session, None);
    let told = fetched(client, &mut engine, session);
    let kinds: Vec<RecordKind> = told.iter().map(Record::kind).skip(BUFFER as usize).collect();
    let expected = [RecordKind::Throttled, RecordKind::Resumed, RecordKind::Branch];
    assert_eq!(kinds, expected);
    assert!(is_left_clean(&machine));
}

#[test]
fn the_time_in_which_branches_are_fetched_is_charged_by_time_stamps_too() {
    const TICK: u64 = 100_000;
    const STAMPS: u64 = 30_000_000;
    const TSC_INVARIANT: u32 = 1 << 8;
    let machine = machine_with("haswell-4710mq", 2, 1, [0, 0, 0, TSC_INVARIANT]);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { budget: 100, ..header(0) };
    let session = started(client, &mut engine, &header, &[branches(modes::BOTH)]);
    for _ in 0..3 {
        machine.pass(TICK);
        machine.processor(0).pass_time_stamps(STAMPS);
        machine.tick_sampling(&engine, 0);
    }
    machine.processor(0).set_area_pace(STAMPS);
    for number in 0..u64::from(BUFFER) {
        branch(&machine, &engine, 0, Mode::User, number);
    }
    let kinds: Vec<RecordKind> = fetched(client, &mut engine, session).iter().map(Record::kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == RecordKind::Throttled).count(), 1, "{kinds:?}");
}

#[test]
fn branches_that_were_stopped_stay_so_whatever_is_throttled_meanwhile() {
    for stopped_first in [true, false] {
        let machine = machine("haswell-4710mq", 2, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let header = protocol::StartHeader { budget: 100, ..header(0) };
        let events = [branches(modes::BOTH), super::scene::precise(super::scene::INSTRUCTIONS, 5_000)];
        let session = started(client, &mut engine, &header, &events);
        let stop = |engine: &mut engine::Engine<_>| drop(stopped(client, engine, session, Some(BRANCHES)));
        if stopped_first {
            stop(&mut engine);
        }
        machine.set_pace(20_000); // over the budget with the first interrupt
        super::scene::run(&machine, &engine, 0, 1, 5_001);
        if !stopped_first {
            stop(&mut engine);
        }
        machine.set_pace(0);
        machine.tick_sampling(&engine, 0);
        branch(&machine, &engine, 0, Mode::User, 1);
        assert_eq!(stored(&machine, 0).branches, 0);
        super::scene::run(&machine, &engine, 0, 1, 5_001);
        assert_eq!(super::scene::records(&machine, 0), 2, "what was not stopped goes on");
    }
}

#[test]
fn a_buffer_without_its_interrupt_is_fetched_at_the_next_tick() {
    let machine = machine("nehalem-920", 1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    for number in 0..u64::from(BUFFER) {
        machine.processor(0).model().branch(Mode::User, model::Branch { from: number, to: 0, predicted: false });
    }
    assert_eq!(fetched(client, &mut engine, session), []);
    machine.tick_sampling(&engine, 0);
    assert_eq!(fetched(client, &mut engine, session).len(), BUFFER as usize);
}

#[test]
fn branches_and_counters_go_together_and_stop_one_by_one() {
    let machine = machine("skylake-6600k", 3, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let cycles = EventRequest { event: Event::of(0x13), modes: modes::BOTH, interval: 5_000, ..EventRequest::EMPTY };
    let precise = super::scene::precise(super::scene::INSTRUCTIONS, 5_000);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH), cycles, precise]);
    let step = |engine: &engine::Engine<_>, machine: &simulation::SimMachine| {
        branch(machine, engine, 0, Mode::User, 1);
        super::scene::run(machine, engine, 0, 2, 5_001);
    };
    step(&engine, &machine);
    assert_eq!(stopped(client, &mut engine, session, Some(BRANCHES))[0].samples, 1);
    step(&engine, &machine);
    assert_eq!(stored(&machine, 0).branches, 1, "none after its stop");
    assert_eq!(stopped(client, &mut engine, session, Some(super::scene::INSTRUCTIONS))[0].samples, 2);
    step(&engine, &machine);
    assert_eq!(super::scene::records(&machine, 0), 2);
    let left = super::scene::registers(&machine, 0);
    // While the cycles are counted, nothing is counted in SMM.
    let freeze = Some(1 << 14);
    assert_eq!(left, [freeze, Some(0), Some(0)], "nothing is recorded any more, so that others can have the registers");
    assert_eq!(stopped(client, &mut engine, session, None)[0].samples, 3);
    assert_eq!(fetched(client, &mut engine, session).len(), 6);
    machine.deliver(&engine, 0, &interrupted(0));
    assert!(is_left_clean(&machine));
}

#[test]
fn branches_that_come_before_the_interrupt_does_have_room() {
    let machine = machine("nehalem-920", 1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    let all = u64::from(BUFFER) + 512;
    for number in 0..all {
        machine.processor(0).model().branch(Mode::User, model::Branch { from: number, to: 0, predicted: false });
    }
    machine.deliver(&engine, 0, &interrupted(0));
    let told: Vec<u64> =
        fetched(client, &mut engine, session).iter().map(|record| branch_record(record).from).collect();
    assert_eq!(told, (0..all).collect::<Vec<_>>());
}

#[test]
fn branches_recorded_before_a_throttle_are_delivered_before_its_record() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { budget: 100, ..header(0) };
    let ordinary = EventRequest { event: Event::of(0x13), modes: modes::BOTH, interval: 5_000, ..EventRequest::EMPTY };
    let events = [branches(modes::BOTH), ordinary];
    let session = started(client, &mut engine, &header, &events);
    branch(&machine, &engine, 0, Mode::User, 1);
    machine.set_pace(20_000); // over the budget with the first interrupt
    super::scene::run(&machine, &engine, 0, 1, 5_001);
    let kinds: Vec<RecordKind> = fetched(client, &mut engine, session).iter().map(Record::kind).collect();
    let expected = [RecordKind::Sample, RecordKind::Branch, RecordKind::Throttled];
    assert_eq!(kinds, expected);
}

#[test]
fn an_interrupt_of_branches_is_ours_and_tells_that_a_ring_is_half_full() {
    let machine = machine("nehalem-920", 1, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = protocol::StartHeader { ring: 128, ..header(0) };
    started(client, &mut engine, &header, &[branches(modes::BOTH)]);
    for number in 0..u64::from(BUFFER) {
        machine.processor(0).model().branch(Mode::User, model::Branch { from: number, to: 0, predicted: false });
    }
    assert_eq!(machine.deliver(&engine, 0, &interrupted(0)), (1, true));
    let told = super::scene::info(client, &mut engine);
    assert_eq!((told.interrupts, told.spurious), (1, 0));
}

/// The HAL reports to other software that the counters are reserved.
#[test]
fn the_reservation_stays_while_branches_are_recorded_whatever_else_ends() {
    let machine = machine("haswell-4710mq", 2, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let counted = client.started(&mut engine, 0, &[2]);
    let traced = started(client, &mut engine, &header(0), &[branches(modes::BOTH)]);
    stopped(client, &mut engine, counted, None);
    assert!(machine.is_reserved());
    stopped(client, &mut engine, traced, None);
    assert!(!machine.is_reserved());
}
