//! `list PATTERN`: names of all kinds, their cores and their counters, in 80 columns.

use cpuid_dumps::CpuIdentity;

use super::*;

fn on(processor: &str, options: &str) -> Run {
    let dump = cpuid_dumps::find(processor).unwrap().dump();
    run_anywhere(&format!("list {options} --cpuid -"), dump.as_bytes())
}

#[test]
fn a_search_shows_the_cores_and_counters_of_each_event() {
    assert_eq!(
        on("alder-lake-p-12900h", "br_misp_retired.ind").out,
        "Name                                           Cores         Counters   Precise\n\
         ---------------------------------------------  ------------  ---------  -------\n\
         BR_MISP_RETIRED.INDIRECT                       cpu_core      0-7        0-7\n\
         BR_MISP_RETIRED.INDIRECT                       cpu_atom      0-5        0-5\n    \
         Miss-predicted near indirect branch instructions retired (excluding returns)\n\
         BR_MISP_RETIRED.INDIRECT_CALL                  cpu_core      0-7        0-7\n\
         BR_MISP_RETIRED.INDIRECT_CALL                  cpu_atom      0-5        0-5\n    \
         Mispredicted indirect CALL retired.\n\
         BR_MISP_RETIRED.INDIRECT_JMP                   cpu_atom      0-5        0-5\n    \
         Counts the number of mispredicted near indirect JMP branch instructions\n    \
         retired.\n\n\
         1 deprecated name is left out: .\\client list br_misp_retired.ind --all\n"
    );
    let generic = on("zen4-7700x", "cycles").out;
    for (begin, end) in
        [("cycles", "0-5        no"), ("TotalCycles", "0-5        no"), ("CYCLES_NOT_IN_HALT", "0-5        no")]
    {
        assert!(generic.lines().any(|line| line.split(' ').next() == Some(begin) && line.ends_with(end)), "{generic}");
    }
}

/// Also on hybrids of an unknown model, and with eighteen counters.
#[test]
fn cycles_are_found_once_on_the_cores_of_every_processor() {
    for CpuIdentity { name, expected, .. } in cpuid_dumps::all() {
        let json = on(name, "*cycles --all --json").json();
        let events = json["events"].as_array().unwrap();
        let mut found: Vec<_> = events.iter().map(|one| format!("{} {}", one["core_type"], one["event"])).collect();
        let counted =
            |one: &&Value| one["error"].is_null() && one["counters"].as_array().is_some_and(|all| !all.is_empty());
        let usable = events.iter().filter(counted).filter(|one| one["event"] == "TotalCycles").count();
        assert_eq!(usable > 0, expected.supported.contains(&19), "{name}: {found:?}");
        found.sort();
        let twice: Vec<_> = found.windows(2).filter(|two| two[0] == two[1]).collect();
        assert!(twice.is_empty(), "{name}: {twice:?}");
    }
}

#[test]
fn every_line_of_every_search_fits_80_columns() {
    for processor in ["cascade-lake-8269c", "alder-lake-p-12900h", "zen5-9800x3d", "knights-landing-7210"] {
        let out = on(processor, "* --all").out;
        assert!(out.lines().count() > 300, "{processor}");
        let long: Vec<&str> = out.lines().filter(|line| line.len() > 80).collect();
        assert!(long.is_empty(), "{processor}: {long:?}");
    }
}

#[test]
fn deprecated_names_and_refused_events_are_marked() {
    let out = on("skylake-u-6500u", "useless").out;
    assert!(
        !out.contains("USELESS_PREF")
            && out.contains("\n1 deprecated name is left out: .\\client list useless --all\n")
    );
    let all = on("skylake-u-6500u", "useless --all --json").json();
    let names: Vec<_> =
        all["events"].as_array().unwrap().iter().map(|one| (one["event"].clone(), one["deprecated"].clone())).collect();
    assert_eq!(
        names,
        [(json!("L2_LINES_OUT.USELESS_HWPF"), json!(false)), (json!("L2_LINES_OUT.USELESS_PREF"), json!(true))]
    );
    let fixed = on("skylake-u-6500u", "UNHALTED.THREAD_ANY").out;
    assert!(
        fixed.contains("refused    no\n")
            && fixed.contains("\n\nrefused: the driver cannot count it; .\\client encode NAME says why\n"),
        "{fixed}"
    );
    let latency = on("skylake-u-6500u", "LATENCY_GT_128").out;
    assert!(latency.contains("0-3        0-3\n") && !latency.contains("refused"), "{latency}");
    let json = on("skylake-u-6500u", "LATENCY_GT_128 --json").json();
    assert_eq!((&json["events"][0]["kind"], &json["events"][0]["extra"]["msr"]), (&json!("event"), &json!("0x3f6")));
}

#[test]
fn a_pattern_without_a_match_suggests_names() {
    let (exit, report) = on("skylake-u-6500u", "INST_RETIRED.ANI").failure();
    assert_eq!(exit, Exit::UnknownSource);
    assert!(
        report
            .starts_with("error: no event of this processor matches INST_RETIRED.ANI; did you mean: INST_RETIRED.ANY"),
        "{report}"
    );
}

#[test]
fn the_metrics_of_a_processor_are_listed_by_core_type_in_80_columns() {
    let out = on("alder-lake-p-12900h", "metrics").out;
    for line in [
        "IPC                             cpu_core                  Summary\n    Instructions per clock\n",
        "Retiring                        cpu_atom      %           TopdownL1\n    Slots of uops that retire",
        "Frequency                       cpu_atom      GHz         Summary\n",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    for processor in ["cascade-lake-8269c", "alder-lake-p-12900h", "zen5-9800x3d", "knights-landing-7210"] {
        let out = on(processor, "metrics").out;
        assert!(out.lines().count() > 12 && out.lines().all(|line| line.len() <= 80), "{processor}: {out}");
        assert_eq!(out.contains("TopdownL1"), processor != "knights-landing-7210", "{processor}: {out}");
    }
}

#[test]
fn a_search_finds_metrics_by_name_and_group() {
    let out = on("zen4-7700x", "mpki").out;
    assert!(out.starts_with("Metric ") && out.contains("\nBranch_MPKI ") && out.contains("\nCache_MPKI "), "{out}");
    let out = on("zen4-7700x", "topdownl1").out;
    assert!(out.contains("\nSMT_Contention ") && !out.contains("IPC"), "{out}");
    let out = on("skylake-u-6500u", "retir*").out;
    assert!(out.starts_with("Metric ") && out.contains("\nRetiring "), "{out}");
}

#[test]
fn the_json_of_a_metric_has_its_formula_and_groups_of_events() {
    // Leaf 0BH: two threads in a core, and four general counters for each.
    let dump = cpuid_dumps::find("skylake-u-6500u").unwrap().dump();
    let dump = format!("{dump}\nCPUID 0000000B: 00000001-00000002-00000100-00000000 [SL 00]\n");
    let on = |options: &str| run_anywhere(&format!("list {options} --json --cpuid -"), dump.as_bytes()).json();
    let json = on("bad_spec");
    assert_eq!(json["events"].as_array().unwrap().len(), 0);
    let metric = &json["metrics"][0];
    assert_eq!(
        (&metric["name"], &metric["unit"], &metric["scale"]),
        (&json!("Bad_Speculation"), &json!("%"), &json!(100.0))
    );
    assert_eq!(
        metric["events"],
        json!([[
            "UOPS_ISSUED.ANY",
            "UOPS_RETIRED.RETIRE_SLOTS",
            "INT_MISC.RECOVERY_CYCLES_ANY",
            "CPU_CLK_UNHALTED.THREAD_P_ANY"
        ]])
    );
    let all = on("metrics");
    let backend = all["metrics"].as_array().unwrap().iter().find(|one| one["name"] == "Backend_Bound").unwrap();
    assert_eq!(backend["events"].as_array().unwrap().len(), 2, "five events do not fit: {backend}");
}

#[test]
fn slots_and_their_metrics_are_one_group() {
    let json = on("sapphire-rapids-2475x", "retiring --json").json();
    let metric = json["metrics"].as_array().unwrap().iter().find(|one| one["name"] == "Retiring").unwrap();
    let events: Vec<&str> = metric["events"][0].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(events.contains(&"TOPDOWN.SLOTS") && events.contains(&"PERF_METRICS.BACKEND_BOUND"), "{metric}");
    assert_eq!((events.len(), metric["events"].as_array().unwrap().len()), (5, 1), "{metric}");
}
