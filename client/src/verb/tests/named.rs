//! Events by their makers' names and by the names of perf, wherever an event is accepted.

use pmu::extra::AUXILIARY;
use pmu::source::RawEvent;
use protocol::{EventRequest, SourceRecord, StartHeader};

use super::*;
use fake_system::core_type_record;

const SKYLAKE: u32 = 0x0005_06E3;
const ALDER_LAKE: u32 = 0x0009_0672;
const ARROW_LAKE_H: u32 = 0x000C_0652;
const CORE: u32 = 0x40;
const ATOM: u32 = 0x20;

fn on(signature: u32) -> FakeSystem {
    let mut driver = FakeDriver::default();
    driver.info.signature = signature;
    FakeSystem::running(driver)
}

/// Returns a driver on a hybrid: P cores are processors 0 and 2.
fn hybrid(signature: u32) -> FakeSystem {
    let mut driver = FakeDriver {
        core_types: vec![core_type_record(CORE, &[0, 2]), core_type_record(ATOM, &[1, 3])],
        ..FakeDriver::default()
    };
    driver.info.signature = signature;
    FakeSystem::running(driver)
}

fn number(text: &str) -> u64 {
    match text.parse().unwrap() {
        SourceName::Raw(event) => event.source,
        SourceName::Number(number) => number.into(),
        other => panic!("{other}"),
    }
}

/// Returns source, modes, core type and counters of the events that were started last.
fn started(system: &FakeSystem) -> Vec<(u64, u32, u32, u32)> {
    let inputs = system.driver.inputs(Code::Start);
    let events = <[EventRequest]>::ref_from_bytes(&inputs.last().unwrap()[size_of::<StartHeader>()..]).unwrap();
    events.iter().map(|event| (event.event.source, event.modes, event.event.core_type, event.event.counters)).collect()
}

/// Records an event for a moment.
fn recorded(system: &FakeSystem, event: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("halprof.rec");
    run(system, &format!("record --duration 0.001s -o {} -e {event}", file.display())).outcome.unwrap();
}

#[test]
fn a_name_starts_the_event_of_the_processor() {
    for (name, source, modes) in [
        ("MEM_LOAD_RETIRED.L3_MISS", "cpu/event=0xd1,umask=0x20/", 3),
        ("mem_load_retired.l3_miss:u", "cpu/event=0xd1,umask=0x20/", 1),
        ("L1D.REPLACEMENT:k", "cpu/event=0x51,umask=0x01/", 2),
        ("CYCLE_ACTIVITY.STALLS_L3_MISS", "cpu/event=0xa3,umask=0x06,cmask=6/", 3),
        ("INST_RETIRED.ANY", "2", 3),
        ("CPU_CLK_UNHALTED.THREAD:u", "0x13", 1),
        ("instructions", "2", 3),
        ("BRANCH-MISSES", "cpu/event=0xc5/", 3),
        ("cpu-clock", "0", 3),
        ("TotalIssues", "2", 3),
    ] {
        let system = on(SKYLAKE);
        assert!(run(&system, &format!("start {name}")).outcome.is_ok(), "{name}");
        assert_eq!(started(&system), [(number(source), modes, 0, 0)], "{name}");
    }
    let system = on(SKYLAKE);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    run(&system, &format!("record -e MEM_LOAD_RETIRED.L3_MISS:p@10k --duration 0.01s -o {path}")).outcome.unwrap();
    assert_eq!(started(&system), [(number("cpu/event=0xd1,umask=0x20/"), 7, 0, 0)]);
    let shown = run(&system, &format!("report {path}")).out;
    assert!(shown.contains("MEM_LOAD_RETIRED.L3_MISS:p"), "{shown}");
    assert_eq!(
        run(&system, "start MEM_LOAD_RETIRED.L3_MISS,L1D.REPLACEMENT:u").out,
        "session 7 counts on every processor: MEM_LOAD_RETIRED.L3_MISS, L1D.REPLACEMENT:u\n\
         until: .\\client stop MEM_LOAD_RETIRED.L3_MISS L1D.REPLACEMENT\n"
    );
}

#[test]
fn a_count_has_the_name_that_the_user_typed_as_its_maker_writes_it() {
    let source = number("cpu/event=0xd1,umask=0x20/");
    let system = on(SKYLAKE);
    system.driver.counts.replace(vec![count(source, 0, 1_000, SECOND)]);
    let json = stat(&system, "-e mem_load_retired.l3_miss -o - --json").json();
    assert_eq!(json["events"][0]["name"], "MEM_LOAD_RETIRED.L3_MISS");
}

/// perfmon, field "Errata" of haswell_core.json, meteorlake_crestmont_core.json and alderlake_goldencove_core.json.
#[test]
fn stat_and_query_name_the_errata_of_an_event_on_its_cores() {
    let note = |system: &FakeSystem, events: &str, counted: Vec<CountRecord>| {
        system.driver.counts.replace(counted);
        let text = stat(system, &format!("-e {events} -o -")).out;
        text.lines().find(|line| line.starts_with("Counted wrongly")).map(str::to_owned)
    };
    let hit = number("cpu/event=0xd1,umask=0x04/");
    let mut driver = FakeDriver {
        sources: vec![record(2, "TotalIssues", 0), record(hit, "", 0), record(number("cpu/event=0xc0/"), "", 0)],
        ..FakeDriver::default()
    };
    driver.info.signature = 0x0003_06C3;
    let haswell = FakeSystem::running(driver);
    let of_hit = "HSD25, HSD29, HSD74, HSM26, HSM30";
    assert_eq!(
        note(&haswell, "mem_load_uops_retired.l3_hit", vec![count(hit, 0, 1_000, SECOND)]),
        Some(format!("Counted wrongly by errata of the processor: MEM_LOAD_UOPS_RETIRED.L3_HIT ({of_hit})."))
    );
    let by_number = "cpu/event=0xd1,umask=0x04/";
    assert_eq!(
        note(&haswell, by_number, vec![count(hit, 0, 1_000, SECOND)]),
        Some(format!("Counted wrongly by errata of the processor: cpu/event=0xd1,umask=0x04/ ({of_hit})."))
    );
    let json = |verb: &str| -> Vec<Value> {
        haswell.driver.counts.replace(vec![count(hit, 0, 1_000, SECOND)]);
        let ran = run(&haswell, verb);
        let errata = ran.json()["events"][0]["errata"].clone();
        errata.as_array().unwrap_or_else(|| panic!("{}", ran.out)).iter().map(|one| one["number"].clone()).collect()
    };
    let of_hit_alone: Vec<&str> = of_hit.split(", ").collect();
    assert_eq!(json(&format!("stat --json -o - --duration 0.001s -e {by_number}")), of_hit_alone);
    assert_eq!(json("stat --json -o - --duration 0.001s -e cpu/mem_load_uops_retired.l3_hit,name=x/"), of_hit_alone);
    let query = run(&haswell, &format!("query {by_number}")).out;
    assert!(query.contains(&format!("\nErrata     {of_hit}\n")), "{query}");
    let query = run(&haswell, "query MEM_LOAD_UOPS_RETIRED.L3_HIT").out;
    assert!(query.contains(&format!("\nErrata     {of_hit}\n")), "{query}");
    let instructions = run(&haswell, "query INST_RETIRED.ANY_P --json").json()["errata"].clone();
    let numbers: Vec<&Value> = instructions.as_array().unwrap().iter().map(|one| &one["number"]).collect();
    assert_eq!(numbers, ["HSD11", "HSD140"], "each once: its encoding and its name have the same");

    let query = |event: &str| {
        let conditional = |core_type, umask| {
            let source = number(&format!("cpu/event=0xc4,umask={umask}/"));
            SourceRecord { core_type, ..record(source, "", 0) }
        };
        let mut driver = FakeDriver {
            core_types: vec![core_type_record(CORE, &[0, 2]), core_type_record(ATOM, &[1, 3])],
            on_core_types: vec![conditional(CORE, "0x11"), conditional(ATOM, "0x7e")],
            ..FakeDriver::default()
        };
        driver.info.signature = 0x000A_06A4;
        let system = FakeSystem::running(driver);
        run(&system, &format!("query {event} --json")).json()["errata"].clone()
    };
    let of_atom = json!([{"number": "MTL013", "efficient_cores_only": true}]);
    assert_eq!(query("cpu_atom/BR_INST_RETIRED.COND/"), of_atom);
    assert_eq!(query("cpu_core/BR_INST_RETIRED.COND/"), json!([]));
}

#[test]
fn on_a_hybrid_a_name_is_an_event_of_each_core_type_that_has_it() {
    let branches = number("cpu/event=0xc4/");
    let misses = number("cpu/event=0xd1,umask=0x20/");
    for (line, events) in [
        ("start BR_INST_RETIRED.ALL_BRANCHES", vec![(branches, 3, CORE, 0), (branches, 3, ATOM, 0)]),
        ("start MEM_LOAD_RETIRED.L3_MISS", vec![(misses, 3, CORE, 0)]),
        ("start cpu_core/MEM_LOAD_RETIRED.L3_MISS/u", vec![(misses, 1, CORE, 0)]),
        ("start cpu_atom/br_inst_retired.all_branches/", vec![(branches, 3, ATOM, 0)]),
        ("start BR_INST_RETIRED.ALL_BRANCHES -C 0,2", vec![(branches, 3, CORE, 0)]),
        ("start BR_INST_RETIRED.ALL_BRANCHES -C 1", vec![(branches, 3, ATOM, 0)]),
        ("start INST_RETIRED.ANY", vec![(2, 3, 0, 0)]),
        ("start INST_RETIRED.PREC_DIST", vec![(2, 3, CORE, 0)]),
        ("start cpu_atom/cycles/", vec![(number("cpu/event=0x3c/"), 3, ATOM, 0)]),
    ] {
        let system = hybrid(ALDER_LAKE);
        let ran = run(&system, line);
        assert!(ran.outcome.is_ok(), "{line}: {:?}", ran.outcome);
        assert_eq!(started(&system), events, "{line}");
    }
    let (exit, report) = run(&hybrid(ALDER_LAKE), "start cpu_atom/MEM_LOAD_RETIRED.L3_MISS/").failure();
    assert_eq!(exit, Exit::UnknownSource);
    assert!(report.starts_with("error: no source is called MEM_LOAD_RETIRED.L3_MISS"), "{report}");
}

#[test]
fn an_event_that_low_power_cores_lack_is_refused() {
    let (exit, report) = run(&hybrid(ARROW_LAKE_H), "start cpu_atom/ARITH.IDIV_UOPS/").failure();
    assert_eq!(exit, Exit::UnsupportedSource);
    assert!(report.contains("low-power E cores"), "{report}");
    let system = hybrid(ARROW_LAKE_H);
    run(&system, "start cpu_atom/BR_INST_RETIRED.ALL_BRANCHES/").outcome.unwrap();
    assert_eq!(started(&system), [(number("cpu/event=0xc4/"), 3, ATOM, 0)]);
}

#[test]
fn the_driver_chooses_the_counters_of_an_event_with_a_wide_unit_mask() {
    let system = hybrid(0x000B_06D1);
    run(&system, "start cpu_core/ITLB_MISSES.STLB_HIT/").outcome.unwrap();
    assert_eq!(started(&system), [(number("cpu/event=0x11,umask=0x120/"), 3, CORE, 0)]);
}

/// The general counters record C0/00 under the HAL's name, which is another event than 00/01.
#[test]
fn an_event_of_a_fixed_counter_is_recorded_by_its_encoding_and_counted_by_the_name_of_the_hal() {
    const SAPPHIRE_RAPIDS: u32 = 0x0008_06F8;
    let prec_dist = RawEvent::new().with_umask(1).source().0;
    for (name, modes) in [("INST_RETIRED.PREC_DIST:p", 7), ("INST_RETIRED.ANY:up", 5)] {
        let system = on(SAPPHIRE_RAPIDS);
        recorded(&system, name);
        assert_eq!(started(&system), [(prec_dist, modes, 0, 0)], "{name}");
    }
    let (exit, report) = run(&on(SAPPHIRE_RAPIDS), "record -o NUL -e TOPDOWN.SLOTS:p").failure();
    assert_eq!(exit, Exit::UnsupportedSource, "{report}");
    assert!(report.contains("only fixed counter 3 records it"), "{report}");
    // Counting takes the fixed counter.
    let system = on(SAPPHIRE_RAPIDS);
    run(&system, "start INST_RETIRED.PREC_DIST").outcome.unwrap();
    assert_eq!(started(&system), [(2, 3, 0, 0)]);
}

#[test]
fn load_latency_is_recorded_beside_the_event_that_golden_cove_needs() {
    const GRANITE_RAPIDS: u32 = 0x000A_06D1;
    const SAPPHIRE_RAPIDS: u32 = 0x0008_06F8;
    for (signature, others) in [(SAPPHIRE_RAPIDS, vec![(AUXILIARY.source().0, 1, 0, 0)]), (GRANITE_RAPIDS, vec![])] {
        let system = on(signature);
        recorded(&system, "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128:up");
        let all = started(&system);
        assert_eq!((RawEvent::from_bits(all[0].0).event(), all[0].1, &all[1..]), (0xCD, 5, &others[..]));
    }
}

#[test]
fn what_no_request_can_carry_is_refused_with_the_reason() {
    for (name, reason) in [
        ("OFFCORE_RESPONSE", "it counts nothing without a value: OFFCORE_RESPONSE:offcore_rsp=0x10001 or another"),
        ("MEM_LOAD_RETIRED.L3_MISS:ldlat=30", "it takes no value by ldlat="),
        ("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128:frontend=0x15", "it takes no value by frontend="),
        ("cycles:offcore_rsp=1", "it takes no value by offcore_rsp="),
        (
            "CPU_CLK_UNHALTED.THREAD_ANY",
            "it is fixed counter 1 with both threads of a core (AnyThread), which the driver sets on general counters \
             only",
        ),
    ] {
        let asked = name;
        let name = asked.split_once(':').map_or(asked, |(name, _)| name);
        let system = on(SKYLAKE);
        let (exit, report) = run(&system, &format!("start TotalIssues,{asked}")).failure();
        assert_eq!(exit, Exit::UnsupportedSource);
        assert_eq!(
            report,
            format!(
                "error: {name} cannot be counted\n  because: {reason}\n  \
                 try: .\\client encode {name}   (shows what it needs)"
            )
        );
        assert!(system.driver.inputs(Code::Start).is_empty());
    }
}

/// Returns event, extra register's selector and value, and the counters of the events that were started last.
fn whole(system: &FakeSystem) -> Vec<(u64, u64, u64)> {
    let inputs = system.driver.inputs(Code::Start);
    let events = <[EventRequest]>::ref_from_bytes(&inputs.last().unwrap()[size_of::<StartHeader>()..]).unwrap();
    events
        .iter()
        .map(|event| (event.event.source & 0xFFF_FFFF, event.event.source >> 40 & 7, event.event.extra))
        .collect()
}

#[test]
fn a_name_with_an_extra_register_has_the_value_of_the_table_or_of_the_user() {
    for (name, wanted) in [
        ("OFFCORE_RESPONSE.DEMAND_DATA_RD.ANY_RESPONSE", (0x1_0B7, 1, 0x1_0001)),
        ("offcore_response:offcore_rsp=0x10002:u", (0x1_0B7, 1, 0x1_0002)),
        ("FRONTEND_RETIRED.DSB_MISS", (0x1_0C6, 3, 0x11)),
        ("FRONTEND_RETIRED.LATENCY_GE_16:frontend=0x401006", (0x1_0C6, 3, 0x40_1006)),
        ("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", (0x1_0CD, 2, 0x80)),
        ("MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128:ldlat=30", (0x1_0CD, 2, 30)),
        ("cpu/mem_trans_retired.load_latency_gt_4,ldlat=0x1f/k", (0x1_0CD, 2, 31)),
    ] {
        let system = on(SKYLAKE);
        run(&system, &format!("start {name}")).outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(whole(&system), [wanted], "{name}");
    }
    let system = hybrid(ALDER_LAKE);
    run(&system, "start cpu_atom/MEM_UOPS_RETIRED.LOAD_LATENCY_GT_8:ldlat=9/u").outcome.unwrap();
    assert_eq!(whole(&system), [(0x5_0D0, 2, 9)]);
}

#[test]
fn two_values_of_one_name_are_counted_and_shown_apart() {
    let names = ["OFFCORE_RESPONSE.DEMAND_RFO.ANY_RESPONSE", "OFFCORE_RESPONSE:offcore_rsp=0x10001"];
    let system = on(SKYLAKE);
    let of = |extra, number| {
        let event = Event { extra, ..Event::of(1 << 63 | 1 << 40 | 0x1_0B7) };
        CountRecord { event, ..count(0, 0, number, SECOND) }
    };
    system.driver.counts.replace(vec![of(0x1_0001, 11), of(0x1_0002, 22)]);
    let ran = stat(&system, &format!("-e {}", names.join(",")));
    assert_eq!(whole(&system), [(0x1_0B7, 1, 0x1_0002), (0x1_0B7, 1, 0x1_0001)]);
    for (name, number) in names.iter().zip(["22", "11"]) {
        let line = ran.err.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{}", ran.err));
        assert_eq!(line.split_whitespace().next(), Some(number), "{line}");
    }
}

#[test]
fn a_name_of_both_threads_of_a_core_is_requested_with_any_thread() {
    let system = on(SKYLAKE);
    run(&system, "start CPU_CLK_UNHALTED.THREAD_P_ANY,CPU_CLK_UNHALTED.THREAD_P").outcome.unwrap();
    let inputs = system.driver.inputs(Code::Start);
    let events = <[EventRequest]>::ref_from_bytes(&inputs.last().unwrap()[size_of::<StartHeader>()..]).unwrap();
    let any: Vec<bool> = events.iter().map(|event| pmu::Source(event.event.source).raw().unwrap().any()).collect();
    assert_eq!(any, [true, false]);
    assert_eq!(
        run(&system, "start CPU_CLK_UNHALTED.THREAD_P_ANY,CPU_CLK_UNHALTED.THREAD_P").out.lines().next(),
        Some("session 7 counts on every processor: CPU_CLK_UNHALTED.THREAD_P_ANY, CPU_CLK_UNHALTED.THREAD_P")
    );
}

#[test]
fn an_event_that_must_run_alone_is_refused_beside_another_general_counter() {
    const SANDY_BRIDGE: u32 = 0x0002_06A7;
    for line in [
        "start INST_RETIRED.PREC_DIST",
        "start INST_RETIRED.PREC_DIST,INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD",
        "start L1D.REPLACEMENT,MEM_LOAD_UOPS_RETIRED.LLC_HIT",
    ] {
        assert!(run(&on(SANDY_BRIDGE), line).outcome.is_ok(), "{line}");
    }
    let system = on(SANDY_BRIDGE);
    let (exit, report) = run(&system, "start L1D.REPLACEMENT,INST_RETIRED.PREC_DIST").failure();
    assert_eq!(exit, Exit::UnsupportedSource);
    assert_eq!(
        report,
        "error: INST_RETIRED.PREC_DIST and L1D.REPLACEMENT cannot be counted together\n  \
         because: while INST_RETIRED.PREC_DIST runs, no other event may have a general counter (TakenAlone in Intel's \
         event files)\n  \
         try: two commands; instructions and cycles of fixed counters can run beside it"
    );
    assert!(system.driver.inputs(Code::Start).is_empty());
    let hybrid = hybrid(ALDER_LAKE);
    run(&hybrid, "start cpu_atom/MEM_UOPS_RETIRED.STORE_LATENCY/,cpu_core/L1D.REPLACEMENT/").outcome.unwrap();
    let (_, report) = run(&hybrid, "start MEM_UOPS_RETIRED.STORE_LATENCY,BR_INST_RETIRED.ALL_BRANCHES").failure();
    assert!(report.contains("STORE_LATENCY runs, no other"), "{report}");
}

#[test]
fn fixed_counters_of_files_that_number_them_from_1_are_sources() {
    const NEHALEM: u32 = 0x0001_06A5;
    let system = on(NEHALEM);
    run(&system, "start INST_RETIRED.ANY,CPU_CLK_UNHALTED.THREAD").outcome.unwrap();
    assert_eq!(started(&system), [(2, 3, 0, 0), (0x13, 3, 0, 0)]);
}

#[test]
fn an_unknown_name_suggests_events_of_the_processor() {
    for (name, near) in [
        ("instruction", "instructions, TotalIssues, INST_RETIRED.ANY"),
        ("MEM_LOAD_RETIRED.L3_MIS", "MEM_LOAD_RETIRED.L3_MISS, MEM_LOAD_RETIRED.L1_MISS, MEM_LOAD_RETIRED.L2_MISS"),
        ("branch-mises", "branch-misses, branches, BranchMispredictions"),
    ] {
        let (exit, report) = run(&on(SKYLAKE), &format!("start {name}")).failure();
        assert_eq!(exit, Exit::UnknownSource);
        assert_eq!(report.lines().next().unwrap(), format!("error: no source is called {name}; did you mean: {near}?"));
    }
}

#[test]
fn detached_sessions_are_found_by_name() {
    let source = number("cpu/event=0xd1,umask=0x20/");
    let system = on(SKYLAKE);
    system.driver.counts.replace(vec![count(source, 0, 1_000, SECOND)]);
    let out = run(&system, "read MEM_LOAD_RETIRED.L3_MISS").out;
    assert!(out.contains("MEM_LOAD_RETIRED.L3_MISS") && out.contains("1,000"), "{out}");
}
