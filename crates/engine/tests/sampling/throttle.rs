//! The budget for the time in the interrupt handler.

use engine::{Engine, Platform};
use model::{InterruptMode, TimerMode};
use protocol::{ALL_EVENTS, PauseRecord, Record, RecordKind, StartHeader};
use simulation::{Client, SimMachine};

use super::scene::{
    SHORT, boards, engine, event, fetched, header, info, is_left_clean, is_sample, machine, machines, on, run, started,
    stopped,
};
use pmu::ProcessorIndex;

/// Units of 100 ns in a tick.
const TICK: u64 = 100_000;

#[test]
fn over_its_budget_a_processor_samples_nothing_until_the_next_tick_and_reports_for_how_long() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // A budget of a quarter of a tick. Every interrupt takes a tenth of a tick.
        let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
        let session = client.start_with(&mut engine, asked, &[event(2, SHORT)]).header().detail[0];
        machine.set_pace(TICK / 10);
        for _ in 0..3 {
            run(&machine, &engine, 0, SHORT.into());
        }
        assert_eq!(machine.processor(0).model().enabled_counters(), [], "{name}");
        assert_eq!(machine.processor(1).model().enabled_counters().len(), 1, "{name}: the budget is a processor's own");
        run(&machine, &engine, 0, 10 * u64::from(SHORT));
        machine.set_pace(0);
        machine.pass(TICK / 2);
        machine.tick_sampling(&engine, 0);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 1, "{name}: it goes on");
        run(&machine, &engine, 0, SHORT.into());

        let (records, _) = fetched(client, &mut engine, session);
        let kinds: Vec<RecordKind> = records.iter().map(Record::kind).collect();
        let [sample, throttled, resumed] = [RecordKind::Sample, RecordKind::Throttled, RecordKind::Resumed];
        assert_eq!(kinds, [sample, sample, sample, throttled, resumed, sample], "{name}");
        assert_eq!((records[3].processor(), records[3].event()), (0, ALL_EVENTS), "{name}");
        let Record::Pause(PauseRecord { time, duration, .. }) = records[4] else { panic!("{name}") };
        assert_eq!(duration, time - records[3].time(), "{name}");
        assert!((TICK / 2..TICK).contains(&duration), "{name}: {duration}");
        assert_eq!((info(client, &mut engine).throttles, info(client, &mut engine).throttled), (1, 0), "{name}");
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].count, counts[0].samples), (4 * u64::from(SHORT), 4), "{name}: what ran counted");
    }
}

#[test]
fn below_its_budget_a_processor_is_never_throttled() {
    for machine in boards("amd-legacy", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 1 << 12, on(&[]), &[event(2, SHORT)]);
        // Each is charged with a tenth of a tick, of which 1.25 us are not measured.
        machine.set_pace(TICK / 10 - 13);
        for _ in 0..200 {
            for _ in 0..9 {
                run(&machine, &engine, 0, SHORT.into());
            }
            machine.tick_sampling(&engine, 0);
        }
        let (records, _) = fetched(client, &mut engine, session);
        assert_eq!((records.len(), info(client, &mut engine).throttles), (1_800, 0));
        assert!(records.iter().all(is_sample));
    }
}

#[test]
fn the_lowest_budget_of_the_sessions_applies() {
    for machine in boards("intel-v2", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        let asked = StartHeader { budget: 100, ..header(64, on(&[])) };
        let modest = client.start_with(&mut engine, asked, &[event(6, 0x7FFF_FFFF)]).header().detail[0];
        machine.set_pace(TICK / 5);
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(info(client, &mut engine).throttles, 1);
        machine.tick_sampling(&engine, 0);
        stopped(client, &mut engine, modest, None);
        machine.tick_sampling(&engine, 0);
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(info(client, &mut engine).throttles, 1, "with it gone, the other's budget counts again");
    }
}

#[test]
fn a_session_stopped_while_throttled_is_not_resumed() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        machine.set_pace(TICK);
        run(&machine, &engine, 0, SHORT.into());
        stopped(client, &mut engine, session, None);
        let counting = client.started(&mut engine, 0, &[6]);
        // A second session would receive a record if the tick restarted anything.
        let other = started(client, &mut engine, 64, on(&[]), &[event(11, SHORT)]);
        let active = || engine.sampler().hal().cpu_counters(ProcessorIndex::BOOT).active.all;
        let (before, writes) = (active(), machine.processor(0).model().accesses().wrmsr);
        machine.tick_sampling(&engine, 0);
        assert_eq!((active(), machine.processor(0).model().accesses().wrmsr), (before, writes), "{name}");
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}");
        assert_eq!(fetched(client, &mut engine, other).0, [], "{name}: nothing goes on");
        stopped(client, &mut engine, other, None);
        client.stop(&mut engine, counting, None);
        assert!(is_left_clean(&machine), "{name}");
    }
}

/// Samples as fast as the budget allows for 20 seconds with ticks that come as the mode says. Returns the share of the
/// time in the handler, in thousandths.
fn share(name: &str, mode: TimerMode, budget: u32) -> u64 {
    /// An interrupt takes 50 us.
    const COST: u64 = 500;
    const SECONDS: u64 = 20;
    let machine = machine(name, 1, InterruptMode::Edge);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let asked = StartHeader { budget, ..header(64, on(&[])) };
    client.start_with(&mut engine, asked, &[event(2, SHORT)]);
    let begin = (&machine).now();
    let now = || (&machine).now().0 - begin.0;
    let mut handler = 0;
    for tick in mode.expirations(TICK, mode.resolution(None)).take_while(|tick| *tick < SECONDS * 10_000_000) {
        while now() < tick && !machine.processor(0).model().enabled_counters().is_empty() {
            machine.set_pace(COST);
            run(&machine, &engine, 0, SHORT.into());
            machine.set_pace(0);
            handler += COST;
        }
        machine.pass(tick.saturating_sub(now()));
        machine.tick_sampling(&engine, 0);
    }
    handler * 1_000 / now()
}

#[test]
fn the_budget_is_kept_however_the_timer_expires() {
    // The excess is at most one interrupt per tick. Late ticks can be more than 50 ms apart, which is the longest time
    // whose share is granted.
    for (mode, least, most) in [
        (TimerMode::Exact, 245, 256),
        (TimerMode::Clock, 245, 256),
        (TimerMode::Coarse, 245, 256),
        (TimerMode::Late, 220, 256),
        (TimerMode::Merged, 245, 256),
    ] {
        for name in ["amd-legacy", "skylake-6600k"] {
            let share = share(name, mode, 250);
            assert!((least..=most).contains(&share), "{name}, {mode:?}: {share} of 250 thousandths");
        }
    }
}

#[test]
fn a_session_does_not_inherit_the_handler_time_of_one_that_has_ended() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
        // Each session has one interrupt, which takes a fifth of a tick: less than the budget.
        for round in 0..5 {
            let session = client.start_with(&mut engine, asked, &[event(2, SHORT)]).header().detail[0];
            machine.set_pace(TICK / 5);
            run(&machine, &engine, 0, SHORT.into());
            machine.set_pace(0);
            assert_eq!(info(client, &mut engine).throttles, 0, "{name}, {round}");
            stopped(client, &mut engine, session, None);
        }
    }
}

#[test]
fn with_a_hidden_overhead_of_each_interrupt_the_budget_holds_in_real_time() {
    // Between its two readings of the clock, an interrupt takes 0.2 us. Its entry, the HAL and its return take 1.2 us
    // more, of which 0.2 us pass at the second reading.
    const MEASURED: u64 = 2;
    const HIDDEN: u64 = 10;
    const BETWEEN: u64 = 5;
    for name in ["amd-legacy", "intel-v2"] {
        let machine = machine(name, 1, InterruptMode::ALL[0]);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let share = 100; // thousandths
        let asked = StartHeader { budget: share, ..header(1 << 12, on(&[])) };
        let session = client.start_with(&mut engine, asked, &[event(2, SHORT)]).header().detail[0];
        let now = || Platform::now(&&machine).0;
        let (mut busy, mut next_tick) = (0, TICK);
        while now() < 100 * TICK {
            if machine.processor(0).model().enabled_counters().is_empty() {
                machine.pass(next_tick - now().min(next_tick)); // throttled
            } else {
                let begin = now();
                machine.set_pace(MEASURED);
                run(&machine, &engine, 0, SHORT.into());
                machine.set_pace(0);
                machine.pass(HIDDEN);
                busy += now() - begin;
                machine.pass(BETWEEN);
            }
            if now() >= next_tick {
                machine.tick_sampling(&engine, 0);
                next_tick += TICK;
            }
        }
        fetched(client, &mut engine, session);
        let spent = busy * 1_000 / now();
        assert!(spent <= u64::from(share) + 5, "{name}: {spent} thousandths of the time, not {share}");
        assert!(spent >= u64::from(share) / 2, "{name}: {spent} thousandths: the overhead is not overstated");
    }
}

/// Returns how often an interrupt of processor 0 reads the clock.
fn clock_readings(machine: &SimMachine, engine: &Engine<&SimMachine>) -> u64 {
    let now = || Platform::now(&machine).0;
    machine.set_pace(1);
    let before = now();
    run(machine, engine, 0, SHORT.into());
    let after = now();
    machine.set_pace(0);
    after - before
}

/// Makes a tick after the usual time, and so many time stamps.
fn tick_after(machine: &SimMachine, engine: &Engine<&SimMachine>, stamps: u64) {
    machine.pass(TICK);
    machine.processor(0).pass_time_stamps(stamps);
    machine.tick_sampling(engine, 0);
}

#[test]
fn an_interrupt_reads_the_clock_once_where_an_invariant_time_stamp_counter_serves() {
    const STAMPS: u64 = 30_000_000;
    let expected = [("zen4-7700x", [2, 2, 1, 1, 2, 2, 1]), ("amd-legacy", [2; 7])];
    for (name, readings) in expected {
        let machine = machine(name, 1, InterruptMode::ALL[0]);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, 1 << 12, on(&[]), &[event(2, SHORT)]);
        // At first there is no rate. Later the rate changes once, as if the machine had moved to another host.
        let mut found = vec![clock_readings(&machine, &engine)];
        for stamps in [STAMPS, STAMPS, STAMPS, STAMPS / 2, STAMPS, STAMPS] {
            tick_after(&machine, &engine, stamps);
            found.push(clock_readings(&machine, &engine));
        }
        assert_eq!(found, readings, "{name}");
    }
}

#[test]
fn time_by_the_time_stamp_counter_is_charged_to_the_budget_and_begins_a_pause() {
    const STAMPS: u64 = 30_000_000;
    let machine = machine("zen4-7700x", 1, InterruptMode::ALL[0]);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let asked = StartHeader { budget: 250, ..header(64, on(&[])) };
    let session = client.start_with(&mut engine, asked, &[event(2, SHORT)]).header().detail[0];
    for _ in 0..3 {
        tick_after(&machine, &engine, STAMPS);
    }
    // What three ticks left is used up, and a tick grants a quarter of itself.
    machine.processor(0).set_time_stamp_pace(2 * STAMPS);
    run(&machine, &engine, 0, SHORT.into());
    fetched(client, &mut engine, session);
    machine.processor(0).set_time_stamp_pace(0);
    for _ in 0..3 {
        tick_after(&machine, &engine, STAMPS);
    }
    machine.processor(0).set_time_stamp_pace(STAMPS / 5);
    for _ in 0..6 {
        run(&machine, &engine, 0, SHORT.into());
    }
    machine.processor(0).set_time_stamp_pace(0);
    let now = Platform::now(&&machine).0;
    let (records, _) = fetched(client, &mut engine, session);
    let samples = records.iter().filter(|record| is_sample(record)).count();
    assert_eq!(samples, 4, "three quarters of a tick, each a fifth: {records:?}");
    let throttled = records.last().unwrap();
    assert_eq!((throttled.kind(), throttled.time()), (RecordKind::Throttled, now + TICK / 5));
}
