//! Exports for other programs.

use std::collections::BTreeSet;
use std::io::Cursor;

use protocol::{CounterSample, SampleRecord};
use recording::Block;
use report::{Filter, Thinned, firefox, flamegraph, folded, folded_for_graph, folded_with_numbers, samples_csv};
use serde_json::Value;

use super::support::{APP, CYCLES, MISSES, file, processes, read, recording, sample, symbol_index};

fn of_cycles() -> Filter {
    Filter { events: Some([CYCLES].into()), ..Filter::default() }
}

fn folded_lines() -> Vec<String> {
    let contents = read(&recording());
    folded(&contents, &symbol_index(&contents), CYCLES, &of_cycles())
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
    samples_csv(&contents, &symbol_index(&contents), &Filter::default(), &mut Cursor::new(&file), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn filtered_csv_keeps_losses_and_pauses_of_its_source_and_of_all_sources() {
    let file = recording();
    let contents = read(&file);
    let filter = Filter { events: Some([MISSES].into()), processes: Some([12.into()].into()), ..Filter::default() };
    let mut out = Vec::new();
    samples_csv(&contents, &symbol_index(&contents), &filter, &mut Cursor::new(&file), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let beginnings: Vec<&str> = out.lines().skip(1).map(|line| line.split(",,").next().unwrap()).collect();
    let sample =
        "200000,sample,1,BranchMispredictions,12,other.exe,13,u,1009,0x00007ff800000040,ntdll.dll,ntdll.dll+0x40";
    assert_eq!(beginnings, [sample, "400000,throttled,1", "900000,resumed,1", "1000000,silenced,1"]);
}

fn profile(filter: &Filter) -> Value {
    let file = recording();
    let contents = read(&file);
    let mut out = Vec::new();
    firefox(&contents, &symbol_index(&contents), filter, u64::MAX, &mut Cursor::new(&file), &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn firefox_profile_matches_the_reviewed_snapshot() {
    insta::assert_json_snapshot!(profile(&of_cycles()));
}

#[test]
fn a_thinned_firefox_profile_has_the_events_of_all_samples_and_the_rates_of_all() {
    let sample_at = |time: u64| {
        let processor = u32::from(time.is_multiple_of(3));
        let ip = APP + 0x10 * (time % 7);
        CounterSample { time: 1000 + 1000 * time, processor, ..sample(CYCLES, 8, ip, 100 + u32::from(time < 500)) }
    };
    let records: Vec<SampleRecord> = (0..1000).map(|time| sample_at(time).into()).collect();
    let file = file(&[Block::Process(processes()[1].clone()), Block::Samples(records)]);
    let contents = read(&file);
    let export = |max| {
        let mut out = Vec::new();
        let index = symbol_index(&contents);
        let thinned = firefox(&contents, &index, &Filter::default(), max, &mut Cursor::new(&file), &mut out).unwrap();
        (thinned, serde_json::from_slice::<Value>(&out).unwrap())
    };
    let (all, whole) = export(1000);
    assert_eq!(all, Thinned { selected: 1000, written: 1000, step: 1 });
    let (thinned, profile) = export(100);
    // Two processors, so 98 remain for whole groups: 60 of 11 samples and the rest, and 30 and the rest.
    assert_eq!(thinned, Thinned { selected: 1000, written: 61 + 31, step: 11 });
    let numbers = |list: &Value| list.as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).sum::<u64>();
    let app = |profile: &Value| {
        let tracks = profile["threads"].as_array().unwrap();
        tracks.iter().find(|track| track["processName"] == "app.exe").unwrap()["samples"].clone()
    };
    assert_eq!(app(&profile)["length"], 92);
    assert_eq!([&profile, &whole].map(|one| numbers(&app(one)["weight"])), [100_500; 2]);
    let rates = |profile: &Value| {
        let tracks = profile["threads"].as_array().unwrap().iter();
        tracks
            .filter(|track| track["processName"] == "Sampling")
            .map(|track| track["markers"]["data"].clone())
            .collect()
    };
    let [of_thinned, of_all]: [Vec<Value>; 2] = [&profile, &whole].map(rates);
    assert_eq!(of_thinned, of_all);
    let [of_thinned, of_all] = [&profile, &whole].map(|one| one["meta"]["interval"].as_f64().unwrap());
    assert!((of_thinned - 11.0 * of_all).abs() < 1e-9, "{of_thinned} {of_all}");
}

#[test]
fn a_firefox_profile_of_a_day_has_rates_of_longer_intervals() {
    // A sample each second; without a limit there would be one rate for each.
    let sample_at = |second: u64| CounterSample { time: second * 10_000_000, ..sample(CYCLES, 8, APP, 100) };
    let records: Vec<SampleRecord> = (0..86_400).map(|second| sample_at(second).into()).collect();
    let blocks: Vec<Block> = records.chunks(50_000).map(|records| Block::Samples(records.to_vec())).collect();
    let bytes = file(&blocks);
    let contents = read(&bytes);
    assert_eq!(contents.nanoseconds(contents.sample_counts.latest().unwrap()), 86_399_000_000_000);
    let mut out = Vec::new();
    firefox(&contents, &symbol_index(&contents), &Filter::default(), 0, &mut Cursor::new(&bytes), &mut out).unwrap();
    let profile: Value = serde_json::from_slice(&out).unwrap();
    let tracks = profile["threads"].as_array().unwrap();
    let sampling = tracks.iter().find(|track| track["processName"] == "Sampling").unwrap();
    let markers = &sampling["markers"];
    let [begin, end] = ["startTime", "endTime"].map(|time| markers[time][1].as_f64().unwrap());
    // Two processors are 172,798 s, for 500,000 rates; rounded to 10 ms.
    assert!((end - begin - 350.0).abs() < 1e-6, "{begin} {end}");
}

#[test]
fn a_flame_graph_has_no_lines_for_what_it_does_not_show() {
    let narrow = (0..30_000_u64).map(|place| sample(CYCLES, 8, APP + place, 1).into());
    let wide = [(0x8_0000, 40_000), (0x8_0010, 20), (0x8_0020, 2)];
    let wide = wide.map(|(place, events)| sample(CYCLES, 8, APP + place, events).into());
    let records: Vec<SampleRecord> = narrow.chain(wide).collect();
    let contents = read(&file(&[Block::Process(processes()[1].clone()), Block::Samples(records)]));
    let index = symbol_index(&contents);
    let [all, shown] =
        [folded_with_numbers, folded_for_graph].map(|fold| fold(&contents, &index, CYCLES, &of_cycles()));
    // A hundredth of a percent of the events, 7.0, is the minimum.
    assert_eq!(
        shown,
        [
            "app.exe (8);app.exe 30002",
            "app.exe (8);app.exe;app.exe+0x80000 40000",
            "app.exe (8);app.exe;app.exe+0x80010 20",
        ]
    );
    let draw = |lines: &[String]| {
        let mut out = Vec::new();
        flamegraph(lines, ("title", "events"), "", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let boxes = text.split("<title>").skip(1).map(|one| {
            let (title, rest) = one.split_once("</title>").unwrap();
            let width = rest.split_once("fg:w=\"").unwrap().1.split_once('"').unwrap().0;
            (title.to_owned(), width.to_owned())
        });
        boxes.collect::<BTreeSet<_>>()
    };
    assert_eq!((all.len(), draw(&all).len()), (30_003, 5), "two functions, the module, the process and all");
    assert_eq!(draw(&shown), draw(&all));
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
        let filter = Filter { events: Some([source].into()), ..Filter::default() };
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
    flamegraph(&folded_lines(), ("TotalCycles", "events"), "app.exe", &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    for title in [
        "app.exe (600,018 events, 60.00%)",
        "ntoskrnl.exe+0x500 (200,006 events, 20.00%)",
        "all (1,000,030 events, 100%)",
    ] {
        assert!(svg.contains(title), "{title}");
    }
}

#[test]
fn flame_graph_without_stacks_is_an_error() {
    assert!(flamegraph(&[], ("t", "events"), "s", &mut Vec::new()).is_err());
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
