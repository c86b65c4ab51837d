//! A start that fails at any call leaves nothing behind, and the next start succeeds.

use protocol::{Code, ErrorCode, SessionEvent};
use simulation::{Call, Client, SimMachine};

use super::scene::{IDENTITIES, SHORT, engine, event, header, on, run};

const STATUS: u32 = 0xC000_0001;

#[test]
fn each_refusal_in_turn_beside_nothing_and_beside_a_session_that_runs() {
    let causes = [
        (Call::StartTimers, ErrorCode::NoMemory),
        (Call::ReserveCounters, ErrorCode::CountersTaken),
        (Call::OpenLocalApic, ErrorCode::ApicNotReached),
        (Call::BeginSampling, ErrorCode::HandlerRefused),
        (Call::PinThread, ErrorCode::NoSuchProcessor),
    ];
    for name in IDENTITIES {
        for (call, cause) in causes {
            let machine = SimMachine::named(name, 2);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let all = [event(2, SHORT), event(6, 0), event(0, 10_000)];
            machine.refuse(call, STATUS);
            let refused = client.start_with(&mut engine, header(0, true, on(&[])), &all).header();
            assert_eq!(refused.cause, cause as u32, "{name}, {call:?}");
            assert!(!machine.is_in_use(), "{name}, {call:?}");
            assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), [], "{name}, {call:?}");
            assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{name}, {call:?}");

            if !matches!(call, Call::ReserveCounters | Call::PinThread) {
                let beside = client.started(&mut engine, 0, &[11]);
                client.start_with(&mut engine, header(0, true, on(&[])), &all);
                run(&machine, &engine, 1, 50);
                assert_eq!(client.read(&mut engine, beside)[1].count, 50, "{name}, {call:?}: it goes on");
                client.stop(&mut engine, beside, None);
                assert!(!machine.is_in_use(), "{name}, {call:?}");
            }
            machine.refuse(call, 0);
            let answer = client.start_with(&mut engine, header(0, true, on(&[])), &all).header();
            assert_eq!(answer.status, 0, "{name}, {call:?}");
            engine.shut_down();
            assert!(!machine.is_in_use(), "{name}, {call:?}");
        }
    }
    assert_eq!(
        causes.len() + 5,
        Call::ALL.len(),
        "one is of processors that are added, one of a stop, one of a question, two of thread profiling"
    );
}
