//! Tests of events with the value of an extra register.

use halprof::event::raw_event::WholeEvent;
use protocol::{EventRequest, StartHeader};
use zerocopy::FromBytes;

use super::*;

const READS: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10001/";
const WRITES: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10002/";

fn whole(text: &str) -> WholeEvent {
    let name: SourceName = text.parse().unwrap();
    let SourceName::Whole(whole) = name else { panic!("{text}") };
    whole
}

fn asked(system: &FakeSystem) -> Vec<EventRequest> {
    let inputs = system.driver.inputs(Code::Start);
    let (_, rest) = StartHeader::read_from_prefix(inputs.last().unwrap()).unwrap();
    rest.chunks_exact(size_of::<EventRequest>()).map(|bytes| EventRequest::read_from_bytes(bytes).unwrap()).collect()
}

#[test]
fn two_values_of_one_event_are_requested_and_shown_apart() {
    let of = |text, number| {
        let event = whole(text);
        let record = count(event.event.source().0, 0, number, SECOND);
        CountRecord { event: event.bits(), extra: event.value(), ..record }
    };
    let system = with_counts(&[of(READS, 1_001), of(WRITES, 22)]);
    let ran = stat(&system, &format!("-e {WRITES},{READS}"));
    let requested: Vec<_> = asked(&system).iter().map(|it| (it.event, it.extra)).collect();
    assert_eq!(requested, [WRITES, READS].map(|text| (whole(text).bits(), whole(text).value())));
    let line = |name: &str, number: &str| {
        let found = ran.err.lines().chain(ran.out.lines()).find(|line| line.contains(name)).map(str::to_owned);
        assert!(found.as_ref().is_some_and(|line| line.contains(number)), "{name}: {found:?}");
    };
    line(READS, "1,001");
    line(WRITES, "22");
}

#[test]
fn each_kind_of_value_reaches_the_driver_with_its_selector() {
    for (text, selector, value) in [
        (READS, 1, 0x1_0001),
        ("cpu/event=0xcd,umask=0x01,ldlat=30/:p", 2, 30),
        ("cpu/event=0xc6,umask=0x01,frontend=0x15/", 3, 0x15),
        ("cpu/event=0xc4,any/", 0, 0),
    ] {
        let system = FakeSystem::running(FakeDriver::default());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("extra.rec");
        let record = format!("record --duration 0.001 -o {} -e", file.display());
        let command = if text.ends_with(":p") { record.as_str() } else { "start" };
        let _ = run(&system, &format!("{command} {text}"));
        let [event] = asked(&system)[..] else { panic!("{text}") };
        assert_eq!((event.event >> 40 & 7, event.extra), (selector, value), "{text}");
        assert_eq!(pmu::source::FullEvent::from_bits(event.event).raw().source().0, event.source, "{text}");
    }
}

#[test]
fn encode_shows_the_register_and_its_value_or_why_not() {
    let encoded = |event: &str| {
        let dump = cpuid_dumps::find("skylake-u-6500u").unwrap().dump;
        run_anywhere(&format!("encode {event} --cpuid - --json"), dump.as_bytes()).json()["cores"][0].clone()
    };
    let reads = encoded(READS);
    assert_eq!((&reads["select"], &reads["error"]), (&json!("0x000301b7"), &Value::Null));
    assert_eq!(reads["extra"], json!({ "msr": "0x1a6", "value": "0x10001" }));
    for (event, why) in [
        ("cpu/event=0xb7,umask=1/", "counts nothing without"),
        ("cpu/event=0xb7,umask=1,offcore_rsp=0x4000000000/", "reserves"),
        ("cpu/event=0xc4,ldlat=30/", "no register for this value"),
    ] {
        let refused = encoded(event);
        assert_eq!(refused["extra"], Value::Null, "{event}");
        assert!(refused["error"].as_str().unwrap().contains(why), "{event}: {refused}");
    }
}
