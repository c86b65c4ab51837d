//! Verbs on a hybrid: what is shown for each core type.

use protocol::{Event, EventRequest, SourceRecord, StartHeader};

use super::*;
use fake_system::core_type_record;

const CORE: u32 = 0x40;
const ATOM: u32 = 0x20;

/// Returns a driver on a hybrid: TotalCycles on both types, LLCMisses on P cores only, and a raw event.
fn driver() -> FakeDriver {
    let misses = record(0x1D, "LLCMisses", 0);
    let raw = record(raw(), "", 0);
    let on = |record, core_type, support, counters, precise| SourceRecord {
        core_type,
        support,
        counters,
        precise,
        ..record
    };
    let cycles = record(0x13, "TotalCycles", 0);
    FakeDriver {
        sources: vec![record(0, "Time", 0), cycles, misses, SourceRecord { unlisted: 1, ..raw }],
        core_types: vec![core_type_record(CORE, &[0, 2]), core_type_record(ATOM, &[1, 3])],
        on_core_types: vec![
            on(record(0, "Time", 0), CORE, 0, 0, 0),
            on(record(0, "Time", 0), ATOM, 0, 0, 0),
            on(cycles, CORE, 0, 0x1FF, 0),
            on(cycles, ATOM, 0, 0x7F, 0),
            on(misses, CORE, 0, 0xFF, 0xF),
            on(misses, ATOM, 3, 0, 0),
            on(raw, CORE, 0, 0xF, 0xF),
            SourceRecord { unlisted: 1, running: 2, ..on(raw, ATOM, 0, 0x3F, 0) },
        ],
        ..FakeDriver::default()
    }
}

fn raw() -> u64 {
    let SourceName::Raw(event) = "cpu/event=0xd1,umask=0x20/".parse().unwrap() else { panic!() };
    event.source
}

fn events(system: &FakeSystem) -> Vec<EventRequest> {
    let [input] = &system.driver.inputs(Code::Start)[..] else { panic!() };
    <[EventRequest]>::ref_from_bytes(&input[size_of::<StartHeader>()..]).unwrap().to_vec()
}

#[test]
fn info_has_a_row_for_each_core_type() {
    let system = FakeSystem::running(driver());
    let out = run(&system, "info").out;
    assert!(out.contains("Counters        11 on each cpu_core, 11 on each cpu_atom processor\n"), "{out}");
    assert!(
        out.ends_with(
            "\n\
             Core type  CPU  General  Bits  Fixed  Bits  PMU version\n\
             ---------  ---  -------  ----  -----  ----  -----------\n\
             cpu_core   0,2        8    48      3    40            5\n\
             cpu_atom   1,3        8    48      3    40            5\n"
        ),
        "{out}"
    );
    assert_eq!(
        run(&system, "info --json").json()["core_types"][1],
        json!({
            "core_type": "cpu_atom", "processors": [1, 3], "counters": 11, "fixed_counters": 3,
            "counter_width": 48, "fixed_counter_width": 40, "pmu_version": 5
        })
    );
    let other = FakeSystem::running(FakeDriver::default());
    assert!(run(&other, "info --json").json().get("core_types").is_none());
}

#[test]
fn list_names_the_core_types_that_have_a_source() {
    let system = FakeSystem::running(driver());
    let out = run(&system, "list").out;
    assert!(out.lines().any(|line| line.contains("LLCMisses") && line.ends_with("on cpu_core")), "{out}");
    assert!(out.lines().any(|line| line.contains("TotalCycles") && line.ends_with("yes")), "{out}");
    assert!(out.contains("\nno: not available: CPUID leaf 0xA says"), "{out}");
    assert!(out.contains("\ncpu_core/NAME/ and cpu_atom/NAME/ count on processors of one core type.\n"), "{out}");
    assert!(out.lines().all(|line| line.len() <= 80), "{out}");
    let misses = &run(&system, "list --json").json()["sources"][2]["core_types"];
    assert_eq!((&misses[0]["supported"], &misses[1]["supported"]), (&json!(true), &json!(false)));
    assert!(misses[1]["reason"].as_str().unwrap().contains("EBX"), "{misses:#}");
}

#[test]
fn query_has_a_row_for_each_core_type_with_its_counters() {
    let system = FakeSystem::running(driver());
    assert_eq!(
        run(&system, "query LLCMisses").out,
        "Id        29 (0x1d)\n\
         Name      LLCMisses\n\
         Interval  65536\n\
         Min       4096\n\
         Max       2147483647\n\
         Select    0x000300c0\n\
         Running   no\n\
         \n\
         Core type  Supported          Counters  Precise  Running\n\
         ---------  -----------------  --------  -------  -------\n\
         cpu_core   yes                0-7       0-3            0\n\
         cpu_atom   no: not available            -              0\n\
         \n\
         cpu_atom: CPUID leaf 0xA says that the event is not available (EBX)\n"
    );
    let unlisted = run(&system, "query cpu/event=0xd1,umask=0x20/").out;
    assert!(unlisted.contains("\ncpu_atom   yes        0-5 (unlisted)  -              2\n"), "{unlisted}");
    assert!(unlisted.ends_with("\nunlisted: it may count nothing on some of these counters\n"), "{unlisted}");
    let one = run(&system, "query cpu_core/event=0xd1,umask=0x20/").out;
    assert!(one.contains("Name       cpu_core/event=0xd1,umask=0x20/\n"), "{one}");
    assert!(one.contains("Counters   any of 0-3\nPrecise    on 0-3, if the processor has PEBS\n"), "{one}");
    let json = run(&system, "query LLCMisses --json").json();
    assert_eq!(
        json["core_types"][0],
        json!({
            "core_type": "cpu_core", "supported": true, "reason": null, "counters": [0, 1, 2, 3, 4, 5, 6, 7],
            "unlisted": false, "precise_counters": [0, 1, 2, 3], "running": 0
        })
    );
}

#[test]
fn start_requests_the_core_type_of_each_event_and_names_it() {
    let system = FakeSystem::running(driver());
    let started = run(&system, "start cpu_core/TotalCycles/u,cpu_atom/event=0xd1,umask=0x20/,TotalCycles");
    assert_eq!(
        started.out,
        "session 7 counts on every processor: cpu_core/TotalCycles/:u, cpu_atom/event=0xd1,umask=0x20/, TotalCycles\n\
         until: .\\client stop cpu_core/TotalCycles/ \"cpu_atom/event=0xd1,umask=0x20/\" TotalCycles\n"
    );
    let requested: Vec<_> =
        events(&system).iter().map(|one| (one.event.source, one.modes, one.event.core_type)).collect();
    assert_eq!(requested, [(0x13, 1, CORE), (raw(), 3, ATOM), (0x13, 3, 0)]);
}

#[test]
fn stop_stops_the_events_of_the_named_core_type() {
    let on = |source, processor, core_type| CountRecord {
        event: Event { core_type, ..count(source, processor, 5, 10).event },
        ..count(source, processor, 5, 10)
    };
    let counts = vec![on(raw(), 0, CORE), on(raw(), 1, ATOM), on(0x13, 0, CORE), on(0x13, 1, ATOM)];
    for (names, requested) in [
        ("cpu_atom/event=0xd1,umask=0x20/", vec![(raw(), ATOM)]),
        ("cpu_atom/TotalCycles/ cpu_core/TotalCycles/", vec![(0x13, ATOM), (0x13, CORE)]),
        ("cpu_atom/TotalCycles/ TotalCycles", vec![(0x13, 0)]),
        ("TotalCycles cpu/event=0xd1,umask=0x20/", vec![(0x13, 0), (raw(), 0)]),
    ] {
        let system = FakeSystem::running(FakeDriver { counts: counts.clone().into(), ..driver() });
        let _ = run(&system, &format!("stop {names}"));
        let stops = system.driver.inputs(Code::Stop);
        let stops = stops.iter().map(|input| StopRequest::read_from_bytes(input).unwrap());
        assert_eq!(stops.map(|stop| (stop.source, stop.core_type)).collect::<Vec<_>>(), requested, "{names}");
    }
    let counts = vec![on(0x13, 1, ATOM)];
    let system = FakeSystem::running(FakeDriver { counts: counts.into(), ..driver() });
    let (exit, report) = run(&system, "stop cpu_core/TotalCycles/").failure();
    assert_eq!(exit, Exit::NotRunning);
    assert!(report.starts_with("error: cpu_core/TotalCycles/ is not running detached"), "{report}");
}

#[test]
fn an_interval_is_of_a_source_and_not_of_a_core_type() {
    let system = FakeSystem::running(driver());
    let (exit, report) = run(&system, "interval cpu_core/TotalCycles/ 65536").failure();
    assert_eq!(exit, Exit::Usage);
    assert_eq!(
        report,
        "error: cpu_core/TotalCycles/ has no interval of its own: a source has one for all core types\n  \
         try: .\\client interval TotalCycles"
    );
    assert!(system.driver.inputs(Code::SetInterval).is_empty());
}

#[test]
fn read_shows_each_core_type() {
    let on = |processor, core_type, number| CountRecord {
        event: Event { core_type, ..count(0x13, processor, number, 10_000_000).event },
        ..count(0x13, processor, number, 10_000_000)
    };
    let counts = vec![on(0, CORE, 100), on(1, ATOM, 7), on(2, CORE, 200), on(3, ATOM, 8)];
    let system = FakeSystem::running(FakeDriver { counts: counts.into(), ..driver() });
    assert_eq!(
        run(&system, "read").out,
        "Source                 CPU  Count  Per second  Seconds\n\
         ---------------------  ---  -----  ----------  -------\n\
         cpu_core/TotalCycles/  0,2    300         300    1.000\n\
         cpu_atom/TotalCycles/  1,3     15          15    1.000\n"
    );
    let json = run(&system, "read cpu_atom/TotalCycles/ --json").json();
    let [event] = &json["events"].as_array().unwrap()[..] else { panic!("{json:#}") };
    assert_eq!((&event["name"], &event["core_type"]), (&json!("cpu_atom/TotalCycles/"), &json!("cpu_atom")));
}
