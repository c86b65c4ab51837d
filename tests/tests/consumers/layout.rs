//! A program of clang and lld, its branches as its own code takes them, a profile of those that were recorded, and the
//! program that clang makes with it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench_protocol::{BranchKind, InterruptSite, TakenBranch};
use protocol::Record;
use recording::Reader;
use tests::Lab;

use crate::steps::{Code64, process_of, taken};

const RECORDING: &str = "C:\\layout.rec";

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/consumers/layout.c");

/// A processor of each maker, its entries, and the name, number and unit mask of its taken branches.
const PROCESSORS: [(&str, usize, &str, (u16, u16)); 2] = [
    ("sapphire-rapids-2475x", 32, "BR_INST_RETIRED.NEAR_TAKEN:u@4127", (0xC4, 0x20)),
    ("zen5-9800x3d", 16, "RETIRED_TAKEN_BRANCH_INSTRUCTIONS:u@4127", (0xC4, 0)),
];

/// Taken branches between two samples: a prime number, so that samples do not follow the loops.
const PERIOD: usize = 4127;

const SAMPLES: usize = 400;

/// Iterations of the loop in a run of the program.
const ITERATIONS: f64 = 4096.0;

/// Lines of `work` behind its first: that of the condition, and that of the rare call.
const CONDITION: u32 = 4;
const RARE: u32 = 5;

/// Compiles the program, with a profile or without.
fn compile(folder: &Path, name: &str, profile: Option<&Path>) -> PathBuf {
    let program = folder.join(name);
    let mut clang = Command::new("clang-19");
    clang.args(["--target=x86_64-w64-windows-gnu", "-fuse-ld=lld-19", "-O2", "-gdwarf", "-fdebug-info-for-profiling"]);
    clang.args(profile.map(|profile| format!("-fprofile-sample-use={}", profile.display())));
    let output = clang.arg(SOURCE).arg("-o").arg(&program).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// The numbers of the line that the program writes: process, thread, base, and the address of `work`.
fn described(output: &str) -> Option<[u64; 4]> {
    let words: Vec<&str> = output.lines().find(|line| line.starts_with("process "))?.split_whitespace().collect();
    let [_, process, _, thread, _, base, _, work] = words[..] else { return None };
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    Some([process.parse().ok()?, thread.parse().ok()?, hexadecimal(base)?, hexadecimal(work)?])
}

/// The counts of the lines of `work` in a profile, by their offset from its first line.
fn counts(profile: &str) -> Vec<(u32, f64)> {
    let body = profile.lines().skip_while(|line| !line.starts_with("work:")).skip(1);
    let body = body.take_while(|line| line.starts_with(' '));
    body.filter_map(|line| {
        let (place, rest) = line.trim().split_once(": ")?;
        let (offset, _) = place.split_once('.').unwrap_or((place, ""));
        Some((offset.parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    })
    .collect()
}

/// The largest count of a line.
fn count(profile: &str, line: u32) -> f64 {
    counts(profile).into_iter().filter(|(offset, _)| *offset == line).map(|(_, count)| count).fold(0.0, f64::max)
}

/// Starts the program by itself, and returns the branches that it takes.
fn run_alone(lab: &Lab, program: &Path) -> Vec<TakenBranch> {
    let mut command = lab.wine().program(&program.to_string_lossy(), &[]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let [_, _, base, work] = described(&line).unwrap();
    let mut input = child.stdin.take().unwrap();
    let wake = || writeln!(input).unwrap();
    let taken = taken(process_of(program), &Code64::read(program, base), work, wake);
    drop(input);
    child.wait().unwrap();
    taken
}

/// Jumps that are no branch of a condition: the loop has one of them, on its frequent or on its rare path.
fn jumps(taken: &[TakenBranch]) -> f64 {
    taken.iter().filter(|branch| branch.kind == BranchKind::DirectJump).map(|_| 1.0).sum()
}

#[test]
fn clang_moves_what_the_recorded_branches_show_to_be_rare_out_of_the_loop() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::boot("sapphire-rapids-2475x").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let program = compile(folder.path(), "layout.exe", None);
    for (identity, depth, event, (number, umask)) in PROCESSORS {
        probe.service("unload", "halprof").unwrap().unwrap();
        lab.run_by_script().unwrap();
        lab.become_processor(identity).unwrap();
        probe.service("load", "halprof").unwrap().unwrap();
        let path = program.to_string_lossy();
        let arguments = ["record", "-a", "-C", "0", "-e", event, "-j", "any,u", "-o", RECORDING, "--", &path];
        let output = lab.wine().drive_c("lab/output.txt");
        let said = || described(&fs::read_to_string(&output).unwrap_or_default());
        let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 1 && said().is_some();
        let mut client = lab.client_running(&arguments, "the program does not run", counts).unwrap();
        let [process, thread, base, work] = said().unwrap();
        let mut input = client.stdin.take().unwrap();
        let taken = taken(process_of(&program), &Code64::read(&program, base), work, || writeln!(input).unwrap());
        let expected = samples(&mut lab, &taken, [process, thread], (number, umask), depth);
        drop(input); // ends the program
        let ended = client.wait().unwrap();
        assert!(ended.success(), "{ended}: {}", fs::read_to_string(&output).unwrap());
        assert_eq!(recorded(&lab, process), expected, "{identity}: what ran before each sample");
        let profile = profile(&lab, &program);
        let calls = taken.iter().filter(|branch| branch.kind == BranchKind::DirectCall).count();
        let share = f64::from(u32::try_from(calls).unwrap()) / ITERATIONS;
        let text = fs::read_to_string(&profile).unwrap();
        let [rare, all] = [RARE, CONDITION].map(|line| count(&text, line));
        let error = (share * (1.0 - share) / all).sqrt();
        let found = rare / all;
        assert!(all > 2000.0 && (found - share).abs() < 4.0 * error, "{identity}: {found} of {all}, {share} in fact");
        let better = compile(folder.path(), "better.exe", Some(&profile));
        let [before, after] = [jumps(&taken), jumps(&run_alone(&lab, &better))];
        assert!(before > 0.9 * ITERATIONS && after < 0.1 * ITERATIONS, "{identity}: {before} jumps, then {after}");
        println!(
            "{identity}: the rare path has {found:.4} of {all} iterations, {share:.4} in fact; {before} jumps became {after}"
        );
    }
    drop(probe);
    lab.finish().unwrap();
}

/// Interrupts the program behind each so many of its branches, as if it ran again and again. Returns the branches that
/// each sample must have, the newest first.
fn samples(
    lab: &mut Lab,
    taken: &[TakenBranch],
    [process, thread]: [u64; 2],
    (number, umask): (u16, u16),
    depth: usize,
) -> Vec<Vec<(u64, u64)>> {
    let [process, thread] = [process, thread].map(|number| u32::try_from(number).unwrap());
    let mut expected = Vec::new();
    for sample in 1..=SAMPLES {
        // Older ones would be pushed out.
        let end = sample * PERIOD;
        let newest: Vec<TakenBranch> = (end - depth..end).map(|place| taken[place % taken.len()]).collect();
        lab.wire.take_branches(0, &newest).unwrap();
        let ip = newest.last().unwrap().to;
        let site = InterruptSite { ip, user: true, process, thread, weight: 1 };
        lab.wire.set_interrupt_sites(0, &[site]).unwrap();
        lab.wire.run(0, &[(number, umask, PERIOD as u64)], &[]).unwrap();
        expected.push(newest.iter().rev().map(|branch| (branch.from, branch.to)).collect());
    }
    expected
}

/// Returns the branches of the samples of a process.
fn recorded(lab: &Lab, process: u64) -> Vec<Vec<(u64, u64)>> {
    let mut found: Vec<Vec<(u64, u64)>> = Vec::new();
    for block in Reader::new(File::open(lab.wine().drive_c("layout.rec")).unwrap()).unwrap().map(Result::unwrap) {
        for (record, _) in block.samples() {
            match record.parse().unwrap() {
                Record::Sample(sample) if u64::from(sample.process) == process => found.push(Vec::new()),
                Record::LastBranch(branch) if u64::from(branch.process) == process => {
                    found.last_mut().unwrap().push((branch.from, branch.to));
                }
                _ => {}
            }
        }
    }
    found
}

/// Makes the profile with the commands that a user types: spgo, and what it says to run where llvm-profgen is.
fn profile(lab: &Lab, program: &Path) -> PathBuf {
    let made = lab.client(&["spgo", "--recording", RECORDING, "--module", "layout.exe", "-o", "C:\\layout.prof"]);
    let told = made.unwrap().success().unwrap().err;
    assert!(told.contains("try: llvm-profgen --binary="), "{told}");
    let [branches, profile] = ["layout.prof.txt", "layout.prof"].map(|name| lab.wine().drive_c(name));
    let mut profgen = Command::new("llvm-profgen-19");
    profgen.arg(format!("--binary={}", program.display()));
    profgen.arg(format!("--unsymbolized-profile={}", branches.display()));
    let output = profgen.arg(format!("--output={}", profile.display())).arg("--format=text").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    profile
}
