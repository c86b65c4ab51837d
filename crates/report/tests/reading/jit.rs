//! Code that belongs to no module: just-in-time compilers and their perf maps.

use std::fs;
use std::io::Cursor;

use protocol::UNKNOWN;
use recording::{Block, Process};
use report::{Column, Contents, Detail, Filter, PerfMapProblem, SymbolFinder, SymbolIndex, Table, firefox};
use serde_json::Value;
use tempfile::TempDir;

use super::support::{APP, CYCLES, NT, file, module, sample};

/// Addresses of compiled code, in two regions.
const JIT: u64 = 0x7FF8_1234_0000;
const OTHER: u64 = 0x7FF8_1235_0000;

/// Samples of compiled code in process 8, which has modules, in process 99, which has none, and in an unknown process.
fn recording() -> Vec<u8> {
    let process =
        Process { id: 8, created: None, name: "app.exe".to_owned(), modules: vec![module(APP, "C:\\app\\app.exe")] };
    let samples = [
        (8, JIT),
        (8, JIT + 0x1F),
        (8, JIT + 0x20),
        (8, JIT + 0xFFFF),
        (8, OTHER),
        (8, APP + 0x10),
        (8, NT),
        (99, JIT),
        (UNKNOWN, JIT),
    ];
    let samples = samples.map(|(process, ip)| sample(CYCLES, process, ip, 1).into());
    file(&[Block::Process(process), Block::Samples(samples.to_vec())])
}

fn map(name: &str, text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    folder
}

fn finder() -> SymbolFinder {
    SymbolFinder::new(Vec::new(), None, None).unwrap()
}

/// Returns process, module, symbol and samples of each row, and the problems with perf maps.
fn rows(finder: &SymbolFinder) -> (Vec<String>, Vec<PerfMapProblem>) {
    let contents = Contents::read(&mut Cursor::new(recording()), Detail::default()).unwrap();
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), finder);
    let columns = [Column::Process, Column::Module, Column::Symbol];
    let table = Table::new(&contents, &symbol_index, CYCLES, &columns, &Filter::default());
    let row = |row: &report::TableRow| {
        let [process, module, symbol] = [&row.process_name, &row.module, &row.symbol].map(|text| text.clone().unwrap());
        format!("{process} {module} {symbol} {}", row.weight.samples)
    };
    let mut rows: Vec<String> = table.sorted_rows().iter().map(row).collect();
    rows.sort_unstable();
    (rows, symbol_index.perf_map_problems().to_vec())
}

const ELSEWHERE: [&str; 4] = [
    "[unknown] [unknown] 0x00007ff812340000 1",
    "[unknown] [unknown] [unknown] 1",
    "app.exe [kernel] 0xfffff80000000000 1",
    "app.exe app.exe app.exe+0x10 1",
];

#[test]
fn code_in_no_module_has_a_row_for_each_region_if_the_modules_are_known() {
    let (rows, problems) = rows(&finder());
    let regions = [
        "app.exe [unknown] [JIT or unmapped] 0x7ff812340000 4",
        "app.exe [unknown] [JIT or unmapped] 0x7ff812350000 1",
    ];
    let mut wanted = [&ELSEWHERE[..], &regions].concat();
    wanted.sort_unstable();
    assert_eq!((rows, problems), (wanted.iter().map(ToString::to_string).collect(), Vec::new()));
}

#[test]
fn perf_maps_name_compiled_functions_wherever_they_are() {
    let folder = map("perf-8.map", "7ff812340000 20 void [App] Main(string[])[Tier0]\n7ff812350000 1 short\n");
    let beside = SymbolFinder::new(Vec::new(), Some(folder.path().to_owned()), None).unwrap();
    let given = SymbolFinder::new(vec![folder.path().to_owned()], None, None).unwrap();
    let temporary = finder().with_perf_maps(vec![folder.path().to_owned()]);
    let named = [
        "app.exe [JIT] short 1",
        "app.exe [JIT] void [App] Main(string[])[Tier0] 2",
        "app.exe [unknown] [JIT or unmapped] 0x7ff812340000 2",
    ];
    let mut wanted = [&ELSEWHERE[..], &named].concat();
    wanted.sort_unstable();
    for finder in [beside, given, temporary] {
        assert_eq!(rows(&finder), (wanted.iter().map(ToString::to_string).collect(), Vec::new()));
    }
}

#[test]
fn perf_map_of_a_process_without_modules_names_its_code() {
    let folder = map("perf-99.map", "7ff812340000 20 main");
    let (rows, _) = rows(&finder().with_perf_maps(vec![folder.path().to_owned()]));
    assert!(rows.contains(&"[unknown] [JIT] main 1".to_owned()), "{rows:?}");
}

#[test]
fn bad_lines_are_counted() {
    let folder = map("perf-8.map", "7ff812340000 20 main\nbad\n7ff812350000 worse\n");
    let (rows, problems) = rows(&finder().with_perf_maps(vec![folder.path().to_owned()]));
    assert!(rows.contains(&"app.exe [JIT] main 2".to_owned()), "{rows:?}");
    assert_eq!(problems, [PerfMapProblem { path: folder.path().join("perf-8.map"), problem: Ok(2) }]);
}

#[test]
fn firefox_profile_names_compiled_code() {
    let folder = map("perf-8.map", "7ff812340000 20 compiled\n");
    let finder = finder().with_perf_maps(vec![folder.path().to_owned()]);
    let bytes = recording();
    let contents = Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
    let symbol_index = SymbolIndex::new(&contents, &Filter::default(), &finder);
    let mut out = Vec::new();
    firefox(&contents, &symbol_index, &Filter::default(), u64::MAX, &mut Cursor::new(&bytes), &mut out).unwrap();
    let profile: Value = serde_json::from_slice(&out).unwrap();
    let names = profile["threads"].as_array().unwrap().iter().flat_map(|thread| {
        thread["stringArray"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>()
    });
    let names: Vec<&str> = names.collect();
    assert!(["compiled", "[JIT or unmapped] 0x7ff812350000"].iter().all(|name| names.contains(name)), "{names:?}");
}
