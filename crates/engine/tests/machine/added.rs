//! Sessions on all processors extend to added processors.

use protocol::{CountRecord, Record, RecordKind};
use simulation::{Call, Client, SimMachine};

use super::scene::{IDENTITIES, NOWHERE, SHORT, engine, event, on, records, run, started};

#[test]
fn a_session_on_every_processor_goes_to_one_that_is_added_and_one_on_some_does_not() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 3).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let everywhere = started(client, &mut engine, on(&[]), &[event(2, SHORT), event(6, 0), event(0, 0)]);
        let here = started(client, &mut engine, on(&[0]), &[event(11, 0)]);
        let partly = started(client, &mut engine, on(&[]), &[event(11, 0)]);
        client.stop(&mut engine, everywhere, Some(6));
        run(&machine, &engine, 0, 100);
        machine.pass(1_000);
        machine.add_processor(&mut engine);
        run(&machine, &engine, 1, SHORT.into());
        machine.pass(500);
        let read: Vec<CountRecord> = client.read(&mut engine, everywhere);
        let told = |one: &CountRecord| (one.processor, one.event.source, one.count, one.samples, one.enabled);
        let wanted = [(0, 2, 100, 0, 1_500), (0, 0, 0, 0, 1_500), (1, 2, 4_096, 1, 500), (1, 0, 0, 0, 500)];
        assert_eq!(read.iter().map(told).collect::<Vec<_>>(), wanted, "{name}");
        assert_eq!(records(client, &mut engine, everywhere, RecordKind::Sample), [(1, 1)], "{name}");
        let on_which = |session, engine: &mut _| -> Vec<u32> {
            client.read(engine, session).iter().map(|one| one.processor).collect()
        };
        assert_eq!(on_which(here, &mut engine), [0], "{name}");
        assert_eq!(on_which(partly, &mut engine), [0, 1], "{name}");
        machine.add_processor(&mut engine);
        run(&machine, &engine, 2, 9);
        assert_eq!(on_which(partly, &mut engine), [0, 1, 2], "{name}");
        engine.close(client.0);
        assert!(!machine.is_in_use() && machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{name}");
    }
}

/// A sample by time on the added processor was one of the event that had ended.
#[test]
fn what_an_added_processor_samples_belongs_to_no_event_that_has_ended() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let events = [event(2, SHORT), event(6, SHORT), event(0, 10_000)];
        let session = started(client, &mut engine, on(&[]), &events);
        client.stop(&mut engine, session, Some(2));
        machine.add_processor(&mut engine);
        machine.pass(10_000);
        machine.expire(&engine, 1, &NOWHERE);
        run(&machine, &engine, 1, SHORT.into());
        let read: Vec<CountRecord> = client.read(&mut engine, session);
        let there = read.iter().filter(|count| count.processor == 1);
        let counted: Vec<_> = there.map(|count| (count.index, count.samples)).collect();
        assert_eq!(counted, [(1, 1), (2, 1)], "{name}");
        let fetched = client.samples(&mut engine, session, None, 100).unwrap().try_samples().unwrap();
        let mut sampled: Vec<_> =
            fetched.iter().filter_map(Record::sample).map(|sample| (sample.processor, sample.event)).collect();
        sampled.sort_unstable();
        assert_eq!(sampled, [(1, 1), (1, 2)], "{name}");
    }
}

#[test]
fn a_session_is_enabled_from_the_moment_its_counters_start() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.set_cost(1_000); // acquiring resources takes time
        let session = started(client, &mut engine, on(&[]), &[event(2, SHORT), event(0, 0)]);
        machine.pass(70);
        machine.add_processor(&mut engine);
        machine.pass(30);
        let read: Vec<CountRecord> = client.read(&mut engine, session);
        let enabled: Vec<_> = read.iter().map(|one| (one.processor, one.enabled)).collect();
        // The counters were freed, reserved again and adopted in between.
        assert_eq!(enabled, [(0, 3_100), (0, 3_100), (1, 30), (1, 30)], "{name}");
    }
}

/// A change to the machine before a processor is added.
type Trouble<'a> = &'a dyn Fn(&SimMachine);

#[test]
fn a_session_is_not_extended_if_a_resource_is_unavailable_on_the_added_processor() {
    for name in IDENTITIES {
        // An unavailable resource, and whether counting, sampling and ProfileTime work without it.
        let troubles: [(&str, Trouble, [bool; 3]); 4] = [
            ("nothing", &|_| (), [true, true, true]),
            ("timers", &|machine| machine.refuse(Call::AddProcessor, 1), [true, true, false]),
            ("the interrupt", &|machine| machine.processor(1).model().set_lvt(0x1_0000), [true, false, true]),
            (
                "its counters, which are another's",
                &|machine| {
                    let select = if name == "amd-legacy" { 0xC001_0000 } else { 0x186 };
                    machine.processor(1).model().wrmsr(select, 1 << 22 | 0xC0).unwrap();
                },
                [false, false, true],
            ),
        ];
        for (what, trouble, wanted) in troubles {
            let machine = SimMachine::named(name, 2).with_active(1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let sessions = [event(2, 0), event(6, SHORT), event(0, 10_000)]
                .map(|event| started(client, &mut engine, on(&[]), &[event]));
            trouble(&machine);
            machine.add_processor(&mut engine);
            let joined = sessions.map(|session| client.read(&mut engine, session).len() == 2);
            assert_eq!(joined, wanted, "{name} without {what}");
            run(&machine, &engine, 0, 10_000);
            engine.close(client.0);
            assert!(!machine.is_in_use(), "{name}");
        }
    }
}

#[test]
fn sessions_that_share_a_counter_share_it_on_the_added_processor_as_well() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let both = [(); 2].map(|()| started(client, &mut engine, on(&[]), &[event(2, SHORT)]));
        machine.add_processor(&mut engine);
        assert_eq!(machine.processor(1).model().enabled_counters().len(), 1, "{name}");
        run(&machine, &engine, 1, u64::from(SHORT));
        for session in both {
            assert_eq!(records(client, &mut engine, session, RecordKind::Sample), [(1, 1)], "{name}");
        }
    }
}

#[test]
fn a_session_that_starts_after_it_was_added_takes_it_as_any_other() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        started(client, &mut engine, on(&[0]), &[event(2, 0)]);
        machine.add_processor(&mut engine);
        let session = started(client, &mut engine, on(&[]), &[event(6, 0)]);
        run(&machine, &engine, 1, 77);
        assert_eq!(client.read(&mut engine, session)[1].count, 77, "{name}");
    }
}

#[test]
fn an_event_that_was_stopped_takes_no_counter_of_an_added_processor() {
    let machine = SimMachine::named("amd-legacy", 2).with_active(1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let everywhere = started(client, &mut engine, on(&[]), &[event(2, 0), event(6, 0)]);
    client.stop(&mut engine, everywhere, Some(6));
    machine.add_processor(&mut engine);
    let read: Vec<CountRecord> = client.read(&mut engine, everywhere);
    let counted: Vec<_> = read.iter().map(|one| (one.processor, one.event.source)).collect();
    assert_eq!(counted, [(0, 2), (1, 2)]);
    // Three of the four counters are free.
    for processor in [0, 1] {
        let rest = started(client, &mut engine, on(&[processor]), &[event(11, 0); 3]);
        client.stop(&mut engine, rest, None);
    }
}
