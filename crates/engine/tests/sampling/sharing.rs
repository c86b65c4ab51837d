//! Several clients: sessions with the same event, modes and interval share a counter.

use protocol::{ErrorCode, EventRequest, modes};
use simulation::{Client, SimMachine};

use super::scene::{SHORT, boards, engine, event, fetched, info, is_left_clean, machines, on, run, started, stopped};

fn in_use(machine: &SimMachine) -> usize {
    machine.processor(0).model().enabled_counters().len()
}

#[test]
fn two_clients_with_one_source_and_interval_share_a_counter_and_each_has_every_sample() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        let one = started(first, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        run(&machine, &engine, 0, SHORT.into());
        let two = started(second, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        assert_eq!(in_use(&machine), 1, "{name}");
        for _ in 0..3 {
            run(&machine, &engine, 0, SHORT.into());
        }
        assert_eq!(fetched(first, &mut engine, one).0.len(), 4, "{name}");
        assert_eq!(fetched(second, &mut engine, two).0.len(), 3, "{name}");
        let counts = stopped(first, &mut engine, one, None);
        assert_eq!((counts[0].count, counts[0].samples), (20_000, 4), "{name}");
        assert_eq!(in_use(&machine), 1, "{name}: it goes on for the second");
        run(&machine, &engine, 0, SHORT.into());
        let counts = stopped(second, &mut engine, two, None);
        assert_eq!((counts[0].count, counts[0].samples), (20_000, 4), "{name}: since its own start");
        assert!(is_left_clean(&machine), "{name}");
        assert_eq!(info(first, &mut engine).counters_in_use, 0, "{name}");
    }
}

#[test]
fn equal_events_of_one_session_share_no_counter_with_each_other() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        started(first, &mut engine, 64, on(&[]), &[event(6, SHORT)]);
        let answer =
            second.start_with(&mut engine, super::scene::header(64, on(&[])), &[event(6, SHORT), event(6, SHORT)]);
        if answer.header().cause == ErrorCode::NoFreeCounter as u32 {
            assert_eq!(name.split(',').next(), Some("p6-coppermine"), "it alone has no more than two counters");
            continue;
        }
        let [session, _] = answer.header().detail;
        assert_eq!(in_use(&machine), 2, "{name}: the first event has the counter of the other session");
        run(&machine, &engine, 0, SHORT.into());
        let counts = stopped(second, &mut engine, session, None);
        let samples: Vec<u64> = counts.iter().map(|count| count.samples).collect();
        assert_eq!(samples, [1, 1], "{name}");
        assert_eq!(fetched(second, &mut engine, session).0.len(), 2, "{name}: each has a record");
    }
}

#[test]
fn an_overflow_that_waits_when_one_of_two_leaves_is_lost_to_that_one_and_a_sample_of_the_other() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        let [one, two] = [first, second].map(|client| started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]));
        machine.run(0, model::Mode::User, &|_| SHORT.into());
        let counts = stopped(first, &mut engine, one, None);
        assert_eq!((counts[0].count, counts[0].samples, counts[0].lost), (SHORT.into(), 0, 1), "{name}");
        machine.deliver(&engine, 0, &super::scene::interrupted(0));
        let counts = stopped(second, &mut engine, two, None);
        assert_eq!((counts[0].count, counts[0].samples, counts[0].lost), (SHORT.into(), 1, 0), "{name}");
    }
}

#[test]
fn a_killed_client_leaves_a_shared_counter_to_the_other_session() {
    for last in [0, 1] {
        for machine in boards("amd-legacy", 1) {
            let mut engine = engine(&machine);
            let clients = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
            let sessions = clients.map(|client| started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]));
            engine.close(clients[1 - last].0);
            run(&machine, &engine, 0, SHORT.into());
            assert_eq!(fetched(clients[last], &mut engine, sessions[last]).0.len(), 1);
            // The counter now belongs to the other session: no third session gets it, and it is freed at the end of the
            // session.
            let third = Client::open(&mut engine, 3, 30);
            assert_eq!(info(third, &mut engine).counters_in_use, 1);
            third.started(&mut engine, 0, &[2, 6, 8]);
            assert_eq!(in_use(&machine), 4);
            engine.close(clients[last].0);
            assert_eq!((in_use(&machine), info(third, &mut engine).counters_in_use), (3, 3));
        }
    }
}

#[test]
fn another_interval_mode_or_frequency_takes_a_counter_of_its_own() {
    let others = [
        event(2, SHORT + 1),
        EventRequest { modes: modes::BOTH, ..event(2, SHORT) },
        EventRequest { frequency: 1_000, ..event(2, SHORT) },
        event(2, 0),
        event(6, SHORT),
    ];
    for other in others {
        for machine in boards("intel-v2", 1) {
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
            let ring = if other.interval == 0 { 0 } else { 64 };
            let header = protocol::StartHeader { budget: 0, ..super::scene::header(ring, on(&[])) };
            assert_eq!(client.start_with(&mut engine, header, &[other]).header().status, 0, "{other:?}");
            assert_eq!(in_use(&machine), 2, "{other:?}");
        }
    }
}

#[test]
fn an_adapted_interval_is_not_shared() {
    for machine in boards("intel-v2", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, 64, on(&[]), &[EventRequest { frequency: 1_000, ..event(2, SHORT) }]);
        started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        assert_eq!(in_use(&machine), 2);
    }
}

#[test]
fn without_a_free_counter_a_shared_one_is_still_available() {
    for machine in boards("intel-v1", 1) {
        let mut engine = engine(&machine);
        let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        let all = [event(2, SHORT), event(6, SHORT), event(11, SHORT), event(10, SHORT)];
        started(first, &mut engine, 64, on(&[]), &all);
        let refused = second.start_with(&mut engine, super::scene::header(64, on(&[])), &[event(2, SHORT + 1)]);
        assert_eq!(refused.header().cause, ErrorCode::NoFreeCounter as u32);
        started(second, &mut engine, 64, on(&[]), &all);
        assert_eq!(in_use(&machine), 4);
    }
}

#[test]
fn a_stopped_session_leaves_the_counters_of_later_sessions_alone() {
    for machine in boards("amd-legacy", 1) {
        let mut engine = engine(&machine);
        let (first, second) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        let stopped_one = started(first, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        stopped(first, &mut engine, stopped_one, None);
        let session = started(second, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        engine.close(first.0);
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(fetched(second, &mut engine, session).0.len(), 1);
    }
}

/// A refused start frees every counter with the tag of its session, and tags of ended sessions are reused.
#[test]
fn a_counter_that_was_inherited_is_not_lost_to_a_later_session_with_the_tag_of_the_one_that_left() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let [first, second, third] = [1, 2, 3].map(|handle| Client::open(&mut engine, handle, 10));
        let left = started(first, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        let heir = started(second, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        stopped(first, &mut engine, left, None);
        fetched(first, &mut engine, left);
        let many: Vec<EventRequest> = (0..11).map(|number| event(6, SHORT + 1 + number)).collect();
        let answer = third.start_with(&mut engine, super::scene::header(64, on(&[])), &many).header();
        assert_eq!(answer.cause, ErrorCode::NoFreeCounter as u32, "{name}");
        assert_eq!(info(second, &mut engine).counters_in_use, 1, "{name}");
        run(&machine, &engine, 0, SHORT.into());
        let counts = stopped(second, &mut engine, heir, None);
        assert_eq!((counts[0].samples, counts[0].count), (1, SHORT.into()), "{name}");
        assert!(is_left_clean(&machine), "{name}");
    }
}
