//! Formats of other programs, read again: text of `perf script` by inferno, pprof and speedscope by their definitions.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::io::Read;

use flate2::read::GzDecoder;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use prost::Message;
use protocol::CounterSample;
use recording::{Block, Method, Methods, Process};
use report::{
    Column, Contents, Detail, Filter, RecordedTime, Table, flamegraph, folded, folded_with_numbers, pprof, rates,
    samples_csv, script, speedscope,
};
use serde_json::Value;

use super::support::{
    APP, CYCLES, MISSES, NT, NTDLL, file, module, processes, read, recording, sample, summary, symbol_index,
};

/// Returns the events of each process, in a row of `columns`.
fn events(contents: &Contents, columns: &[Column]) -> BTreeMap<Vec<String>, u64> {
    let symbol_index = symbol_index(contents);
    let table = Table::new(contents, &symbol_index, CYCLES, columns, &of(CYCLES));
    let rows = table.sorted_rows().into_iter().map(|row| {
        let names = [row.process_name, row.module].into_iter().flatten();
        (names.chain(row.frames.into_iter().flatten()).collect(), row.weight.events)
    });
    let mut sums = BTreeMap::new();
    for (names, events) in rows {
        *sums.entry(names).or_default() += events;
    }
    sums
}

fn of(source: u32) -> Filter {
    Filter { events: Some([source].into()), ..Filter::default() }
}

fn script_text(filter: &Filter) -> String {
    let file = recording();
    let contents = read(&file);
    let mut out = Vec::new();
    script(&contents, &symbol_index(&contents), filter, &mut Cursor::new(&file), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_script_has_a_heading_and_the_functions_of_each_sample() {
    insta::assert_snapshot!(script_text(&Filter::default()));
}

/// A client receives the records of one processor after those of another one.
#[test]
fn samples_of_all_processors_are_in_the_order_of_time() {
    let of = |processor, times: [u64; 3]| {
        let records = times.map(|time| CounterSample { time, processor, ..sample(CYCLES, 8, NTDLL, 1) }.into());
        Block::Samples(records.to_vec())
    };
    let file = file(&[of(0, [1_000, 3_000, 5_000]), of(1, [2_000, 4_000, 6_000]), of(0, [5_500, 7_000, 7_500])]);
    let contents = read(&file);
    let (index, filter) = (symbol_index(&contents), Filter::default());
    let (mut text, mut csv) = (Vec::new(), Vec::new());
    script(&contents, &index, &filter, &mut Cursor::new(&file), &mut text).unwrap();
    samples_csv(&contents, &index, &filter, &mut Cursor::new(&file), &mut csv).unwrap();
    let [text, csv] = [text, csv].map(|bytes| String::from_utf8(bytes).unwrap());
    let headings = text.lines().filter(|line| !line.is_empty() && !line.starts_with('\t'));
    let of_text: Vec<&str> = headings.map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(of_text, ["[000]", "[001]", "[000]", "[001]", "[000]", "[000]", "[001]", "[000]", "[000]"]);
    let times: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    let wanted = ["0", "100000", "200000", "300000", "400000", "450000", "500000", "600000", "650000"];
    assert_eq!(times, wanted);
}

#[test]
fn inferno_finds_the_events_of_a_report_in_a_script() {
    let mut folded = Vec::new();
    Folder::from(Options::default()).collapse(script_text(&of(CYCLES)).as_bytes(), &mut folded).unwrap();
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for line in String::from_utf8(folded).unwrap().lines() {
        let (stack, events) = line.rsplit_once(' ').unwrap();
        let process = stack.split(';').next().unwrap().to_owned();
        *sums.entry(vec![process]).or_default() += events.parse::<u64>().unwrap();
    }
    assert_eq!(sums, events(&read(&recording()), &[Column::Process]));
}

/// The parts of `profile.proto` that the test reads, written anew from its definition.
pub mod proto {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<Pair>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub strings: Vec<String>,
        #[prost(int64, tag = "9")]
        pub time: i64,
        #[prost(int64, tag = "10")]
        pub duration: i64,
        #[prost(int64, tag = "12")]
        pub period: i64,
        #[prost(int64, repeated, tag = "13")]
        pub comments: Vec<i64>,
        #[prost(int64, tag = "14")]
        pub default_type: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Pair {
        #[prost(int64, tag = "1")]
        pub kind: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub locations: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub values: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub labels: Vec<Pair>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub start: u64,
        #[prost(uint64, tag = "3")]
        pub end: u64,
        #[prost(int64, tag = "5")]
        pub file: i64,
        #[prost(int64, tag = "6")]
        pub build: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub lines: Vec<Line>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function: u64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub file: i64,
    }
}

fn pprof_profile(filter: &Filter) -> proto::Profile {
    pprof_of(&recording(), filter)
}

pub fn pprof_of(file: &[u8], filter: &Filter) -> proto::Profile {
    let contents = Contents::read_slice(&mut Cursor::new(file), Detail::default(), filter.slice.clone()).unwrap();
    let mut out = Vec::new();
    pprof(&contents, &symbol_index(&contents), filter, &mut out).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(out.as_slice()).read_to_end(&mut bytes).unwrap();
    proto::Profile::decode(bytes.as_slice()).unwrap()
}

#[test]
fn pprof_has_the_events_of_a_report_by_process_and_function() {
    let profile = pprof_profile(&Filter::default());
    let text = |index: i64| profile.strings[usize::try_from(index).unwrap()].as_str();
    assert_eq!(profile.strings[0], "", "the format demands it");
    let types: Vec<_> = profile.sample_type.iter().map(|pair| (text(pair.kind), text(pair.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("TotalCycles", "count"), ("BranchMispredictions", "count")]);
    assert_eq!(text(profile.default_type), "TotalCycles", "the first event of the recording");
    let comments: Vec<&str> = profile.comments.iter().map(|index| text(*index)).collect();
    let account = "samples lost: 3; pauses: 1; stops: 1; sleeps of the machine: 0";
    assert_eq!(comments, ["C:\\app\\app.exe --fast", "Example Processor", account]);
    let elapsed = i64::try_from(summary().elapsed).unwrap() * 100;
    assert_eq!((profile.time, profile.duration, profile.period), (1_767_225_600_000_000_000, elapsed, 100_003));
    let mut sums = BTreeMap::new();
    for sample in &profile.sample {
        assert_eq!((sample.locations.len(), sample.values.len()), (1, 3));
        assert!(sample.values[1] == 0 || sample.values[2] == 0, "a sample is of one source");
        let location = profile.location.iter().find(|location| location.id == sample.locations[0]).unwrap();
        let name = |line: &proto::Line| {
            let function = profile.function.iter().find(|function| function.id == line.function).unwrap();
            text(function.name).to_owned()
        };
        let process = sample.labels.iter().find(|label| text(label.kind) == "process").unwrap();
        let mapping = profile.mapping.iter().find(|mapping| mapping.id == location.mapping).unwrap();
        assert!((mapping.start..mapping.end).contains(&location.address), "{location:?}");
        let build = match text(mapping.file) {
            "[unknown]" => "",
            path if path.starts_with("C:\\") => "FB43168BD573ADCA4C4C44205044422E1",
            path => panic!("{path}"),
        };
        assert_eq!(text(mapping.build), build);
        let process = text(process.unit).to_owned();
        let names = [process].into_iter().chain(location.lines.iter().rev().map(name)).collect();
        *sums.entry(names).or_default() += u64::try_from(sample.values[1]).unwrap();
    }
    sums.retain(|_, events| *events > 0);
    assert_eq!(sums, events(&read(&recording()), &[Column::Process, Column::Frames]));
    assert_eq!(pprof_profile(&of(MISSES)).sample_type.len(), 2);
    let empty = pprof_of(&file(&[]), &Filter::default());
    let types = empty.sample_type.iter().map(|pair| empty.strings[usize::try_from(pair.kind).unwrap()].as_str());
    let wanted = ["samples", "TotalCycles", "BranchMispredictions"];
    assert!(types.eq(wanted), "pprof compares profiles of the same types only");
}

/// pprof cuts the parameters off a name that is also the name in the image, and adds up functions of the same name in
/// the same file.
#[test]
fn functions_of_the_same_name_are_apart_in_pprof() {
    let method = |address, name: &str| Method { address, size: 0x10, name: name.to_owned(), loaded: 0 };
    let methods = vec![method(0x1000, "ns::f(int)"), method(0x2000, "ns::f(double)")];
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Methods(Methods { id: 8, created: None, methods }));
    let places = [0x1000, 0x2000, APP, NTDLL, NT];
    blocks.push(Block::Samples(places.map(|ip| sample(CYCLES, 8, ip, 1).into()).to_vec()));
    let profile = pprof_of(&file(&blocks), &Filter::default());
    let text = |index: i64| profile.strings[usize::try_from(index).unwrap()].as_str();
    let mut found = Vec::new();
    for location in &profile.location {
        let mapping = profile.mapping.iter().find(|mapping| mapping.id == location.mapping).unwrap();
        let function = profile.function.iter().find(|function| function.id == location.lines[0].function).unwrap();
        assert_eq!((function.system_name, function.file), (0, mapping.file), "{function:?}");
        found.push((text(function.name), text(function.file)));
    }
    found.sort_unstable();
    let wanted = [
        ("app.exe+0x0", "C:\\app\\app.exe"),
        ("ns::f(double)", "[unknown]"),
        ("ns::f(int)", "[unknown]"),
        ("ntdll.dll+0x0", "C:\\Windows\\System32\\ntdll.dll"),
        ("ntoskrnl.exe+0x0", "C:\\Windows\\ntoskrnl.exe"),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn folded_stacks_of_two_runs_of_a_program_are_the_same() {
    let run = |id: u32| {
        let [kernel, app, _] = processes();
        let samples = [APP + 0x10, NT + 0x20].map(|ip| sample(CYCLES, id, ip, 1).into());
        read(&file(&[Block::Process(kernel), Block::Process(Process { id, ..app }), Block::Samples(samples.to_vec())]))
    };
    let [first, second] = [8, 16].map(run);
    let lines = |contents: &Contents| folded(contents, &symbol_index(contents), CYCLES, &Filter::default());
    assert_eq!(lines(&first), ["app.exe;app.exe;app.exe+0x10 1", "app.exe;ntoskrnl.exe;ntoskrnl.exe+0x20 1"]);
    assert_eq!(lines(&first), lines(&second));
    let numbered = folded_with_numbers(&second, &symbol_index(&second), CYCLES, &Filter::default());
    assert!(numbered.iter().all(|line| line.starts_with("app.exe (16);")), "{numbered:?}");
}

#[test]
fn pprof_has_a_place_of_several_processes_and_a_function_of_several_places_once() {
    let unmapped = 0x1234_0000;
    let places = [
        (8, NTDLL + 0x20),
        (12, NTDLL + 0x20),
        (12, NTDLL + 0x40),
        (8, NT + 0x500),
        (12, NT + 0x500),
        (8, unmapped),
        (8, unmapped + 1),
        (12, unmapped),
        (99, unmapped),
    ];
    let samples = places.map(|(process, ip)| sample(CYCLES, process, ip, 1).into());
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(samples.to_vec()));
    let profile = pprof_of(&file(&blocks), &Filter::default());
    let text = |index: i64| profile.strings[usize::try_from(index).unwrap()].as_str();
    assert!(profile.location.iter().map(|location| location.id).eq(1..=6));
    assert!(profile.function.iter().map(|function| function.id).eq(1..=5));
    let mut names: Vec<&str> = profile.function.iter().map(|function| text(function.name)).collect();
    names.sort_unstable();
    let region = "[JIT or unmapped] 0x12340000";
    assert_eq!(names, ["0x0000000012340000", region, "ntdll.dll+0x20", "ntdll.dll+0x40", "ntoskrnl.exe+0x500"]);
    let label = |sample: &proto::Sample, key| sample.labels.iter().find(|label| text(label.kind) == key).unwrap().unit;
    let mut found: Vec<(&str, u64, &str)> = Vec::new();
    for sample in &profile.sample {
        let location = profile.location.iter().find(|location| location.id == sample.locations[0]).unwrap();
        let [line] = location.lines.as_slice() else { panic!("{location:?}") };
        let function = profile.function.iter().find(|function| function.id == line.function).unwrap();
        found.push((text(label(sample, "process")), location.address, text(function.name)));
    }
    found.sort_unstable();
    let wanted = [
        ("[unknown]", unmapped, "0x0000000012340000"),
        ("app.exe", unmapped, region),
        ("app.exe", unmapped + 1, region),
        ("app.exe", NTDLL + 0x20, "ntdll.dll+0x20"),
        ("app.exe", NT + 0x500, "ntoskrnl.exe+0x500"),
        ("other.exe", unmapped, region),
        ("other.exe", NTDLL + 0x20, "ntdll.dll+0x20"),
        ("other.exe", NTDLL + 0x40, "ntdll.dll+0x40"),
        ("other.exe", NT + 0x500, "ntoskrnl.exe+0x500"),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn speedscope_has_the_rows_of_a_report() {
    let contents = read(&recording());
    let mut out = Vec::new();
    speedscope(&contents, &symbol_index(&contents), &of(CYCLES), &mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let [profile] = file["profiles"].as_array().unwrap().as_slice() else { panic!("{file}") };
    assert_eq!(
        (&profile["type"], &profile["name"], &profile["unit"]),
        (&"sampled".into(), &"TotalCycles".into(), &"none".into())
    );
    let frame =
        |index: &Value| file["shared"]["frames"][usize::try_from(index.as_u64().unwrap()).unwrap()]["name"].clone();
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (stack, weight) in profile["samples"].as_array().unwrap().iter().zip(profile["weights"].as_array().unwrap()) {
        let mut names: Vec<String> =
            stack.as_array().unwrap().iter().map(|index| frame(index).as_str().unwrap().to_owned()).collect();
        names[0] = names[0].rsplit_once(" (").map_or(names[0].clone(), |(name, _)| name.to_owned());
        *sums.entry(names).or_default() += weight.as_u64().unwrap();
    }
    assert_eq!(sums, events(&contents, &[Column::Process, Column::Module, Column::Frames]));
    assert_eq!(profile["endValue"].as_u64().unwrap(), sums.values().sum::<u64>());
}

#[test]
fn rates_have_every_event_in_the_part_of_its_time() {
    let file = recording();
    let contents = read(&file);
    let time = RecordedTime::read(&mut Cursor::new(&file)).unwrap().unwrap();
    for parts in [1, 2, 7, 100] {
        let found =
            rates(&contents, &symbol_index(&contents), &Filter::default(), &mut Cursor::new(&file), time, parts)
                .unwrap();
        assert!(found.part * u32::try_from(parts).unwrap() >= time.duration());
        for (source, total) in contents.sample_counts.totals() {
            let of_source = found.events.iter().filter(|((one, _), _)| *one == source);
            let counts: Vec<&Vec<u64>> = of_source.map(|(_, counts)| counts).collect();
            assert!(counts.iter().all(|counts| counts.len() == parts));
            assert_eq!(counts.iter().copied().flatten().sum::<u64>(), total.weight.events, "{parts}");
        }
    }
    // Ten samples of 100,003 cycles each millisecond from the start on, to the last of 1 ms each.
    let found = rates(&contents, &symbol_index(&contents), &of(CYCLES), &mut Cursor::new(&file), time, 2).unwrap();
    let counts: Vec<&Vec<u64>> = found.events.values().collect();
    assert_eq!(counts.len(), 1, "one CPU, and no other source");
    assert!(counts[0][0] >= counts[0][1] && counts[0][1] > 0, "{counts:?}");
}

/// Returns the SVG of folded stacks, and what programs find in a script: the folded stacks of inferno.
fn drawn(file: &[u8]) -> (Vec<String>, String, String) {
    let contents = read(file);
    let (index, filter) = (symbol_index(&contents), Filter::default());
    let lines = folded(&contents, &index, CYCLES, &filter);
    let mut svg = Vec::new();
    flamegraph(&lines, ("TotalCycles", "events"), "", &mut svg).unwrap();
    let (mut text, mut collapsed) = (Vec::new(), Vec::new());
    script(&contents, &index, &filter, &mut Cursor::new(file), &mut text).unwrap();
    Folder::from(Options::default()).collapse(text.as_slice(), &mut collapsed).unwrap();
    let [svg, collapsed] = [svg, collapsed].map(|bytes| String::from_utf8(bytes).unwrap());
    (lines, svg, collapsed)
}

/// What a reader of folded stacks takes off the end of a line: flamegraph.pl looks for a second number in the rest.
fn second_number(line: &str) -> Option<&str> {
    let (stack, _) = line.trim_end().rsplit_once(' ').unwrap();
    let (_, last) = stack.trim_end().rsplit_once(char::is_whitespace)?;
    last.parse::<f64>().is_ok().then_some(last)
}

#[test]
fn names_of_programs_modules_and_functions_are_no_syntax_of_text_formats() {
    let names = ["load", "stage 2", "stage 2.5 ", "a;b 7", "spoof_[k]", " x", "f(int, 3) 4"];
    let methods = names.iter().zip((0x1000..).step_by(0x100)).map(|(name, address)| Method {
        address,
        size: 0x100,
        name: (*name).to_owned(),
        loaded: 0,
    });
    let methods: Vec<Method> = methods.collect();
    let mut blocks = vec![Block::Process(Process {
        id: 8,
        created: None,
        name: "stage 2 of 3 x.exe".to_owned(),
        modules: vec![module(APP, "C:\\My Program\\my app (2) 3.exe")],
    })];
    let places = methods.iter().map(|method| method.address + 4).chain([APP + 0x10]);
    blocks.push(Block::Samples(places.map(|ip| sample(CYCLES, 8, ip, 100_000).into()).collect()));
    blocks.insert(1, Block::Methods(Methods { id: 8, created: None, methods }));
    let (lines, svg, collapsed) = drawn(&file(&blocks));

    assert!(lines.iter().all(|line| second_number(line).is_none()), "{lines:#?}");
    for shown in ["load", "stage 2", "stage 2.5", "a:b 7", "spoof_[k]", "x", "f(int, 3) 4", "my app (2) 3.exe+0x10"] {
        assert!(svg.contains(&format!("<title>{shown} (100,000 events, 12.50%)</title>")), "{shown}: {svg}");
    }
    // One process with one module; a number that was taken for another run would be a change.
    assert!(svg.contains("<title>stage 2 of 3 x.exe (800,000 events, 100.00%)</title>"), "{svg}");
    assert!(!svg.contains("%; "), "no differences: {svg}");

    // inferno's reader of scripts has all stacks, each of the process and its function.
    assert_eq!(collapsed.lines().count(), 8, "{collapsed}");
    let text = collapsed.replace('\u{2060}', "");
    assert!(text.lines().all(|line| line.starts_with("stage_2_of_3_x.exe;")), "{collapsed}");
    assert!(text.contains(";[my_app_[2]_3.exe] "), "{collapsed}");
}
