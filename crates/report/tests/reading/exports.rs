//! What other programs are given.

use report::{Column, Filter, Table, firefox, flamegraph, folded, lines};
use serde_json::Value;

use super::scene::{CYCLES, MISSES, atlas, read, recording};

fn of_cycles() -> Filter {
    Filter { source: Some(CYCLES), processes: None }
}

fn folded_lines() -> Vec<String> {
    let contents = read(&recording());
    let columns = [Column::Process, Column::Module, Column::Symbol];
    folded(&Table::new(&contents, &atlas(&contents), CYCLES, &columns, &of_cycles()))
}

#[test]
fn folded_lines_are_process_module_and_symbol_with_their_events() {
    insta::assert_snapshot!(folded_lines().join("\n"));
}

#[test]
fn csv_has_a_line_for_each_sample_and_each_thing_that_befell() {
    let file = recording();
    let contents = read(&file);
    let mut out = Vec::new();
    lines(&contents, &atlas(&contents), &Filter::default(), file.as_slice(), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn csv_of_a_source_and_a_process_has_what_befell_that_source_and_all_sources() {
    let file = recording();
    let contents = read(&file);
    let filter = Filter { source: Some(MISSES), processes: Some([12].into()) };
    let mut out = Vec::new();
    lines(&contents, &atlas(&contents), &filter, file.as_slice(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let beginnings: Vec<&str> = out.lines().skip(1).map(|line| line.split(",,").next().unwrap()).collect();
    let sample =
        "200000,sample,1,BranchMispredictions,12,other.exe,13,u,1009,0x00007ff800000040,ntdll.dll,ntdll.dll+0x40,";
    assert_eq!(beginnings, [sample, "400000,throttled,1", "900000,resumed,1", "1000000,silenced,1"]);
}

fn profile(filter: &Filter) -> Value {
    let file = recording();
    let contents = read(&file);
    let mut out = Vec::new();
    firefox(&contents, &atlas(&contents), filter, file.as_slice(), &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn a_profile_for_firefox_is_as_it_was_looked_at() {
    insta::assert_json_snapshot!(profile(&of_cycles()));
}

/// As the Firefox Profiler reads it: every index into a table has its row, and columns are of one length.
#[test]
fn a_profile_for_firefox_is_consistent() {
    let profile = profile(&Filter::default());
    let libraries = profile["libs"].as_array().unwrap().len();
    let categories: Vec<&Value> =
        profile["meta"]["categories"].as_array().unwrap().iter().map(|category| &category["name"]).collect();
    assert_eq!(categories, ["Other", "User", "Kernel"]);
    let threads = profile["threads"].as_array().unwrap();
    let mut samples = 0;
    for thread in threads {
        let rows = |table: &str, column: &str| thread[table][column].as_array().unwrap().clone();
        let indexes = |table: &str, column: &str, target: usize| {
            for index in rows(table, column).iter().filter(|index| !index.is_null()) {
                let index = index.as_i64().unwrap();
                assert!(index == -1 || usize::try_from(index).unwrap() < target, "{table}.{column}: {index}");
            }
        };
        let length = |table: &str| usize::try_from(thread[table]["length"].as_u64().unwrap()).unwrap();
        let strings = thread["stringArray"].as_array().unwrap().len();
        indexes("samples", "stack", length("stackTable"));
        indexes("stackTable", "frame", length("frameTable"));
        indexes("stackTable", "prefix", length("stackTable"));
        indexes("frameTable", "func", length("funcTable"));
        indexes("frameTable", "category", categories.len());
        indexes("frameTable", "nativeSymbol", length("nativeSymbols"));
        indexes("funcTable", "name", strings);
        indexes("funcTable", "resource", length("resourceTable"));
        indexes("resourceTable", "lib", libraries);
        indexes("markers", "name", strings);
        samples += rows("samples", "stack").len();
    }
    assert_eq!(samples, 12);
    let names: Vec<(&str, &str)> = threads
        .iter()
        .map(|thread| (thread["processName"].as_str().unwrap(), thread["name"].as_str().unwrap()))
        .collect();
    assert!(names.contains(&("app.exe", "Thread 9: TotalCycles")), "{names:?}");
    assert!(names.contains(&("Sampling", "Processor 1")), "{names:?}");
}

#[test]
fn a_flame_graph_has_a_box_for_each_frame() {
    let mut svg = Vec::new();
    flamegraph(&folded_lines(), "TotalCycles", "app.exe", &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    for title in [
        "app.exe (8) (600,018 events, 60.00%)",
        "ntoskrnl.exe+0x500 (200,006 events, 20.00%)",
        "all (1,000,030 events, 100%)",
    ] {
        assert!(svg.contains(title), "{title}");
    }
}

#[test]
fn there_is_no_flame_graph_of_nothing() {
    assert!(flamegraph(&[], "t", "s", &mut Vec::new()).is_err());
}
