//! Imports of the makers' files: what they become, and what a damaged or hostile file does.

#![cfg(test)]

use std::fs;
use std::path::Path;

use events::import::{ImportError, Imported, read};
use events::{Identity, Vendor};

const SKYLAKE: Identity = Identity { vendor: Vendor::Intel, family: 6, model: 0x5E, stepping: 3 };
const ALDER_LAKE: Identity = Identity { model: 0x97, ..SKYLAKE };

const PERFMON_MAP: &str = "\
Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name
GenuineIntel-6-4E,V59,/SKL/events/skylake_core.json,core,,,
GenuineIntel-6-5E,V59,/SKL/events/skylake_core.json,core,,,
GenuineIntel-6-5E,V59,/SKL/events/skylake_uncore.json,uncore,,,
GenuineIntel-6-5E,V1,/SKL/metrics/skylake_metrics.json,metrics,,,
GenuineIntel-6-97,V1,/ADL/events/absent.json,hybridcore,0x20,0x1,Atom
GenuineIntel-6-C5,V1,/SKL/events/skylake_core.json,hybridcore,0x20,0x2,LowPower_Atom
";

const SKYLAKE_CORE: &str = r#"{
 "Header": { "Info": "a test" },
 "Events": [
  { "EventCode": "0xD1", "UMask": "0x20", "EventName": "MEM.L3_MISS", "BriefDescription": "Loads that miss.",
    "PublicDescription": "Loads\u001b[31m that\nmiss the last level.", "Counter": "0,1,2,3", "SampleAfterValue": "50021",
    "MSRIndex": "0", "MSRValue": "0", "PEBS": "1", "CounterMask": "0", "Invert": "0", "Deprecated": "0" },
  { "EventCode": "0xB7, 0xBB", "UMask": "0x01", "EventName": "OCR.ANY", "BriefDescription": "Requests.",
    "PublicDescription": "Requests.", "Counter": "0,1,2,3", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001" },
  { "EventCode": "0x00", "UMask": "0x02", "EventName": "CLK.THREAD", "BriefDescription": "", "Counter": "Fixed counter 1" },
  { "EventCode": "0x11", "UMask": "0x20", "UMaskExt": "0x01", "EventName": "ITLB.HIT", "BriefDescription": "Hits.",
    "Counter": "0,1,2,3,4,5,6,7,8,9", "CounterMask": "2", "EdgeDetect": "1", "TakenAlone": "1", "Deprecated": "1" }
 ]
}"#;

const SKYLAKE_METRICS: &str = r#"{ "Metrics": [ { "MetricName": "IPC", "Formula": "a / b" } ] }"#;

const LINUX_MAP: &str = "\
Family-model,Version,Filename,EventType
GenuineIntel-6-(97|9A|B7|BA|BF),v1.40,alderlake,core
AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]]),v1,amdzen3,core
AuthenticAMD-25-[[:xdigit:]]+,v1,amdzen4,core
";

const LINUX: &str = r#"[
 { "EventName": "A.ON_P", "EventCode": "0xC4", "Unit": "cpu_core", "BriefDescription": "On P cores.", "Counter": "0,1" },
 { "EventName": "A.ON_E", "EventCode": "0xC5", "UMask": "0xf", "Unit": "cpu_atom", "BriefDescription": "On E cores." },
 { "EventName": "A.UNCORE", "EventCode": "0x1", "Unit": "iMC" },
 { "MetricName": "ipc", "MetricExpr": "A.ON_P / A.ON_E", "Unit": "cpu_core" }
]"#;

fn imported(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    read(folder.path())
}

fn rows(imported: &Imported, identity: Identity, core_type: Option<u32>) -> Vec<String> {
    imported.of(identity, core_type).flat_map(|file| file.events.iter().map(|event| event.row.clone())).collect()
}

#[test]
fn a_checkout_of_perfmon_becomes_events_descriptions_and_metrics() {
    for folder in ["SKL/events/", "SKL/"] {
        let metrics = folder.replace("events", "metrics");
        let imported = imported(&[
            ("mapfile.csv", PERFMON_MAP),
            (&format!("{folder}skylake_core.json"), SKYLAKE_CORE),
            (&format!("{metrics}skylake_metrics.json"), SKYLAKE_METRICS),
        ])
        .unwrap();
        assert_eq!(
            rows(&imported, SKYLAKE, None),
            [
                "MEM.L3_MISS,D1,20,0,0,0,0,0,F,1,F,,,0,0,,50021",
                "OCR.ANY,B7|BB,01,0,0,0,0,0,F,0,,1A6|1A7,10001,0,0,,0",
                "CLK.THREAD,00,02,0,0,0,0,0,fixed1,0,,,,0,0,,0",
                "ITLB.HIT,11,120,2,0,1,0,0,3FF,0,,,,1,1,,0",
            ]
        );
        assert_eq!((imported.events(), imported.metrics()), (4, 1));
        assert!(rows(&imported, ALDER_LAKE, None).is_empty());
        let first = &imported.of(SKYLAKE, None).next().unwrap().events[0];
        assert_eq!((first.name(), first.brief.as_str()), ("MEM.L3_MISS", "Loads that miss."));
        assert_eq!(first.description, "Loads [31m that miss the last level.", "no control character is kept");
        assert_eq!(first.event().unwrap().encoding.select(), 0x20D1);
    }
}

#[test]
fn the_form_of_linux_has_the_events_of_each_core_type_in_one_file() {
    let imported = imported(&[
        ("mapfile.csv", LINUX_MAP),
        ("alderlake/pipeline.json", LINUX),
        ("alderlake/metricgroups.json", "{}"),
    ])
    .unwrap();
    assert_eq!(rows(&imported, ALDER_LAKE, Some(0x40)), ["A.ON_P,C4,00,0,0,0,0,0,3,0,,,,0,0,,0"]);
    assert_eq!(rows(&imported, ALDER_LAKE, Some(0x20)), ["A.ON_E,C5,0F,0,0,0,0,0,any,0,,,,0,0,,0"]);
    assert_eq!((imported.events(), imported.metrics()), (2, 1));
    assert_eq!(rows(&imported, SKYLAKE, None).len(), 0);
}

#[test]
fn of_the_map_of_linux_the_first_row_that_matches_counts() {
    let event = |name: &str| format!(r#"[{{ "EventName": "{name}", "EventCode": "0x120" }}]"#);
    let imported = imported(&[
        ("mapfile.csv", LINUX_MAP),
        ("amdzen3/core.json", &event("ZEN3")),
        ("amdzen4/core.json", &event("ZEN4")),
    ])
    .unwrap();
    for (model, name) in [(0x01, "ZEN3"), (0x21, "ZEN3"), (0x11, "ZEN4"), (0x61, "ZEN4")] {
        let zen = Identity { vendor: Vendor::Amd, family: 0x19, model, stepping: 0 };
        assert_eq!(rows(&imported, zen, None), [format!("{name},120,00,0,0,0,0,0,any,0,,,,0,0,,0")], "{model:#x}");
    }
}

/// Returns the only problem of files, whether something is left without it or not.
fn problem(files: &[(&str, &str)]) -> String {
    match imported(files) {
        Err(error) => error.to_string(),
        Ok(imported) => {
            assert_eq!(imported.skipped.len(), 1, "{:?}", imported.skipped);
            imported.skipped[0].clone()
        }
    }
}

/// perfmon of August 2026 has `> =` in formulas of four files.
#[test]
fn what_is_malformed_is_left_out_and_the_rest_is_imported() {
    let metrics = r#"{ "Metrics": [
{ "MetricName": "Good", "Formula": "a / b" },
{ "MetricName": "Spaced", "Formula": "1 if a > = b else 0" },
{ "MetricName": "Other", "Formula": "a >= b" } ] }"#;
    let damaged = SKYLAKE_CORE.replacen("\"0xD1\"", "\"0xZZ\"", 1);
    let whole = imported(&[("mapfile.csv", PERFMON_MAP), ("SKL/skylake_core.json", SKYLAKE_CORE)]).unwrap();
    assert!(whole.skipped.is_empty(), "{:?}", whole.skipped);
    let imported = imported(&[
        ("mapfile.csv", PERFMON_MAP),
        ("SKL/skylake_core.json", &damaged),
        ("SKL/metrics/skylake_metrics.json", metrics),
    ])
    .unwrap();
    assert_eq!((imported.events(), imported.metrics()), (whole.events() - 1, 2));
    let [event, metric] = &imported.skipped[..] else { panic!("{:?}", imported.skipped) };
    assert!(event.contains("skylake_core.json, line 4: MEM.L3_MISS: EventCode is \"0xZZ\""), "{event}");
    assert!(metric.contains("skylake_metrics.json, line 3: Spaced: Formula, column 10: "), "{metric}");
}

/// The map is a file of the maker as well: a row with a mistake keeps no other from being used.
#[test]
fn a_malformed_row_of_the_map_is_left_out_and_told() {
    let rows = [
        "GenuineIntel-6-5E,V59",
        "GenuineIntel-6-.*,V59,/SKL/events/skylake_core.json,core,,,",
        "GenuineIntel-6-5E,V59,/../skylake_core.json,core,,,",
        "GenuineIntel-6-5E,V59,/SKL/events/skylake_core.json,hybridcore,zz,,",
    ];
    let map = format!("{PERFMON_MAP}{}\n", rows.join("\n"));
    let imported = imported(&[("mapfile.csv", &map), ("SKL/skylake_core.json", SKYLAKE_CORE)]).unwrap();
    assert_eq!(imported.events(), 4);
    for line in 8..12 {
        let told = imported.skipped.iter().filter(|skipped| skipped.contains(&format!("mapfile.csv, line {line}: ")));
        assert_eq!(told.count(), 1, "{line}: {:?}", imported.skipped);
    }
}

/// Ten of perfmon's files say `Equal` where the others say `EqualityMask`.
#[test]
fn the_equality_of_a_counter_mask_has_two_keys() {
    let equal = |key: &str| {
        let text = format!(
            r#"{{ "Events": [{{ "EventName": "A.B", "EventCode": "0x10", "UMask": "1", "CounterMask": "2", "{key}": "1" }}] }}"#
        );
        let imported = imported(&[("mapfile.csv", PERFMON_MAP), ("SKL/skylake_core.json", &text)]).unwrap();
        imported.files[0].events[0].event().unwrap().encoding.eq
    };
    assert_eq!(["EqualityMask", "Equal", "Unequal"].map(equal), [true, true, false]);
}

#[test]
fn a_restriction_says_which_unit_mask_and_counter_a_register_has() {
    let event = |name: &str, more: &str| {
        format!(
            r#"{{ "EventName": "{name}", "EventCode": "0xD6", "UMask": "0x01,0x02", "Counter": "2,3", "PEBScounters": "2,3",
                 "Precise": "1", "MSRIndex": "0x3E0,0x3E1", "MSRValue": "0x1", "CounterType": "PGMABLE", {more} }}"#
        )
    };
    let events = [
        event("NONE", r#""ProgrammingRestriction": "None", "Filter": "", "PortMask": "0x00""#),
        event("UMASK", r#""ProgrammingRestriction": "MSRIndex-UMask""#),
        event("COUNTER", r#""ProgrammingRestriction": "MSRIndex-UMask-Counter""#),
        // Two encodings and one register: that of the second.
        event("SECOND", r#""ProgrammingRestriction": "None""#).replace("0x3E0,0x3E1", "0x1A7"),
        event("NEW", r#""ProgrammingRestriction": "MSRIndex-Counter""#),
        event("FREE", r#""CounterType": "FREERUN""#),
        event("FILTER", r#""Filter": "edge=1""#),
    ];
    let imported =
        imported(&[("mapfile.csv", PERFMON_MAP), ("SKL/events/skylake_core.json", &format!("[{}]", events.join(",")))])
            .unwrap();
    assert_eq!(
        rows(&imported, SKYLAKE, None),
        [
            "NONE,D6,01|02,0,0,0,0,0,C,1,C,3E0|3E1,1,0,0,,0",
            "UMASK,D6,01|02,0,0,0,0,0,C,1,C,3E0|3E1,1,0,0,,0",
            "COUNTER,D6,01,0,0,0,0,0,4,1,4,3E0,1,0,0,,0",
            "SECOND,D6,02,0,0,0,0,0,C,1,C,1A7,1,0,0,,0",
        ]
    );
    for (index, what) in [
        "NEW: ProgrammingRestriction is \"MSRIndex-Counter\"",
        "FREE: CounterType is \"FREERUN\"",
        "FILTER: Filter is \"edge=1\", which cores do not have",
    ]
    .iter()
    .enumerate()
    {
        assert!(imported.skipped[index].ends_with(what), "{:?}", imported.skipped);
    }
    assert_eq!((imported.skipped.len(), imported.unknown_columns.len()), (3, 0));
}

#[test]
fn columns_that_are_not_known_are_told_once_for_each_file() {
    let events = r#"[
        { "EventName": "A", "EventCode": "0x1", "Zone": "3", "Errata": "X" },
        { "EventName": "B", "EventCode": "0x2", "Zone": "3", "Area\u001b": "0" },
        { "EventName": "C", "EventCode": "0x3", "Unit": "iMC", "Channel": "1" }
    ]"#;
    let imported = imported(&[("mapfile.csv", PERFMON_MAP), ("SKL/events/skylake_core.json", events)]).unwrap();
    assert_eq!((imported.events(), imported.skipped.len(), imported.unknown_columns.len()), (2, 0, 1));
    let line = &imported.unknown_columns[0];
    assert!(line.ends_with("skylake_core.json: Area\\u{1b}, Zone"), "{line}");
}

#[test]
fn every_damaged_file_has_a_position() {
    let event = |from: &str, to: &str| SKYLAKE_CORE.replacen(from, to, 1);
    let deep = format!("{{\"Events\": {}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "line 1: EOF"),
        ("{".to_owned(), "line 1: EOF"),
        ("7".to_owned(), "line 1: it is neither a list nor an object"),
        ("{\"Events\": 7}".to_owned(), "line 1: it has neither Events nor Metrics"),
        (deep, "line 1: recursion limit exceeded"),
        (event("\"0xD1\"", "\"0xD1"), "line 4"),
        (event("\"0xD1\"", "\"0xZZ\""), "line 4: MEM.L3_MISS: EventCode is \"0xZZ\""),
        (event("\"0xD1\"", "\"0x1000\""), "line 4: MEM.L3_MISS: EventCode is 0x1000"),
        (event("\"0xD1\"", "7"), "line 4: MEM.L3_MISS: EventCode is 7"),
        (event("\"0x20\"", "\"0x10000\""), "line 4: MEM.L3_MISS: UMask is 0x10000"),
        (event("\"0x20\"", "\"-1\""), "line 4: MEM.L3_MISS: UMask is \"-1\""),
        (event("\"UMaskExt\": \"0x01\"", "\"UMaskExt\": \"0x100\""), "line 10: ITLB.HIT: UMaskExt is 0x100"),
        (event("MEM.L3_MISS", "MEM L3"), "line 4: MEM L3: the name has other characters"),
        (event("MEM.L3_MISS", "A,B\\u001b"), "A,B\\u{1b}: the name has other characters"),
        (event("\"EventName\": \"MEM.L3_MISS\",", ""), "an event has no EventName"),
        (event("0,1,2,3", "0,1,2,99"), "line 4: MEM.L3_MISS: Counter is \"0,1,2,99\""),
        (event("Fixed counter 1", "Fixed counter 77"), "line 9: CLK.THREAD: Counter is \"Fixed counter 77\""),
        (event("\"PEBS\": \"1\"", "\"PEBS\": \"9\""), "line 4: MEM.L3_MISS: PEBS is 9"),
        (event("\"CounterMask\": \"0\"", "\"CounterMask\": \"256\""), "line 4: MEM.L3_MISS: CounterMask is above 255"),
        (event("\"Invert\": \"0\"", "\"Invert\": \"2\""), "line 4: MEM.L3_MISS: Invert is 2"),
        (event("50021", "99999999999999999999"), "line 4: MEM.L3_MISS: SampleAfterValue is"),
    ];
    for (text, position) in cases {
        let error = problem(&[("mapfile.csv", PERFMON_MAP), ("SKL/skylake_core.json", &text)]);
        assert!(error.contains("skylake_core.json, line") && error.contains(position), "{position}: {error}");
    }
}

#[test]
fn a_damaged_metric_has_its_file_line_name_and_column() {
    let metrics = |second: &str| {
        format!(
            "{{ \"Metrics\": [\n{{ \"MetricName\": \"IPC\", \"Formula\": \"a / b\" }},\n{{ \"MetricName\": \"M2\", {second} }}\n] }}"
        )
    };
    for (second, message) in [
        (r#""Formula": "a / ""#, "line 3: M2: Formula, column 4: expected a number, a name or '(', found the end"),
        (r#""MetricExpr": "a $ b""#, "line 3: M2: MetricExpr, column 3: expected a number"),
        (
            r#""Formula": "a", "Constants": [{"Name": "1 +", "Alias": "a"}]"#,
            "line 3: M2: constant a, column 4: expected",
        ),
        (r#""BriefDescription": "x""#, "line 3: M2: it has neither Formula nor MetricExpr"),
        (
            r#""MetricExpr": "1 + M3" }, { "MetricName": "M3", "MetricExpr": "M4 * 2" }, { "MetricName": "M4", "MetricExpr": "m2 if 0 else 1""#,
            "line 3: M2: recursion: M2 -> M3 -> M4 -> M2",
        ),
    ] {
        let files = [("mapfile.csv", PERFMON_MAP), ("SKL/metrics/skylake_metrics.json", &metrics(second))];
        let error = problem(&files);
        assert!(error.contains("skylake_metrics.json, line 3") && error.contains(message), "{message}: {error}");
    }
}

#[test]
fn metrics_of_several_files_of_a_folder_are_one_circle() {
    let metric = |name: &str, used: &str| {
        format!(r#"[{{ "MetricName": "{name}", "MetricExpr": "{used}", "Unit": "cpu_core" }}]"#)
    };
    let import = |last: &str| {
        imported(&[
            ("mapfile.csv", LINUX_MAP),
            ("alderlake/a.json", &metric("one", "two + 1")),
            ("alderlake/b.json", &metric("two", last)),
        ])
    };
    let left = import("one").unwrap();
    assert!(left.skipped[0].contains("a.json, line 1: one: recursion: one -> two -> one"), "{:?}", left.skipped);
    assert_eq!((left.skipped.len(), left.metrics()), (1, 1), "the other one is no circle without it");
    let imported = import("cycles").unwrap();
    let names = |core_type| -> Vec<String> {
        imported.metrics_of(ALDER_LAKE, Some(core_type)).into_iter().map(|metric| metric.name).collect()
    };
    assert_eq!(names(0x40), ["one", "two"]);
    assert!(names(0x20).is_empty());
}

#[test]
fn a_hostile_map_reaches_nothing_outside_the_folder() {
    let map = |file: &str| format!("Family-model,Version,Filename,EventType\nGenuineIntel-6-5E,V1,{file},core\n");
    for file in ["../../../etc/passwd", "/../../x.json", "a/../../b.json", "a\\..\\b", ".", ""] {
        let error = imported(&[("mapfile.csv", &map(file))]).unwrap_err().to_string();
        assert!(error.contains("mapfile.csv, line 2") && error.contains("is no file of the folder"), "{file}: {error}");
    }
    for (text, what) in [
        ("header\nGenuineIntel-6-5E,V1\n", "line 2: fewer than four columns"),
        ("header\nGenuineIntel-6-.*,V1,a.json,core\n", "line 2: the pattern"),
        ("header\n\nGenuineIntel-6-5E,V1,a.json,core,zz\n", "line 3: the core type is no number"),
        ("header\nGenuineIntel-6-5E,V1,a.json,core\n", "none of the files that it names is there"),
        ("", "none of the files that it names is there"),
    ] {
        let error = imported(&[("mapfile.csv", text)]).unwrap_err().to_string();
        assert!(error.contains(what), "{text:?}: {error}");
    }
    assert!(matches!(read(Path::new("/nonexistent")), Err(ImportError::Read { .. })));
    assert!(imported(&[]).unwrap_err().to_string().contains("mapfile.csv: cannot be read"));
}
