//! What a run checks, and how the stages share its time.

use std::time::Duration;

use anyhow::Result;
use xtask::{artifacts, checks, demo, workspace::Workspace};

use crate::figures;
use crate::recorder::Recorder;

/// What a stage does with so many minutes. A stage of a fixed length gets those that are left.
pub type Work = fn(&mut Recorder<'_>, u64) -> Result<()>;

/// How long a stage takes.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// About so many minutes on two processors. It is not begun if fewer are left.
    Fixed(u64),
    /// As long as it is given: this share of what the stages of a fixed length leave, and at least a minute for each of
    /// so many parts.
    Share {
        /// The share, as a part of the sum of all.
        weight: u64,
        /// The parts.
        parts: u64,
    },
    /// It is not a part of a run, for this reason.
    Never(&'static str),
}

/// A stage.
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub subject: &'static str,
    /// How long it takes.
    pub length: Length,
    /// What it does.
    pub work: Work,
}

/// Targets of libFuzzer.
const TARGETS: u64 = 14;

/// Instructions of each call that a sweep interrupts.
const SAMPLE: &str = "400";

/// Requests of the driver's fuzzer in a minute, on all processors of the model.
const DRIVER_REQUESTS: u64 = 20_000;

/// The stages in the order of a run.
pub const STAGES: &[Stage] = &[
    Stage {
        name: "audit",
        subject: "imports with their releases and IRQLs, levels of all code, stacks, no code for a panic, sizes",
        length: Length::Fixed(2),
        work: |recorder, _| on_bench(recorder, &["--test", "audit"]),
    },
    Stage {
        name: "layouts",
        subject: "structures, constants and functions of the kernel, against Microsoft's bindings",
        length: Length::Fixed(2),
        work: |recorder, _| on_bench(recorder, &["--test", "layout"]),
    },
    Stage {
        name: "budgets",
        subject: "register accesses of each operation, as equalities",
        length: Length::Fixed(3),
        work: |recorder, _| {
            let mut command = recorder.workspace.cargo("test");
            command.args(["--quiet", "--locked", "--package", "pmu", "--package", "engine", "budgets"]);
            recorder.run(&mut command, figures::tests)
        },
    },
    Stage {
        name: "native tests",
        subject: "decisions of engine and profile interfaces, on the model of every processor",
        length: Length::Fixed(10),
        work: |recorder, _| {
            let mut command = checks::native_tests(recorder.workspace);
            recorder.run(&mut command, figures::tests)
        },
    },
    Stage {
        name: "orders of memory operations",
        subject: "loom: ring, pended requests, end of the driver, account of sleeps, starts beside interrupts",
        length: Length::Fixed(3),
        work: |recorder, _| {
            let mut command = checks::loom(recorder.workspace, None);
            recorder.run(&mut command, figures::tests)
        },
    },
    Stage {
        name: "undefined behavior",
        subject: "Miri: the shipped unsafe code that runs without Windows",
        length: Length::Fixed(5),
        work: |recorder, _| {
            let mut command = checks::miri(recorder.workspace)?;
            recorder.run(&mut command, figures::tests)
        },
    },
    Stage {
        name: "end to end",
        subject: "this file under Wine, with client.exe, on the model",
        length: Length::Fixed(12),
        work: |recorder, _| on_bench(recorder, &["--test", "end_to_end"]),
    },
    Stage {
        name: "interrupts",
        subject: "an overflow before instructions chosen at random in each call into this file",
        length: Length::Fixed(10),
        work: |recorder, _| recorder.xtask(&["interrupts", "--sample", SAMPLE], figures::interrupts),
    },
    Stage {
        name: "two builds",
        subject: "builds in two folders give the same bytes",
        length: Length::Fixed(15),
        work: |recorder, _| recorder.xtask(&["package", "--reproducible"], figures::identical),
    },
    Stage {
        name: "random requests",
        subject: "the engine on the model: every count, time and register",
        length: Length::Share { weight: 4, parts: 1 },
        work: |recorder, minutes| requests(recorder, minutes, &[]),
    },
    Stage {
        name: "processors that lie",
        subject: "the engine, while RDMSR and CPUID answer with lies: its rules for registers",
        length: Length::Share { weight: 2, parts: 1 },
        work: |recorder, minutes| requests(recorder, minutes, &["--lies"]),
    },
    Stage {
        name: "random requests to the driver",
        subject: "this file under Wine, from two threads",
        length: Length::Share { weight: 2, parts: 1 },
        work: |recorder, minutes| {
            let requests = (minutes * DRIVER_REQUESTS).to_string();
            recorder.xtask(&["fuzz", "driver", "--requests", &requests], figures::driver_requests)
        },
    },
    Stage {
        name: "random bytes",
        subject: "libFuzzer, led by coverage: the engine, and everything that reads foreign bytes",
        length: Length::Share { weight: 3, parts: TARGETS },
        work: |recorder, minutes| {
            let each = (minutes / TARGETS).max(1).to_string();
            recorder.xtask(&["fuzz", "files", "--minutes", &each], figures::inputs)
        },
    },
    Stage {
        name: "findings",
        subject: "surprises of outside programs are as they were",
        length: Length::Fixed(10),
        work: |recorder, _| recorder.xtask(&["findings"], figures::findings),
    },
    Stage {
        name: "mutations",
        subject: "deliberate faults that the tests notice",
        length: Length::Never("it takes hours for each package; BENCHMARKS.md has the scores that were measured"),
        work: |_, _| Ok(()),
    },
];

/// Runs tests of the package `tests` on the bench.
fn on_bench(recorder: &mut Recorder<'_>, words: &[&str]) -> Result<()> {
    let workspace = recorder.workspace;
    let mut command = workspace.cargo("test");
    command.args(["--quiet", "--locked", "--package", "tests"]).args(words).args(["--", "--test-threads=1"]);
    let prefix = workspace.prefix("first");
    demo::on_bench_in(workspace, &prefix, &mut command, |command| recorder.run(command, figures::tests))
}

fn requests(recorder: &mut Recorder<'_>, minutes: u64, more: &[&str]) -> Result<()> {
    let (minutes, most) = (minutes.to_string(), u64::MAX.to_string());
    let words = [&["fuzz", "requests", "--minutes", &minutes, "--requests", &most], more].concat();
    recorder.xtask(&words, figures::requests)
}

/// Builds what all stages need.
pub fn build(workspace: &Workspace) -> Result<()> {
    artifacts::build(workspace)?;
    xtask::package::make_whole(workspace)
}

/// Returns the minutes that the stage with this index gets while `left` are left, or why it is not run.
pub fn minutes(stages: &[Stage], index: usize, left: Duration) -> Result<u64, String> {
    let left = left.as_secs() / 60;
    let Some(stage) = stages.get(index) else { return Err("there is no such stage".to_owned()) };
    let later = stages.get(index..).unwrap_or_default();
    match stage.length {
        Length::Never(reason) => Err(reason.to_owned()),
        Length::Fixed(least) if least > left => Err(format!("{left} minutes were left, and it takes {least}")),
        Length::Fixed(_) => Ok(left),
        Length::Share { weight, parts } => {
            let fixed = later.iter().map(|stage| if let Length::Fixed(least) = stage.length { least } else { 0 });
            let weights =
                later.iter().map(|stage| if let Length::Share { weight, .. } = stage.length { weight } else { 0 });
            let share = left.saturating_sub(fixed.sum()) * weight / weights.sum::<u64>().max(1);
            if share < parts {
                return Err(format!("its share was {share} minutes, and it takes {parts}"));
            }
            Ok(share)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(length: Length) -> Stage {
        Stage { name: "", subject: "", length, work: |_, _| Ok(()) }
    }

    #[test]
    fn fuzzers_share_what_other_stages_leave_and_nothing_is_begun_that_takes_longer() {
        let stages = [
            Length::Fixed(10),
            Length::Share { weight: 3, parts: 1 },
            Length::Share { weight: 1, parts: 5 },
            Length::Fixed(4),
            Length::Never("never"),
        ]
        .map(stage);
        let at = |index, left| minutes(&stages, index, Duration::from_mins(left));
        assert_eq!(at(0, 10), Ok(10));
        assert_eq!(at(0, 9).unwrap_err(), "9 minutes were left, and it takes 10");
        assert_eq!(at(1, 24), Ok(15), "three quarters of all but the last four");
        assert_eq!(at(2, 9), Ok(5));
        assert_eq!(at(2, 8).unwrap_err(), "its share was 4 minutes, and it takes 5");
        assert_eq!(at(1, 3).unwrap_err(), "its share was 0 minutes, and it takes 1");
        assert_eq!(at(4, 100).unwrap_err(), "never");
    }

    #[test]
    fn every_target_of_libfuzzer_gets_a_minute() {
        let manifest = include_str!("../../../fuzz/Cargo.toml");
        assert_eq!(manifest.matches("[[bin]]").count() as u64, TARGETS);
    }
}
