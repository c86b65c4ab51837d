//! SortedTable, sums and shares of tables.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Cursor;

use proptest::prelude::*;
use protocol::{CounterSample, SampleRecord};
use recording::{Block, Process};
use report::{Column, Detail, Filter, Interval, ProcessKey, SampleWeight, Table, TableRow};

use super::support::{
    APP, CYCLES, MISSES, NT, NTDLL, SortedTable, file, module, processes, read, recording, sample, symbol_index,
};

const COLUMNS: [Column; 6] =
    [Column::Process, Column::Thread, Column::Processor, Column::Module, Column::Symbol, Column::Address];

fn table(contents: &report::Contents, columns: &[Column], filter: &Filter) -> SortedTable {
    SortedTable::of(&Table::new(contents, &symbol_index(contents), CYCLES, columns, filter))
}

fn text(table: &SortedTable) -> String {
    table.rows.iter().fold(String::new(), |mut text, row| {
        let names = [&row.process_name, &row.module, &row.symbol].map(|name| name.as_deref().unwrap_or("-"));
        let SampleWeight { samples, events } = row.weight;
        writeln!(text, "{:.3} {samples} {events} {}", row.share, names.join(" | ")).unwrap();
        text
    })
}

#[test]
fn samples_are_summed_by_process_module_and_symbol() {
    let contents = read(&recording());
    let table = table(&contents, &[Column::Process, Column::Module, Column::Symbol], &Filter::default());
    insta::assert_snapshot!(text(&table), @r"
    0.200 2 200006 app.exe | app.exe | app.exe+0x1000
    0.200 2 200006 app.exe | ntoskrnl.exe | ntoskrnl.exe+0x500
    0.100 1 100003 [unknown] | [unknown] | 0x0000000000001000
    0.100 1 100003 app.exe | app.exe | app.exe+0x1004
    0.100 1 100003 app.exe | ntdll.dll | ntdll.dll+0x20
    0.100 1 100003 other.exe | [unknown] | [JIT or unmapped] 0x12340000
    0.100 1 100003 other.exe | ntdll.dll | ntdll.dll+0x20
    0.100 1 100003 other.exe | ntoskrnl.exe | ntoskrnl.exe+0x500
    ");
    assert_eq!(contents.sample_counts.total(MISSES).weight, SampleWeight { samples: 2, events: 2018 });
}

#[test]
fn omitted_columns_are_summed_over() {
    let contents = read(&recording());
    insta::assert_snapshot!(text(&table(&contents, &[Column::Module], &Filter::default())), @r"
    0.300 3 300009 - | app.exe | -
    0.300 3 300009 - | ntoskrnl.exe | -
    0.200 2 200006 - | [unknown] | -
    0.200 2 200006 - | ntdll.dll | -
    ");
}

#[test]
fn share_refers_to_all_samples_of_the_source_with_any_filter() {
    let contents = read(&recording());
    let filter = Filter { processes: Some(contents.processes.named("OTHER").collect()), ..Filter::default() };
    insta::assert_snapshot!(text(&table(&contents, &[Column::Process], &filter)), @"0.300 3 300009 other.exe | - | -");
}

#[test]
fn kernel_without_modules_is_distinguished_from_unknown_addresses() {
    let contents =
        read(&file(&[Block::Samples(vec![sample(CYCLES, 8, NT, 5).into(), sample(CYCLES, 8, APP, 5).into()])]));
    insta::assert_snapshot!(text(&table(&contents, &[Column::Module], &Filter::default())), @r"
    0.500 1 5 - | [kernel] | -
    0.500 1 5 - | [unknown] | -
    ");
}

#[test]
fn kernel_address_outside_all_modules_is_unknown() {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(vec![sample(CYCLES, 8, NT + 0x20_0000, 5).into()]));
    let contents = read(&file(&blocks));
    insta::assert_snapshot!(text(&table(&contents, &[Column::Module], &Filter::default())), @"1.000 1 5 - | [unknown] | -");
}

#[test]
fn confidence_interval_uses_the_effective_number_of_samples() {
    for (intervals, effective) in [([1000; 4], 4.0), ([1000, 2000, 500, 500], 16e6 / 5.5e6)] {
        let samples = intervals.into_iter().zip([APP, NT, NT, NT]);
        let samples: Vec<_> = samples.map(|(interval, ip)| sample(CYCLES, 8, ip, interval)).collect();
        let contents = read(&file(&[block(&samples)]));
        let rows = table(&contents, &[Column::Address], &Filter::default()).rows;
        let row = rows.iter().find(|row| row.address == Some(APP)).unwrap();
        let wanted = Interval::wilson(0.25, effective);
        assert!((row.share, row.interval) == (0.25, wanted), "{row:?}, and not {wanted:?}");
    }
}

#[test]
fn process_is_found_by_name_ignoring_case_and_exe_suffix() {
    let contents = read(&recording());
    for (name, wanted) in [("app.exe", vec![8]), ("APP", vec![8]), ("ap", vec![]), ("", vec![])] {
        assert_eq!(contents.processes.named(name).map(|process| process.id).collect::<Vec<_>>(), wanted, "{name:?}");
    }
}

#[test]
fn losses_and_pauses_are_reported_by_source_and_processor() {
    let contents = read(&recording());
    let losses = contents.sample_counts.loss_stats().map(|(source, processor, loss)| {
        (contents.source_name(source).into_owned(), processor, loss.lost, loss.pauses, loss.paused)
    });
    let losses: Vec<_> = losses.collect();
    assert_eq!(losses, [("TotalCycles".to_owned(), 1, 3, 0, 0), ("every event".to_owned(), 1, 0, 1, 5000)]);
    assert_eq!(contents.duration(5000), 500_000);
}

fn block(samples: &[CounterSample]) -> Block {
    Block::Samples(samples.iter().copied().map(SampleRecord::from).collect())
}

fn any_sample() -> impl Strategy<Value = CounterSample> {
    let ip = prop_oneof![
        APP..APP + 0x20,
        NTDLL..NTDLL + 0x20,
        NT..NT + 0x20,
        0_u64..0x20,
        Just(APP + 0x10_0000),
        any::<u64>()
    ];
    let source = prop_oneof![Just(CYCLES), Just(MISSES)];
    (ip, source, prop_oneof![Just(8_u32), Just(12), Just(99)], 0_u32..3, 1_u32..=u32::MAX).prop_map(
        |(ip, source, process, processor, interval)| CounterSample {
            processor,
            ..sample(source, process, ip, interval)
        },
    )
}

fn sum(rows: &[TableRow]) -> SampleWeight {
    rows.iter().fold(SampleWeight::default(), |mut sum, row| {
        sum += row.weight;
        sum
    })
}

proptest! {
    #[test]
    fn rows_add_up_to_all_samples_of_the_source_for_any_columns(
        samples in prop::collection::vec(any_sample(), 0..60), columns in prop::sample::subsequence(COLUMNS.to_vec(), 0..=6)
    ) {
        let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
        blocks.push(block(&samples));
        let contents = read(&file(&blocks));
        let table = table(&contents, &columns, &Filter::default());
        let wanted: Vec<&CounterSample> = samples.iter().filter(|sample| sample.event == CYCLES).collect();
        let events = wanted.iter().map(|sample| u64::from(sample.interval)).sum();
        prop_assert_eq!(sum(&table.rows), SampleWeight { samples: wanted.len() as u64, events });
        prop_assert_eq!(table.total.weight, sum(&table.rows));
        let shares: f64 = table.rows.iter().map(|row| row.share).sum();
        prop_assert!(table.rows.is_empty() || (shares - 1.0).abs() < 1e-9, "{}", shares);
        prop_assert!(table.rows.is_sorted_by(|one, other| one.weight.events >= other.weight.events));
    }

    #[test]
    fn selected_and_other_processes_add_up_to_the_total(
        samples in prop::collection::vec(any_sample(), 0..60), processes in prop::sample::subsequence(vec![8, 12, 99], 0..=3)
    ) {
        let contents = read(&file(&[block(&samples)]));
        let (some, others): (BTreeSet<ProcessKey>, BTreeSet<ProcessKey>) =
            [8, 12, 99].map(ProcessKey::from).into_iter().partition(|process| processes.contains(&process.id));
        let of = |processes| table(&contents, &COLUMNS, &Filter { processes: Some(processes), ..Filter::default() }).rows;
        let mut sums = sum(&of(some));
        sums += sum(&of(others));
        prop_assert_eq!(sums, contents.sample_counts.total(CYCLES).weight);
    }

    #[test]
    fn block_order_does_not_affect_the_table(
        samples in prop::collection::vec(any_sample(), 1..60), cuts in prop::collection::vec(0_usize..60, 3), seed in any::<prop::sample::Index>()
    ) {
        let modules = [module(APP, "C:\\app\\app.exe"), module(NTDLL, "C:\\Windows\\System32\\ntdll.dll")];
        let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
        blocks.extend(modules.map(|module| Block::Process(Process { id: 99, created: None, name: "late".to_owned(), modules: vec![module] })));
        let mut rest = samples.as_slice();
        for cut in cuts {
            let (first, others) = rest.split_at(cut.min(rest.len()));
            blocks.push(block(first));
            rest = others;
        }
        blocks.push(block(rest));
        let wanted = table(&read(&file(&blocks)), &COLUMNS, &Filter::default());
        let middle = seed.index(blocks.len());
        blocks.rotate_left(middle);
        prop_assert_eq!(&table(&read(&file(&blocks)), &COLUMNS, &Filter::default()), &wanted);
        blocks.reverse();
        prop_assert_eq!(&table(&read(&file(&blocks)), &COLUMNS, &Filter::default()), &wanted);
    }

    #[test]
    fn less_detail_gives_the_same_table_for_the_remaining_columns(samples in prop::collection::vec(any_sample(), 0..60)) {
        let bytes = file(&[block(&samples)]);
        let columns = [Column::Process, Column::Module, Column::Symbol, Column::Address];
        let coarse = report::Contents::read(&mut Cursor::new(&bytes), Detail::default()).unwrap();
        prop_assert_eq!(
            table(&coarse, &columns, &Filter::default()),
            table(&read(&bytes), &columns, &Filter::default())
        );
    }
}
