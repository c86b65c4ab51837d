//! The life of a sampling session, from its start to its last record.

use protocol::{ErrorCode, Record};
use simulation::Client;

use super::scene::{
    SHORT, boards, encoding, engine, event, fetched, header, info, interrupted, is_left_clean, is_sample, machines, on,
    run, started, stopped,
};

#[test]
fn a_sample_has_the_interrupted_code_the_time_and_the_event() {
    for (name, machine) in machines(2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(6, SHORT)]);
        machine.pass(77);
        run(&machine, &engine, 1, u64::from(SHORT) - 1);
        assert_eq!(fetched(client, &mut engine, session).0, [], "{name}: not yet");
        run(&machine, &engine, 1, 1);
        let (records, _) = fetched(client, &mut engine, session);
        let wanted = interrupted(1);
        assert_eq!(records.len(), 1, "{name}");
        let Record::Sample(record) = records[0] else { panic!("{name}: {:?}", records[0]) };
        assert_eq!((record.ip, record.process, record.thread), (wanted.ip, wanted.process, wanted.thread), "{name}");
        assert_eq!((record.time, record.processor, record.event, record.interval), (77, 1, 0, SHORT), "{name}");
        assert_eq!(record.mode, wanted.mode, "{name}");
    }
}

#[test]
fn the_interrupt_is_acquired_for_the_first_sampling_session_and_released_after_the_last() {
    for machine in boards("intel-v2", 2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let counting = client.started(&mut engine, 0, &[2]);
        assert!(!machine.is_sampling());
        let first = started(client, &mut engine, 64, on(&[0]), &[event(6, SHORT)]);
        let second = started(client, &mut engine, 64, on(&[1]), &[event(6, SHORT)]);
        stopped(client, &mut engine, first, None);
        assert!(machine.is_sampling());
        stopped(client, &mut engine, second, None);
        assert!(!machine.is_sampling());
        run(&machine, &engine, 0, 100);
        assert_eq!(client.read(&mut engine, counting)[0].count, 100, "counting goes on");
        started(client, &mut engine, 64, on(&[0]), &[event(6, SHORT)]);
        assert!(machine.is_sampling());
        engine.close(client.0);
        assert!(is_left_clean(&machine));
    }
}

#[test]
fn a_session_counts_and_samples_at_once() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, 0), event(6, SHORT)]);
        for _ in 0..7 {
            run(&machine, &engine, 0, 2_500);
        }
        let read: Vec<_> = client
            .read(&mut engine, session)
            .iter()
            .map(|count| (count.event.source, count.count, count.samples))
            .collect();
        assert_eq!(read, [(2, 17_500, 0), (6, 17_500, 3)], "{name}");
        assert!(fetched(client, &mut engine, session).0.iter().all(|record| record.event() == 1), "{name}");
    }
}

#[test]
fn a_request_waits_until_a_ring_is_half_full_or_the_session_stops() {
    for machine in boards("amd-legacy", 2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        for round in 0..31 {
            run(&machine, &engine, 1, SHORT.into());
            assert!(client.samples(&mut engine, session, Some(100), 64).is_none(), "{round}");
        }
        machine.run(1, model::Mode::User, &|_| SHORT.into());
        assert_eq!(machine.deliver(&engine, 1, &interrupted(1)), (1, true), "the reader is woken");
        let answer = client.samples(&mut engine, session, Some(100), 64).unwrap();
        assert_eq!(answer.header().count, 32);
        run(&machine, &engine, 0, SHORT.into());
        assert!(client.samples(&mut engine, session, Some(100), 64).is_none());
        stopped(client, &mut engine, session, None);
        let answer = client.samples(&mut engine, session, Some(100), 64).unwrap();
        assert_eq!((answer.header().count, answer.header().detail[0]), (1, 1));
    }
}

#[test]
fn the_last_samples_can_be_fetched_after_the_stop_and_then_the_session_is_gone() {
    for machine in boards("intel-v2", 2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        for processor in [0, 1, 1] {
            run(&machine, &engine, processor, SHORT.into());
        }
        stopped(client, &mut engine, session, None);
        assert!(is_left_clean(&machine));
        assert_eq!(info(client, &mut engine).sessions, 0);
        let mut seen = Vec::new();
        for last in [0, 0, 1] {
            let answer = client.samples(&mut engine, session, None, 1).unwrap();
            assert_eq!((answer.header().count, answer.header().detail[0]), (1, last));
            seen.extend(answer.try_samples().unwrap());
        }
        seen.sort_by_key(Record::processor);
        assert_eq!(seen.iter().map(Record::processor).collect::<Vec<_>>(), [0, 1, 1]);
        let answer = client.samples(&mut engine, session, None, 1).unwrap();
        assert_eq!(answer.header().cause, ErrorCode::NoSuchSession as u32);
        let all = info(client, &mut engine);
        assert_eq!((all.delivered, all.discarded, all.interrupts, all.spurious), (3, 0, 3, 0));
    }
}

#[test]
fn a_spurious_interrupt_is_counted_and_harmless() {
    // The session uses three counters.
    for (name, machine) in machines(1).filter(|(name, _)| !name.starts_with("p6")) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT), event(6, 0x7FFF_FFFF)]);
        let late = started(client, &mut engine, 64, on(&[]), &[event(11, SHORT)]);
        run(&machine, &engine, 0, SHORT.into()); // both overflow in one interrupt
        let last = encoding(&machine, 0, 11);
        let is_last = |selected: model::Selected| (selected.event, selected.umask) == last;
        machine.run(0, model::Mode::User, &|selected| if is_last(selected) { SHORT.into() } else { 0 });
        stopped(client, &mut engine, late, None);
        machine.deliver(&engine, 0, &interrupted(0));
        let all = info(client, &mut engine);
        assert_eq!((all.interrupts, all.spurious, all.lost), (2, 1, 1), "{name}");
        run(&machine, &engine, 0, SHORT.into());
        assert_eq!(fetched(client, &mut engine, session).0.len(), 2, "{name}");
    }
}

#[test]
fn rings_are_fetched_in_turn_so_that_none_starves() {
    for machine in boards("intel-v2", 3) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
        for processor in 0..3 {
            for _ in 0..60 {
                run(&machine, &engine, processor, SHORT.into());
            }
        }
        let mut seen = [0; 3];
        for _ in 0..3 {
            for record in client.samples(&mut engine, session, None, 60).unwrap().try_samples().unwrap() {
                assert!(is_sample(&record));
                seen[record.processor() as usize] += 1;
            }
            for _ in 0..60 {
                run(&machine, &engine, 0, SHORT.into()); // the first always has enough for a full answer
            }
        }
        assert_eq!(seen, [60; 3]);
    }
}

#[test]
fn an_interval_follows_the_frequency_wanted() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let wanted = protocol::EventRequest { frequency: 1_000, ..event(2, 65_536) };
        let session = client.start_with(&mut engine, header(1 << 16, on(&[])), &[wanted]).header().detail[0];
        // 500 million events per second, in steps of 20 microseconds. With a status register, events between an
        // overflow and its interrupt are lost.
        let second = |engine: &mut _| {
            for _ in 0..100 {
                for _ in 0..500 {
                    machine.pass(200);
                    run(&machine, engine, 0, 10_000);
                }
                machine.tick_sampling(engine, 0);
            }
            fetched(client, engine, session).0
        };
        second(&mut engine);
        let samples = second(&mut engine);
        assert!((950..=1_050).contains(&samples.len()), "{name}: {}", samples.len());
        let events: u64 = samples.iter().filter_map(Record::sample).map(|sample| sample.events).sum();
        assert!((475_000_000..=525_000_000).contains(&events), "{name}: {events} of 500 million");
    }
}

#[test]
fn an_interval_that_is_far_too_short_costs_few_interrupts() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let wanted = protocol::EventRequest { frequency: 49, ..event(2, 65_536) };
        let session = client.start_with(&mut engine, header(1 << 16, on(&[])), &[wanted]).header().detail[0];
        // Fetches the samples of a fifth of a second, in steps of 10 microseconds.
        let fifth = |engine: &mut _, events: u64| {
            for _ in 0..20 {
                for _ in 0..1_000 {
                    machine.pass(100);
                    run(&machine, engine, 0, events);
                }
                machine.tick_sampling(engine, 0);
            }
            fetched(client, engine, session).0.len()
        };
        // The first interval is that of the source, and 2,000 million events per second are 30,000 samples of it.
        let first = fifth(&mut engine, 20_000);
        assert!((8..40).contains(&first), "{name}: {first} samples, and not about 10, at the begin");
        // After a rest the interval is short again, and overflows soon when the processor is busy.
        for _ in 0..100 {
            machine.pass(100_000);
            run(&machine, &engine, 0, 1_000);
            machine.tick_sampling(&engine, 0);
        }
        let samples = fifth(&mut engine, 20_000);
        assert!((8..40).contains(&samples), "{name}: {samples} samples, and not about 10, after a rest");
    }
}
