//! Where memory is slow, in the page for browsers.

use super::super::report::html::data;
use super::types::{recording_with, script};
use super::*;

/// Section, style and script of the part.
const PARTS: [&str; 3] = [
    include_str!("../../html/memory.html"),
    include_str!("../../html/memory.css"),
    include_str!("../../html/memory.js"),
];

fn page(file: &File) -> String {
    file.run("export FILE --format html").out
}

/// Returns the page without its data.
fn frame(page: &str) -> String {
    let (before, after) = page.split_once("type=\"application/json\">").unwrap();
    format!("{before}{}", after.split_once("</script").unwrap().1)
}

fn table<'a>(memory: &'a Value, heading: &str) -> Option<&'a Value> {
    memory["tables"].as_array().unwrap().iter().find(|table| table["heading"] == heading)
}

#[test]
fn a_page_has_the_accesses_of_the_report() {
    let file = levels();
    let sources = &data(&page(&file))["sources"];
    let memory = &sources[0]["memory"];
    for (heading, columns) in [
        ("By source", "source"),
        ("By latency", "latency"),
        ("By function", "process,module,symbol"),
        ("By cache line", "line"),
    ] {
        let report = file.run(&format!("mem report FILE --sort {columns} --json")).json();
        assert_eq!(table(memory, heading).unwrap()["rows"], report["events"][0]["rows"], "{heading}");
    }
    let text = file.run("mem report FILE --type").out;
    let account = memory["account"].as_str().unwrap();
    assert!(text.contains(account) && account.contains("\nUnknown     2.0 %"), "{account}\n{text}");
    // The stores have no latency, and no data of this program has a name.
    let headings = |memory: &Value| {
        let tables = memory["tables"].as_array().unwrap().iter();
        tables.map(|table| table["heading"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(headings(memory), ["By source", "By latency", "By function", "By cache line"]);
    assert_eq!(headings(&sources[1]["memory"]), ["By source", "By function", "By cache line"]);
}

#[test]
fn a_page_has_the_data_that_pdbs_name() {
    let file = recording_with(&script(), true);
    let page = data(&page(&file));
    let variables = table(&page["sources"][0]["memory"], "By data").unwrap();
    let report = file.run("mem report FILE --sort variable --json").json();
    assert_eq!(variables["rows"], report["events"][0]["rows"]);
    assert_eq!(variables["rows"][0]["columns"]["variable"], "node->value");
    assert_eq!(variables["columns"], json!([["variable", "Variable"]]));
}

#[test]
fn a_page_has_two_hundred_rows_and_the_share_of_the_others() {
    let lines: Vec<Step> = (0..250).map(|line| load(9, HEAP + 64 * line, 3, 20)).collect();
    let page = data(&page(&recording_of(&lines)));
    let lines = table(&page["sources"][0]["memory"], "By cache line").unwrap();
    assert_eq!((lines["rows"].as_array().unwrap().len(), &lines["omitted"]), (200, &json!(50)));
    assert!((lines["omitted_share"].as_f64().unwrap() - 0.2).abs() < 1e-9, "{}", lines["omitted_share"]);
}

#[test]
fn options_select_the_code_of_the_accesses_of_a_page() {
    let page = data(&levels().run("export FILE --format html --module ntoskrnl -e 0").out);
    let account = page["sources"][0]["memory"]["account"].as_str().unwrap();
    assert!(account.contains("\nSelected  4 of them\n"), "{account}");
}

/// Everything of the part is beside the rest: a page without accesses is the rest alone.
#[test]
fn a_page_without_accesses_has_nothing_of_their_part() {
    let [with, without] = [levels(), report::recording()].map(|file| page(&file));
    assert!(data(&without)["sources"].as_array().unwrap().iter().all(|source| source.get("memory").is_none()));
    let rest = PARTS.iter().fold(frame(&with), |rest, part| {
        assert_eq!(rest.matches(part.trim_end()).count(), 1, "{part}");
        rest.replacen(part.trim_end(), "", 1)
    });
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&rest), lines(&frame(&without)));
    assert!(!frame(&without).contains("emory") && !without.contains("{{"), "{}", frame(&without));
}
