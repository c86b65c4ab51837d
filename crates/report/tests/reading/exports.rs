//! Exports for other programs.

use report::{Column, Filter, Table, firefox, flamegraph, folded, samples_csv};
use serde_json::Value;

use super::support::{CYCLES, MISSES, read, recording, symbol_index};

fn of_cycles() -> Filter {
    Filter { source: Some(CYCLES), ..Filter::default() }
}

fn folded_lines() -> Vec<String> {
    let contents = read(&recording());
    let columns = [Column::Process, Column::Module, Column::Frames];
    folded(&Table::new(&contents, &symbol_index(&contents), CYCLES, &columns, &of_cycles()))
}

#[test]
fn folded_lines_have_process_module_symbol_and_events() {
    insta::assert_snapshot!(folded_lines().join("\n"));
}

#[test]
fn csv_has_a_line_for_each_sample_loss_and_pause() {
    let file = recording();
    let contents = read(&file);
    let mut out = Vec::new();
    samples_csv(&contents, &symbol_index(&contents), &Filter::default(), file.as_slice(), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn filtered_csv_keeps_losses_and_pauses_of_its_source_and_of_all_sources() {
    let file = recording();
    let contents = read(&file);
    let filter = Filter { source: Some(MISSES), processes: Some([12.into()].into()), ..Filter::default() };
    let mut out = Vec::new();
    samples_csv(&contents, &symbol_index(&contents), &filter, file.as_slice(), &mut out).unwrap();
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
    firefox(&contents, &symbol_index(&contents), filter, file.as_slice(), &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn firefox_profile_matches_the_reviewed_snapshot() {
    insta::assert_json_snapshot!(profile(&of_cycles()));
}

/// Every index into a table must have its row, as the Firefox Profiler requires.
#[test]
fn firefox_profile_is_consistent() {
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
    assert!(names.contains(&("Sampling", "CPU 1")), "{names:?}");
}

/// The Firefox Profiler takes a weight of type "samples" as a multiplier, in shares and in widths alike.
#[test]
fn samples_of_a_profile_for_firefox_weigh_as_many_events_as_a_report_says() {
    let contents = read(&recording());
    for source in [CYCLES, MISSES] {
        let filter = Filter { source: Some(source), ..Filter::default() };
        let profile = profile(&filter);
        let of_thread = |thread: &Value| {
            assert_eq!(thread["samples"]["weightType"], "samples");
            let weights = thread["samples"]["weight"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
            weights.collect::<Vec<u64>>()
        };
        let weights: Vec<u64> = profile["threads"].as_array().unwrap().iter().flat_map(of_thread).collect();
        let total = contents.sample_counts.total(source).weight;
        assert_eq!((weights.len() as u64, weights.iter().sum::<u64>()), (total.samples, total.events), "{source:#x}");
    }
}

#[test]
fn flame_graph_has_a_box_for_each_frame() {
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
fn flame_graph_without_stacks_is_an_error() {
    assert!(flamegraph(&[], "t", "s", &mut Vec::new()).is_err());
}

#[test]
fn firefox_profile_has_the_processor_and_its_rate_of_each_event() {
    let profile = profile(&Filter::default());
    assert_eq!(profile["meta"]["CPUName"], "Example Processor");
    let mut events = 0.0;
    for thread in profile["threads"].as_array().unwrap().iter().filter(|thread| thread["processName"] == "Sampling") {
        let names = thread["stringArray"].as_array().unwrap();
        for marker in thread["markers"]["data"].as_array().unwrap().iter().filter(|data| data["type"] == "Rate") {
            let source = usize::try_from(marker["source"].as_u64().unwrap()).unwrap();
            // An interval has 10 ms.
            events += if names[source] == "TotalCycles" { marker["rate"].as_f64().unwrap() / 100.0 } else { 0.0 };
        }
    }
    let wanted = read(&recording()).sample_counts.total(CYCLES).weight.events;
    assert!((events - report::real(wanted)).abs() < 1.0, "{events} instead of {wanted}");
}
