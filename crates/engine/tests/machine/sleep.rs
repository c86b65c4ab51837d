//! Over a sleep sessions go on, and say how long it was.

use native_lab::{Board, Client};
use protocol::{Code, InfoReply, SampleKind};
use zerocopy::FromBytes;

use super::scene::{IDENTITIES, SHORT, engine, event, on, records, run, started};

#[test]
fn counts_go_on_after_a_sleep_and_tell_how_long_it_was() {
    for name in IDENTITIES {
        let board = Board::named(name, 2);
        let mut engine = engine(&board);
        let client = Client::open(&mut engine, 1, 10);
        let before = client.started(&mut engine, 0, &[2]);
        board.pass(1_000);
        run(&board, &engine, 1, 700);
        board.fall_asleep(&engine);
        run(&board, &engine, 1, 5);
        board.pass(60_000);
        assert_eq!(client.read(&mut engine, before)[1].asleep, 60_000, "{name}: in the middle");
        board.wake(&engine);
        let after = client.started(&mut engine, 0, &[6]);
        run(&board, &engine, 1, 40);
        board.pass(200);
        let count = client.read(&mut engine, before)[1];
        assert_eq!((count.count, count.enabled, count.asleep), (740, 61_200, 60_000), "{name}");
        let count = client.read(&mut engine, after)[1];
        assert_eq!((count.count, count.enabled, count.asleep), (40, 200, 0), "{name}: it began later");
        let answer = client.ask(&mut engine, Code::Info, &[], size_of::<InfoReply>());
        let info = InfoReply::read_from_bytes(&answer.bytes).unwrap();
        assert_eq!((info.sleeps, info.asleep), (1, 60_000), "{name}");
    }
}

#[test]
fn who_samples_is_told_of_each_sleep_on_each_processor_and_goes_on() {
    for name in IDENTITIES {
        let board = Board::named(name, 2);
        let mut engine = engine(&board);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, on(&[]), &[event(2, SHORT)]);
        for length in [10, 0, 7_000] {
            run(&board, &engine, 0, u64::from(SHORT) + 10);
            board.fall_asleep(&engine);
            board.pass(length);
            board.wake(&engine);
            run(&board, &engine, 0, u64::from(SHORT));
            let told = records(client, &mut engine, session, SampleKind::Slept);
            assert_eq!(told, [(0, length), (1, length)], "{name}");
        }
        let counts = client.stop(&mut engine, session, None).records::<protocol::CountRecord>();
        assert_eq!((counts[0].samples, counts[0].lost), (6, 0), "{name}");
    }
}

#[test]
fn what_is_started_and_stopped_while_the_machine_falls_asleep_is_so_when_it_is_awake() {
    for name in IDENTITIES {
        let board = Board::named(name, 1);
        let mut engine = engine(&board);
        let client = Client::open(&mut engine, 1, 10);
        let stopped = client.started(&mut engine, 0, &[2]);
        run(&board, &engine, 0, 33);
        board.fall_asleep(&engine);
        let accesses = board.processor(0).model().accesses();
        let late = client.started(&mut engine, 0, &[6]);
        let counts = client.stop(&mut engine, stopped, None).records::<protocol::CountRecord>();
        assert_eq!(counts[0].count, 33, "{name}");
        assert_eq!(board.processor(0).model().accesses(), accesses, "{name}: its registers are as good as lost");
        board.wake(&engine);
        run(&board, &engine, 0, 8);
        assert_eq!(client.read(&mut engine, late)[0].count, 8, "{name}");
        board.fall_asleep(&engine);
        engine.close(client.0);
        board.wake(&engine);
        assert_eq!(board.processor(0).model().enabled_counters(), [], "{name}");
        assert!(!board.is_in_use(), "{name}");
    }
}
