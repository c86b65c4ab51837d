//! Test programs, and runs of them with a mutant.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use xtask::files;

use super::results::Outcome;

/// The least time that a program gets before it counts as hanging. The machine may be busy.
const LEAST_LIMIT: Duration = Duration::from_secs(40);

/// Address space of a test program in KiB. A mutant may allocate without end.
const MEMORY: u32 = 6 << 20;

/// A test program.
pub struct Program {
    pub name: String,
    path: PathBuf,
    folder: PathBuf,
    /// Whether it is of the package of the mutants.
    pub is_own: bool,
    time: Duration,
    reached: BTreeSet<u32>,
}

/// What the programs said about a mutant.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// The program that decided, or an empty text.
    pub program: String,
    /// Name of the test that failed, or an empty text.
    pub test: String,
}

impl Verdict {
    /// Returns an outcome that no program decided.
    pub const fn of(outcome: Outcome) -> Self {
        Self { outcome, program: String::new(), test: String::new() }
    }
}

/// An error of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub struct CompileError {
    pub file: String,
    pub byte: usize,
    pub text: String,
}

/// Returns the text at a path in a message of cargo.
fn text<'a>(message: &'a Value, path: &str) -> Option<&'a str> {
    message.pointer(path)?.as_str()
}

fn parsed(messages: &str) -> impl Iterator<Item = Value> {
    messages.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Returns the errors in the messages of cargo.
pub fn errors(messages: &str) -> Vec<CompileError> {
    let is_error = |value: &Value| {
        text(value, "/reason") == Some("compiler-message") && text(value, "/message/level") == Some("error")
    };
    let errors = parsed(messages).filter(is_error);
    errors
        .filter_map(|value| {
            let mut spans = value.pointer("/message/spans")?.as_array()?.iter();
            let span = spans.find(|span| span.get("is_primary") == Some(&Value::Bool(true)))?;
            Some(CompileError {
                file: text(span, "/file_name")?.to_owned(),
                byte: usize::try_from(span.get("byte_start")?.as_u64()?).ok()?,
                text: text(&value, "/message/rendered").unwrap_or_default().to_owned(),
            })
        })
        .collect()
}

/// Copies the test programs that cargo's messages name to `copies`, because a later build replaces them.
pub fn collect(messages: &str, package: &str, copies: &Path) -> Result<Vec<Program>> {
    files::remove_folder(copies)?;
    files::make_folder(copies)?;
    let mut programs = Vec::new();
    for value in parsed(messages).filter(|value| value.pointer("/profile/test") == Some(&Value::Bool(true))) {
        let (Some(path), Some(manifest)) = (text(&value, "/executable"), text(&value, "/manifest_path")) else {
            continue;
        };
        let folder = Path::new(manifest).parent().context("a manifest has a folder")?.to_path_buf();
        let target = text(&value, "/target/name").unwrap_or_default();
        let owner = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let copy = copies.join(Path::new(path).file_name().context("a program has a name")?);
        files::copy(Path::new(path), &copy)?;
        programs.push(Program {
            name: format!("{owner}/{target}"),
            path: copy,
            folder,
            is_own: owner == package,
            time: Duration::ZERO,
            reached: BTreeSet::new(),
        });
    }
    ensure!(!programs.is_empty(), "{package} has no test programs");
    Ok(programs)
}

/// Runs each program without a mutant, notes its time and the mutants that it reaches, and puts short ones before long
/// ones.
pub fn measure(programs: &mut [Program], folder: &Path) -> Result<()> {
    let record = folder.join("reached");
    for program in programs.iter_mut() {
        files::write(&record, "")?;
        let started = Instant::now();
        let (outcome, test) = program.run(0, Some(&record), Duration::from_mins(15))?;
        program.time = started.elapsed();
        ensure!(outcome == Outcome::Survived, "{} fails without a mutant: {test}", program.name);
        program.reached = files::read_text(&record)?.lines().filter_map(|line| line.parse().ok()).collect();
        println!("  {:40} {:6.1} s, reaches {}", program.name, program.time.as_secs_f64(), program.reached.len());
    }
    programs.sort_by_key(|program| program.time);
    Ok(())
}

/// Takes over the times of the same programs of another build.
pub fn set_times_of(programs: &mut [Program], measured: &[&Program]) {
    for program in programs {
        if let Some(other) = measured.iter().find(|other| other.name == program.name) {
            program.time = other.time;
        }
    }
}

/// Returns the programs in an order for a mutant in a file with these other mutants: those that reach most of them
/// first.
pub fn near_first<'a>(programs: &'a [Program], near: &[u32]) -> Vec<&'a Program> {
    let mut ordered: Vec<&Program> = programs.iter().collect();
    ordered.sort_by_key(|program| Reverse(near.iter().filter(|number| program.reaches(**number)).count()));
    ordered
}

/// Runs the programs until one of them fails. With a number of a mutant these are the programs that reach it.
pub fn judge(programs: &[Program], mutant: Option<u32>) -> Result<Verdict> {
    for program in programs {
        if mutant.is_none_or(|number| program.reaches(number)) {
            let (outcome, test) = program.run(mutant.unwrap_or(0), None, LEAST_LIMIT.max(program.time * 10))?;
            if outcome != Outcome::Survived {
                return Ok(Verdict { outcome, program: program.name.clone(), test });
            }
        }
    }
    Ok(Verdict::of(Outcome::Survived))
}

impl Program {
    /// Returns whether the program runs the code of a mutant of the build.
    pub fn reaches(&self, number: u32) -> bool {
        self.reached.contains(&number)
    }

    /// Returns the arguments with which cargo builds the program alone, which is one of `package`.
    pub fn target(&self, package: &str) -> Vec<&str> {
        match self.name.rsplit('/').next().unwrap_or_default() {
            name if name == package.replace('-', "_") => vec!["--lib"],
            name => vec!["--test", name],
        }
    }

    /// Runs the program until its first test fails. Returns the outcome and the name of that test.
    fn run(&self, mutant: u32, record: Option<&Path>, limit: Duration) -> Result<(Outcome, String)> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")]).arg(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("HALPROF_MUTANT", mutant.to_string());
        // The same cases for each mutant, and no file that lets a later mutant fail for a case of an earlier one.
        command.env("PROPTEST_RNG_SEED", "1").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        command.env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0");
        if let Some(record) = record {
            command.env("HALPROF_REACHED", record);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.path.display()))?;
        let output = child.stdout.take().context("the output is piped")?;
        let reader = thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.find_map(|line| failed_test(&line).map(str::to_owned))
        });
        let outcome = wait(&mut child, limit, || reader.is_finished())?;
        let failed = reader.join().unwrap_or_default();
        Ok(failed.map_or_else(|| (outcome, String::new()), |test| (Outcome::Caught, test)))
    }
}

/// Returns the name of the test of which a line of a test program says that it failed.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// Waits for the end of a program. If its output has ended already, a test failed and the rest is not needed.
fn wait(child: &mut Child, limit: Duration, output_ended: impl Fn() -> bool) -> Result<Outcome> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Outcome::Survived } else { Outcome::Caught });
        }
        let late = started.elapsed() > limit;
        if late || output_ended() {
            child.kill()?;
            let status = child.wait()?;
            return Ok(match (late, status.success()) {
                (true, _) => Outcome::Timeout,
                (false, true) => Outcome::Survived,
                (false, false) => Outcome::Caught,
            });
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_compiler_with_a_place() {
        let span = |primary| serde_json::json!({ "is_primary": primary, "file_name": "a.rs", "byte_start": 7 });
        let message = |level, spans: &[Value]| {
            serde_json::json!({
                "reason": "compiler-message", "message": { "level": level, "spans": spans, "rendered": "r" },
            })
            .to_string()
        };
        let text =
            [message("warning", &[span(true)]), message("error", &[span(false), span(true)]), message("error", &[])];
        let wanted = CompileError { file: "a.rs".into(), byte: 7, text: "r".into() };
        assert_eq!(errors(&format!("no JSON\n{}", text.join("\n"))), [wanted]);
    }

    #[test]
    fn only_the_line_of_a_failed_test_counts() {
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b - should panic ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
        assert_eq!(failed_test("test result: FAILED. 1 passed"), None);
    }

    #[cfg(unix)]
    fn script(text: &str) -> (tempfile::TempDir, Program) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        files::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program {
            name: "a/b".into(),
            path,
            folder: folder.path().into(),
            is_own: true,
            time: Duration::ZERO,
            reached: BTreeSet::from([3]),
        };
        (folder, program)
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_fails_hangs_or_passes_is_told_apart() {
        let outcome = |text| {
            let (_folder, program) = script(text);
            program.run(3, None, Duration::from_secs(20)).unwrap()
        };
        let unnamed = |outcome| (outcome, String::new());
        assert_eq!(outcome("test $HALPROF_MUTANT = 4"), unnamed(Outcome::Caught));
        assert_eq!(outcome("test $HALPROF_MUTANT = 3"), unnamed(Outcome::Survived));
        assert_eq!(outcome("echo 'test x ... FAILED'; exec sleep 60"), (Outcome::Caught, "x".to_owned()));
        let (_folder, program) = script("exec sleep 60");
        assert_eq!(program.run(3, None, Duration::from_millis(100)).unwrap(), unnamed(Outcome::Timeout));
    }

    #[test]
    fn programs_that_reach_most_of_a_file_come_first() {
        let program = |name: &str, reached: &[u32]| Program {
            name: name.into(),
            path: PathBuf::new(),
            folder: PathBuf::new(),
            is_own: true,
            time: Duration::ZERO,
            reached: reached.iter().copied().collect(),
        };
        let programs = [program("a/a_b", &[9]), program("a/c", &[1]), program("a/d", &[1, 2, 9])];
        let names = |near: &[u32]| near_first(&programs, near).iter().map(|program| &*program.name).collect::<Vec<_>>();
        assert_eq!(names(&[1, 2]), ["a/d", "a/c", "a/a_b"]);
        assert_eq!(names(&[]), ["a/a_b", "a/c", "a/d"]);
        assert_eq!(programs[0].target("a-b"), ["--lib"]);
        assert_eq!(programs[0].target("a"), ["--test", "a_b"]);
    }

    #[test]
    #[cfg(unix)]
    fn only_programs_that_reach_a_mutant_judge_it() {
        let (_folder, program) = script("exit 1");
        let programs = [program];
        let caught = Verdict { program: "a/b".into(), ..Verdict::of(Outcome::Caught) };
        assert_eq!(judge(&programs, Some(3)).unwrap(), caught);
        assert_eq!(judge(&programs, Some(4)).unwrap(), Verdict::of(Outcome::Survived));
        assert_eq!(judge(&programs, None).unwrap(), caught);
    }
}
