//! Filters: by processor, thread, time, module and symbol.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::time::Duration;

use proptest::prelude::*;
use protocol::{CounterSample, LostRecord, PauseKind, PauseRecord, SampleRecord, StopKind, StopRecord};
use recording::{Block, Kept, Process, Summary, Writer};
use report::{
    Column, Contents, Detail, Filter, NamePattern, RecordedTime, SampleWeight, Slice, SymbolFinder, SymbolIndex, Table,
    firefox, samples_csv, speedscope, timeline,
};

use super::formats::pprof_of;
use super::support::{APP, CYCLES, NT, NTDLL, SortedTable, file, processes, recording, sample, session, summary};

/// Returns a table by process and address of the samples that `filter` selects.
fn table(bytes: &[u8], filter: &Filter) -> SortedTable {
    let contents = Contents::read_slice(&mut Cursor::new(bytes), Detail::default(), filter.slice.clone()).unwrap();
    let symbol_index = index(&contents, filter);
    SortedTable::of(&Table::new(&contents, &symbol_index, CYCLES, &[Column::Process, Column::Address], filter))
}

fn index(contents: &Contents, filter: &Filter) -> SymbolIndex {
    SymbolIndex::new(contents, filter, &SymbolFinder::new(Vec::new(), None, None).unwrap())
}

/// Returns the number of lines of CSV with `kind`.
fn lines(bytes: &[u8], filter: &Filter, kind: &str) -> usize {
    let contents = Contents::read(&mut Cursor::new(bytes), Detail::default()).unwrap();
    let mut out = Vec::new();
    samples_csv(&contents, &index(&contents, filter), filter, &mut Cursor::new(bytes), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().filter(|line| line.split(',').nth(1) == Some(kind)).count()
}

fn of_slice(slice: Slice) -> Filter {
    Filter { events: Some([CYCLES].into()), slice, ..Filter::default() }
}

fn of_time(time: Range<u64>) -> Filter {
    of_slice(Slice { time: Some(time), ..Slice::default() })
}

fn of_names(modules: &[&str], symbols: &[&str]) -> Filter {
    let patterns = |names: &[&str]| names.iter().map(|name| NamePattern::new(*name)).collect();
    Filter {
        events: Some([CYCLES].into()),
        modules: patterns(modules),
        symbols: patterns(symbols),
        ..Filter::default()
    }
}

/// The samples of cycles are 1 ms apart, from 0 ms to 9 ms.
#[test]
fn a_time_is_selected_from_its_start_to_before_its_end() {
    let bytes = recording();
    let recorded = RecordedTime::read(&mut Cursor::new(&bytes)).unwrap().unwrap();
    assert_eq!(recorded.duration(), Duration::from_millis(9));
    let at = |milliseconds| recorded.at(Duration::from_micros(milliseconds));
    for (from, to, number) in
        [(0, 10_000, 10), (0, 9000, 9), (1000, 3000, 2), (1001, 3001, 2), (9000, 9001, 1), (9001, 20_000, 0)]
    {
        let filter = of_time(at(from)..at(to));
        let table = table(&bytes, &filter);
        assert_eq!((table.selected.samples, table.total.weight.samples), (number, 10), "{from} {to}");
        assert_eq!(lines(&bytes, &filter, "sample") as u64, number, "{from} {to}");
    }
}

/// Counts the bytes that are read.
struct Counted {
    input: Cursor<Vec<u8>>,
    read: usize,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(bytes)?;
        self.read += length;
        Ok(length)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}

/// Exports a millisecond of a recording that has a block for each of twenty. Returns the exported lines and how much of
/// the recording was read, in percent.
fn exported(bytes: Vec<u8>, filter: &Filter) -> (usize, usize) {
    let contents = Contents::read_slice(&mut Cursor::new(&bytes), Detail::default(), filter.slice.clone()).unwrap();
    let length = bytes.len();
    let mut input = Counted { input: Cursor::new(bytes), read: 0 };
    let mut out = Vec::new();
    samples_csv(&contents, &index(&contents, filter), filter, &mut input, &mut out).unwrap();
    (String::from_utf8(out).unwrap().lines().count() - 1, 100 * input.read / length)
}

#[test]
fn only_the_blocks_of_a_selected_time_are_read_again() {
    let blocks = (0..20_u64).map(|millisecond| {
        let samples = (0..500).map(|index| CounterSample {
            time: millisecond * 10_000 + index,
            ip: APP + millisecond.wrapping_mul(index).wrapping_mul(0x9E37_79B9) % 0x10_0000,
            ..sample(CYCLES, 8, APP, 1)
        });
        Block::Samples(samples.map(SampleRecord::from).collect())
    });
    let mut bytes = file(&blocks.collect::<Vec<_>>());
    let (lines, percent) = exported(bytes.clone(), &of_time(50_000..60_000));
    assert!(lines == 500 && percent < 30, "{lines} lines, {percent} %");
    // The export ends where the report does, at damage before the selected time.
    let middle = bytes.len() / 10;
    bytes[middle] ^= 1;
    assert_eq!(exported(bytes, &of_time(50_000..60_000)).0, 0);
}

/// A unit of the clock is 100 ns.
#[test]
fn a_time_between_two_units_of_the_clock_begins_at_the_next() {
    let recorded = RecordedTime::read(&mut Cursor::new(recording())).unwrap().unwrap();
    for (nanoseconds, units) in [(0, 0), (1, 1), (99, 1), (100, 1), (101, 2)] {
        assert_eq!(recorded.at(Duration::from_nanos(nanoseconds)), recorded.first + units);
    }
    assert_eq!(recorded.at(Duration::MAX), u64::MAX);
    let none = file(&[]);
    assert_eq!(RecordedTime::read(&mut Cursor::new(&none)).unwrap(), None);
    assert!(RecordedTime::read(&mut Cursor::new(&none[..20])).is_err());
}

#[test]
fn module_and_symbol_are_selected_by_name_after_they_are_known() {
    let bytes = recording();
    for (modules, symbols, number) in [
        (&["ntdll"][..], &[][..], 2),
        (&["NTDLL.DLL", "app"], &[], 5),
        (&["nt*"], &[], 5),
        (&["[unknown]"], &[], 2),
        (&[], &["app.exe+0x1000"], 2),
        (&[], &["APP.exe+0x1000"], 0),
        (&[], &["*+0x?00"], 3),
        (&["ntdll"], &["app*"], 0),
        (&["app"], &["*0", "*4"], 3),
    ] {
        let filter = of_names(modules, symbols);
        assert_eq!(table(&bytes, &filter).selected.samples, number, "{modules:?} {symbols:?}");
        assert_eq!(lines(&bytes, &filter, "sample") as u64, number, "{modules:?} {symbols:?}");
    }
}

#[test]
fn losses_are_selected_by_processor_and_time_only() {
    let bytes = recording();
    let on = |processor| of_slice(Slice { processors: Some([processor].into()), ..Slice::default() });
    let in_thread = of_slice(Slice { threads: Some([9].into()), ..Slice::default() });
    for (filter, samples, lost) in [
        (on(0), 10, 0),
        (on(1), 0, 1),
        (of_time(0..4000), 1, 0),
        (of_time(4000..4001), 0, 1),
        (in_thread, 6, 1),
        (of_names(&["ntdll"], &[]), 2, 1),
    ] {
        assert_eq!((lines(&bytes, &filter, "sample"), lines(&bytes, &filter, "lost")), (samples, lost), "{filter:?}");
    }
}

#[test]
fn totals_and_losses_are_those_of_the_whole_recording() {
    let bytes = recording();
    let none = Slice { processors: Some(BTreeSet::new()), ..Slice::default() };
    let contents = Contents::read_slice(&mut Cursor::new(&bytes), Detail::default(), none).unwrap();
    assert_eq!(contents.sample_counts.locations().count(), 0);
    assert_eq!(contents.sample_counts.total(CYCLES).weight.samples, 10);
    assert_eq!(contents.sample_counts.loss_stats().map(|(.., stats)| stats.lost).sum::<u64>(), 3);
}

/// A recording of ten seconds, of which only the last two are left of twelve if `kept`.
fn ten_seconds(kept: Option<Kept>) -> Vec<u8> {
    const SECOND: u64 = 10_000_000;
    let at = |seconds, processor| -> SampleRecord {
        CounterSample { time: seconds * SECOND, processor, ..sample(CYCLES, 8, APP, 1) }.into()
    };
    let records = [
        at(0, 0),
        LostRecord::new(SECOND, 0, CYCLES, 5).into(),
        StopRecord::new(StopKind::Throttled, 15 * SECOND / 2, 1).into(),
        PauseRecord::new(PauseKind::Resumed, 17 * SECOND / 2, 1, SECOND).into(),
        LostRecord::new(9 * SECOND, 1, CYCLES, 2).into(),
        at(9, 1),
    ];
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    writer.samples(&records).unwrap();
    writer
        .finish(&Summary { elapsed: if kept.is_some() { 120_000_000 } else { 100_000_000 }, kept, ..summary() })
        .unwrap()
}

#[test]
fn a_cut_is_told_with_its_times_and_losses() {
    let bytes = ten_seconds(None);
    let recorded = RecordedTime::read(&mut Cursor::new(&bytes)).unwrap().unwrap();
    let from = |seconds| recorded.at(Duration::from_secs(seconds));
    let cut = |time, processors: &[u32]| {
        let processors = (!processors.is_empty()).then(|| processors.iter().copied().collect());
        Filter { slice: Slice { time, processors, ..Slice::default() }, ..Filter::default() }
    };
    let account = |lost, pauses| format!("samples lost: {lost}; pauses: {pauses}; stops: 0; sleeps of the machine: 0");
    for (filter, begin, duration, told) in [
        (cut(None, &[]), 0, 10, vec![account(7, 1)]),
        (cut(Some(from(8)..u64::MAX), &[]), 8, 2, vec!["selected: 8.000 s to 10.000 s".to_owned(), account(2, 0)]),
        (cut(Some(from(0)..from(3)), &[]), 0, 3, vec!["selected: 0.000 s to 3.000 s".to_owned(), account(5, 0)]),
        (cut(None, &[0]), 0, 10, vec!["selected: CPU 0".to_owned(), account(5, 0)]),
        (
            cut(Some(from(7)..from(90)), &[1]),
            7,
            3,
            vec!["selected: 7.000 s to 10.000 s, CPU 1".to_owned(), account(2, 1)],
        ),
    ] {
        let profile = pprof_of(&bytes, &filter);
        let created = 1_767_225_600_000_000_000;
        let second = 1_000_000_000;
        assert_eq!((profile.time - created, profile.duration), (begin * second, duration * second), "{filter:?}");
        let comments = profile.comments.iter().skip(2).map(|index| &profile.strings[usize::try_from(*index).unwrap()]);
        assert!(comments.eq(&told), "{:?}", profile.strings);

        let contents = Contents::read_slice(&mut Cursor::new(&bytes), Detail::default(), filter.slice.clone()).unwrap();
        let mut out = Vec::new();
        speedscope(&contents, &index(&contents, &filter), &filter, &mut out).unwrap();
        let name = serde_json::from_slice::<serde_json::Value>(&out).unwrap()["name"].as_str().unwrap().to_owned();
        let selected = told.iter().find_map(|line| line.strip_prefix("selected: "));
        let command = "C:\\app\\app.exe --fast";
        assert_eq!(name, selected.map_or(command.to_owned(), |selected| format!("{command} ({selected})")));
    }
    // A pause of a second, of which half is in the cut.
    let slice = cut(Some(from(8)..from(10)), &[]).slice;
    let contents = Contents::read_slice(&mut Cursor::new(&bytes), Detail::default(), slice).unwrap();
    let paused: u64 = contents.sample_counts.selected_losses().map(|(.., stats)| stats.paused).sum();
    assert_eq!(contents.duration(paused), 500_000_000);
}

/// What is left began after the recording did.
#[test]
fn the_end_of_a_longer_recording_has_the_times_of_the_end() {
    let bytes = ten_seconds(Some(Kept { elapsed: 100_000_000, removed: 7 }));
    let profile = pprof_of(&bytes, &Filter::default());
    assert_eq!((profile.time, profile.duration), (1_767_225_602_000_000_000, 10_000_000_000));
    let contents = Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
    let (filter, mut out) = (Filter::default(), Vec::new());
    firefox(&contents, &index(&contents, &filter), &filter, u64::MAX, &mut Cursor::new(&bytes), &mut out).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(profile["meta"]["startTime"], 1_767_225_602_000.0);
}

fn any_sample() -> impl Strategy<Value = CounterSample> {
    let ip = prop_oneof![APP..APP + 0x20, NTDLL..NTDLL + 0x20, NT..NT + 0x20, any::<u64>()];
    (ip, prop_oneof![Just(8_u32), Just(12)], 0_u32..4, 0_u64..1000, 1_u32..1_000_000).prop_map(
        |(ip, process, processor, time, interval)| CounterSample {
            time,
            processor,
            thread: process + processor,
            ..sample(CYCLES, process, ip, interval)
        },
    )
}

proptest! {
    /// A slice, and what is outside it, add up to everything: by processors, threads and time, in the table and in the
    /// timeline.
    #[test]
    fn slices_add_up_to_the_whole(
        samples in prop::collection::vec(any_sample(), 1..60),
        processors in prop::sample::subsequence(vec![0, 1, 2, 3], 0..=4),
        threads in prop::sample::subsequence((8..16).collect::<Vec<u32>>(), 0..=8),
        cut in 0_u64..1001,
    ) {
        let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
        blocks.push(Block::Samples(samples.iter().copied().map(SampleRecord::from).collect()));
        blocks.push(Block::Samples(vec![LostRecord::new(5, 0, CYCLES, 3).into()]));
        blocks.push(Block::Process(Process { id: 12, created: None, name: "late".to_owned(), modules: Vec::new() }));
        let bytes = file(&blocks);
        let (of_cpus, other_cpus): (BTreeSet<u32>, BTreeSet<u32>) = (0..4).partition(|one| processors.contains(one));
        let (of_threads, other_threads): (BTreeSet<u32>, BTreeSet<u32>) = (8..16).partition(|one| threads.contains(one));
        let on = |processors| Slice { processors: Some(processors), ..Slice::default() };
        let within = |threads| Slice { threads: Some(threads), ..Slice::default() };
        let during = |time| Slice { time: Some(time), ..Slice::default() };
        let whole = table(&bytes, &of_slice(Slice::default()));
        prop_assert_eq!(whole.selected, whole.total.weight);
        for pair in [[on(of_cpus), on(other_cpus)], [within(of_threads), within(other_threads)], [during(0..cut), during(cut..1001)]] {
            let mut sum = SampleWeight::default();
            let mut ordered = 0;
            for slice in pair {
                let filter = of_slice(slice);
                let part = table(&bytes, &filter);
                prop_assert_eq!(part.total, whole.total);
                sum += part.selected;
                let contents = Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
                let of_slice = timeline(&contents, &filter, &mut Cursor::new(&bytes)).unwrap().len();
                prop_assert_eq!(of_slice as u64, part.selected.samples);
                ordered += of_slice;
            }
            prop_assert_eq!(sum, whole.total.weight);
            prop_assert_eq!(ordered, samples.len());
        }
    }
}
