//! Tests of `report --blocks`.

use std::collections::HashMap;

use protocol::last_branches;

use super::autofdo::{IMAGE, LOOP, USER, of, of_events, timed};
use super::*;

/// Ten samples of the program: twice the loop, its entry, and the beginning of its function.
fn bench() -> File {
    let [back, enter, call] = LOOP;
    timed(USER, &[(back.0, back.1, 10), (back.0, back.1, 14), (enter.0, enter.1, 3), (call.0, call.1, 60)])
}

#[test]
fn blocks_have_their_cycles_and_with_the_image_their_instructions() {
    let bench = bench();
    fs::write(bench.beside("branches.exe"), IMAGE).unwrap();
    insta::assert_snapshot!(bench.run_on(Some(79), "report FILE --blocks").out);
    let csv = bench.run("report FILE --blocks --csv --module branches").out;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4, "{csv}");
    let numbers = "10,0.322581,0.518519,14.000000,0.000000,31,2.214286,0x0000000140001019,branches.exe,foo,";
    assert!(lines[1].starts_with(numbers), "{csv}");
    let json = bench.run("report FILE --blocks --json").json();
    let of = |member: &str| json[member].as_u64().unwrap();
    assert_eq!(["samples", "records", "executions", "outside", "broken", "different"].map(of), [11, 42, 31, 0, 0, 4]);
    let shares = json["blocks"].as_array().unwrap().iter().map(|block| block["share"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9, "{json}");
}

#[test]
fn blocks_without_the_image_have_no_instructions_and_the_report_says_so() {
    let run = bench().run("report FILE --blocks");
    for line in ["No code   branches.exe: no file", "No code   ntdll.dll: no file", "as recorded, without IPC"] {
        assert!(run.out.contains(line), "{}", run.out);
    }
    let json = bench().run("report FILE --blocks --json").json();
    assert!(json["blocks"].as_array().unwrap().iter().all(|block| block["ipc"].is_null()), "{json}");
    assert_eq!(json["without_code"].as_array().unwrap().len(), 2, "{json}");
}

#[test]
fn columns_that_no_block_has_are_left_out() {
    let run = of(USER, &LOOP).run("report FILE --blocks");
    assert!(run.out.contains("Cycles    not in the records\n"), "{}", run.out);
    let heading = run.out.lines().find(|line| line.contains("Symbol")).unwrap();
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["Share", "Runs", "Symbol", "Block", "Module"]);
}

/// That no row is shown says nothing about the processor.
#[test]
fn a_report_without_rows_does_not_say_that_cycles_are_missing() {
    for options in ["--limit 0", "-e BranchMispredictions"] {
        let run = bench().run(&format!("report FILE --blocks {options}"));
        assert!(run.out.contains("no blocks") && !run.out.contains("Cycles"), "{options}: {}", run.out);
    }
}

#[test]
fn code_that_a_jump_leaves_is_no_block_and_is_counted() {
    // Between the entry of the function and the end of the loop there is an unconditional jump.
    let [back, _, call] = LOOP;
    let bench = of(USER, &[back, back, call]);
    fs::write(bench.beside("branches.exe"), IMAGE).unwrap();
    let run = bench.run("report FILE --blocks");
    let told = "No block  10 of 21 pairs, 47.62%: the code leaves the range: a branch is missing";
    assert!(run.out.contains(told), "{}", run.out);
    let json = bench.run("report FILE --blocks --json").json();
    assert_eq!((json["executions"].as_u64(), json["broken"].as_u64()), (Some(11), Some(10)));
}

#[test]
fn an_image_that_did_not_run_changes_no_block() {
    let bench = of(USER, &[LOOP[0], (0x1066, 0x1040)]);
    fs::write(bench.beside("branches.exe"), IMAGE).unwrap();
    let json = bench.run("report FILE --blocks --json").json();
    let reason = json["without_code"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("10 of 20 branches are at no branch instruction of "), "{reason}");
    assert_eq!(json["executions"].as_u64(), Some(11));
}

#[test]
fn blocks_need_every_kind_of_branch() {
    let kinds = last_branches::MODES | last_branches::DIRECT_CALL | last_branches::RETURN;
    let (exit, report) = of(kinds, &LOOP).run("report FILE --blocks").failure();
    assert_eq!(exit, Exit::NotRecorded);
    assert!(report.starts_with("error: the recording has some kinds of branches only"), "{report}");
}

/// Returns the instructions of the function that `annotate --json` shows with last branches, by address.
fn annotated(bench: &File) -> HashMap<String, Value> {
    fs::write(bench.beside("branches.exe"), IMAGE).unwrap();
    let json = bench.run("annotate foo FILE --json").json();
    let instructions = json["instructions"].as_array().unwrap();
    instructions.iter().map(|one| (one["address"].as_str().unwrap().to_owned(), one["branches"].clone())).collect()
}

#[test]
fn annotate_shows_how_often_each_instruction_ran_and_each_branch_was_taken() {
    let bench = bench();
    fs::write(bench.beside("branches.exe"), IMAGE).unwrap();
    let image = bench.beside("branches.exe");
    let text = bench.run_on(Some(79), "annotate foo FILE").out;
    insta::assert_snapshot!(text.replace(image.to_str().unwrap(), "branches.exe"));
    let found = annotated(&bench);
    let runs = |address: &str| found[address]["executions"].as_u64().unwrap();
    assert_eq!(["0x1000", "0x100e", "0x1019", "0x1040", "0x1083"].map(runs), [10, 0, 10, 20, 20]);
    let end = &found["0x1083"];
    assert_eq!((&end["taken"], &end["mispredicted"], &end["cycles"]), (&json!(20), &json!(0.0), &json!(12.0)));
    // 31 and 23 instructions in 14 and 10 cycles.
    assert_eq!(end["ipc"], json!(54.0 / 24.0));
}

#[test]
fn annotate_shows_taken_branches_alone_if_others_are_missing_between() {
    let kinds = last_branches::USER | last_branches::CONDITIONAL;
    let bench = of(kinds, &[LOOP[0], LOOP[0]]);
    let found = annotated(&bench);
    assert_eq!((&found["0x1083"]["taken"], &found["0x1083"]["executions"]), (&json!(20), &Value::Null));
    let text = bench.run("annotate foo FILE").out;
    assert!(text.contains("Runs      unknown: the recording has some kinds of branches only"), "{text}");
    assert!(text.contains("taken 20 times, 0.00% mispredicted"), "{text}");
}

/// The table has the samples of one event, so its other columns do too.
#[test]
fn annotate_has_the_last_branches_of_the_event_whose_samples_it_shows() {
    let [back, ..] = LOOP;
    let branches = [(back.0, back.1, 10), (back.0, back.1, 10)];
    let bench = of_events(USER, &branches, &[0, 1]);
    assert_eq!(annotated(&bench)["0x1083"]["taken"], json!(20));
    let json = bench.run("annotate foo FILE --json -e BranchMispredictions").json();
    assert_eq!(json["samples"], json!(10));
    let end = json["instructions"].as_array().unwrap().iter().find(|one| one["address"] == "0x1083").unwrap();
    assert_eq!(end["branches"]["taken"], json!(20));
    let text = bench.run("annotate foo FILE").out;
    assert!(text.contains("Branches  22 before 11 samples"), "{text}");
}
