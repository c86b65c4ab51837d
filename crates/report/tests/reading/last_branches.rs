//! The last branches of samples.

use std::borrow::Cow;
use std::io::Cursor;

use proptest::prelude::*;
use protocol::{BranchKind, BranchRecord, BranchType, CounterSample, Mode, PreciseKind, Prediction, SampleRecord};
use recording::{Block, CallStack, Method, Methods, MissingStack, SampleStack, StackEnd, Summary, Writer};
use report::{
    CallStacks, Filter, LastBranchCount, LastBranchStats, LastBranchTable, Slice, SymbolFinder, SymbolIndex,
    for_each_branch_stack, script_with_branches,
};

use super::support::{APP, CYCLES, MISSES, NT, NTDLL, file, precise, processes, read, sample, session, symbol_index};

/// An address in no module.
const NOWHERE: u64 = 0x7777_0000;

/// Returns a last branch of a sample.
pub fn last_branch(sample: &CounterSample, from: u64, to: u64) -> BranchRecord {
    let CounterSample { time, process, thread, processor, event, .. } = *sample;
    BranchRecord {
        time,
        from,
        process,
        thread,
        processor,
        event,
        cycles: 5,
        prediction: Prediction::Predicted,
        branch_type: BranchType::NotReported,
        kind: BranchKind::LastBranch,
        mode: if from >= 1 << 63 { Mode::Kernel } else { Mode::User },
        to,
    }
}

/// Returns a sample with branches, the newest first.
pub fn with_branches(sample: CounterSample, branches: &[(u64, u64)]) -> Vec<SampleRecord> {
    let each = branches.iter().map(|(from, to)| last_branch(&sample, *from, *to).into());
    [sample.into()].into_iter().chain(each).collect()
}

/// Returns a recording of these records.
pub fn recorded(records: Vec<SampleRecord>) -> Vec<u8> {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(records));
    file(&blocks)
}

fn at(time: u64, processor: u32, event: u32, process: u32) -> CounterSample {
    CounterSample { time, processor, ..sample(event, process, APP + 0x1000, 100_003) }
}

/// Time of a sample, and sources and targets of its branches.
type Stack = (u64, Vec<(u64, u64)>);

/// Returns the stacks that a filter selects.
fn stacks(file: &[u8], filter: &Filter) -> (Vec<Stack>, LastBranchStats) {
    let contents = read(file);
    let mut found = Vec::new();
    let stats = for_each_branch_stack(&contents, filter, &mut Cursor::new(file), |stack| {
        found.push((stack.sample.time, stack.branches.iter().map(|branch| (branch.from, branch.to)).collect()));
        Ok(())
    });
    (found, stats.unwrap())
}

#[test]
fn branches_are_cut_at_the_first_that_the_process_cannot_have() {
    let own = (APP + 0x20, NTDLL + 0x40);
    let system_call = (NTDLL + 0x50, NT + 0x100);
    for (process, branches, kept) in [
        (8, vec![own, system_call, (NT + 0x200, NTDLL + 0x52)], 3),
        // What is older than a branch of another process is not shown, even if it could be of this one.
        (8, vec![own, (NT + 0x10, NOWHERE), own], 1),
        (8, vec![own, (NOWHERE, APP), own, own], 1),
        (8, vec![(0, 0), own], 0),
        // Another process has ntdll too, but not the program.
        (12, vec![(NTDLL + 8, NTDLL), own], 1),
        (12, vec![system_call], 1),
        // Nothing is known of a process without modules.
        (99, vec![system_call, own], 0),
    ] {
        let file = recorded(with_branches(at(1_000, 0, CYCLES, process), &branches));
        let (found, stats) = stacks(&file, &Filter::default());
        let wanted = if kept == 0 { vec![] } else { vec![(1_000, branches[..kept].to_vec())] };
        assert_eq!(found, wanted, "{process} {branches:x?}");
        let cut = (branches.len() - kept) as u64;
        let cut_samples = u64::from(cut > 0);
        assert_eq!(stats, LastBranchStats { samples: 1, branches: kept as u64, cut_samples, cut });
    }
}

#[test]
fn branches_are_selected_with_their_sample() {
    let one = [(APP + 0x20, APP + 0x40)];
    let samples = [at(1_000, 0, CYCLES, 8), at(2_000, 1, CYCLES, 8), at(3_000, 0, MISSES, 8), at(4_000, 0, CYCLES, 12)];
    let in_ntdll = [(NTDLL + 0x20, NTDLL + 0x40)];
    let records = samples
        .iter()
        .flat_map(|one_sample| with_branches(*one_sample, if one_sample.process == 8 { &one } else { &in_ntdll }));
    let file = recorded(records.collect());
    let of = |filter: Filter| {
        let mut times: Vec<u64> = stacks(&file, &filter).0.into_iter().map(|(time, _)| time).collect();
        times.sort_unstable();
        times
    };
    let slice = |slice: Slice| Filter { slice, ..Filter::default() };
    assert_eq!(of(Filter::default()), [1_000, 2_000, 3_000, 4_000]);
    assert_eq!(of(Filter { events: Some([MISSES].into()), ..Filter::default() }), [3_000]);
    assert_eq!(of(Filter { processes: Some([12.into()].into()), ..Filter::default() }), [4_000]);
    assert_eq!(of(slice(Slice { processors: Some([1].into()), ..Slice::default() })), [2_000]);
    assert_eq!(of(slice(Slice { time: Some(2_500..3_500), ..Slice::default() })), [3_000]);
}

/// A recording that was cut at its begin has branches without their sample.
#[test]
fn branches_without_their_sample_are_not_shown() {
    let (first, second) = (at(1_000, 0, CYCLES, 8), at(2_000, 0, CYCLES, 8));
    let own = (APP + 0x20, APP + 0x40);
    let mut records: Vec<SampleRecord> = vec![last_branch(&first, own.0, own.1).into()];
    records.extend(with_branches(second, &[own]));
    records.push(last_branch(&first, own.0, own.1).into());
    let (found, stats) = stacks(&recorded(records), &Filter::default());
    assert_eq!((found, stats.branches), (vec![(2_000, vec![own])], 1));
}

#[test]
fn a_branch_of_several_processes_is_one_row() {
    let [program, library] = [(APP + 0x20, APP + 0x40), (NTDLL + 0x20, NTDLL + 0x40)];
    let first = at(1_000, 0, CYCLES, 8);
    let mut records = with_branches(first, &[library, program, program, program]);
    records.extend(with_branches(at(2_000, 1, CYCLES, 12), &[library]));
    let slow = BranchRecord {
        prediction: Prediction::Mispredicted,
        cycles: 30,
        ..last_branch(&first, APP + 0x20, APP + 0x40)
    };
    let silent = BranchRecord { prediction: Prediction::NotReported, cycles: 0, ..slow };
    records.splice(5..5, [slow.into(), silent.into()]);
    let file = recorded(records);
    let contents = read(&file);
    let filter = Filter::default();
    let table = LastBranchTable::read(&contents, &filter, &mut Cursor::new(&file)).unwrap();
    let finder = SymbolFinder::new(Vec::new(), None, None).unwrap();
    let index = SymbolIndex::of(&contents.processes, table.ends().map(|(location, _)| location), &finder);
    let rows = |filter: &Filter| {
        let rows = table.rows(&contents.processes, &index, filter);
        let text = |location| index.symbol_and_offset(&location).into_owned();
        rows.into_iter().map(|row| (text(row.from), text(row.to), row.count)).collect::<Vec<_>>()
    };
    let of_program = LastBranchCount { count: 5, reported: 4, mispredicted: 1, timed: 4, cycles: 45 };
    let of_library = LastBranchCount { count: 2, reported: 2, mispredicted: 0, timed: 2, cycles: 10 };
    let names = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let (from, to) = names("app.exe+0x20", "app.exe+0x40");
    let program = (from, to, of_program);
    let (from, to) = names("ntdll.dll+0x20", "ntdll.dll+0x40");
    let library = (from, to, of_library);
    assert_eq!(rows(&filter), [program.clone(), library]);
    let modules = vec![report::NamePattern::new("app")];
    assert_eq!(rows(&Filter { modules, ..filter }), [program]);
}

/// Precise samples have no branches, and stay in the counts.
#[test]
fn a_branch_history_takes_the_place_of_call_stacks_and_leaves_every_sample_in_the_counts() {
    let (first, second) = (at(1_000, 0, CYCLES, 8), at(2_000, 1, CYCLES, 8));
    let round = (APP + 0x30, APP + 0x10);
    let enters = (NTDLL + 0x50, APP + 0x10);
    let mut records = with_branches(first, &[round, round, round, enters, (NOWHERE, NTDLL)]);
    records.push(precise(PreciseKind::Precise, 1, at(1_500, 0, MISSES, 8)).into());
    records.extend(with_branches(second, &[]));
    let file = recorded(records);
    let mut contents = read(&file);
    let totals: Vec<_> = contents.sample_counts.totals().collect();
    let stats = contents.use_branch_history(&Filter::default(), &mut Cursor::new(&file)).unwrap();
    assert_eq!(stats, LastBranchStats { samples: 1, branches: 4, cut_samples: 1, cut: 1 });
    assert_eq!(contents.sample_counts.totals().collect::<Vec<_>>(), totals);
    let index = symbol_index(&contents);
    let mut stacks = CallStacks::new(&contents, &index);
    let mut found: Vec<(u64, Vec<String>)> = Vec::new();
    for (location, weight) in contents.sample_counts.locations() {
        let names = stacks.frames(&location)[1..].iter().map(|frame| index.function_name(frame.function, &contents));
        found.push((weight.samples, names.map(Cow::into_owned).collect()));
    }
    found.sort_unstable();
    let ends = ["to app.exe+0x10", "from app.exe+0x30", "to app.exe+0x10", "from ntdll.dll+0x50"];
    let wanted = [vec![], vec![], ends.map(str::to_owned).to_vec()];
    assert_eq!(found, wanted.map(|names| (1, names)));
}

/// A precise record that the same interrupt fetched has the time of the sample.
#[test]
fn a_script_has_the_branches_behind_their_sample_not_behind_a_precise_one() {
    let first = at(1_000, 0, CYCLES, 8);
    let mut records = with_branches(first, &[(APP + 0x30, APP + 0x10)]);
    records.insert(1, precise(PreciseKind::Precise, 1, at(1_000, 0, MISSES, 8)).into());
    let file = recorded(records);
    let contents = read(&file);
    let (index, mut text) = (symbol_index(&contents), Vec::new());
    let stats =
        script_with_branches(&contents, &index, &Filter::default(), &mut Cursor::new(&file), &mut text).unwrap();
    assert_eq!(stats.branches, 1);
    let text = String::from_utf8(text).unwrap();
    let samples: Vec<&str> = text.split_terminator("\n\n").collect();
    let has = |word: &str| samples.iter().map(|sample| sample.contains(word)).collect::<Vec<bool>>();
    assert_eq!((has("TotalCycles:"), has(" 0x140000030/0x140000010/P/-/-/5")), (vec![true, false], vec![true, false]));
}

/// Two processors can have a sample at the same time, each with its branches.
#[test]
fn a_script_has_the_branches_of_each_processor_behind_its_own_sample() {
    let samples = [0, 1].map(|processor| at(1_000, processor, CYCLES, 8));
    let mut records = samples.map(SampleRecord::from).to_vec();
    let branch = |(one, from): (&CounterSample, u64)| last_branch(one, APP + from, APP + 0x10);
    records.extend(samples.iter().zip([0x30, 0x50]).map(branch).map(SampleRecord::from));
    let file = recorded(records);
    let contents = read(&file);
    let (index, mut text) = (symbol_index(&contents), Vec::new());
    script_with_branches(&contents, &index, &Filter::default(), &mut Cursor::new(&file), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let samples: Vec<&str> = text.split_terminator("\n\n").collect();
    for (sample, wanted) in samples.iter().zip([["[000]", " 0x140000030/"], ["[001]", " 0x140000050/"]]) {
        assert!(wanted.iter().all(|part| sample.contains(part)) && sample.matches("/P/").count() == 1, "{text}");
    }
}

/// Compiled code is that of a process: another one can have other code there.
#[test]
fn branches_of_two_processes_outside_of_modules_are_two_rows() {
    let address = 0x2000_0000;
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    let mut records = Vec::new();
    for process in [8, 12] {
        let methods = vec![Method { address, size: 0x40, name: "[App] Main()".to_owned(), loaded: 0 }];
        blocks.push(Block::Methods(Methods { id: process, created: None, methods }));
        records.extend(with_branches(at(1_000, 0, CYCLES, process), &[(address + 0x18, address)]));
    }
    blocks.push(Block::Samples(records));
    let file = file(&blocks);
    let contents = read(&file);
    let table = LastBranchTable::read(&contents, &Filter::default(), &mut Cursor::new(&file)).unwrap();
    let rows = table.rows(&contents.processes, &symbol_index(&contents), &Filter::default());
    let counts: Vec<_> = rows.iter().map(|row| (row.from.process, row.count.count)).collect();
    assert_eq!(counts, [(8.into(), 1), (12.into(), 1)]);
}

/// Of a compiled function only the name is known, so each end has its address.
#[test]
fn ends_of_branches_in_one_compiled_function_are_not_one() {
    let address = 0x2000_0000;
    let methods = vec![Method { address, size: 0x40, name: "[App] Main()".to_owned(), loaded: 0 }];
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Methods(Methods { id: 8, created: None, methods }));
    let turns = [(address + 0x18, address + 4), (address + 0x20, address + 8)];
    blocks.push(Block::Samples(with_branches(at(1_000, 0, CYCLES, 8), &turns)));
    let file = file(&blocks);
    let mut contents = read(&file);
    contents.use_branch_history(&Filter::default(), &mut Cursor::new(&file)).unwrap();
    let index = symbol_index(&contents);
    let mut stacks = CallStacks::new(&contents, &index);
    let (location, _) = contents.sample_counts.locations().next().unwrap();
    let frames = stacks.frames(&location)[1..].iter();
    let names: Vec<Cow<str>> = frames.map(|frame| index.function_name(frame.function, &contents)).collect();
    let ends = ["to [App] Main() 0x20000004", "from [App] Main() 0x20000018"];
    assert_eq!(names, [ends, ["to [App] Main() 0x20000008", "from [App] Main() 0x20000020"]].concat());
}

proptest! {
    /// However the records of several processors are interleaved, divided into blocks and stacked, each sample has its
    /// own branches.
    #[test]
    fn every_sample_has_its_own_branches(
        samples in prop::collection::vec((0_u32..3, 0_usize..33), 1..40),
        picks in prop::collection::vec(0_usize..3, 0..400),
        block in 1_usize..50,
        is_stacked in any::<bool>(),
    ) {
        let mut queues: [Vec<SampleRecord>; 3] = Default::default();
        let mut wanted = Vec::new();
        for (number, (processor, branches)) in samples.into_iter().enumerate() {
            let time = 1_000 + number as u64;
            let branch = |place: usize| (APP + 64 * number as u64 + place as u64, APP);
            let branches: Vec<(u64, u64)> = (0..branches).map(branch).collect();
            queues[processor as usize].extend(with_branches(at(time, processor, CYCLES, 8), &branches));
            if !branches.is_empty() {
                wanted.push((time, branches));
            }
        }
        let mut records = Vec::new();
        let mut rest = queues.map(Vec::into_iter);
        for pick in picks {
            records.extend(rest[pick].next());
        }
        records.extend(rest.into_iter().flatten());
        let mut writer = Writer::new(Vec::new(), &session()).unwrap();
        for process in processes() {
            writer.process(&process).unwrap();
        }
        for records in records.chunks(block) {
            if is_stacked {
                let stack = |record: &SampleRecord| match record.kind() {
                    Some(protocol::RecordKind::LastBranch) => SampleStack::NotRecorded,
                    _ if record.time().is_multiple_of(2) => SampleStack::Missing(MissingStack::EventLost),
                    _ => SampleStack::Stack(CallStack { callers: vec![APP + 9], end: StackEnd::Complete }),
                };
                let stacked: Vec<_> = records.iter().map(|record| (*record, stack(record))).collect();
                writer.stacked_samples(&stacked).unwrap();
            } else {
                writer.samples(records).unwrap();
            }
        }
        let file = writer.finish(&Summary::default()).unwrap();
        let (mut found, stats) = stacks(&file, &Filter::default());
        found.sort_unstable();
        prop_assert_eq!(stats.branches, wanted.iter().map(|(_, branches)| branches.len() as u64).sum::<u64>());
        prop_assert_eq!(found, wanted);
        prop_assert_eq!(read(&file).sample_counts.unreadable(), 0);
    }
}
