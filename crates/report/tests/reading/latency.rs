//! Latency: the share of the wall time.

use std::io::Cursor;

use protocol::{CounterSample, LostRecord, SampleRecord};
use recording::{Block, RecordedSession};
use report::{Column, Contents, Detail, Filter, Table, TableRow};

use crate::support::{APP, CYCLES, file_of, processes, sample, session, symbol_index};

const PROCESSORS: u32 = 128;

/// Units of the clock between two samples of a processor.
const PERIOD: u64 = 10_000;

/// Addresses of the functions.
const FOO: u64 = APP + 0x1000;
const BAR: u64 = APP + 0x2000;

/// Returns samples of a function on the first processors, in these periods. Each processor is sampled at another time
/// of its period.
fn samples(ip: u64, processors: u32, periods: std::ops::Range<u64>) -> impl Iterator<Item = SampleRecord> {
    let of = move |processor: u32| {
        periods.clone().map(move |period| {
            let phase = u64::from(processor) * 7_919 % PERIOD;
            let time = 1_000_000 + period * PERIOD + phase;
            CounterSample { time, processor, ..sample(CYCLES, 8, ip, 1_000_000) }.into()
        })
    };
    (0..processors).flat_map(of)
}

fn read(records: &[SampleRecord]) -> Contents {
    let session = RecordedSession { processors: (0..PROCESSORS).collect(), ..session() };
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.extend(records.chunks(60_000).map(|records| Block::Samples(records.to_vec())));
    let detail = Detail { parallelism: true, ..Detail::default() };
    Contents::read(&mut Cursor::new(file_of(&session, &blocks)), detail).unwrap()
}

fn rows(contents: &Contents, columns: &[Column], filter: &Filter) -> Vec<TableRow> {
    Table::new(contents, &symbol_index(contents), CYCLES, columns, filter).sorted_rows()
}

/// Returns the shares of latency and events in percent.
fn shares(row: &TableRow) -> [f64; 2] {
    [row.latency.unwrap() * 100.0, row.share * 100.0]
}

fn is_near([latency, share]: [f64; 2], wanted: [f64; 2]) -> bool {
    (latency - wanted[0]).abs() < 0.5 && (share - wanted[1]).abs() < 0.1
}

/// The example of perf's document: foo runs for 9 s in one thread, bar for 1 s in 128.
#[test]
fn nine_seconds_on_one_processor_are_nine_tenths_of_the_latency() {
    let mut records: Vec<SampleRecord> = samples(FOO, 1, 0..9_000).collect();
    records.extend(samples(BAR, PROCESSORS, 9_000..10_000));
    let contents = read(&records);
    let found = rows(&contents, &[Column::Address], &Filter::default());
    let [foo, bar] = &found[..] else { panic!("{found:?}") };
    assert_eq!([foo.address, bar.address], [Some(FOO), Some(BAR)], "in the order of latency");
    assert!(is_near(shares(foo), [90.0, 6.6]), "{:?}", shares(foo));
    assert!(is_near(shares(bar), [10.0, 93.4]), "{:?}", shares(bar));

    let serial = Filter { parallelism: vec![1..=2], ..Filter::default() };
    let found = rows(&contents, &[Column::Address], &serial);
    assert!(found[0].address == Some(FOO) && found[0].weight.samples > 8_990, "{found:?}");
    assert!(found[1..].iter().all(|row| row.weight.samples < 10), "{found:?}");
    let levels = rows(&contents, &[Column::Parallelism], &Filter::default());
    assert_eq!([levels[0].parallelism, levels[1].parallelism], [Some(1), Some(PROCESSORS)]);
}

/// Any grouping of the rows has the same sum.
#[test]
fn the_latencies_of_all_rows_are_the_time_in_which_the_process_ran() {
    let mut records: Vec<SampleRecord> = samples(FOO, 3, 0..500).collect();
    records.extend(samples(BAR, 2, 700..900));
    let contents = read(&records);
    for columns in [&[Column::Address][..], &[Column::Parallelism], &[Column::Process, Column::Address]] {
        let found = rows(&contents, columns, &Filter::default());
        let all: f64 = found.iter().map(|row| row.latency.unwrap()).sum();
        assert!((all - 1.0).abs() < 1e-6, "{columns:?}: {all}");
    }
    let found = rows(&contents, &[Column::Address], &Filter::default());
    assert!(is_near(shares(&found[0]), [71.4, 78.9]), "{:?}", shares(&found[0]));
}

#[test]
fn samples_near_lost_ones_have_no_latency() {
    let mut records: Vec<SampleRecord> = samples(FOO, 2, 0..1_000).collect();
    // Processor 1 lost samples between two of those that it has.
    let last = records.last().unwrap().time();
    records.push(LostRecord::new(last + 100 * PERIOD, 1, CYCLES, 99).into());
    records.extend(samples(FOO, 2, 1_000..1_300).filter(|record| record.parse().unwrap().processor() == 0));
    let contents = read(&records);
    let total = contents.sample_counts.total(CYCLES);
    assert!((99..=103).contains(&total.unknown), "{total:?}");
    let found = rows(&contents, &[Column::Parallelism], &Filter::default());
    let unknown = found.iter().find(|row| row.parallelism == Some(0)).unwrap();
    assert_eq!((unknown.weight.samples, unknown.latency), (total.unknown, Some(0.0)));
}

/// What a process does is not changed by how much of the others is recorded.
#[test]
fn other_processes_do_not_count() {
    let mut records: Vec<SampleRecord> = samples(FOO, 2, 0..100).collect();
    let others = samples(BAR, PROCESSORS, 0..100).filter(|record| record.parse().unwrap().processor() >= 2);
    records.extend(others.map(|record| {
        let protocol::Record::Sample(sample) = record.parse().unwrap() else { panic!() };
        SampleRecord::from(CounterSample { process: 12, ..sample })
    }));
    let contents = read(&records);
    let found = rows(&contents, &[Column::Process, Column::Parallelism], &Filter::default());
    let most = |process| {
        let of = found.iter().filter(|row| row.process == Some(process));
        of.max_by_key(|row| row.weight.samples).unwrap().parallelism
    };
    assert_eq!([most(8), most(12)], [Some(2), Some(PROCESSORS - 2)]);
}
