//! Interrupts that are badly timed, missing or too frequent.

use engine::Engine;
use model::{Mode, Selected};
use simulation::{Client, SimMachine, boot};

use super::scene::{
    SHORT, encoding, engine, event, event_in_both_modes, fetched, info, interrupted, is_sample, machines, on,
    overflows, run, started, stopped,
};

/// LVT entry of the Windows HAL, masked.
const MASKED: u32 = 0x1_00FE;

/// More accesses than any interrupt here makes.
const MAX_ACCESSES: u64 = 24;

/// Runs two ticks and delivers the pending interrupts after each.
fn tick_twice(machine: &SimMachine, engine: &Engine<&SimMachine>) {
    for _ in 0..2 {
        machine.tick_sampling(engine, 0);
        machine.deliver(engine, 0, &interrupted(0));
    }
}

/// Checks that no overflow is pending, and that the next overflow becomes a sample.
fn is_sampling_on(machine: &SimMachine, engine: &mut Engine<&SimMachine>, client: Client, session: u64) {
    let cpu = machine.processor(0);
    assert_eq!(engine.sampler().hal().check_overflow(boot(cpu)).number(), 0, "stuck");
    assert_eq!(cpu.model().lvt() & 0x1_0000, 0, "the entry is masked");
    fetched(client, engine, session);
    run(machine, engine, 0, SHORT.into());
    assert!(fetched(client, engine, session).0.iter().any(is_sample), "no sample comes any more");
}

#[test]
fn an_overflow_before_any_access_of_the_handler_is_served_within_two_ticks_and_accounted() {
    // The served counter, or another one.
    for sources in [&[2_u64][..], &[2, 6]] {
        for access in 1..MAX_ACCESSES {
            for (name, machine) in machines(1) {
                let mut engine = engine(&machine);
                let client = Client::open(&mut engine, 1, 10);
                let events: Vec<_> = sources.iter().map(|source| event_in_both_modes(*source, SHORT)).collect();
                let session = started(client, &mut engine, 64, on(&[]), &events);
                // The first counter is due. All events of the other occur within the handler.
                let first = encoding(&machine, 0, 2);
                let is_due = |selected: Selected| (selected.event, selected.umask) == first;
                machine.run(0, Mode::User, &|selected| if is_due(selected) { SHORT.into() } else { 0 });
                machine.processor(0).happen_before_access(access, SHORT.into());
                machine.deliver(&engine, 0, &interrupted(0));
                machine.processor(0).happen_before_access(0, 0);
                // On NetBurst an overflow between two flag reads may be delayed until a tick.
                if !name.starts_with("netburst") {
                    let stuck = engine.sampler().hal().check_overflow(machine.current(0));
                    assert_eq!(stuck.number(), 0, "{name}, before access {access}: stuck");
                }
                tick_twice(&machine, &engine);
                is_sampling_on(&machine, &mut engine, client, session);
                for count in stopped(client, &mut engine, session, None) {
                    let accounted = count.samples + count.lost + count.throttled;
                    let raised = overflows(&machine, 0, count.event.source);
                    assert_eq!(accounted, raised, "{name}, before access {access}, {}", count.event.source);
                    // A counter stands still from its reading to its load, on every processor.
                    let ledger = machine.counted(0, count.counter);
                    assert_eq!(count.count, ledger, "{name}, before access {access}, {}", count.event.source);
                }
            }
        }
    }
}

#[test]
fn an_overflow_behind_an_entry_that_is_masked_stalls_sampling_for_two_ticks_at_most() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT), event(6, SHORT)]);
        machine.processor(0).model().set_lvt(MASKED);
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(fetched(client, &mut engine, session).0.len(), 0, "{name}");
        tick_twice(&machine, &engine);
        is_sampling_on(&machine, &mut engine, client, session);
        for count in stopped(client, &mut engine, session, None) {
            let raised = overflows(&machine, 0, count.event.source);
            assert_eq!((count.samples + count.lost, raised, count.throttled), (2, 2, 0), "{name}");
            assert_eq!(count.count, 2 * u64::from(SHORT), "{name}");
        }
    }
}

#[test]
fn an_interrupt_that_is_on_its_way_at_a_tick_is_still_a_sample() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        for round in 1..=3 {
            machine.run(0, Mode::User, &|_| SHORT.into());
            machine.tick_sampling(&engine, 0);
            machine.deliver(&engine, 0, &interrupted(0));
            assert_eq!(fetched(client, &mut engine, session).0.len(), 1, "{name}, {round}");
        }
        let all = info(client, &mut engine);
        assert_eq!((all.lost, all.spurious), (0, 0), "{name}");
    }
}

#[test]
fn the_status_of_a_counter_that_was_stopped_is_acknowledged_though_nothing_counts_there_any_more() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // The session on the other processor keeps the interrupt and the counters reserved.
        let other = started(client, &mut engine, 64, on(&[1]), &[event(2, SHORT)]);
        let session = started(client, &mut engine, 64, on(&[0]), &[event(2, SHORT)]);
        machine.run(0, Mode::User, &|_| SHORT.into());
        stopped(client, &mut engine, session, None);
        let (interrupts, _) = machine.deliver(&engine, 0, &interrupted(0));
        assert_eq!(interrupts, 1, "{name}");
        let all = info(client, &mut engine);
        assert_eq!((all.interrupts, all.spurious, all.lost), (1, 1, 1), "{name}");
        // The next session there starts with a clear status.
        let session = started(client, &mut engine, 64, on(&[0]), &[event(2, SHORT)]);
        is_sampling_on(&machine, &mut engine, client, session);
        stopped(client, &mut engine, other, None);
    }
}

#[test]
fn an_overflow_while_a_processor_is_about_to_be_throttled_is_accounted_as_throttled_and_makes_no_storm() {
    for (name, _) in machines(1) {
        let throttled = (1..MAX_ACCESSES).map(|access| throttled(&name, access)).sum::<u64>();
        assert!(throttled > 0, "{name}: no overflow came between the interrupt and the stop of the counters");
    }
}

/// Throttles at the first interrupt while a second counter overflows before this access. Returns the throttled samples
/// of the second.
fn throttled(machine: &str, access: u64) -> u64 {
    let (name, machine) = machines(1).find(|(name, _)| name == machine).unwrap();
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let both = [2, 6].map(|source| event_in_both_modes(source, SHORT));
    let session = started(client, &mut engine, 64, on(&[]), &both);
    // Each clock reading advances by a tick.
    machine.set_pace(100_000);
    let second = encoding(&machine, 0, 6);
    let is_second = |selected: Selected| (selected.event, selected.umask) == second;
    machine.run(0, Mode::User, &|selected| if is_second(selected) { 0 } else { SHORT.into() });
    machine.processor(0).happen_before_access(access, SHORT.into());
    machine.deliver(&engine, 0, &interrupted(0));
    machine.processor(0).happen_before_access(0, 0);
    machine.set_pace(0);
    tick_twice(&machine, &engine);
    is_sampling_on(&machine, &mut engine, client, session);
    let counts = stopped(client, &mut engine, session, None);
    for count in &counts {
        let accounted = count.samples + count.lost + count.throttled;
        assert_eq!(accounted, overflows(&machine, 0, count.event.source), "{name}, before access {access}");
    }
    counts.iter().map(|count| count.throttled).sum()
}

#[test]
fn counts_are_exact_however_late_overflows_are_served() {
    for late in [0, 1, 100, 4_999, 5_000, 1_000_000] {
        for (name, machine) in machines(1) {
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let session = started(
                client,
                &mut engine,
                64,
                on(&[]),
                &[event_in_both_modes(2, SHORT), event_in_both_modes(6, 3 * SHORT)],
            );
            for _ in 0..7 {
                machine.run(0, Mode::User, &|_| SHORT.into());
                machine.run(0, Mode::Kernel, &|_| late);
                machine.deliver(&engine, 0, &interrupted(0));
            }
            for count in stopped(client, &mut engine, session, None) {
                assert_eq!(
                    count.count,
                    machine.counted(0, count.counter),
                    "{name}, {late} late, {}",
                    count.event.source
                );
                let between = machine.between(0, count.counter);
                assert_eq!(
                    count.count,
                    7 * (u64::from(SHORT) + late) + between,
                    "{name}, {late} late, {}",
                    count.event.source
                );
            }
        }
    }
}
