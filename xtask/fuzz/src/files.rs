//! Readers of foreign bytes, by cargo-fuzz.

use std::{ffi::OsString, fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};

use super::corpus::{Corpus, targets};
use xtask::{command_line::FilesArguments, files, run, tools, workspace::Workspace};

/// The release of cargo-fuzz.
const CARGO_FUZZ: &str = "0.13.1";

/// Minutes for each target as a part of `soak`.
const SOAK_MINUTES: u64 = 5;

/// Limits of an input: no allocation is larger than the largest block of a recording needs, and none takes long.
const LIMITS: [&str; 3] = ["-malloc_limit_mb=96", "-rss_limit_mb=1024", "-timeout=20"];

/// Largest input of a corpus in the repository, in bytes.
const MAX_INPUT: u64 = 1_500;

/// Time limit for building the targets, and for anything beside the fuzzing itself.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

/// Runs every target for some minutes, as a part of `soak`.
pub fn soak(workspace: &Workspace) -> Result<()> {
    run(workspace, &FilesArguments { minutes: SOAK_MINUTES, minimize: false, target: None })
}

/// Builds the targets and runs them one after the other, up to the first that finds something.
pub fn run(workspace: &Workspace, arguments: &FilesArguments) -> Result<()> {
    let fuzzer = Fuzzer::new(workspace)?;
    let all = targets(workspace)?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| arguments.target.as_ref().is_none_or(|wanted| wanted == *name)).collect();
    ensure!(!chosen.is_empty(), "there is no such target; the targets are: {}", all.join(", "));
    run::logged("fuzz targets", &mut fuzzer.cargo_fuzz("build", &[])?, &workspace.log("fuzz-build"), BUILD_LIMIT)?;
    for name in chosen {
        fuzzer.run(name, arguments.minutes)?;
        if arguments.minimize {
            fuzzer.minimize(name)?;
        }
    }
    Ok(())
}

/// cargo-fuzz, ready to run.
struct Fuzzer<'a> {
    workspace: &'a Workspace,
    /// PATH with cargo-fuzz.
    path: OsString,
}

impl<'a> Fuzzer<'a> {
    /// Installs cargo-fuzz if it is missing.
    fn new(workspace: &'a Workspace) -> Result<Self> {
        let path = tools::install(workspace, "cargo-fuzz", CARGO_FUZZ)?;
        Ok(Self { workspace, path })
    }

    /// Returns a command of cargo-fuzz with these words behind it.
    fn cargo_fuzz(&self, subcommand: &str, words: &[&str]) -> Result<Command> {
        let mut command = tools::nightly_cargo(self.workspace, None)?;
        command.args(["fuzz", subcommand, "--fuzz-dir", "fuzz"]).args(words);
        command.env("PATH", &self.path).env("CARGO_TARGET_DIR", self.workspace.target().join("fuzz"));
        Ok(command)
    }

    /// Returns the folder for what a target finds beside the corpus of the repository.
    fn found(&self, name: &str) -> Result<PathBuf> {
        let folder = self.workspace.target().join("fuzz-corpus").join(name);
        files::make_folder(&folder)?;
        Ok(folder)
    }

    /// Runs a target, and prints how much it did.
    fn run(&self, name: &str, minutes: u64) -> Result<()> {
        let findings = self.workspace.target().join("fuzz-findings").join(name);
        files::make_folder(&findings)?;
        let (found, seeds) = (self.found(name)?, Corpus::of(self.workspace, name).unpack()?);
        let mut command = self.cargo_fuzz("run", &[name])?;
        command.args([&found, &seeds]).arg("--").args(LIMITS).arg("-print_final_stats=1");
        command.arg(format!("-max_total_time={}", minutes * 60));
        command.arg(format!("-artifact_prefix={}/", findings.display()));
        let log = self.workspace.log(&format!("fuzz-{name}"));
        run::logged(name, &mut command, &log, Duration::from_mins(minutes) + BUILD_LIMIT)
            .with_context(|| format!("the law of {name} does not hold; the input is in {}", findings.display()))?;
        println!("    {}", Figures::of(&fs::read_to_string(&log).unwrap_or_default()));
        Ok(())
    }

    /// Replaces the corpus of a target by the smallest inputs that reach the same code.
    fn minimize(&self, name: &str) -> Result<()> {
        let corpus = Corpus::of(self.workspace, name);
        let (found, new) = (self.found(name)?, self.workspace.target().join("fuzz-minimized").join(name));
        files::remove_folder(&new)?;
        files::make_folder(&new)?;
        let mut command = self.cargo_fuzz("run", &[name])?;
        // Counts of executions would keep many times the inputs.
        command.args([&new, &corpus.unpack()?, &found]).args(["--", "-merge=1", "-use_counters=0"]);
        command.arg(format!("-max_len={MAX_INPUT}"));
        run::logged("minimized", &mut command, &self.workspace.log(&format!("fuzz-minimize-{name}")), BUILD_LIMIT)?;
        corpus.replace(&new)
    }
}

/// What a target did, from the output of libFuzzer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    /// Edges of the control flow that were reached.
    edges: u64,
    /// Inputs of the corpus and their size.
    corpus: String,
}

impl Figures {
    /// Reads the last line with figures: `#1234 DONE cov: 56 ft: 78 corp: 9/10Kb ...`.
    fn of(log: &str) -> Self {
        let last = log.lines().rev().find(|line| line.starts_with('#') && line.contains(" cov: ")).unwrap_or_default();
        let words: Vec<&str> = last.split_whitespace().collect();
        let after = |key: &str| words.iter().skip_while(|word| **word != key).nth(1).copied().unwrap_or_default();
        let executions = words.first().and_then(|word| word.strip_prefix('#')?.parse().ok()).unwrap_or_default();
        Self { executions, edges: after("cov:").parse().unwrap_or_default(), corpus: after("corp:").to_owned() }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { executions, edges, corpus } = self;
        write!(f, "{executions} inputs, {edges} edges reached, corpus of {corpus}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_last_line_with_figures() {
        let log = "INFO: Seed: 1\n#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 40Mb\n\
                   #301615\tDONE   cov: 1074 ft: 3514 corp: 659/11829b lim: 539 exec/s: 6556 rss: 478Mb\n\
                   Done 301615 runs in 46 second(s)\n";
        let figures = Figures { executions: 301_615, edges: 1_074, corpus: "659/11829b".to_owned() };
        assert_eq!(Figures::of(log), figures);
        assert_eq!(Figures::of("nothing"), Figures::default());
    }

    #[test]
    fn every_target_has_a_corpus() {
        let workspace = Workspace::find().unwrap();
        let targets = targets(&workspace).unwrap();
        assert!(targets.len() > 5);
        for name in targets {
            assert!(Corpus::of(&workspace, &name).file().is_file(), "{name}");
        }
    }
}
