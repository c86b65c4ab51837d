//! Tests of events that may take some counters alone.

use protocol::{EventRequest, StartHeader};
use zerocopy::FromBytes;

use super::*;

/// Returns the modes and the counters of each event of the last start.
fn asked(system: &FakeSystem) -> Vec<(u32, u32)> {
    let inputs = system.driver.inputs(Code::Start);
    let (_, rest) = StartHeader::read_from_prefix(inputs.last().unwrap()).unwrap();
    let events = rest.chunks_exact(size_of::<EventRequest>());
    events.map(|bytes| EventRequest::read_from_bytes(bytes).unwrap()).map(|it| (it.modes, it.event.counters)).collect()
}

#[test]
fn start_asks_for_the_counters_and_prints_the_event_as_it_can_be_typed() {
    const NARROWED: &str = "cpu/event=0xd1,umask=0x20,counters=0x6/:u";
    let system = FakeSystem::running(FakeDriver::default());
    let ran = run(&system, &format!("start cpu/umask=0x20,counters=6,event=0xD1/u,{NARROWED},TotalIssues"));
    assert_eq!(asked(&system), [(modes::USER, 6), (modes::BOTH, 0)], "each once");
    assert!(ran.out.contains(&format!("every processor: {NARROWED}, TotalIssues")), "{}", ran.out);
    assert!(ran.out.contains("until: .\\client stop \"cpu/event=0xd1,umask=0x20/\" TotalIssues"), "{}", ran.out);
    assert_eq!(NARROWED.parse::<halprof::event::EventName>().unwrap().counters, 6);
}

#[test]
fn an_event_with_two_masks_is_refused_before_the_driver_is_asked() {
    const EVENTS: &str = "cpu/event=0xd1,counters=1/,cpu/event=0xd1,counters=2/";
    let system = FakeSystem::running(FakeDriver::default());
    for (command, rest) in [("start", ""), ("record --duration 0.001s -o NUL -e", ""), ("stat -e", "-- nothing")] {
        let (exit, report) = run(&system, &format!("{command} {EVENTS} {rest}")).failure();
        assert_eq!(exit, Exit::Usage, "{command}: {report}");
        assert!(report.contains("cpu/event=0xd1/ is named twice, with different counters"), "{report}");
        assert!(system.driver.inputs(Code::Start).is_empty(), "{command}");
    }
}
