//! Tests of `spgo`, with programs that end as llvm-profgen 19 does.

use std::os::unix::fs::PermissionsExt;

use protocol::{StartHeader, last_branches};
use zerocopy::FromBytes;

use super::autofdo::{IMAGE, LOOP, USER, of};
use super::*;

/// A recording beside its image, and a program that runs these lines of a shell with the profile in `$OUT`.
fn bench(lines: &str) -> File {
    let file = of(USER, &LOOP);
    fs::write(file.beside("branches.exe"), IMAGE).unwrap();
    let script = format!(
        "#!/bin/sh\nif [ $1 = --version ]; then echo '  LLVM version 19.1.7'; exit; fi\n\
         for word; do case $word in --output=*) OUT=${{word#--output=}};; esac; done\n{lines}\n"
    );
    let program = file.beside("profgen");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// Makes the profile of the recording.
fn made(file: &File) -> Run {
    let program = file.beside("profgen");
    file.run(&format!("spgo --recording FILE -o OUT --profgen {}", program.display()))
}

#[test]
fn the_profile_is_made_and_read_back() {
    let file = bench("printf 'foo:4780:10\\n 0: 10\\nbar:20:0\\n 1: 10 foo:10\\n' > $OUT");
    let ran = made(&file);
    assert_eq!(ran.outcome.unwrap(), 0, "{}", ran.err);
    assert!(ran.err.contains("profgen, LLVM version 19.1.7 ]"), "{}", ran.err);
    assert!(ran.err.contains("out: 2 functions, 4,800 samples ]"), "{}", ran.err);
    assert!(ran.err.contains("clang-cl /clang:-fprofile-sample-use=") && ran.err.contains("SPTAggregate"));
    let branches = fs::read_to_string(file.beside("out.txt")).unwrap();
    assert!(branches.starts_with("2\n1000-100a:10\n1019-1083:10\n3\n"), "{branches}");
}

/// llvm-profgen ends with success although the profile is empty.
#[test]
fn a_profile_that_is_empty_is_an_error_with_its_reason() {
    let no_functions =
        "echo 'warning: Loading of DWARF info completed, but no binary functions have been retrieved.' >&2";
    for (lines, exit, text) in [
        (format!("{no_functions}; : > $OUT"), Exit::NoCode, "has no DWARF, from which lines are read"),
        (": > $OUT".to_owned(), Exit::NoCode, "no function of "),
        ("true".to_owned(), Exit::NoCode, "no function of "),
        ("echo 'error: no such file' >&2; exit 1".to_owned(), Exit::Failure, "failed: error: no such file"),
        ("kill -11 $$".to_owned(), Exit::Failure, "failed: signal: 11"),
    ] {
        let file = bench(&lines);
        // That of an earlier run is not taken for the new one.
        fs::write(file.beside("out"), "foo:1:1\n").unwrap();
        let (found, report) = made(&file).failure();
        assert_eq!(found, exit, "{report}");
        assert!(report.contains(text), "{lines}: {report}");
    }
}

#[test]
fn without_llvm_profgen_or_the_image_the_command_to_run_is_told() {
    let file = bench("exit 1");
    let ran = file.run("spgo --recording FILE -o OUT --profgen no-such-program");
    assert_eq!(ran.outcome.unwrap(), 0);
    assert!(
        ran.err.contains("no profile yet: llvm-profgen was not found ]\n  try: llvm-profgen --binary="),
        "{}",
        ran.err
    );
    assert!(file.beside("out.txt").exists());
    fs::remove_file(file.beside("branches.exe")).unwrap();
    let ran = made(&file);
    assert!(ran.err.contains("no profile yet: the image was not found ]"), "{}", ran.err);
}

#[test]
fn the_command_is_recorded_with_branches_of_user_mode() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("app.prof");
    let system = FakeSystem::running(FakeDriver::default());
    let words = ["spgo", "-o", profile.to_str().unwrap(), "--", "sh", "-c", "exit 3"];
    let (exit, report) = run_words(&system, &words).failure();
    // The driver had no samples.
    assert_eq!(exit, Exit::NotRecorded, "{report}");
    assert!(report.contains("no branch of the selected samples"), "{report}");
    let [input] = &system.driver.inputs(Code::Start)[..] else { panic!() };
    let (header, _) = StartHeader::read_from_prefix(input).unwrap();
    assert_eq!(header.last_branches, last_branches::USER | last_branches::ANY);
    assert!(folder.path().join("app.prof.rec").exists());
}
