//! The client against a server that sends prepared answers.

#![expect(clippy::unwrap_used, reason = "tests")]

use bench_protocol::{
    Answer, Client, Command, Counter, DebugStore, DsWrites, Error, Instruction, KvaShadow, LedgerEntry, Ticks,
    Violation,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

/// Starts a server that sends one of the answers for each line and then closes the connection. Returns its port,
/// and the commands when joined.
fn lab(answers: Vec<Answer>) -> (u16, thread::JoinHandle<Vec<Command>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut commands = Vec::new();
        for answer in answers {
            commands.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
            writeln!(stream, "{}", serde_json::to_string(&answer).unwrap()).unwrap();
        }
        commands
    });
    (port, server)
}

#[test]
fn commands_and_answers_arrive_unchanged() {
    let entry = LedgerEntry {
        counter: Counter::Fixed(2),
        event: 0xFFF,
        umask: 0xFF,
        user: true,
        kernel: false,
        counted: u64::MAX,
        between: 2,
        overflows: 1,
        interrupts: 0,
    };
    let violation = Violation::GeneralProtection {
        processor: 1,
        instruction: Instruction::Wrmsr,
        register: 0xC001_0200,
        value: Some(u64::MAX),
    };
    let records = vec![(Counter::General(0), 7), (Counter::Fixed(3), u64::MAX)];
    let stored = DsWrites { branches: 1, branches_dropped: 2, records, records_dropped: 3, faults: 4 };
    let (port, server) = lab(vec![
        Answer::Done,
        Answer::Ledger(vec![vec![], vec![entry]]),
        Answer::Violations(vec![violation.clone()]),
        Answer::Refused("busy".to_owned()),
        Answer::Ticks(Ticks { ran: vec![0, u64::MAX], set: 1 }),
        Answer::DsWrites(vec![stored.clone()]),
        Answer::ControlAreas(vec![None, Some(u64::MAX)]),
        Answer::DebugStore(vec![DebugStore { area: u64::MAX, debugctl: 0x1C0, pebs_enable: 1 << 32 }]),
        Answer::Done,
        Answer::Done,
    ]);
    let mut client = Client::connect(port).unwrap();
    client.run(1, &[(0xC0, 0, 7)], &[]).unwrap();
    assert_eq!(client.ledger().unwrap(), [vec![], vec![entry]]);
    assert_eq!(client.violations().unwrap(), [violation]);
    assert!(matches!(client.set_identity("x"), Err(Error::Refused(why)) if why == "busy"));
    assert_eq!(client.ticks().unwrap(), Ticks { ran: vec![0, u64::MAX], set: 1 });
    assert_eq!(client.ds_writes().unwrap(), [stored]);
    assert_eq!(client.control_areas().unwrap(), [None, Some(u64::MAX)]);
    let registers = DebugStore { area: u64::MAX, debugctl: 0x1C0, pebs_enable: 1 << 32 };
    assert_eq!(client.debug_store().unwrap(), [registers]);
    client.set_kva_shadow(KvaShadow::QueryFails(0xC000_0003)).unwrap();
    assert!(matches!(client.pool(), Err(Error::Unexpected(answer)) if *answer == Answer::Done));
    assert!(matches!(client.pool(), Err(Error::Io(_))));
    let run = Command::Run { processor: 1, user: vec![(0xC0, 0, 7)], kernel: vec![] };
    let refused = Command::SetIdentity("x".to_owned());
    let shadow = Command::SetKvaShadow(KvaShadow::QueryFails(0xC000_0003));
    let first = [run, Command::Ledger, Command::Violations, refused, Command::Ticks];
    let rest = [Command::DsWrites, Command::ControlAreas, Command::DebugStore, shadow, Command::Pool];
    assert_eq!(server.join().unwrap(), [&first[..], &rest].concat());
}

#[test]
fn a_violation_is_described_in_words() {
    let read =
        Violation::GeneralProtection { processor: 0, instruction: Instruction::Rdmsr, register: 0x38F, value: None };
    assert_eq!(read.to_string(), "Rdmsr of 0x38f on processor 0 faults");
    let level = Violation::Level { function: "ZwClose".to_owned(), level: 2, allowed: 0 };
    assert_eq!(level.to_string(), "ZwClose called at IRQL 2, allowed up to 0");
}

#[test]
fn find_fails_after_the_time_limit_without_a_lab() {
    let nowhere = std::env::temp_dir().join("no such folder").join("port");
    assert!(matches!(Client::find(&nowhere, Duration::from_millis(50)), Err(Error::Io(_))));
}
