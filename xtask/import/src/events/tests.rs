//! Tests of the generation of event tables.

use std::collections::BTreeMap;

use super::*;

/// The line of an event with two off-core registers.
const OFFCORE: &str = "OCR.X,B7|BB,01,0,0,0,0,0,F,0,,1A6|1A7,10003,0,1,OCR.Y,100003";

#[test]
fn the_tables_are_generated_from_the_facts() {
    let workspace = Workspace::find().unwrap();
    run(&workspace, None, true).unwrap();
}

#[test]
fn a_formatted_row_parses_to_the_same_event() {
    for line in [
        OFFCORE,
        "INST_RETIRED.ANY,00,01,0,0,0,0,0,fixed0,1,fixed0,,,0,0,,2000003",
        "A.B,1C2,17F,10,1,1,1,1,any,2,2,,,1,0,,0",
    ] {
        assert_eq!(row::format(&row::parse(line).unwrap()), line);
    }
}

#[test]
fn a_damaged_row_is_refused() {
    for (from, to) in [
        ("OCR.X", ""),
        ("OCR.X", "OCR X"),
        ("B7", "1B7C"),
        ("B7", ""),
        ("01", "10000"),
        (",0,F", ",2,F"),
        (",F,", ",fixed16,"),
        (",0,,1A6", ",3,,1A6"),
        ("1A6", "1A6|"),
        ("10003", "10003X"),
        ("OCR.Y", "OCR,Y"),
        ("100003", "-1"),
    ] {
        let damaged = OFFCORE.replacen(from, to, 1);
        assert!(row::parse(&damaged).is_err(), "{damaged}");
    }
}

/// Writes a folder with tables of one event each, and imports it.
fn imported(intel: &str) -> (Result<()>, tempfile::TempDir) {
    let (source, facts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (file, text) in [
        ("intel/x_core.csv", intel),
        (
            "intel/map.csv",
            "vendor-family-model[-stepping],file,core_type,role,version\nGenuineIntel-6-55-[01A],x_core.csv,,,V1\n",
        ),
        (
            "intel/x_core.json",
            r#"{ "Header": { "Version": "1" }, "Events": [
                { "EventName": "OLD", "Errata": "null", "BriefDescription": " " },
                { "EventName": "NEW", "Errata": "HSM30, HSD29", "BriefDescription": "Loads  that\nmissed." },
                { "EventName": "OCR.A", "Errata": "0" },
                { "EventName": "LEFT.OUT", "Errata": "HSD1", "BriefDescription": "No event of the table." },
                { "EventName": "A" }
            ] }"#,
        ),
        ("amd/fam17h.csv", "name,sub,event,umask\nFLOPS,ADD,0x3,0x1\n"),
    ] {
        fs::create_dir_all(source.path().join(file).parent().unwrap()).unwrap();
        fs::write(source.path().join(file), text).unwrap();
    }
    (import::run(source.path(), facts.path()), facts)
}

/// Reads the descriptions of a folder of facts.
fn descriptions(facts: &Path) -> String {
    let compressed = fs::read(facts.join(DESCRIPTIONS)).unwrap();
    String::from_utf8(zstd::bulk::decompress(&compressed, 1 << 20).unwrap()).unwrap()
}

#[test]
fn nearly_every_event_of_intel_has_a_description() {
    let facts = Workspace::find().unwrap().root().join(FACTS);
    let lines = descriptions(&facts);
    let described: BTreeMap<&str, &str> = lines.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(described.len(), lines.lines().count());
    assert!(described.values().all(|text| !text.contains(char::is_control) && (1..600).contains(&text.len())));
    let tables = tables(&facts).unwrap();
    for (name, events) in tables.iter().filter(|(name, _)| !name.starts_with("amd_")) {
        let of_files = events.iter().filter(|event| !event.name.starts_with("PERF_METRICS."));
        let without: Vec<_> = of_files.filter(|event| !described.contains_key(event.name.as_str())).collect();
        assert!(without.len() * 50 <= events.len(), "{name}: {without:?}");
    }
}

#[test]
fn an_import_makes_tables_and_map() {
    let header =
        "name,event,umask,cmask,inv,edge,any,counters,pebs,pebs_counters,msr,msr_value,alone,deprecated,period";
    let rows = "OLD,0xd1,0x20,0,0,0,0,0xf,1,,0,0,0,1,7\nNEW,0xD1,0x20,0,0,0,0,0xff,1,,0x00,0x00,0,0,7\n\
                OCR.A,0xB7,0x1|0x2,0,0,0,0,0x3,0,0x1,0x1a7,0x10,0,0,9\n";
    let (outcome, facts) = imported(&format!("{header}\n{rows}"));
    outcome.unwrap();
    let text = |file: &str| fs::read_to_string(facts.path().join(file)).unwrap();
    let lines: Vec<String> = text("x.csv").lines().skip(1).map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "NEW,D1,20,0,0,0,0,0,FF,1,F,,,0,0,,7",
            "OCR.A,B7,02,0,0,0,0,0,3,0,,1A7,10,0,0,,9",
            "OLD,D1,20,0,0,0,0,0,F,1,F,,,0,1,NEW,7",
        ]
    );
    assert_eq!(text("errata.csv"), "table,event,errata\nx,NEW,HSD29|HSM30\n");
    assert_eq!(descriptions(facts.path()), "NEW\tLoads that missed.\n");
    assert!(text("amd_fam17h.csv").ends_with("FLOPS.ADD,03,01,0,0,0,0,0,any,0,,,,0,0,,0\n"));
    assert!(text("map.csv").contains("GenuineIntel,6,55,55,403,00,00,x\n"));
}

/// The files of perfmon are not here: small ones with the errata of the tree and other events stand in for them.
#[test]
fn the_errata_are_as_an_import_makes_them() {
    let facts = Workspace::find().unwrap().root().join(FACTS);
    let committed = fs::read_to_string(facts.join(ERRATA)).unwrap();
    let tables = tables(&facts).unwrap();
    let split = |[table, event, errata]: [&str; 3]| Ok([table, event, errata].map(str::to_owned));
    let listed = table::rows(&committed, ERRATA_HEADER, split).unwrap();
    let mut made = Vec::new();
    for (name, events) in &tables {
        // perfmon's order of names and of numbers is another one.
        let of_table = listed.iter().rev().filter(|[table, ..]| table == name);
        let wrong = of_table.map(|[_, event, errata]| {
            let numbers: Vec<_> = errata.split('|').rev().collect();
            serde_json::json!({ "EventName": event, "Errata": numbers.join(", ") })
        });
        let right = ["null", "0"].map(|none| serde_json::json!({ "EventName": events[0].name, "Errata": none }));
        let file = serde_json::json!({ "Events": wrong.chain(right).collect::<Vec<_>>() });
        made.extend(import::errata_lines(name, &import::known(events, &file.to_string()).unwrap()).unwrap());
    }
    made.sort();
    assert_eq!(format!("{ERRATA_HEADER}\n{}", made.concat()), committed);
}

#[test]
fn a_broken_file_changes_no_facts_and_has_a_position() {
    let header =
        "name,event,umask,cmask,inv,edge,any,counters,pebs,pebs_counters,msr,msr_value,alone,deprecated,period";
    let (outcome, facts) = imported(&format!("{header}\nA,0x1,0x1,0,0,0,0,0xf,1,,0,0,0,0,7\nB,0x1\n"));
    assert!(format!("{:#}", outcome.unwrap_err()).contains("x_core.csv: line 3"));
    assert_eq!(fs::read_dir(facts.path()).unwrap().count(), 0);
}
