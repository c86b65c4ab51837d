//! Accesses of registers, as equalities.

use model::{Accesses, Mode};
use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{Event, EventRequest, StartHeader, modes};
use simulation::{Client, SimMachine};

use super::scene::{ONLY_COUNTED, READS, WRITES, engine, extra, front_end, offcore, registers, started};

fn difference(machine: &SimMachine, body: impl FnOnce()) -> [u64; 3] {
    let before = machine.processor(0).model().accesses();
    body();
    let Accesses { rdmsr, wrmsr, rdpmc, .. } = machine.processor(0).model().accesses();
    [rdmsr - before.rdmsr, wrmsr - before.wrmsr, rdpmc - before.rdpmc]
}

/// Returns the reads, writes and RDPMC of a second start, a read and a stop of an event beside nothing.
fn costs(events: &[EventRequest]) -> [[u64; 3]; 3] {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let first = started(client, &mut engine, ONLY_COUNTED, events);
    client.stop(&mut engine, first, None);
    let mut session = 0;
    let start = difference(&machine, || session = started(client, &mut engine, ONLY_COUNTED, events));
    let read = difference(&machine, || _ = client.read(&mut engine, session));
    let stop = difference(&machine, || _ = client.stop(&mut engine, session, None));
    [start, read, stop]
}

/// Beyond an event without one: at the start one read, which finds the value to put back, and one write, and for each
/// event two reads and two writes under a guard, which try its value; one read in each comparison; at the stop one
/// write, which puts it back. A register that two events share is read by each of them in a comparison, and written
/// once.
#[test]
fn an_extra_register_costs_two_accesses_at_the_start_and_two_at_the_stop() {
    let user = |event: EventRequest| EventRequest { modes: modes::USER, ..event };
    for (events, registers) in [
        (vec![offcore(READS)], 1),
        (vec![front_end(0x15)], 1),
        (vec![offcore(READS), offcore(WRITES)], 2),
        (vec![offcore(READS), user(offcore(READS))], 1),
    ] {
        let plain = |(event, umask): (&EventRequest, u16)| EventRequest {
            event: Event::of(RawEvent::new().with_event(0xC4).with_umask(umask).source().0),
            ..*event
        };
        let without: Vec<_> = events.iter().zip([0x04, 0x08]).map(plain).collect();
        let [start, read, stop] = costs(&events);
        let [plain_start, plain_read, plain_stop] = costs(&without);
        let number = events.len() as u64;
        let plus = |of: [u64; 3], reads, writes| [of[0] + reads, of[1] + writes, of[2]];
        assert_eq!(start, plus(plain_start, registers + 2 * number, registers + 2 * number), "start {events:x?}");
        assert_eq!(read, plus(plain_read, number, 0), "read {events:x?}");
        assert_eq!(stop, plus(plain_stop, number, registers), "stop {events:x?}");
    }
}

#[test]
fn load_latency_is_recorded_with_its_bits_and_its_threshold() {
    for (name, (event, umask), enabled) in [
        ("nehalem-920", (0x0B, 0x10), 0x8_0000_0008),
        ("haswell-4710mq", (0xCD, 0x01), 0x8_0000_0008),
        ("skylake-6600k", (0xCD, 0x01), 0x1_0000_0001),
        ("ice-lake-1065g7", (0xCD, 0x01), 0x1),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let event = extra(event, umask, Selector::LoadLatency, 30);
        let event = EventRequest { modes: modes::USER | modes::PRECISE, interval: 4_096, ..event };
        let header = StartHeader { ring: 64, ..ONLY_COUNTED };
        let session = started(client, &mut engine, header, &[event]);
        assert_eq!(registers(&machine, 0)[2], Some(30), "{name}");
        let enable = machine.processor(0).model().uncounted(|model| model.rdmsr(0x3F1).unwrap());
        assert_eq!(enable, enabled, "{name}");
        machine.run(0, Mode::User, &|_| 3 * 4_097);
        let records = machine.processor(0).model().stored().records.values().sum::<u64>();
        assert_eq!(records, 3, "{name}");
        client.stop(&mut engine, session, None);
        assert_eq!(registers(&machine, 0)[2], Some(0), "{name}");
    }
}
