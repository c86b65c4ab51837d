//! Recordings of a hybrid: samples of two core types are never in one sum.

use recording::{Block, CoreTypeProcessors, RecordedSession};
use report::{Column, Contents, Filter, SampledSource, Table, firefox, samples_csv, timeline};
use std::io::Cursor;

use super::support::{APP, CYCLES, MISSES, file_of, processes, read, sample, session, symbol_index};

const CORE: u32 = 0x40;
const ATOM: u32 = 0x20;

/// Returns a recording with samples of P core 0 and E core 1 in the same function, and a loss of each.
fn recording() -> Vec<u8> {
    let of = |core_type, name: &str, processor| CoreTypeProcessors {
        core_type,
        name: name.to_owned(),
        processors: vec![processor],
    };
    let session = RecordedSession { core_types: vec![of(CORE, "cpu_core", 0), of(ATOM, "cpu_atom", 1)], ..session() };
    let on = |processor, source, interval| protocol::CounterSample { processor, ..sample(source, 8, APP, interval) };
    let samples =
        vec![on(0, CYCLES, 100).into(), on(1, CYCLES, 7).into(), on(1, CYCLES, 7).into(), on(0, MISSES, 3).into()];
    let [_, app, _] = processes();
    file_of(&session, &[Block::Process(app), Block::Samples(samples)])
}

fn on(source: u32, core_type: u32) -> SampledSource {
    SampledSource { event: source, core_type }
}

#[test]
fn each_core_type_has_totals_and_tables_of_its_own() {
    let contents: Contents = read(&recording());
    let totals: Vec<_> = contents
        .sample_counts
        .totals()
        .map(|(source, total)| (source, total.weight.samples, total.weight.events))
        .collect();
    assert_eq!(totals, [(on(CYCLES, ATOM), 2, 14), (on(CYCLES, CORE), 1, 100), (on(MISSES, CORE), 1, 3)]);
    for (core_type, samples, name) in [(CORE, 1, "cpu_core/TotalCycles/"), (ATOM, 2, "cpu_atom/TotalCycles/")] {
        let source = on(CYCLES, core_type);
        let symbol_index = symbol_index(&contents);
        let table = Table::new(&contents, &symbol_index, source, &[Column::Address], &Filter::default());
        let [row] = &table.sorted_rows()[..] else { panic!("{table:?}") };
        assert_eq!((row.weight.samples, row.share), (samples, 1.0));
        assert_eq!(contents.source_name(source), name);
    }
    assert_eq!(contents.sample_counts.total(CYCLES).weight.samples, 0, "there is no sum over both");
}

#[test]
fn branch_histories_keep_the_core_type() {
    let bytes = recording();
    let mut contents = read(&bytes);
    contents.use_branch_history(&Filter::default(), &mut Cursor::new(&bytes)).unwrap();
    let each = contents.sample_counts.locations();
    let mut found: Vec<_> = each.map(|(location, weight)| (location.sampled_source(), weight.events)).collect();
    found.sort_unstable();
    assert_eq!(found, [(on(CYCLES, ATOM), 14), (on(CYCLES, CORE), 100), (on(MISSES, CORE), 3)]);
}

#[test]
fn exports_name_the_core_type_and_can_be_restricted_to_it() {
    let bytes = recording();
    let contents = read(&bytes);
    let index = symbol_index(&contents);
    let filter = |core_type| Filter { events: Some([CYCLES].into()), core_type, ..Filter::default() };
    for (core_type, core, atom) in [(None, 1, 2), (Some(CORE), 1, 0), (Some(ATOM), 0, 2)] {
        let mut out = Vec::new();
        samples_csv(&contents, &index, &filter(core_type), &mut Cursor::new(&bytes), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let number = |name: &str| text.matches(name).count();
        assert_eq!((number("cpu_core/TotalCycles/"), number("cpu_atom/TotalCycles/")), (core, atom), "{text}");
        let merged = timeline(&contents, &filter(core_type), &mut Cursor::new(&bytes)).unwrap();
        assert_eq!(merged.len(), core + atom);
    }
    let mut out = Vec::new();
    firefox(&contents, &index, &Filter::default(), u64::MAX, &mut Cursor::new(&bytes), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for name in ["cpu_core/TotalCycles/", "cpu_atom/TotalCycles/", "cpu_core/BranchMispredictions/"] {
        assert!(text.contains(name), "{name}");
    }
}
