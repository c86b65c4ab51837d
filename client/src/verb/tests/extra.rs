//! Tests of events with the value of an extra register.

use protocol::{Event, EventRequest, StartHeader};
use zerocopy::FromBytes;

use super::*;

const READS: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10001/";
const WRITES: &str = "cpu/event=0xb7,umask=0x01,offcore_rsp=0x10002/";

fn whole(text: &str) -> Event {
    let name: SourceName = text.parse().unwrap();
    let SourceName::Raw(whole) = name else { panic!("{text}") };
    whole
}

fn asked(system: &FakeSystem) -> Vec<EventRequest> {
    let inputs = system.driver.inputs(Code::Start);
    let (_, rest) = StartHeader::read_from_prefix(inputs.last().unwrap()).unwrap();
    rest.chunks_exact(size_of::<EventRequest>()).map(|bytes| EventRequest::read_from_bytes(bytes).unwrap()).collect()
}

#[test]
fn two_values_of_one_event_are_requested_and_shown_apart() {
    let of = |text, number| CountRecord { event: whole(text), ..count(0, 0, number, SECOND) };
    let system = with_counts(&[of(READS, 1_001), of(WRITES, 22)]);
    let ran = stat(&system, &format!("-e {WRITES},{READS}"));
    let requested: Vec<_> = asked(&system).iter().map(|it| it.event).collect();
    assert_eq!(requested, [WRITES, READS].map(whole));
    let line = |name: &str, number: &str| {
        let found = ran.err.lines().chain(ran.out.lines()).find(|line| line.contains(name)).map(str::to_owned);
        assert!(found.as_ref().is_some_and(|line| line.contains(number)), "{name}: {found:?}");
    };
    line(READS, "1,001");
    line(WRITES, "22");
}

/// As in perf, the name stands alone, without the mode.
#[test]
fn a_row_has_the_name_that_the_user_gives_the_event() {
    let of = |source, number| CountRecord { modes: modes::USER, ..count(source, 0, number, SECOND) };
    let run = |options: &str| {
        let system = with_counts(&[of(2, 1_001), of(0x13, 22)]);
        let ran = stat(&system, &format!("-e cpu/TotalIssues,name=retired/u,TotalCycles:u {options}"));
        assert_eq!(ran.outcome.unwrap(), 3);
        ran.err + &ran.out
    };
    let text = run("");
    assert!(text.contains("1,001  retired ") && text.contains("22  TotalCycles:u"), "{text}");
    let csv = run("-x ;");
    assert!(csv.contains("1001;;retired;") && csv.contains("22;;TotalCycles:u;"), "{csv}");
    let json = document(&run("--json -o -"));
    let named = |index: usize| (json["events"][index]["name"].clone(), json["events"][index]["modes"].clone());
    assert_eq!([named(0), named(1)], [("retired".into(), "u".into()), ("TotalCycles".into(), "u".into())]);
}

#[test]
fn two_names_for_the_row_of_one_event_are_refused_before_the_driver_is_asked() {
    for events in ["cpu/event=0xd1,name=a/,cpu/event=0xd1,name=b/", "cpu/event=0xd1/,cpu/event=0xd1,name=a/"] {
        let system = FakeSystem::running(FakeDriver::default());
        let (exit, report) = run(&system, &format!("stat -e {events} -- nothing")).failure();
        assert_eq!(exit, Exit::Usage, "{report}");
        assert!(report.contains("cpu/event=0xd1/ is named twice, with different names of its row"), "{report}");
        assert!(system.driver.inputs(Code::Start).is_empty(), "{events}");
    }
}

#[test]
fn a_name_of_a_row_is_refused_where_there_is_no_row() {
    let event = "cpu/event=0xd1,name=a/";
    for line in [format!("start {event}"), format!("record -e {event}")] {
        let words = ["client"].into_iter().chain(line.split_whitespace());
        let report = Cli::try_parse_from(words).unwrap_err().to_string();
        assert!(report.contains("name= is for the rows of .\\client stat; leave it out here"), "{report}");
    }
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
        let record = format!("record --duration 0.001s -o {} -e", file.display());
        let command = if text.ends_with(":p") { record.as_str() } else { "start" };
        let _ = run(&system, &format!("{command} {text}"));
        let [event] = asked(&system)[..] else { panic!("{text}") };
        assert_eq!((event.event.source >> 40 & 7, event.event.extra), (selector, value), "{text}");
        assert_eq!(event.event, whole(text.strip_suffix(":p").unwrap_or(text)));
    }
}

#[test]
fn encode_shows_the_register_and_its_value_or_why_not() {
    let encoded = |event: &str| {
        let dump = cpuid_dumps::find("skylake-u-6500u").unwrap().dump();
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
