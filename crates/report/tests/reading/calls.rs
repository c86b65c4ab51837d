//! Call stacks in exports, read again: each has the calls of the recording.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "test helpers fail by panicking")]

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use flate2::read::GzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use protocol::SampleRecord;
use recording::{CallStack, MissingStack, SampleStack, StackEnd, Writer};
use report::{Contents, Filter, firefox, flamegraph, folded_for_graph, folded_with_numbers, pprof, speedscope};
use serde_json::Value;

use super::formats::proto;
use super::support::{CYCLES, NT, NTDLL, processes, read, sample, session, summary, symbol_index};

/// Events of each path, from the process over the outermost caller to the sampled function.
type Paths = BTreeMap<Vec<String>, u64>;

/// A sampled function and its callers, each by its mode and number, and the end of the stack.
#[derive(Debug, Clone)]
struct Stack {
    functions: Vec<(bool, u64)>,
    end: Result<StackEnd, MissingStack>,
}

fn address((is_kernel, number): (bool, u64)) -> u64 {
    let base = if is_kernel { NT } else { NTDLL };
    base + 0x10 * (number + 1)
}

/// Returns stacks of few functions, the innermost of some in kernel mode.
fn any_stack() -> impl Strategy<Value = Stack> {
    let ends = StackEnd::ALL.map(Ok).into_iter().chain(MissingStack::ALL.map(Err)).collect::<Vec<_>>();
    let functions = (vec(0..3_u64, 0..4), vec(0..3_u64, 1..4)).prop_map(|(kernel, user)| {
        let in_mode = |is_kernel| move |number| (is_kernel, number);
        kernel.into_iter().map(in_mode(true)).chain(user.into_iter().map(in_mode(false))).collect()
    });
    (functions, prop::sample::select(ends)).prop_map(|(functions, end)| Stack { functions, end })
}

fn recording(stacks: &[Stack]) -> Vec<u8> {
    let sampled = |Stack { functions, end }: &Stack| -> (SampleRecord, SampleStack) {
        let callers = || functions[1..].iter().map(|one| address(*one)).collect();
        let stack = match end {
            Ok(end) => SampleStack::Stack(CallStack { callers: callers(), end: *end }),
            Err(reason) => SampleStack::Missing(*reason),
        };
        (sample(CYCLES, 8, address(functions[0]), 100).into(), stack)
    };
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.stacked_samples(&stacks.iter().map(sampled).collect::<Vec<_>>()).unwrap();
    writer.finish(&summary()).unwrap()
}

/// Returns what stands for the outer callers of an incomplete stack.
fn note(end: Result<StackEnd, MissingStack>) -> Option<&'static str> {
    match end {
        Ok(StackEnd::Complete) => None,
        Ok(StackEnd::Truncated) => Some("[truncated]"),
        Ok(StackEnd::UserLost) => Some("[user stack lost]"),
        Err(MissingStack::TakenElsewhere) => Some("[no stack: taken elsewhere]"),
        Err(MissingStack::Merged) => Some("[no stack: merged]"),
        Err(MissingStack::EventLost) => Some("[no stack: event lost]"),
        Err(MissingStack::UserLost) => Some("[no stack: user stack lost]"),
        Err(MissingStack::Precise) => Some("[no stack: precise]"),
        Err(MissingStack::Untraced) => Some("[no stack: untraced]"),
        Err(MissingStack::Overflow) => Some("[no stack: too many waiting]"),
    }
}

/// Returns the paths of these stacks. `name` names a function by its mode, its offset, and whether it
/// called.
fn wanted(stacks: &[Stack], process: &str, name: impl Fn(bool, u64, bool) -> String) -> Paths {
    let mut paths = Paths::new();
    for Stack { functions, end } in stacks {
        let known = if end.is_ok() { &functions[..] } else { &functions[..1] };
        let names = known.iter().enumerate().rev().map(|(place, (is_kernel, number))| {
            // Kernel mode was entered at an address to which no call returns.
            let is_call = place > 0 && known[place - 1].0 == *is_kernel;
            name(*is_kernel, 0x10 * (number + 1), is_call)
        });
        let outer = [Some(process), note(*end)].into_iter().flatten().filter(|outer| !outer.is_empty());
        *paths.entry(outer.map(str::to_owned).chain(names).collect()).or_default() += 100;
    }
    paths
}

fn module(is_kernel: bool) -> &'static str {
    if is_kernel { "ntoskrnl.exe" } else { "ntdll.dll" }
}

fn of_lines(lines: &[String]) -> Paths {
    let split = |line: &String| {
        let (path, events) = line.rsplit_once(' ').unwrap();
        (path.split(';').map(str::to_owned).collect(), events.parse().unwrap())
    };
    let paths: Paths = lines.iter().map(split).collect();
    assert_eq!(paths.len(), lines.len(), "each path has one line");
    paths
}

fn of_pprof(contents: &Contents) -> Paths {
    let mut out = Vec::new();
    pprof(contents, &symbol_index(contents), &Filter::default(), &mut out).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(out.as_slice()).read_to_end(&mut bytes).unwrap();
    let profile = proto::Profile::decode(bytes.as_slice()).unwrap();
    let text = |index: i64| profile.strings[usize::try_from(index).unwrap()].clone();
    let mut paths = Paths::new();
    for sample in &profile.sample {
        let names = sample.locations.iter().rev().map(|id| {
            let location = profile.location.iter().find(|location| location.id == *id).unwrap();
            let [line] = &location.lines[..] else { panic!("{location:?}") };
            text(profile.function.iter().find(|function| function.id == line.function).unwrap().name)
        });
        *paths.entry(names.collect()).or_default() += u64::try_from(sample.values[1..].iter().sum::<i64>()).unwrap();
    }
    let distinct = |ids: Vec<u64>| (1..=ids.len() as u64).eq(ids);
    assert!(distinct(profile.location.iter().map(|one| one.id).collect()), "{profile:?}");
    assert!(distinct(profile.function.iter().map(|one| one.id).collect()), "{profile:?}");
    paths
}

fn of_speedscope(contents: &Contents) -> Paths {
    let mut out = Vec::new();
    speedscope(contents, &symbol_index(contents), &Filter::default(), &mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).unwrap();
    let profile = &file["profiles"][0];
    let frame = |index: &Value| {
        file["shared"]["frames"][usize::try_from(index.as_u64().unwrap()).unwrap()]["name"].as_str().unwrap().to_owned()
    };
    let samples = profile["samples"].as_array().unwrap().iter();
    let weights = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
    samples.map(|path| path.as_array().unwrap().iter().map(frame).collect()).zip(weights).collect()
}

/// Returns the paths of a profile for Firefox. The name of a function ends with its category.
fn of_firefox(file: &[u8], contents: &Contents) -> Paths {
    let mut out = Vec::new();
    let index = symbol_index(contents);
    firefox(contents, &index, &Filter::default(), u64::MAX, &mut Cursor::new(file), &mut out).unwrap();
    let profile: Value = serde_json::from_slice(&out).unwrap();
    let threads = profile["threads"].as_array().unwrap();
    let thread = threads.iter().find(|thread| thread["processName"] == "app.exe").unwrap();
    let cell = |table: &str, column: &str, row: u64| thread[table][column][usize::try_from(row).unwrap()].as_u64();
    let mut paths = Paths::new();
    let samples = thread["samples"]["stack"].as_array().unwrap().iter();
    for (stack, weight) in samples.zip(thread["samples"]["weight"].as_array().unwrap()) {
        let mut path = Vec::new();
        let mut next = stack.as_u64();
        while let Some(stack) = next {
            let frame = cell("stackTable", "frame", stack).unwrap();
            let name = cell("funcTable", "name", cell("frameTable", "func", frame).unwrap()).unwrap();
            let name = thread["stringArray"][usize::try_from(name).unwrap()].as_str().unwrap();
            let category = cell("frameTable", "category", frame).unwrap();
            let category = &profile["meta"]["categories"][usize::try_from(category).unwrap()]["name"];
            path.insert(0, if name.starts_with('[') { name.to_owned() } else { format!("{name} {category}") });
            next = cell("stackTable", "prefix", stack);
        }
        *paths.entry(path).or_default() += weight.as_u64().unwrap();
    }
    paths
}

proptest! {
    #[test]
    fn every_export_has_the_calls_of_the_recording(stacks in vec(any_stack(), 1..30)) {
        let file = recording(&stacks);
        let contents = read(&file);
        let name = |is_kernel, offset, _| format!("{}+{offset:#x}", module(is_kernel));
        let marked = |is_kernel, offset, is_call| {
            name(is_kernel, offset, is_call) + if is_kernel { "_[k]" } else { "" }
        };
        let lines = folded_with_numbers(&contents, &symbol_index(&contents), CYCLES, &Filter::default());
        prop_assert_eq!(of_lines(&lines), wanted(&stacks, "app.exe (8)", marked));
        // Every function is wide enough for a graph.
        let shown = folded_for_graph(&contents, &symbol_index(&contents), CYCLES, &Filter::default());
        prop_assert_eq!(lines, shown);
        prop_assert_eq!(of_pprof(&contents), wanted(&stacks, "", name));
        let marked = |is_kernel, offset, is_call| name(is_kernel, offset, is_call) + if is_kernel { " [k]" } else { "" };
        prop_assert_eq!(of_speedscope(&contents), wanted(&stacks, "app.exe (8)", marked));
        // Without symbols, the profile has the address before the return address.
        let in_library = |is_kernel: bool, offset: u64, is_call: bool| {
            format!("{:#x} \"{}\"", offset - u64::from(is_call), if is_kernel { "Kernel" } else { "User" })
        };
        prop_assert_eq!(of_firefox(&file, &contents), wanted(&stacks, "", in_library));
    }
}

#[test]
fn a_flame_graph_of_calls_leaves_out_what_is_too_narrow_and_colors_kernel_mode() {
    let stack = |functions: &[(bool, u64)]| Stack { functions: functions.to_vec(), end: Ok(StackEnd::Complete) };
    let mut stacks = vec![stack(&[(true, 1), (false, 0)]); 30_000];
    stacks.push(stack(&[(true, 2), (false, 0)]));
    let contents = read(&recording(&stacks));
    let lines = folded_for_graph(&contents, &symbol_index(&contents), CYCLES, &Filter::default());
    let app = "app.exe (8);ntdll.dll+0x10";
    assert_eq!(lines, [format!("{app} 100"), format!("{app};ntoskrnl.exe+0x20_[k] 3000000")]);
    let mut svg = Vec::new();
    flamegraph(&lines, ("TotalCycles", "events"), "", &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    let color = |name: &str| {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        rest.split_once("fill=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    };
    let legend = svg.split_once("<text id=\"legend\"").unwrap().1.split_once("</text>").unwrap().0;
    assert!(legend.contains("kernel mode") && legend.contains("inlined"), "{legend}");
    assert!(svg.contains("#search { text-anchor:end; cursor:pointer; }"), "the search is visible");
    assert!(svg.contains("<text id=\"matched\" fill=\"rgb(0,0,0)\" x=\"1190\" y=\"36\">"), "{svg}");
    // Only orange has no blue.
    let is_orange = ["ntoskrnl.exe+0x20", "ntdll.dll+0x10"].map(|name| color(name).ends_with(",0)"));
    assert_eq!(is_orange, [true, false]);
}
