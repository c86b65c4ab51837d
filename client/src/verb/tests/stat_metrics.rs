//! `stat -M`: which events are counted together, and the metrics below the counts.

use std::collections::BTreeSet;

use protocol::{CoreTypeRecord, EventRequest, StartHeader};

use super::*;
use fake_system::core_type_record;
use system::topology::{CorePlace, Topology};

const SKYLAKE: u32 = 0x0005_06E3;
const ALDER_LAKE: u32 = 0x0009_0672;
const CYCLES: &str = "cpu/event=0x3c/";

/// Returns a Skylake with four general and three fixed counters, and cores of one thread.
fn skylake(counts: &[CountRecord]) -> FakeSystem {
    let info = InfoReply { signature: SKYLAKE, counters: 7, least_counters: 7, fixed_counters: 3, ..info() };
    let driver = FakeDriver { info, ..FakeDriver::default() };
    driver.counts.replace(counts.to_vec());
    let topology = Topology::from([(0, CorePlace { package: 0, core: 0 }), (1, CorePlace { package: 0, core: 1 })]);
    FakeSystem { topology, ..FakeSystem::running(driver) }
}

fn number(text: &str) -> u64 {
    match text.parse().unwrap() {
        SourceName::Raw(event) => event.source,
        other => panic!("{other}"),
    }
}

/// The counts of 1,000 slots: 250 clocks, 100 slots of the front end, 400 that retire, 50 uops that are thrown away,
/// and 20 clocks of recovery.
fn slots() -> Vec<CountRecord> {
    let event = |text: &str, value| count(number(text), 0, value, SECOND);
    vec![
        event(CYCLES, 250),
        event("cpu/event=0x9c,umask=0x01/", 100),
        event("cpu/event=0x0e,umask=0x01/", 450),
        event("cpu/event=0xc2,umask=0x02/", 400),
        event("cpu/event=0x0d,umask=0x01/", 20),
    ]
}

/// Returns source, core type and group of the events that were started last.
fn started(system: &FakeSystem) -> Vec<(u64, u32, u32)> {
    let inputs = system.driver.inputs(Code::Start);
    let events = <[EventRequest]>::ref_from_bytes(&inputs.last().unwrap()[size_of::<StartHeader>()..]).unwrap();
    events.iter().map(|event| (event.event.source, event.event.core_type, event.group)).collect()
}

#[test]
fn the_events_of_metrics_are_one_group_and_level_1_sums_to_100_percent() {
    let system = skylake(&slots());
    let json = stat(&system, "-M topdownl1 --json -o -").json();
    let found: Vec<(&str, f64)> = json["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["value"].as_f64().unwrap()))
        .collect();
    let expected = [("Frontend_Bound", 10.0), ("Bad_Speculation", 13.0), ("Backend_Bound", 37.0), ("Retiring", 40.0)];
    for ((name, value), (wanted, percent)) in found.iter().zip(expected) {
        assert!(*name == wanted && (value - percent).abs() < 1e-9, "{name}: {value}");
    }
    let mut events = started(&system);
    events.sort_unstable();
    let mut sources: Vec<(u64, u32, u32)> = slots().iter().map(|count| (count.event.source, 0, 1)).collect();
    sources.sort_unstable();
    assert_eq!(events, sources);
}

#[test]
fn metrics_are_below_the_counts_and_one_without_value_has_its_reason() {
    let counts = [count(number(CYCLES), 0, 250, SECOND), count(2, 0, 500, SECOND)];
    let ran = stat(&skylake(&counts), "-M IPC,Branch_MPKI,Frequency");
    let text = ran.err;
    let below = text.split_once("\n Metrics:\n\n").unwrap().1;
    let lines: Vec<&str> = below.lines().take(3).collect();
    assert_eq!(lines[0], "               2.000          IPC");
    assert_eq!(
        lines[1],
        "                 n/a          Branch_MPKI  # branch-misses was not counted: it never had a counter"
    );
    assert!(lines[2].starts_with("                 n/a GHz      Frequency  # "), "{text}");
    let zero =
        stat(&skylake(&[count(number(CYCLES), 0, 0, SECOND), count(2, 0, 500, SECOND)]), "-M IPC,CPI --json -o -")
            .json();
    assert_eq!(zero["metrics"][0]["unavailable"], "division by zero in column 14");
    assert_eq!((&zero["metrics"][0]["value"], &zero["metrics"][1]["value"]), (&json!(null), &json!(0.0)));
    let csv = stat(&skylake(&counts), "-M IPC --csv -o -").out;
    assert!(csv.ends_with("\n,,IPC,,,2.000,\n"), "{csv}");
}

#[test]
fn threads_of_a_core_choose_the_events() {
    let mut system = skylake(&slots());
    system.topology = Topology::from([(0, CorePlace { package: 0, core: 0 }), (1, CorePlace { package: 0, core: 0 })]);
    stat(&system, "-M Frontend_Bound --json -o -").outcome.unwrap();
    // CPU_CLK_UNHALTED.THREAD_P_ANY is the event of the clocks with AnyThread.
    let inputs = system.driver.inputs(Code::Start);
    let events = <[EventRequest]>::ref_from_bytes(&inputs.last().unwrap()[size_of::<StartHeader>()..]).unwrap();
    let clocks = number(&format!("{},any/", CYCLES.trim_end_matches('/')));
    assert!(events.iter().any(|one| one.event.source == clocks), "{events:x?}");
    let system = FakeSystem { topology: Topology::new(), ..skylake(&slots()) };
    let json = stat(&system, "-M Frontend_Bound --json -o -").json();
    assert_eq!(json["metrics"][0]["unavailable"], "#SMT_on has no value");
}

#[test]
fn on_a_hybrid_a_metric_has_a_value_for_each_core_type() {
    let mut driver = FakeDriver {
        core_types: vec![core_type_record(0x40, &[0]), core_type_record(0x20, &[1])],
        ..FakeDriver::default()
    };
    driver.info.signature = ALDER_LAKE;
    let system = FakeSystem::running(driver);
    let json = stat(&system, "-M IPC --json -o -").json();
    let types: Vec<&str> =
        json["metrics"].as_array().unwrap().iter().map(|one| one["core_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["cpu_core", "cpu_atom"]);
    let groups: Vec<(u32, u32)> = started(&system).iter().map(|event| (event.1, event.2)).collect();
    assert_eq!(groups, [(0x40, 1), (0x40, 1), (0x20, 2), (0x20, 2)]);
}

/// The first start tries the counters that CPUID hides.
#[test]
fn metrics_are_grouped_again_if_a_start_shows_that_there_are_fewer_counters() {
    let core = core_type_record(0x40, &[0]);
    let fewer = CoreTypeRecord { counters: 4, ..core };
    let mut driver = FakeDriver { core_types: vec![core], learned: Some((3, vec![fewer])), ..FakeDriver::default() };
    driver.info.signature = ALDER_LAKE;
    let system = FakeSystem::running(driver);
    stat(&system, "-M IPC,Branch_MPKI,Cache_MPKI --json -o -").outcome.unwrap();
    assert_eq!(system.driver.inputs(Code::Start).len(), 2);
    let groups: Vec<u32> = started(&system).iter().map(|event| event.2).collect();
    assert_eq!(groups, [1, 1, 1, 2, 2]);
    // If there are not, the refusal is reported.
    let mut driver = FakeDriver { core_types: vec![core], learned: Some((3, vec![core])), ..FakeDriver::default() };
    driver.info.signature = ALDER_LAKE;
    let system = FakeSystem::running(driver);
    stat(&system, "-M IPC,Branch_MPKI,Cache_MPKI --json -o -").failure();
    assert_eq!(system.driver.inputs(Code::Start).len(), 1);
}

#[test]
fn an_unknown_metric_gets_suggestions() {
    for name in ["Retirin", "TopdownL2"] {
        let (exit, report) = stat(&skylake(&slots()), &format!("-M {name}")).failure();
        assert_eq!(exit, Exit::UnknownSource);
        assert!(
            report.starts_with(&format!(
                "error: no metric or group of metrics of this processor is called {name}; did you mean: "
            )),
            "{report}"
        );
        assert!(report.ends_with("try: .\\client list metrics"), "{report}");
    }
}

#[test]
fn each_interval_and_each_core_has_its_metrics() {
    let counts = || [count(number(CYCLES), 0, 250, SECOND), count(2, 0, 500, SECOND), count(2, 1, 100, SECOND)];
    let driver = || {
        let system = skylake(&counts());
        let info = system.driver.info;
        let driver = FakeDriver { info, growth: counts().to_vec(), ..FakeDriver::default() };
        driver.counts.replace(counts().to_vec());
        FakeSystem { topology: system.topology, ..FakeSystem::running(driver) }
    };
    let text = run(&driver(), "stat -M IPC -I 20 --duration 0.05s").err;
    let lines: Vec<&str> = text.lines().filter(|line| line.ends_with("      2.400          IPC")).collect();
    assert!(lines.len() >= 2 && lines[0].starts_with("    0.0"), "{text}");
    let json = run(&driver(), "stat -M IPC -I 20 --duration 0.05s --json -o -").out;
    let first: Value = document(json.lines().next().unwrap());
    assert_eq!(first["metrics"][0]["value"], 2.4);

    let text = stat(&skylake(&counts()), "-M IPC --per-core --metric-only").err;
    assert!(text.contains("\nS0-C0      1     2.000          IPC\n"), "{text}");
    assert!(text.contains("\nS0-C1      1       n/a          IPC  # cycles was not counted"), "{text}");
    // Its erratum alone is named.
    assert!(text.lines().filter(|line| line.contains("TotalIssues")).all(|line| line.starts_with("Counted wrongly")));
    let csv = stat(&skylake(&counts()), "-M IPC --metric-only --csv").err;
    assert_eq!(csv, "2.400,,IPC\n");
    let csv = stat(&skylake(&counts()), "-M IPC --per-core --csv").err;
    assert!(csv.lines().any(|line| line == "S0-C0,1,,,IPC,,,2.000,"), "{csv}");
}

#[test]
fn level_1_is_that_of_general_counters_where_the_driver_refuses_the_metrics_of_slots() {
    const ICE_LAKE: u32 = 0x0007_06E5;
    const RETIRING: &str = "cpu/event=0x00,umask=0x80/";
    const NO_METRICS: u64 = pmu::Support::NoMetrics as u64;
    let info = InfoReply { signature: ICE_LAKE, counters: 12, least_counters: 12, fixed_counters: 4, ..info() };
    let refused_sources = vec![(number(RETIRING), ErrorCode::UnsupportedSource, [NO_METRICS, 0])];
    let system = FakeSystem::running(FakeDriver { info, refused_sources, ..FakeDriver::default() });
    let ran = stat(&system, "-M TopdownL1,IPC");
    assert_eq!(ran.outcome.unwrap(), 3, "{}", ran.err);
    assert_eq!(system.driver.inputs(Code::Start).len(), 2);
    let sources: Vec<u64> = started(&system).iter().map(|(source, ..)| *source).collect();
    let slots = number("cpu/event=0xa4,umask=0x01/");
    assert!(sources.contains(&slots) && !sources.contains(&number(RETIRING)), "{sources:x?}");

    // What the user names is not omitted.
    let refused_sources = vec![(number(RETIRING), ErrorCode::UnsupportedSource, [NO_METRICS, 0])];
    let system = FakeSystem::running(FakeDriver { info, refused_sources, ..FakeDriver::default() });
    assert_eq!(stat(&system, "--strict -e PERF_METRICS.RETIRING").failure().0, Exit::UnsupportedSource);
}

#[test]
fn a_metric_whose_event_the_driver_refuses_has_the_reason() {
    let refused_sources =
        vec![(number("cpu/event=0x0e,umask=0x01/"), ErrorCode::UnsupportedSource, [pmu::Support::NoMemory as u64, 0])];
    let FakeSystem { driver, topology, .. } = skylake(&slots());
    let driver = FakeDriver { info: driver.info, refused_sources, ..FakeDriver::default() };
    driver.counts.replace(slots());
    let text = stat(&FakeSystem { topology, ..FakeSystem::running(driver) }, "-M Bad_Speculation,IPC").err;
    let reason =
        "  # UOPS_ISSUED.ANY was not counted: the driver had no memory for the counters' state when it started";
    assert!(text.contains(&format!("n/a %        Bad_Speculation{reason}\n")), "{text}");
    assert!(text.contains("0.400          IPC\n"), "{text}");
}

#[test]
fn the_frequency_is_that_of_the_time_stamp_counter_times_cycles_by_reference_cycles() {
    let counts = [count(number(CYCLES), 0, 500, SECOND), count(0x1B, 0, 400, SECOND)];
    let without = skylake(&counts);
    let (exit, report) = stat(&without, "--strict -M Frequency").failure();
    assert_eq!(exit, Exit::UnsupportedSource);
    assert!(report.starts_with("error: Frequency cannot be computed here\n  because: ref-cycles was not"), "{report}");
    assert!(without.driver.inputs(Code::Start).is_empty());

    let sources = [sources(), vec![record(0x1B, "UnhaltedReferenceCycles", 0)]].concat();
    let driver = FakeDriver { info: without.driver.info, sources, ..FakeDriver::default() };
    driver.counts.replace(counts.to_vec());
    let json = stat(&FakeSystem::running(driver), "-M Frequency --json -o -").json();
    let frequency = &json["metrics"][0];
    assert_eq!(frequency["unit"], "GHz", "{json}");
    assert!((frequency["value"].as_f64().unwrap() - 3.75).abs() < 1e-12, "{json}");
}

/// Returns the events of the started groups with their counts: 500 of `misses` in 100,000 instructions while their
/// group had counters, and few events while the others had.
fn in_phases(system: &FakeSystem, misses: u64) -> Vec<CountRecord> {
    let events = started(system);
    let busy = events.iter().find(|(source, ..)| *source == misses).unwrap().2;
    let record = |(source, _, group): &(u64, u32, u32)| {
        let value = match *source {
            source if source == misses => 500,
            2 if *group == busy => 100_000,
            2 => 1_000,
            _ => 250,
        };
        count(*source, 0, value, SECOND)
    };
    events.iter().map(record).collect()
}

#[test]
fn the_events_of_a_metric_are_those_of_one_group() {
    let misses = number("cpu/event=0x2e,umask=0x41/");
    let line = "-M IPC,TopdownL1,Cache_MPKI --json -o -";
    let system = skylake(&[]);
    stat(&system, line).outcome.unwrap();
    let counts = in_phases(&system, misses);
    let groups: BTreeSet<u32> = started(&system).iter().filter(|(source, ..)| *source == 2).map(|one| one.2).collect();
    assert_eq!(groups.len(), 2, "instructions are in two groups");
    let json = stat(&skylake(&counts), line).json();
    let value = |name: &str| {
        let metrics = json["metrics"].as_array().unwrap();
        metrics.iter().find(|one| one["name"] == name).unwrap()["value"].as_f64().unwrap()
    };
    assert_eq!((value("Cache_MPKI"), value("IPC")), (5.0, 4.0), "{json}");

    // The share beside a count is of its own group as well.
    let system = skylake(&[]);
    let line = "-e {cycles,cache-misses},{instructions,cycles} --json -o -";
    stat(&system, line).outcome.unwrap();
    let counts: Vec<CountRecord> = started(&system)
        .iter()
        .zip([10, 1, 4_000, 1_000])
        .map(|((source, ..), value)| count(*source, 0, value, SECOND))
        .collect();
    let json = stat(&skylake(&counts), line).json();
    assert_eq!(json["events"][2]["metric"]["value"], 4.0, "{json}");
}
