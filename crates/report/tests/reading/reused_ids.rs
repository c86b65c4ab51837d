//! Process IDs that Windows gave to several processes, one after the other.

use std::collections::BTreeMap;
use std::io::Cursor;

use protocol::{CounterSample, SampleRecord};
use recording::{Block, Process};
use report::{
    Column, Contents, Detail, Filter, ProcessKey, SymbolFinder, SymbolIndex, Table, firefox, samples_csv, script,
    timeline,
};

use super::support::{APP, CYCLES, file, module, read, sample, symbol_index};

/// The ID of all processes.
const ID: u32 = 8;

/// Returns a process with a program of its own, at the same address as all others.
fn process(name: &str, created: Option<u64>) -> Block {
    let modules = vec![module(APP, &format!("C:\\{name}"))];
    Block::Process(Process { id: ID, created, name: name.to_owned(), modules })
}

/// Returns samples at these times, of the same instruction in every process.
fn samples(times: impl IntoIterator<Item = u64>) -> Block {
    let of = |time| CounterSample { time, ..sample(CYCLES, ID, APP + 0x10, 100) };
    Block::Samples(times.into_iter().map(|time| SampleRecord::from(of(time))).collect())
}

/// Returns a recording of three processes: `a.exe` until 2000, `b.exe` until 3000, then `c.exe`. A process is recorded
/// after its first samples.
fn reused() -> Vec<u8> {
    file(&[
        samples([1000, 1500]),
        process("a.exe", Some(500)),
        samples((1600..2500).step_by(100)),
        process("b.exe", Some(2000)),
        samples([2500, 2600]),
        samples([3000, 3100, 3200]),
        process("c.exe", Some(3000)),
    ])
}

const WANTED: [(&str, u64); 3] = [("a.exe", 6), ("b.exe", 7), ("c.exe", 3)];

fn wanted() -> BTreeMap<String, u64> {
    WANTED.map(|(name, samples)| (name.to_owned(), samples)).into()
}

/// Returns the samples of each process, and checks that its module is its own.
fn by_name(contents: &Contents, filter: &Filter) -> BTreeMap<String, u64> {
    let index = SymbolIndex::new(contents, filter, &SymbolFinder::new(Vec::new(), None, None).unwrap());
    let rows = Table::new(contents, &index, CYCLES, &[Column::Process, Column::Module], filter).sorted_rows();
    let named = rows.into_iter().map(|row| {
        assert_eq!((row.process, &row.process_name), (Some(ID), &row.module));
        (row.process_name.unwrap(), row.weight.samples)
    });
    named.collect()
}

#[test]
fn a_sample_belongs_to_the_process_that_had_the_id_at_its_time() {
    let bytes = reused();
    for detail in [Detail::default(), Detail { thread: true, processor: true, stacks: true, ..Detail::default() }] {
        let contents = Contents::read(&mut Cursor::new(&bytes), detail).unwrap();
        assert_eq!(by_name(&contents, &Filter::default()), wanted(), "{detail:?}");
    }
}

#[test]
fn exports_of_single_samples_have_the_process_of_their_time() {
    let bytes = reused();
    let (contents, filter) = (read(&bytes), Filter::default());
    let index = symbol_index(&contents);
    let mut out = Vec::new();
    samples_csv(&contents, &index, &filter, &mut Cursor::new(&bytes), &mut out).unwrap();
    let mut names = BTreeMap::new();
    for line in String::from_utf8(out).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[5], fields[10], "{line}");
        *names.entry(fields[5].to_owned()).or_default() += 1;
    }
    assert_eq!(names, wanted());

    let mut out = Vec::new();
    script(&contents, &index, &filter, &mut Cursor::new(&bytes), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let of = |name: &str| text.matches(&format!("{name} 8/9 ")).count() as u64;
    assert_eq!(WANTED.map(|(name, _)| (name, of(name))), WANTED);
    let in_module = |name: &str| text.matches(&format!("({name})")).count() as u64;
    assert_eq!(WANTED.map(|(name, _)| (name, in_module(name))), WANTED);

    let mut out = Vec::new();
    firefox(&contents, &index, &filter, u64::MAX, &mut Cursor::new(&bytes), &mut out).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let tracks = profile["threads"].as_array().unwrap().iter();
    let tracks = tracks.filter(|track| track["samples"]["length"] != 0);
    let names = tracks
        .map(|track| (track["processName"].as_str().unwrap().to_owned(), track["samples"]["length"].as_u64().unwrap()));
    assert_eq!(names.collect::<BTreeMap<_, _>>(), wanted());

    let merged = timeline(&contents, &filter, &mut Cursor::new(&bytes)).unwrap();
    let mut names = BTreeMap::new();
    for one in merged {
        let process = one.location(&contents.processes).process;
        *names.entry(contents.processes.name_or_unknown(process).to_owned()).or_default() += 1;
    }
    assert_eq!(names, wanted());
}

#[test]
fn a_name_selects_one_process_and_an_id_all() {
    let bytes = reused();
    let contents = read(&bytes);
    let of = |processes: Vec<ProcessKey>| {
        by_name(&contents, &Filter { processes: Some(processes.into_iter().collect()), ..Filter::default() })
    };
    for (name, samples) in WANTED {
        assert_eq!(of(contents.processes.named(name).collect()), [(name.to_owned(), samples)].into());
    }
    assert_eq!(of(contents.processes.with_id(ID).collect()), wanted());
}

#[test]
fn a_sample_before_every_creation_belongs_to_the_first_process() {
    // The times of creation are those of another clock, converted.
    let bytes = file(&[samples([1000, 2000]), process("a.exe", Some(1001)), process("b.exe", Some(1500))]);
    let counts = by_name(&read(&bytes), &Filter::default());
    assert_eq!(counts, [("a.exe".to_owned(), 1), ("b.exe".to_owned(), 1)].into());
}

#[test]
fn a_process_that_ended_unseen_keeps_its_samples_from_the_next() {
    let unseen = Block::Process(Process { id: ID, created: None, name: String::new(), modules: Vec::new() });
    let bytes = file(&[samples([1000, 1001]), unseen, samples([2000]), process("b.exe", Some(1500))]);
    let contents = read(&bytes);
    let index = symbol_index(&contents);
    let rows = Table::new(&contents, &index, CYCLES, &[Column::Process], &Filter::default());
    let rows = rows.sorted_rows();
    let rows: Vec<_> = rows.iter().map(|row| (row.process_name.as_deref().unwrap(), row.weight.samples)).collect();
    assert_eq!(rows, [("[unknown]", 2), ("b.exe", 1)]);
}

#[test]
fn processes_without_times_of_creation_are_one_as_before() {
    let bytes = file(&[process("a.exe", None), samples([1000]), process("b.exe", None), samples([2000])]);
    assert_eq!(by_name(&read(&bytes), &Filter::default()), [("b.exe".to_owned(), 2)].into());
}
