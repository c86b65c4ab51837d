//! Extra registers as a shared resource: the same value is shared, two off-core responses take both registers, and the
//! registers are put back.

use model::Mode;
use pmu::extra::Selector;
use protocol::{EventRequest, StartHeader, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    CODE_READS, ONLY_COUNTED, READS, REGISTERS, WRITES, counts, engine, extra, front_end, off_module, offcore, on,
    rate, registers, run, start, started,
};

#[test]
fn two_values_of_one_event_take_both_registers_and_are_told_apart() {
    for name in ["sandy-bridge-2600k", "skylake-6600k", "goldmont-plus-n4100", "avoton-c2750"] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, ONLY_COUNTED, &[offcore(READS), offcore(WRITES)]);
        assert_eq!(registers(&machine, 0)[..2], [Some(READS), Some(WRITES)], "{name}");
        run(&machine, 0);
        let found: Vec<_> = counts(client, &mut engine, session).iter().map(|it| (it.event.extra, it.count)).collect();
        let selected = model::Selected { event: 0xB7, umask: 1, cmask: 0, invert: false, edge: false };
        assert_eq!(found, [READS, WRITES].map(|value| (value, rate(selected, value))), "{name}");
    }
}

#[test]
fn golden_cove_counts_off_core_responses_by_events_of_its_own() {
    let machine = SimMachine::named("sapphire-rapids-2475x", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = |value| extra(0x2B, 0x01, Selector::OffcoreResponse, value);
    let session = started(client, &mut engine, ONLY_COUNTED, &[event(READS), event(WRITES)]);
    assert_eq!(registers(&machine, 0)[..2], [Some(WRITES), Some(READS)], "2BH has the second register");
    run(&machine, 0);
    assert!(counts(client, &mut engine, session).iter().all(|count| count.count > 0));
}

#[test]
fn off_module_responses_have_the_register_of_their_unit_mask_or_its_other() {
    // Any response to four kinds of requests.
    let values = [1, 2, 4, 8].map(|request| 1 << 62 | request);
    let machine = SimMachine::named("nova-lake-derived", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let counted = |client: Client, engine: &mut _, events: &[EventRequest], expected: [Option<u64>; 4]| {
        let session = started(client, engine, ONLY_COUNTED, events);
        assert_eq!(registers(&machine, 0)[4..], expected);
        run(&machine, 0);
        for (count, event) in counts(client, engine, session).iter().zip(events) {
            let selected = model::Selected { event: 0x2A, umask: 1, cmask: 0, invert: false, edge: false };
            assert_eq!(count.count, rate(selected, event.event.extra), "{count:x?}");
        }
        client.stop(engine, session, None);
        assert_eq!(registers(&machine, 0)[4..], [Some(0); 4], "they are put back");
    };
    let each = [0, 1, 2, 3].map(|number| off_module(number, values[usize::from(number)]));
    counted(client, &mut engine, &each, values.map(Some));
    // Of two values of one encoding, the second has the other register of a pair.
    let two = [off_module(3, values[0]), off_module(3, values[1])];
    counted(client, &mut engine, &two, [Some(0), Some(0), Some(values[1]), Some(values[0])]);
    // MEM_LOAD_L2_MISS_RETIRED has the same registers.
    let load = extra(0xD6, 0x01, Selector::OffcoreResponse, values[2]);
    counted(
        client,
        &mut engine,
        &[off_module(0, values[0]), load],
        [Some(values[0]), Some(values[2]), Some(0), Some(0)],
    );
}

#[test]
fn an_off_module_response_of_an_e_core_has_the_counter_of_its_register() {
    let machine = SimMachine::named("nova-lake-derived-efficient", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = |umask, value| extra(0xB7, umask, Selector::OffcoreResponse, 1_u64 << 62 | value);
    let session = started(client, &mut engine, ONLY_COUNTED, &[event(0x04, 1), event(0x01, 2), event(0x01, 4)]);
    run(&machine, 0);
    let found = counts(client, &mut engine, session);
    assert_eq!(found.iter().map(|count| count.counter).collect::<Vec<_>>(), [2, 0, 1]);
    assert!(found.iter().all(|count| count.count > 0));
    assert_eq!(registers(&machine, 0)[4..], [Some(1 << 62 | 2), Some(1 << 62 | 4), Some(1 << 62 | 1), Some(0)]);
}

#[test]
fn one_value_is_shared_by_events_and_sessions() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let user = EventRequest { modes: modes::USER, ..offcore(READS) };
    let other_number = extra(0xBB, 0x01, Selector::OffcoreResponse, READS);
    let one = started(first, &mut engine, ONLY_COUNTED, &[offcore(READS), user]);
    let two = started(second, &mut engine, ONLY_COUNTED, &[other_number, front_end(0x15)]);
    assert_eq!(registers(&machine, 0)[..4], [Some(READS), Some(0), Some(0), Some(0x15)]);
    run(&machine, 0);
    let all = [counts(first, &mut engine, one), counts(second, &mut engine, two)].concat();
    let found: Vec<_> = all.iter().map(|it| (it.event.extra, it.count)).collect();
    let selected = model::Selected { event: 0xB7, umask: 1, cmask: 0, invert: false, edge: false };
    let [reads, front] = [READS, 0x15].map(|value| (value, rate(selected, value)));
    assert_eq!(found, [reads, reads, reads, front]);
}

#[test]
fn a_value_that_only_one_register_takes_displaces_one_that_both_take() {
    // Bit 38 is in the first register alone.
    const FIRST_ALONE: u64 = 0x40_0000_0001;
    let machine = SimMachine::named("avoton-c2750", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, ONLY_COUNTED, &[offcore(READS), offcore(FIRST_ALONE)]);
    assert_eq!(registers(&machine, 0)[..2], [Some(FIRST_ALONE), Some(READS)]);
    run(&machine, 0);
    assert!(counts(client, &mut engine, session).iter().all(|count| count.count > 0));
}

#[test]
fn registers_are_put_back_as_found_after_the_last_session() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let found = [0x8_0080, 0x8_0100, 0x77, 0x12];
    for (register, value) in REGISTERS.into_iter().zip(found) {
        machine.processor(0).model().wrmsr(register, value).unwrap();
    }
    let mut engine = engine(&machine);
    let clients = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    for _ in 0..2 {
        let one = started(clients[0], &mut engine, ONLY_COUNTED, &[offcore(READS), front_end(0x15)]);
        let two = started(clients[1], &mut engine, ONLY_COUNTED, &[offcore(WRITES)]);
        assert_eq!(registers(&machine, 0)[..4], [Some(READS), Some(WRITES), Some(0x77), Some(0x15)]);
        clients[0].stop(&mut engine, one, None);
        // A register that no counter needs takes another value.
        let three = started(clients[0], &mut engine, ONLY_COUNTED, &[offcore(CODE_READS)]);
        assert_eq!(registers(&machine, 0)[0], Some(CODE_READS));
        clients[0].stop(&mut engine, three, None);
        clients[1].stop(&mut engine, two, None);
        assert_eq!(registers(&machine, 0)[..4], found.map(Some));
    }
}

#[test]
fn threads_of_westmere_share_one_value_and_put_back_what_was_found() {
    let machine = SimMachine::named("westmere-980x", 4);
    let (found, value) = (0x8080, 0x101);
    machine.processor(0).model().wrmsr(0x1A6, found).unwrap();
    let mut engine = engine(&machine);
    let clients = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let of = |machine: &SimMachine, processor| registers(machine, processor)[0];
    for order in [[0, 1], [1, 0]] {
        let sessions = [0, 1]
            .map(|on_it| started(clients[on_it as usize], &mut engine, on(ONLY_COUNTED, &[on_it]), &[offcore(value)]));
        assert_eq!([0, 1, 2].map(|processor| of(&machine, processor)), [Some(value), Some(value), Some(0)]);
        machine.processor(1).model().run_with_extra(Mode::User, &rate);
        assert!(counts(clients[1], &mut engine, sessions[1])[0].count > 0);
        clients[order[0]].stop(&mut engine, sessions[order[0]], None);
        assert_eq!(of(&machine, 0), Some(value), "the other thread still counts");
        clients[order[1]].stop(&mut engine, sessions[order[1]], None);
        assert_eq!([0, 1].map(|processor| of(&machine, processor)), [Some(found); 2]);
    }
    let everywhere = started(clients[0], &mut engine, ONLY_COUNTED, &[offcore(value)]);
    assert_eq!([0, 1, 2, 3].map(|processor| of(&machine, processor)), [Some(value); 4]);
    clients[0].stop(&mut engine, everywhere, None);
    assert_eq!([0, 1, 2, 3].map(|processor| of(&machine, processor)), [Some(found), Some(found), Some(0), Some(0)]);
}

#[test]
fn a_value_of_the_other_thread_of_westmere_is_a_holder() {
    let machine = SimMachine::named("westmere-980x", 2);
    let mut engine = engine(&machine);
    let clients = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let both = [offcore(0x101), offcore(0x102)];
    started(clients[0], &mut engine, on(ONLY_COUNTED, &[0]), &both);
    let refused = start(clients[1], &mut engine, on(ONLY_COUNTED, &[1]), &[offcore(0x104)]);
    assert_eq!(refused.cause, protocol::ErrorCode::ExtraRegisterTaken as u32);
    let in_use = protocol::ExtraInUse::from_detail(refused.detail[0]);
    assert_eq!((in_use.register, in_use.holder, refused.detail[1], refused.processor), (0x1A6, 0, 0x101, 1));
    started(clients[1], &mut engine, on(ONLY_COUNTED, &[1]), &both);
}

#[test]
fn a_register_that_another_program_changes_is_reported_and_written_again() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, ONLY_COUNTED, &[offcore(READS), front_end(0x15)]);
    machine.processor(0).model().wrmsr(0x1A6, WRITES).unwrap();
    engine.accumulate_counts();
    assert_eq!(registers(&machine, 0)[0], Some(READS), "written again");
    let found: Vec<_> = counts(client, &mut engine, session)
        .iter()
        .map(|it| (it.disturbed_register, it.disturbed_found, it.disturbed_expected))
        .collect();
    assert_eq!(found, [(0x1A6, WRITES, READS), (0, 0, 0)]);
}

#[test]
fn a_throttled_counter_has_its_register_again_after_a_sleep() {
    const INTERVAL: u32 = 5_000;
    const TICK: u64 = 100_000;
    for name in ["sandy-bridge-2600k", "skylake-6600k", "sapphire-rapids-2475x"] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let header = StartHeader { ring: 64, budget: 250, ..ONLY_COUNTED };
        let event = match name {
            "sapphire-rapids-2475x" => extra(0x2A, 0x01, Selector::OffcoreResponse, READS),
            _ => offcore(READS),
        };
        let session = started(client, &mut engine, header, &[EventRequest { interval: INTERVAL, ..event }]);
        let sample = || {
            machine.run(0, Mode::User, &|_| INTERVAL.into());
            let interrupted = engine::Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
            machine.deliver(&engine, 0, &interrupted);
        };
        // Every interrupt takes a tenth of a tick, the third one more than is left of the budget.
        machine.set_pace(TICK / 10);
        (0..3).for_each(|_| sample());
        machine.set_pace(0);
        assert_eq!(machine.processor(0).model().enabled_counters(), [], "{name}: it is throttled");
        machine.fall_asleep(&engine);
        machine.wake(&engine);
        machine.tick_sampling(&engine, 0);
        sample();
        let counts = client.stop(&mut engine, session, None).records::<protocol::CountRecord>();
        let found: Vec<_> = counts.iter().map(|it| (it.count, it.samples, it.disturbed_register)).collect();
        assert_eq!(found, [(4 * u64::from(INTERVAL), 4, 0)], "{name}");
    }
}
