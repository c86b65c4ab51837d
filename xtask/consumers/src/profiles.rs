//! The profile that LLVM's llvm-profgen makes of last branches, for a program of Windows with DWARF and without, and
//! what clang makes of it.
//!
//! One recording is made up: its branches are those of a loop and of the way into it. The other is made on the bench,
//! of the branches that the program takes.

use std::{fs, process::Command};

use anyhow::{Result, ensure};

use super::{bench, client::Client};
use xtask::{demo, prerequisites, run, workspace::Workspace};

/// The program, and its branches from the newest to the oldest (crates/report/tests/fixtures/branches.c).
const IMAGE: &str = "crates/report/tests/fixtures/branches.exe";
const SOURCE: &str = "crates/report/tests/fixtures/branches.c";
const BRANCHES: [&str; 4] = ["1083-1040", "1083-1040", "100a-1019", "10b8-1000"];

/// Number of samples.
const SAMPLES: &str = "100";

/// Lines of the profile: `foo` is called by each sample, and its loop, which clang unrolled twice, runs twice.
const LINES: [&str; 5] = ["foo:18900:100", " 0.1: 400", " 0.6: 400", "bar:0:0", " 0: 100 foo:100"];

/// Makes the profile of the program, and of one without its debug information.
pub fn run(workspace: &Workspace, client: &Client) -> Result<()> {
    prerequisites::for_profiles(workspace)?;
    let spgo = |name: &str| {
        let (recording, output) = (format!("{name}.rec"), format!("{name}.prof"));
        let words = ["spgo", "--recording", &recording, "-o", &output, "--profgen", "llvm-profgen-19"];
        Command::new(&client.program).args(words).current_dir(&client.folder).output()
    };
    let image = client.folder.join("branches.exe");
    fs::copy(workspace.root().join(IMAGE), &image)?;
    record(workspace, client, "branches")?;
    let output = spgo("branches")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && told.contains("2 functions"), "{told}");
    let profile = fs::read_to_string(client.folder.join("branches.prof"))?;
    for line in LINES {
        ensure!(profile.lines().any(|one| one == line), "no {line:?} in the profile:\n{profile}");
    }
    let weights = optimized(workspace, client, Some("branches.prof"))?;
    ensure!(weights.contains("\"function_entry_count\", i64 101"), "clang does not use the profile:\n{weights}");
    ensure!(weights.contains("\"branch_weights\", i32 203, i32 1}"), "the loop has other weights:\n{weights}");
    let without = optimized(workspace, client, None)?;
    ensure!(!without.contains("function_entry_count"), "clang knows counts without a profile:\n{without}");
    let stripped = client.folder.join("stripped.exe");
    run::quiet(Command::new("llvm-objcopy-19").arg("--strip-debug").arg(&image).arg(&stripped))?;
    record(workspace, client, "stripped")?;
    let output = spgo("stripped")?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && told.contains("has no DWARF"), "{told}");
    println!(
        "llvm-profgen made a profile of {} lines that clang used, and none without DWARF",
        profile.lines().count()
    );
    demo::on_bench(workspace, &mut bench::tests(workspace, &["layout::"])?)
}

/// Compiles the program again, with a profile. Returns clang's intermediate code, which has the counts that it uses.
fn optimized(workspace: &Workspace, client: &Client, profile: Option<&str>) -> Result<String> {
    let mut clang = Command::new("clang-19");
    clang.args(["--target=x86_64-pc-windows-msvc", "-O2", "-gdwarf", "-fdebug-info-for-profiling", "-S", "-emit-llvm"]);
    clang.args(profile.map(|profile| format!("-fprofile-sample-use={profile}")));
    run::output(clang.arg(workspace.root().join(SOURCE)).args(["-o", "-"]).current_dir(&client.folder))
}

/// Makes the recording of an image in the folder of the client.
fn record(workspace: &Workspace, client: &Client, name: &str) -> Result<()> {
    let mut example = workspace.cargo("run");
    example.args(["--quiet", "--locked", "-p", "report", "--example", "last_branches", "--", SAMPLES]);
    example.arg(client.folder.join(format!("{name}.rec"))).arg(client.folder.join(format!("{name}.exe")));
    run::quiet(example.args(BRANCHES))
}
