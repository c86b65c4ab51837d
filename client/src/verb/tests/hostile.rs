//! Recordings that were made by hand: names with escape sequences, and stacks that are deeper than any.

use std::path::Path;
use std::{iter, thread};

use protocol::{Prediction, last_branches};
use recording::{CallStack, CoreTypeProcessors, DebugFile, Method, Methods, Process, SampleStack, StackEnd, Writer};

use super::report::last_branches::with_branches;
use super::report::{APP, NT, processes, record, session, summary};
use super::*;
use crate::cli::FailAbove;
use crate::verb::diff::{SavedStat, compare_counts};

/// Clears the screen, sets the title of the window, in both forms of a control sequence, ends the line, and reverses
/// the order of the text that follows.
const EVIL: &str = "=evil\u{1b}[2J\u{9b}31m\u{1b}]0;title\u{7}\r\n\u{202E}cod";

/// Address of a function of a just-in-time compiler.
const JIT: u64 = 0x20_0000;

/// Callers of the deep stack.
const DEPTH: u64 = 9_000;

/// Every verb that shows a recording.
const VERBS: [&str; 24] = [
    "report FILE",
    "report FILE --wide --children",
    "report FILE -g caller --wide",
    "report FILE -g callee",
    "report FILE --merge --stack --limit 9",
    "report FILE --csv",
    "report FILE --json",
    "report FILE --merge --stack --csv",
    "report FILE --branch",
    "report FILE --blocks",
    "report FILE --branch-history",
    "report FILE --process none",
    "annotate FILE none",
    "script FILE",
    "script FILE -F +brstack",
    "export FILE --format csv",
    "export FILE --format folded",
    "export FILE --format speedscope",
    "export FILE --format firefox",
    "export FILE --format json",
    "export FILE --format html",
    "flamegraph FILE -o -",
    "diff FILE FILE",
    "diff FILE FILE --json",
];

/// A recording in which every text is evil, with a stack of so many callers.
fn recording(depth: u64) -> Vec<u8> {
    let evil = || EVIL.to_owned();
    let mut session = session();
    session.client = evil();
    session.driver = evil();
    session.processor = evil();
    session.computer = Some(evil());
    session.command = vec![evil(), evil()];
    session.last_branches = last_branches::MODES | last_branches::ANY;
    session.core_types = vec![CoreTypeProcessors { core_type: 0x40, name: evil(), processors: vec![0, 1] }];
    for event in &mut session.events {
        event.name.push_str(EVIL);
    }
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    for mut process in processes() {
        for module in &mut process.modules {
            module.path.push_str(EVIL);
            module.debug = Some(DebugFile { name: evil(), id: evil() });
        }
        writer.process(&Process { name: evil(), ..process }).unwrap();
    }
    let method = Method { address: JIT, size: 0x20, name: evil(), loaded: 1 };
    writer.methods(&Methods { id: 8, created: None, methods: vec![method] }).unwrap();
    let callers = (0..depth).map(|caller| [JIT + 4, APP + 0x50 + 0x10 * caller, NT + 0x70][(caller % 3) as usize]);
    let stack = SampleStack::Stack(CallStack { callers: callers.collect(), end: StackEnd::Complete });
    let branches = [(APP + 0x30, APP + 0x10), (APP + 0x30, NT + 0x10), (JIT + 4, APP + 0x20), (NT + 8, JIT + 2)];
    let branches = branches.map(|(from, to)| (from, to, Prediction::Predicted, 7));
    for ip in [APP + 0x1000, JIT + 8, NT + 0x50] {
        let records = with_branches(record(0, 1000, 8, ip), &branches).into_iter();
        let stacks = [stack.clone()].into_iter().chain(iter::repeat(SampleStack::NotRecorded));
        writer.stacked_samples(&records.zip(stacks).collect::<Vec<_>>()).unwrap();
    }
    writer.finish(&summary()).unwrap()
}

/// Runs a verb with a recording where the line has FILE.
fn shown(path: &Path, verb: &str) -> Run {
    run_anywhere(&verb.replace("FILE", &path.display().to_string()), &[])
}

#[test]
fn no_name_of_a_recording_is_executed_by_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evil");
    fs::write(&path, recording(12)).unwrap();
    for verb in VERBS {
        let Run { out, err, outcome } = shown(&path, verb);
        let failure = outcome.err().map(|error| error.report()).unwrap_or_default();
        let plain = verb.contains("annotate") || verb.contains("none");
        assert!(plain || out.contains("=evil"), "{verb}: {out}");
        for text in [out, err, failure] {
            let is_executed = |c: char| c != '\n' && c != '\t' && recording::printable(&c.to_string()) != c.to_string();
            let found: Vec<char> = text.chars().filter(|c| is_executed(*c)).collect();
            assert_eq!(found, [] as [char; 0], "{verb}: {text:?}");
        }
    }
}

/// The thread has less stack than the main thread of a program on Windows, which is 1 MiB.
#[test]
fn a_stack_that_is_deeper_than_any_ends_no_verb() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep");
    fs::write(&path, recording(DEPTH)).unwrap();
    let all = move || {
        for verb in VERBS.into_iter().filter(|verb| !verb.contains("none")) {
            let Run { out, outcome, .. } = shown(&path, verb);
            assert_eq!(outcome.unwrap(), Exit::Done.code(), "{verb}");
            assert!(out.len() < 1 << 20, "{verb}: {} bytes", out.len());
        }
    };
    thread::Builder::new().stack_size(512 << 10).spawn(all).unwrap().join().unwrap();
}

/// Comparing each with each would take the test hours.
#[test]
fn many_labels_are_compared_without_comparing_each_with_each() {
    let stat = |from: u32| {
        let events = (from..from + 200_000).map(|number| {
            json!({ "name": format!("E{number}"), "modes": "uk", "scaled": 1, "error": null, "percent_running": 100.0,
                    "repeated": null })
        });
        serde_json::from_value::<SavedStat>(json!({ "events": events.collect::<Vec<_>>() })).unwrap()
    };
    let compared = compare_counts(&stat(0), &stat(100_000), FailAbove { fail_above: None }, None).unwrap();
    assert_eq!((compared.sections[0].rows.len(), compared.unmatched.len()), (100_000, 200_000));
}
