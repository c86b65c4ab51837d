//! `encode`: the registers and counters of an event, by constants of Intel's and AMD's documents.

use super::*;

fn on(processor: &str, event: &str) -> Run {
    let dump = cpuid_dumps::find(processor).unwrap().dump();
    run_anywhere(&format!("encode {event} --cpuid - --json"), dump.as_bytes())
}

fn core(core_type: &str, event: &str, select: &str, counters: &Value, pebs_counters: &Value) -> Value {
    json!({
        "core_type": core_type, "event": event, "select": select, "extra": null,
        "counters": counters, "pebs_counters": pebs_counters, "error": null, "errata": []
    })
}

#[test]
fn an_event_has_its_select_and_its_counters_on_each_generation() {
    let four = json!([0, 1, 2, 3]);
    let six = json!([0, 1, 2, 3, 4, 5]);
    let none = json!([]);
    for (processor, event, name, select, counters, pebs) in [
        ("skylake-u-6500u", "mem_load_retired.l3_miss", "MEM_LOAD_RETIRED.L3_MISS", "0x000320d1", &four, &four),
        ("skylake-u-6500u", "MEM_LOAD_RETIRED.L3_MISS:u", "MEM_LOAD_RETIRED.L3_MISS", "0x000120d1", &four, &four),
        ("skylake-u-6500u", "L1D_PEND_MISS.PENDING:k", "L1D_PEND_MISS.PENDING", "0x00020148", &four, &none),
        ("haswell-4710mq", "L1D_PEND_MISS.PENDING", "L1D_PEND_MISS.PENDING", "0x00030148", &json!([2]), &none),
        (
            "skylake-u-6500u",
            "CYCLE_ACTIVITY.STALLS_L3_MISS",
            "CYCLE_ACTIVITY.STALLS_L3_MISS",
            "0x060306a3",
            &four,
            &none,
        ),
        (
            "skylake-u-6500u",
            "CPU_CLK_UNHALTED.REF_TSC",
            "CPU_CLK_UNHALTED.REF_TSC",
            "0x00030300",
            &json!(["F2"]),
            &none,
        ),
        ("zen2-3600x", "RETIRED_INSTRUCTIONS", "RETIRED_INSTRUCTIONS", "0x000300c0", &six, &none),
        ("zen2-3600x", "cache-misses", "cache-misses", "0x00030964", &six, &none),
        ("zen4-7700x", "ref-cycles", "ref-cycles", "0x100030120", &six, &none),
        ("haswell-4710mq", "cache-references", "cache-references", "0x00034f2e", &four, &none),
        (
            "nehalem-920",
            "cpu/event=0xC2,umask=1,counters=0x3/",
            "cpu/event=0xc2,umask=0x01/",
            "0x000301c2",
            &json!([0, 1]),
            &json!([0, 1]),
        ),
    ] {
        let found = on(processor, event).json();
        assert_eq!(found, json!({ "cores": [core("cpu", name, select, counters, pebs)] }), "{processor}: {event}");
    }
}

/// An event is tried with `encode` as it stands in a command line of `stat` or `record`.
#[test]
fn the_name_of_a_row_of_stat_and_the_interval_of_record_are_left_out() {
    let plain = on("skylake-u-6500u", "cpu/event=0xc4,umask=0x20/u").json();
    for same in ["cpu/event=0xc4,umask=0x20,name=taken/u", "cpu/name=taken,event=0xc4,umask=0x20/u@100k"] {
        assert_eq!(on("skylake-u-6500u", same).json(), plain, "{same}");
    }
}

/// perfmon, HSW/events/haswell_core.json, field "Errata".
#[test]
fn the_errata_of_the_makers_files_are_named() {
    let run = |verb: &str| {
        let dump = cpuid_dumps::find("haswell-4710mq").unwrap().dump();
        run_anywhere(&format!("{verb} --cpuid -"), dump.as_bytes())
    };
    let found = run("encode mem_load_uops_retired.l3_hit").out;
    assert!(found.contains("\nErrata    HSD25, HSD29, HSD74, HSM26, HSM30\n"), "{found}");
    let json = run("encode MEM_LOAD_UOPS_RETIRED.L3_HIT --json").json();
    assert_eq!(json["cores"][0]["errata"], json!(["HSD25", "HSD29", "HSD74", "HSM26", "HSM30"]));
    let both = run("encode INST_RETIRED.ANY_P").out;
    assert!(both.contains("\nErrata    HSD11, HSD140\n"), "{both}");
    for (by_number, errata) in [
        ("r00c0", json!(["HSD11", "HSD140"])),
        ("cpu/event=0xd1,umask=0x04/", json!(["HSD25", "HSD29", "HSD74", "HSM26", "HSM30"])),
        ("cpu/event=0xd1,umask=0x04,any/", json!([])),
        // Load latency has these with every threshold.
        ("cpu/event=0xcd,umask=0x01,ldlat=30/", json!(["HSD25", "HSD76", "HSM26"])),
        ("cpu/event=0xc4,umask=0x7f/", json!([])),
    ] {
        assert_eq!(run(&format!("encode {by_number} --json")).json()["cores"][0]["errata"], errata, "{by_number}");
    }
    let none = run("encode L1D_PEND_MISS.PENDING").out;
    assert!(none.starts_with("Cores ") && !none.contains("Errata"), "{none}");

    let listed = run("list mem_load_uops_retired.l3").out;
    let hit = "MEM_LOAD_UOPS_RETIRED.L3_HIT                   cpu           0-3        0-3\n    \
               Counts the number of load ops retired that hit in the L3 cache.\n    \
               counted wrongly, errata HSD25, HSD29, HSD74, HSM26, HSM30\n";
    assert!(listed.contains(hit), "{listed}");
    let json = run("list MEM_LOAD_UOPS_RETIRED.L3_HIT --json").json();
    assert_eq!(json["events"][0]["errata"], json!(["HSD25", "HSD29", "HSD74", "HSM26", "HSM30"]));
}

/// Broadwell with hyperthreading off: general counters 4 to 7 count nothing in user mode alone (likwid issue 517).
#[test]
fn events_in_user_mode_alone_are_shown_with_the_counters_that_count_them() {
    let low = json!([0, 1, 2, 3]);
    let all = json!([0, 1, 2, 3, 4, 5, 6, 7]);
    let dump = cpuid_dumps::find("broadwell-6950x").unwrap().dump().replace("0A: 07300403", "0A: 07300803");
    let on = |event: &str| run_anywhere(&format!("encode {event} --cpuid - --json"), dump.as_bytes()).json();
    for (event, counters) in [
        ("cpu/event=0xc4/u", &low),
        ("cpu/event=0xc4/k", &all),
        ("cpu/event=0xc4/", &all),
        ("BR_INST_RETIRED.ALL_BRANCHES:u", &low),
        ("BranchInstructions:u", &low),
        ("instructions:u", &json!([0, 1, 2, 3, "F0"])),
    ] {
        let found = on(event);
        assert_eq!(&found["cores"][0]["counters"], counters, "{event}");
    }
    let only_high = on("cpu/event=0xc4,counters=0xf0/u");
    assert_eq!(only_high["cores"][0]["error"], json!("this processor has no counter that counts it"));
}

/// Event 0 with unit mask 04H, and from 80H on for the metrics (Intel's event files; Linux, arch/x86/events/
/// perf_event.h).
#[test]
fn slots_and_their_metrics_are_counted_by_fixed_counter_3() {
    for (processor, event, name, select) in [
        ("ice-lake-1065g7", "topdown.slots", "TOPDOWN.SLOTS", "0x00030400"),
        ("ice-lake-1065g7", "PERF_METRICS.RETIRING", "PERF_METRICS.RETIRING", "0x00038000"),
        ("ice-lake-1065g7", "PERF_METRICS.BACKEND_BOUND:u", "PERF_METRICS.BACKEND_BOUND", "0x00018300"),
        ("sapphire-rapids-2475x", "PERF_METRICS.MEMORY_BOUND", "PERF_METRICS.MEMORY_BOUND", "0x00038700"),
        ("sapphire-rapids-2475x", "cpu/event=0,umask=0x87/", "cpu/event=0x00,umask=0x87/", "0x00038700"),
    ] {
        let found = on(processor, event).json();
        let expected = core("cpu", name, select, &json!(["F3"]), &json!([]));
        assert_eq!(found, json!({ "cores": [expected] }), "{processor}: {event}");
    }
    // Level 2 begins with Golden Cove.
    assert!(on("ice-lake-1065g7", "PERF_METRICS.MEMORY_BOUND").outcome.is_err());
}

#[test]
fn a_hybrid_has_an_encoding_for_each_kind_of_cores() {
    let found = on("lunar-lake-288v", "ITLB_MISSES.STLB_HIT").json();
    let ten: Value = (0..10).collect();
    let eight: Value = (0..8).collect();
    let both = [
        core("cpu_core", "ITLB_MISSES.STLB_HIT", "0x10000032011", &ten, &json!([])),
        core("cpu_atom", "ITLB_MISSES.STLB_HIT", "0x00032085", &eight, &json!([])),
    ];
    assert_eq!(found, json!({ "cores": both }));
    let one = on("lunar-lake-288v-efficient", "cpu_atom/ITLB_MISSES.STLB_HIT/").json();
    assert_eq!(one["cores"].as_array().unwrap().len(), 1);
    assert_eq!(one["cores"][0]["select"], "0x00032085");
    let kinds = on("arrow-lake-h-285h", "INST_RETIRED.ANY").json();
    let kinds: Vec<_> = kinds["cores"].as_array().unwrap().iter().map(|core| core["core_type"].clone()).collect();
    assert_eq!(kinds, ["cpu_core", "cpu_atom", "cpu_lowpower"]);
    let missing = on("alder-lake-p-12900h", "MEM_LOAD_RETIRED.L3_MISS").json();
    assert_eq!(
        missing["cores"][1],
        json!({
            "core_type": "cpu_atom", "event": "MEM_LOAD_RETIRED.L3_MISS", "select": null, "extra": null, "counters": [],
            "pebs_counters": [], "error": "these cores have no event of this name", "errata": []
        })
    );
}

#[test]
fn what_the_driver_refuses_has_its_registers_and_the_reason() {
    let latency = on("skylake-u-6500u", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128").json();
    assert_eq!(
        latency["cores"][0],
        json!({
            "core_type": "cpu", "event": "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128", "select": "0x000301cd",
            "extra": { "msr": "0x3f6", "value": "0x80" }, "counters": [0, 1, 2, 3], "pebs_counters": [0, 1, 2, 3],
            "error": null, "errata": []
        })
    );
    let other = on("skylake-u-6500u", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128:ldlat=30").json();
    assert_eq!(other["cores"][0]["extra"], json!({ "msr": "0x3f6", "value": "0x1e" }));
    let golden_cove = on("alder-lake-p-12900h", "cpu_core/MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128/").json();
    assert_eq!(golden_cove["cores"][0]["extra"], json!({ "msr": "0x3f6", "value": "0x80" }));
    let advice = |processor, event: &str| {
        let dump = cpuid_dumps::find(processor).unwrap().dump();
        let text = run_anywhere(&format!("encode {event} --cpuid -"), dump.as_bytes()).out;
        text.contains("recorded, not counted: .\\client record -e MEM_")
    };
    assert!(advice("skylake-u-6500u", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128"));
    assert!(advice("alder-lake-p-12900h", "cpu_core/MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128/"));
    let any = on("skylake-6600k", "CPU_CLK_UNHALTED.THREAD_P_ANY").json();
    assert_eq!((&any["cores"][0]["select"], &any["cores"][0]["error"]), (&json!("0x0023003c"), &Value::Null));
    for (processor, event, counters, error) in [
        ("skylake-6600k", "CPU_CLK_UNHALTED.THREAD_ANY", json!(["F1"]), "AnyThread"),
        ("skylake-u-6500u", "OFFCORE_RESPONSE", json!([0, 1, 2, 3]), "without a value"),
        ("skylake-u-6500u", "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4:ldlat=2", json!([0, 1, 2, 3]), "at least 3"),
        ("skylake-u-6500u", "MEM_LOAD_RETIRED.L3_MISS:ldlat=30", json!([0, 1, 2, 3]), "no value by ldlat="),
        ("skylake-u-6500u", "cycles:ldlat=30", json!([]), "no value by ldlat="),
        ("skylake-6600k", "cpu/event=0,umask=0x04/", json!([]), "does not offer fixed counter 3"),
        ("ice-lake-1065g7", "cpu/event=0,umask=0x84/", json!([]), "does not offer fixed counter 3"),
        ("skylake-u-6500u", "L1D.REPLACEMENT:p", json!([0, 1, 2, 3]), "records it precisely"),
        ("zen-1800x", "ref-cycles", json!([]), "has no event for ref-cycles"),
        ("intel-hyperv-masked", "cycles", json!([]), "masks the counters"),
        ("zhaoxin-kh40000", "cycles", json!([]), "the vendor is neither AuthenticAMD nor GenuineIntel"),
        ("nehalem-920", "cpu/event=0xC2,umask=1,counters=0x30/", json!([]), "no counter"),
    ] {
        let found = on(processor, event).json();
        assert_eq!(found["cores"][0]["counters"], counters, "{event}");
        let why = found["cores"][0]["error"].as_str().unwrap().to_owned();
        assert!(why.contains(error), "{event}: {why}");
    }
    let cycles = on("skylake-u-6500u", "INST_RETIRED.TOTAL_CYCLES_PS").json();
    assert_eq!((&cycles["cores"][0]["counters"], &cycles["cores"][0]["error"]), (&json!([0, 2, 3]), &Value::Null));
    let by_number = on("skylake-u-6500u", "cpu/event=0xc0,umask=1,cmask=10,inv/").json();
    assert_eq!(by_number["cores"][0]["counters"], json!([0, 2, 3]));
    let time = on("zen-1800x", "cpu-clock").json();
    assert_eq!((&time["cores"][0]["error"], &time["cores"][0]["select"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_unknown_name_has_suggestions_by_word_and_by_spelling() {
    for (processor, event, report) in [
        (
            "skylake-6600k",
            "instruction",
            "error: no event is called instruction; did you mean: instructions, TotalIssues, INST_RETIRED.ANY?\n  \
             because: these cores have no event of this name",
        ),
        (
            "alder-lake-p-12900h",
            "cpu_atom/L1D.REPLACEMNT/",
            "error: no event is called L1D.REPLACEMNT\n  because: these cores have no event of this name\n  \
             try: .\\client list PATTERN   (searches names and descriptions)",
        ),
        (
            "core2-6420",
            "INST_RETIRED.ANY",
            "error: no event is called INST_RETIRED.ANY: some of Intel's processors have it; did you mean: \
             instructions, TotalIssues?\n  because: no table has the events of this processor",
        ),
        (
            "zen-1800x",
            "cpu_core/cycles/",
            "error: this processor has no cores of the type cpu_core\n  try: .\\client diagnose   (shows its core types)",
        ),
    ] {
        let (exit, found) = on(processor, event).failure();
        assert_eq!((exit, found.as_str()), (Exit::UnknownSource, report));
    }
    let (_, near) = on("skylake-6600k", "MEM_LOAD_RETIRED.L3_MIS").failure();
    assert!(near.contains("did you mean: MEM_LOAD_RETIRED.L3_MISS,"), "{near}");
}

#[test]
fn the_text_has_a_block_for_each_kind_of_cores() {
    let dump = cpuid_dumps::find("alder-lake-p-12900h").unwrap().dump();
    let out = run_anywhere("encode BR_INST_RETIRED.ALL_BRANCHES --cpuid -", dump.as_bytes()).out;
    assert_eq!(
        out,
        "Cores     cpu_core\nEvent     BR_INST_RETIRED.ALL_BRANCHES\nSelect    0x000300c4\nCounters  0-7\n\
         Precise   0-7\nAbout     All branch instructions retired.\n\nCores     cpu_atom\nEvent     BR_INST_RETIRED.ALL_BRANCHES\nSelect    0x000300c4\n\
         Counters  0-5\nPrecise   0-5\nAbout     All branch instructions retired.\n"
    );
}

/// The general counters record C0/00, which is another event (Linux, arch/x86/events/intel/ds.c,
/// `intel_icl_pebs_event_constraints`: mask of fixed counter 0 for 00/01).
#[test]
fn an_event_of_a_fixed_counter_is_recorded_there_alone() {
    for processor in ["sapphire-rapids-2475x", "ice-lake-1065g7", "granite-rapids-658x", "lunar-lake-288v"] {
        let counted = on(processor, "INST_RETIRED.PREC_DIST").json();
        assert_eq!(counted["cores"][0]["counters"], json!(["F0"]), "{processor}");
        assert_eq!(
            [&counted["cores"][0]["pebs_counters"], &counted["cores"][0]["error"]],
            [&json!(["F0"]), &json!(null)]
        );
        let recorded = on(processor, "INST_RETIRED.PREC_DIST:p").json();
        assert_eq!(recorded, counted, "{processor}");
        assert_eq!(on(processor, "instructions:p").json()["cores"][0]["error"], json!(null), "{processor}");
    }
    // Where a general counter records it, it has that encoding.
    let found = on("haswell-4710mq", "INST_RETIRED.PREC_DIST:p").json();
    let mut expected = core("cpu", "INST_RETIRED.PREC_DIST", "0x000301c0", &json!([1]), &json!([1]));
    expected["errata"] = json!(["HSD140"]);
    assert_eq!(found, json!({ "cores": [expected] }));
}

#[test]
fn records_of_architectural_pebs_have_the_counters_of_the_table() {
    let found = on("panther-lake-355", "cpu_core/MEM_LOAD_RETIRED.L3_MISS/p").json();
    let core = &found["cores"][0];
    assert_eq!((&core["pebs_counters"], &core["error"]), (&json!([0, 1, 2, 3]), &json!(null)), "{core}");
}

#[test]
fn an_event_with_an_erratum_says_so() {
    let errata = |processor, event| {
        let dump = cpuid_dumps::find(processor).unwrap().dump();
        let text = run_anywhere(&format!("encode {event} --cpuid -"), dump.as_bytes()).out;
        text.lines().find_map(|line| line.strip_prefix("Errata")).map(|rest| rest.trim().to_owned())
    };
    for event in ["RETIRED_INSTRUCTIONS", "instructions", "TotalIssues", "cpu/event=0xc2/"] {
        assert_eq!(errata("milan-7713", event).as_deref(), Some("1292"), "{event}");
        assert_eq!(errata("zen3-5950x", event), None, "{event}");
    }
    assert_eq!(errata("milan-7713", "cycles"), None);
    assert_eq!(errata("skylake-u-6500u", "cache-references").as_deref(), Some("SKL057"));
}
