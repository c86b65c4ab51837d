//! Call stacks of samples, as functions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;
use protocol::{CounterSample, SampleRecord};
use recording::{CallStack, Method, Methods, MissingStack, SampleStack, StackEnd, Writer};
use report::{
    CallOrder, CallStacks, CallTree, Column, Contents, Detail, Filter, Limits, SymbolIndex, Table, firefox, folded,
    script,
};

use super::support::{APP, CYCLES, MISSES, NT, NTDLL, processes, read, sample, session, summary, symbol_index};

/// An address in a function of a just-in-time compiler.
const JIT: u64 = 0x20_0000;

fn stack(end: StackEnd, callers: &[u64]) -> SampleStack {
    SampleStack::Stack(CallStack { callers: callers.to_vec(), end })
}

/// Returns samples with every end of a stack and every reason for none.
fn samples() -> Vec<(SampleRecord, SampleStack)> {
    let of = |ip| -> SampleRecord { sample(CYCLES, 8, ip, 100).into() };
    let mut samples = vec![
        (of(APP + 0x10), stack(StackEnd::Complete, &[APP + 0x100, JIT + 0x20, NTDLL + 0x200])),
        (of(APP + 0x10), stack(StackEnd::Complete, &[APP + 0x100, JIT + 0x20, NTDLL + 0x200])),
        (of(NT + 0x10), stack(StackEnd::Complete, &[NT + 0x100, APP + 0x200])),
        (of(NT + 0x10), stack(StackEnd::UserLost, &[NT + 0x100])),
        (of(APP + 0x20), stack(StackEnd::Truncated, &[APP + 0x100])),
        (of(APP + 0x20), stack(StackEnd::Complete, &[])),
        (of(APP + 0x30), SampleStack::NotRecorded),
    ];
    samples.extend(MissingStack::ALL.map(|reason| (of(APP + 0x30), SampleStack::Missing(reason))));
    samples
}

/// Writes a recording with these samples, and with a method that ends where a caller returns to.
fn recording(samples: &[(SampleRecord, SampleStack)], node_limit: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &session()).unwrap().with_node_limit(node_limit);
    for process in processes() {
        writer.process(&process).unwrap();
    }
    let method = |address, name: &str, loaded| Method { address, size: 0x20, name: name.to_owned(), loaded };
    let methods = vec![method(JIT, "App.Main()", 2), method(JIT, "App.Old()", 1)];
    writer.methods(&Methods { id: 8, created: None, methods }).unwrap();
    writer.stacked_samples(samples).unwrap();
    writer.finish(&summary()).unwrap()
}

/// Returns the frames of each location, with module and mode, and its samples.
fn frames(contents: &Contents, symbol_index: &SymbolIndex) -> Vec<(String, u64)> {
    let mut stacks = CallStacks::new(contents, symbol_index);
    let mut lines: Vec<(String, u64)> = contents
        .sample_counts
        .locations()
        .map(|(location, weight)| {
            let frames = stacks.frames(&location).iter().map(|frame| {
                let name = symbol_index.function_name(frame.function, contents);
                let mode = if frame.function.kernel { "k" } else { "u" };
                match frame.function.note() {
                    Some(_) => name.into_owned(),
                    None => format!("{name} {mode} {:x}", frame.address),
                }
            });
            (frames.collect::<Vec<_>>().join(" < "), weight.samples)
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn frames_are_those_of_the_callers_with_a_note_where_the_stack_ends_early() {
    let contents = read(&recording(&samples(), 1000));
    let lines = frames(&contents, &symbol_index(&contents));
    let wanted = [
        (
            "app.exe+0x10 u 140000010 < app.exe+0x100 u 140000100 < App.Main() u 200020 < ntdll.dll+0x200 u 7ff800000200",
            2,
        ),
        ("app.exe+0x20 u 140000020", 1),
        ("app.exe+0x20 u 140000020 < app.exe+0x100 u 140000100 < [truncated]", 1),
        ("app.exe+0x30 u 140000030", 1),
        ("app.exe+0x30 u 140000030 < [no stack: event lost]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: merged]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: precise]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: taken elsewhere]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: too many waiting]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: untraced]", 1),
        ("app.exe+0x30 u 140000030 < [no stack: user stack lost]", 1),
        ("ntoskrnl.exe+0x10 k fffff80000000010 < ntoskrnl.exe+0x100 k fffff80000000100 < app.exe+0x200 u 140000200", 1),
        ("ntoskrnl.exe+0x10 k fffff80000000010 < ntoskrnl.exe+0x100 k fffff80000000100 < [user stack lost]", 1),
    ];
    let mut wanted = wanted.map(|(line, samples)| (line.to_owned(), samples));
    wanted.sort();
    assert_eq!(lines, wanted);
}

#[test]
fn stack_stats_count_every_sample_once_whatever_is_selected() {
    let bytes = recording(&samples(), 2);
    for stacks in [false, true] {
        let contents = Contents::read(&mut Cursor::new(&bytes), Detail { stacks, ..Detail::default() }).unwrap();
        let stats = contents.sample_counts.stack_stats(CYCLES);
        assert!(stats.are_recorded());
        assert_eq!((stats.samples(), stats.complete(), stats.truncated(), stats.missing()), (14, 4, 2, 8));
        assert_eq!(StackEnd::ALL.map(|end| stats.ended(end)), [4, 1, 1]);
        assert!(MissingStack::ALL.iter().all(|reason| stats.without(*reason) == 1));
        assert_eq!(stats.not_recorded(), 1);
        assert!(!contents.sample_counts.stack_stats(MISSES).are_recorded());
        assert_eq!(contents.stacks.nodes().is_empty(), !stacks);
    }
}

/// The writer forgets its stacks and numbers them again.
#[test]
fn stacks_are_the_same_however_often_the_numbering_begins_anew() {
    let samples: Vec<_> = (0..9).flat_map(|_| samples()).collect();
    let text = |limit| {
        let bytes = recording(&samples, limit);
        let contents = read(&bytes);
        let mut out = Vec::new();
        let filter = Filter::default();
        script(&contents, &symbol_index(&contents), &filter, &mut Cursor::new(&bytes), &mut out).unwrap();
        (contents.stacks.nodes().len(), String::from_utf8(out).unwrap())
    };
    let [(few, one), (many, other)] = [1000, 3].map(text);
    assert!(one == other);
    assert!(few < 10 && many > 9 * few / 2, "{few} {many}");
}

#[test]
fn a_script_has_a_line_for_each_caller() {
    let samples = [samples()[0].clone(), samples()[4].clone(), samples()[7].clone()];
    let bytes = recording(&samples, 1000);
    let contents = read(&bytes);
    let mut out = Vec::new();
    script(&contents, &symbol_index(&contents), &Filter::default(), &mut Cursor::new(&bytes), &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn samples_of_one_address_with_different_stacks_are_one_location_without_stacks() {
    let samples: Vec<_> = (0..5)
        .map(|caller| {
            let record: CounterSample = sample(CYCLES, 8, APP + 0x10, 100);
            (record.into(), stack(StackEnd::Complete, &[APP + caller]))
        })
        .collect();
    let bytes = recording(&samples, 1000);
    for (stacks, wanted) in [(false, 1), (true, 5)] {
        let contents = Contents::read(&mut Cursor::new(&bytes), Detail { stacks, ..Detail::default() }).unwrap();
        assert_eq!(contents.sample_counts.locations().count(), wanted);
    }
}

/// Generates stacks of few functions, some of them recursive, of two processes.
fn any_samples() -> impl Strategy<Value = Vec<(u32, Vec<u64>)>> {
    vec((prop_oneof![Just(8_u32), Just(12)], vec(0..4_u64, 1..8)), 1..40)
}

proptest! {
    /// Compares with sums over the stacks themselves.
    #[test]
    fn a_row_with_children_has_each_sample_below_it_once(samples in any_samples()) {
        let address = |function: &u64| NTDLL + 0x10 * (function + 1);
        let recorded: Vec<_> = samples.iter().map(|(process, functions)| {
            let callers: Vec<u64> = functions[1..].iter().map(address).collect();
            (sample(CYCLES, *process, address(&functions[0]), 100).into(), stack(StackEnd::Complete, &callers))
        }).collect();
        let contents = read(&recording(&recorded, 7));
        let (index, filter) = (symbol_index(&contents), Filter::default());
        let table = Table::with_children(&contents, &index, CYCLES, &[Column::Process, Column::Symbol], &filter);
        let mut wanted: BTreeMap<(u32, String), (u64, u64)> = BTreeMap::new();
        for (process, functions) in &samples {
            let row = |function: &u64| (*process, format!("ntdll.dll+{:#x}", 0x10 * (function + 1)));
            functions.iter().map(row).collect::<BTreeSet<_>>().into_iter().for_each(|row| wanted.entry(row).or_default().1 += 1);
            wanted.entry(row(&functions[0])).or_default().0 += 1;
        }
        let rows = table.sorted_rows();
        let found: BTreeMap<(u32, String), (u64, u64)> = rows.iter().map(|row| {
            let key = (row.process.unwrap(), row.symbol.clone().unwrap());
            (key, (row.weight.samples, row.total.unwrap().weight.samples))
        }).collect();
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(table.selected.samples, samples.len() as u64);
        let totals: Vec<u64> = rows.iter().map(|row| row.total.unwrap().weight.events).collect();
        prop_assert!(totals.is_sorted_by(|one, other| one >= other));

        for order in [CallOrder::Caller, CallOrder::Callee] {
            let (first, trees) = table.first_with_calls(Limits::default(), order, &filter);
            prop_assert_eq!(&first.rows, &rows);
            for (row, tree) in rows.iter().zip(&trees) {
                prop_assert_eq!(row.total.unwrap().weight, tree.all());
                let own = tree.nodes().map(|node| node.own.samples).sum::<u64>();
                prop_assert!(own <= tree.all().samples);
                if order == CallOrder::Caller {
                    // The rest are samples of the row itself, unless it is also called below.
                    prop_assert!(tree.all().samples - own <= row.weight.samples);
                }
            }
        }
    }
}

#[test]
fn the_tree_of_all_calls_has_processes_notes_and_functions_in_their_order() {
    let contents = read(&recording(&samples(), 1000));
    let index = symbol_index(&contents);
    let tree = CallTree::new(&contents, &index, CYCLES, &Filter::default());
    let mut lines: Vec<String> = tree
        .nodes()
        .enumerate()
        .filter(|(_, node)| node.own.samples > 0)
        .map(|(number, node)| {
            let path: Vec<_> = tree.path(number).into_iter().map(|one| index.function_name(one, &contents)).collect();
            format!("{} {}", path.join(";"), node.own.samples)
        })
        .collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"));
    let top = tree.children().pop().unwrap();
    assert_eq!(top.len(), 1);
    assert_eq!(tree.node(top[0]).unwrap().total, tree.all());
    assert_eq!(tree.all().samples, samples().len() as u64);
}

#[test]
fn calls_of_a_row_are_below_it_in_both_directions() {
    let contents = read(&recording(&samples()[..3], 1000));
    let index = symbol_index(&contents);
    let filter = Filter::default();
    let text = |table: &Table, order| {
        let (rows, trees) = table.first_with_calls(Limits::default(), order, &filter);
        let lines = rows.rows.iter().zip(&trees).map(|(row, tree)| {
            let nodes = tree.nodes().enumerate().filter(|(_, node)| node.own.samples > 0).map(|(number, _)| {
                let path: Vec<_> =
                    tree.path(number).into_iter().map(|one| index.function_name(one, &contents)).collect();
                path.join(";")
            });
            format!("{}: {}", row.symbol.as_ref().unwrap(), nodes.collect::<Vec<_>>().join(" | "))
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let with = Table::with_children(&contents, &index, CYCLES, &[Column::Symbol], &filter);
    let without = Table::new(&contents, &index, CYCLES, &[Column::Symbol], &filter);
    let texts = [text(&with, CallOrder::Caller), text(&with, CallOrder::Callee), text(&without, CallOrder::Callee)];
    insta::assert_snapshot!(texts.join("\n\n"));
}

/// No call is before the address 0, which ends the stacks of some threads.
#[test]
fn a_return_to_0_is_not_taken_for_a_call_at_the_end_of_the_address_space() {
    let bytes =
        recording(&[(sample(CYCLES, 8, JIT + 4, 100).into(), stack(StackEnd::Complete, &[0, JIT + 8]))], usize::MAX);
    let contents = read(&bytes);
    let folded = folded(&contents, &symbol_index(&contents), CYCLES, &Filter::default());
    assert_eq!(folded, ["app.exe;App.Main();[JIT or unmapped] 0x0;App.Main() 100"]);
}

/// The user-mode function behind kernel-mode ones was interrupted, or made a system call. A return address in a call
/// of the same function, in a sample with the same callers, is another location.
#[test]
fn code_that_entered_the_kernel_is_no_caller_of_which_the_call_is_before_the_address() {
    const TOUCHED: u64 = JIT + 0x40;
    let method = |address, name: &str| Method { address, size: 0x40, name: name.to_owned(), loaded: 0 };
    let methods = vec![method(JIT, "before"), method(TOUCHED, "touched"), method(JIT + 0x80, "main")];
    let callers = [TOUCHED, JIT + 0x90];
    let of = |ip, callers: &[u64]| (sample(CYCLES, 8, ip, 100).into(), stack(StackEnd::Complete, callers));
    let entered = of(NT + 0x1000, &[NT + 0x2010, callers[0], callers[1]]);
    let interrupted = of(NT + 0x1000, &callers);
    let called = of(JIT + 0x84, &callers);
    let wanted = [
        "app.exe;main;before;main 100",
        "app.exe;main;touched;ntoskrnl.exe+0x1000_[k] 100",
        "app.exe;main;touched;ntoskrnl.exe+0x2010_[k];ntoskrnl.exe+0x1000_[k] 100",
    ];
    for order in [[&entered, &interrupted, &called], [&called, &entered, &interrupted]] {
        let mut writer = Writer::new(Vec::new(), &session()).unwrap();
        for process in processes() {
            writer.process(&process).unwrap();
        }
        writer.methods(&Methods { id: 8, created: None, methods: methods.clone() }).unwrap();
        writer.stacked_samples(&order.map(Clone::clone)).unwrap();
        let bytes = writer.finish(&summary()).unwrap();
        let contents = read(&bytes);
        let (index, filter) = (symbol_index(&contents), Filter::default());
        assert_eq!(folded(&contents, &index, CYCLES, &filter), wanted);

        let mut text = Vec::new();
        script(&contents, &index, &filter, &mut Cursor::new(&bytes), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines = |name: &str| text.lines().filter(|line| line.contains(&format!(" {name} "))).count();
        assert_eq!([lines("touched"), lines("before")], [2, 1], "{text}");

        let mut profile = Vec::new();
        firefox(&contents, &index, &filter, u64::MAX, &mut Cursor::new(&bytes), &mut profile).unwrap();
        let profile: serde_json::Value = serde_json::from_slice(&profile).unwrap();
        let threads = profile["threads"].as_array().unwrap();
        let thread = threads.iter().find(|thread| thread["processName"] == "app.exe").unwrap();
        let stacks = thread["stackTable"]["frame"].as_array().unwrap().len();
        assert_eq!(stacks, 7, "main with before and touched, and what they call: {thread}");
    }
}
