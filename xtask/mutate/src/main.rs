//! Deliberate faults, and which of them the tests notice.
//!
//! | module | contents |
//! |---|---|
//! | `driver` | mutations of the driver, which the end-to-end tests must notice |
//! | `fuzzer` | earlier defects of the engine, which the fuzzer of requests must find |
//! | `mutant` | the mutants that cargo-mutants lists, and the seeded choice |
//! | `tree` | the copy of the sources that mutants are made in |
//! | `switch` | many mutants in one build |
//! | `programs` | the test programs and their runs |
//! | `results` | outcomes that outlive a run |
//! | `equivalent` | mutants that no test can catch |
//! | `report` | the score |

#![forbid(unsafe_code)]

mod driver;
mod equivalent;
mod fuzzer;
mod mutant;
mod programs;
mod report;
mod results;
mod switch;
mod tree;

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::PathBuf,
    process::{Command, ExitCode, Output},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    equivalent::Equivalent,
    mutant::{Mutant, sample},
    programs::{Program, Verdict},
    report::Report,
    results::{Judged, Outcome, Results},
    switch::{Blamed, Instrumented},
    tree::{Tree, folder, sha256, without_tests, write_if_different},
};
use xtask::{
    command_line::{Command as XtaskCommand, MutateArguments},
    files, program, run, tools,
    workspace::Workspace,
};

/// The release of cargo-mutants whose list is the population of the samples.
const CARGO_MUTANTS: &str = "27.1.0";

/// Packages whose tests run the code of another package, and judge the mutants that its own tests let survive.
const DEPENDENTS: [(&str, &[&str]); 1] = [("pmu", &["engine"])];

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        XtaskCommand::Mutate(arguments) => run(workspace, arguments),
        _ => program::unknown(),
    })
}

/// Tries the mutants of an area. Fails if too many survive.
fn run(workspace: &Workspace, arguments: &MutateArguments) -> Result<()> {
    ensure!(!cfg!(windows), "mutants are tried on Linux, where the model of the hardware is");
    let part = arguments.only.as_deref().unwrap_or_default();
    match arguments.area.as_str() {
        "driver" => return driver::run(workspace, part),
        "fuzzer" => return fuzzer::run(workspace, part),
        _ => {}
    }
    let package = PathBuf::from("crates").join(&arguments.area);
    ensure!(workspace.root().join(&package).is_dir(), "there is no package {}", package.display());
    let results = folder(workspace).join(&arguments.area);
    files::make_folder(&results)?;
    let tree = Tree::refresh(workspace, folder(workspace).join("tree"))?;
    let mutants = list(workspace, arguments, &tree)?;
    let entries = Equivalent::all()?;
    if arguments.changed.is_none() {
        equivalent::check(&entries, &format!("{}/", package.display()), &mutants)?;
    }
    let chosen = sample(&mutants, arguments.seed, arguments.most);
    println!("{}: {} mutants, {} chosen by the seed {}", arguments.area, mutants.len(), chosen.len(), arguments.seed);
    let mut texts = BTreeMap::new();
    for file in mutants.iter().map(|mutant| &mutant.file) {
        if !texts.contains_key(file) {
            texts.insert(file.clone(), files::read_text(&tree.folder.join(file))?);
        }
    }
    let known = Results::open(results.join("results.jsonl"));
    let mut area = Area { workspace, package, tree, texts, results: known, folder: results };
    let (equivalent, chosen): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|mutant| entries.iter().any(|entry| entry.is(mutant)));
    area.judge(&chosen)?;

    let mut report = Report {
        area: arguments.area.clone(),
        seed: arguments.seed,
        all: mutants.len(),
        sampled: equivalent.len() + chosen.len(),
        equivalent: equivalent.len(),
        ..Report::default()
    };
    for mutant in &chosen {
        if let Some(judged) = area.known(mutant)? {
            report.count(mutant.name(), judged.outcome);
        }
    }
    println!("{report}");
    files::write(&area.folder.join("report.txt"), format!("{report}\n"))?;
    ensure!(report.is_good(), "the tests of {} must notice at least {} % of its mutants", report.area, report::WANTED);
    Ok(())
}

/// Returns a PATH with cargo-mutants, which is installed below target/tools unless this release is there already.
fn cargo_mutants(workspace: &Workspace) -> Result<OsString> {
    let output = Command::new("cargo-mutants").args(["mutants", "--version"]).output();
    if output.is_ok_and(|output| output.stdout.trim_ascii() == format!("cargo-mutants {CARGO_MUTANTS}").as_bytes()) {
        return env::var_os("PATH").context("there is no PATH");
    }
    tools::install(workspace, "cargo-mutants", CARGO_MUTANTS)
}

/// Asks cargo-mutants for the mutants of a package.
fn list(workspace: &Workspace, arguments: &MutateArguments, tree: &Tree) -> Result<Vec<Mutant>> {
    let path = cargo_mutants(workspace)?;
    let mut command = tree.cargo(workspace, "mutants");
    command.env("PATH", path).args(["--list", "--json", "--no-config", "--package", &arguments.area]);
    if let Some(base) = &arguments.changed {
        let mut diff = Command::new("git");
        diff.args(["diff", base, "--", "crates"]).current_dir(workspace.root());
        let file = folder(workspace).join("changed.diff");
        files::write(&file, run::output(&mut diff)?)?;
        command.arg("--in-diff").arg(file);
    }
    let text = run::output(&mut command)?;
    let text = text.trim();
    Mutant::parse(if text.is_empty() { "[]" } else { text }).context("cargo-mutants printed another list than expected")
}

/// A package, the copy that its mutants are made in, and their outcomes.
struct Area<'a> {
    workspace: &'a Workspace,
    package: PathBuf,
    folder: PathBuf,
    tree: Tree,
    /// The files with mutants.
    texts: BTreeMap<String, String>,
    results: Results,
}

impl Area<'_> {
    fn name(&self) -> &str {
        self.package.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the text of the file of a mutant, as it was when the copy was made: the work tree may change meanwhile.
    fn text(&self, mutant: &Mutant) -> Result<&str> {
        self.texts.get(&mutant.file).map(String::as_str).with_context(|| format!("{} was not read", mutant.file))
    }

    /// Returns the outcome of a mutant, if it has one that still holds.
    fn known(&self, mutant: &Mutant) -> Result<Option<&Judged>> {
        Ok(self.results.get(&mutant.key(), &self.digest(mutant)?, &self.tree.sources))
    }

    /// Returns the digest of the code in the file of a mutant.
    fn digest(&self, mutant: &Mutant) -> Result<String> {
        Ok(sha256(without_tests(self.text(mutant)?).as_bytes()))
    }

    fn add(&mut self, mutant: &Mutant, verdict: Verdict) -> Result<()> {
        let Verdict { outcome, program, test } = verdict;
        if outcome == Outcome::Survived {
            println!("  survived: {}", mutant.name());
        }
        let (file, sources) = (self.digest(mutant)?, self.tree.sources.digest.clone());
        self.results.add(Judged { key: mutant.key(), outcome, by: program, test, file, sources })
    }

    /// Judges the mutants without an outcome: together as far as possible, then one by one.
    fn judge(&mut self, chosen: &[Mutant]) -> Result<()> {
        let mut pending = Vec::new();
        for mutant in chosen {
            if self.known(mutant)?.is_none() {
                pending.push(mutant);
            }
        }
        println!("{} of them have an outcome already", chosen.len() - pending.len());
        if pending.is_empty() {
            return Ok(());
        }
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(pending).collect();
        let (switched, unviable) = self.instrument(&numbered)?;
        println!("{} of {} are in one build, {} do not compile", switched.len(), numbered.len(), unviable.len());
        let programs = self.programs(&[])?;
        for &(number, mutant) in numbered.iter().filter(|(number, _)| unviable.contains(number)) {
            debug_assert!(!switched.contains(&number), "a mutant that does not compile has no branch");
            self.add(mutant, Verdict::of(Outcome::Unviable))?;
        }
        let viable = numbered.iter().copied().filter(|(number, _)| !unviable.contains(number));
        let (on, mut alone): (Vec<_>, Vec<_>) = viable.partition(|(number, _)| switched.contains(number));
        let mut survivors = self.judge_switched(&on, &programs)?;
        if !survivors.is_empty() && !self.dependents().is_empty() {
            println!("{} survive the tests of the package", survivors.len());
            survivors = self.judge_switched(&survivors, &self.programs(self.dependents())?)?;
        }
        for (number, mutant) in survivors {
            // The switch is off while the compiler evaluates a constant. If a program has reached the mutant, it passed
            // with it.
            let was_reached = programs.iter().any(|program| program.reaches(number));
            if mutant.may_be_constant(self.text(mutant)?) && !was_reached {
                alone.push((number, mutant));
            } else {
                self.add(mutant, Verdict::of(Outcome::Survived))?;
            }
        }
        self.judge_alone(&alone, &numbered, &programs)
    }

    /// Judges mutants of the build by programs, and returns those that survive.
    fn judge_switched<'m>(
        &mut self,
        mutants: &[(u32, &'m Mutant)],
        programs: &[Program],
    ) -> Result<Vec<(u32, &'m Mutant)>> {
        let mut survivors = Vec::new();
        for &(number, mutant) in mutants {
            let verdict = programs::judge(programs, Some(number))?;
            if verdict.outcome == Outcome::Survived {
                survivors.push((number, mutant));
            } else {
                self.add(mutant, verdict)?;
            }
        }
        Ok(survivors)
    }

    /// Builds and measures the test programs of the package, or else those of `others`.
    fn programs(&self, others: &[&str]) -> Result<Vec<Program>> {
        let messages = self.build(&["--lib", "--tests"], others)?.map_err(|messages| first_error(&messages))?;
        let mut programs = programs::collect(&messages, self.name(), &self.folder.join("programs"))?;
        programs.retain(|program| program.is_own == others.is_empty());
        programs::measure(&mut programs, &self.folder)?;
        Ok(programs)
    }

    /// Instruments the copy, and takes out mutants until it compiles. Returns the numbers of those that stay, and of
    /// those that would compile in no other build either.
    fn instrument(&self, numbered: &[(u32, &Mutant)]) -> Result<(Vec<u32>, Vec<u32>)> {
        self.tree.add_switch(&self.package)?;
        let mut left = numbered.to_vec();
        let mut unviable = Vec::new();
        loop {
            let mut by_file: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
            for &(number, mutant) in numbered {
                let mutants = by_file.entry(&mutant.file).or_default();
                if left.iter().any(|&(other, _)| other == number) {
                    mutants.push((number, mutant));
                }
            }
            let mut instrumented = BTreeMap::new();
            for (file, mutants) in by_file {
                let text = self.texts.get(file).context("files with mutants were read")?;
                let result = Instrumented::new(text, &mutants).with_context(|| format!("cannot parse {file}"))?;
                write_if_different(&self.tree.folder.join(file), &result.text)?;
                instrumented.insert(file, result);
            }
            let output = self.check()?;
            if output.status.success() {
                return Ok((instrumented.values().flat_map(Instrumented::numbers).collect(), unviable));
            }
            let messages = String::from_utf8_lossy(&output.stdout);
            let errors = programs::errors(&messages);
            let blamed: Vec<Blamed> =
                errors.iter().filter_map(|error| instrumented.get(error.file.as_str())?.blamed(error.byte)).collect();
            let before = left.len();
            for &(number, mutant) in &left {
                let is_mutants = blamed.contains(&Blamed { number, is_in_mutated: true });
                if is_mutants && mutant.fails_as_its_branch(self.text(mutant)?) {
                    unviable.push(number);
                }
            }
            left.retain(|(number, _)| blamed.iter().all(|blamed| blamed.number != *number));
            if left.len() == before {
                bail!("{}{}", first_error(&messages), String::from_utf8_lossy(&output.stderr));
            }
        }
    }

    /// Returns the packages whose tests run the code of this one too.
    fn dependents(&self) -> &'static [&'static str] {
        DEPENDENTS.iter().find(|(name, _)| *name == self.name()).map_or(&[], |(_, dependents)| dependents)
    }

    /// Builds the chosen tests of the package and of `others`. Returns cargo's messages, as an error if something does
    /// not compile.
    fn build(&self, targets: &[&str], others: &[&str]) -> Result<Result<String, String>> {
        let mut command = self.tree.cargo(self.workspace, "test");
        command.args(["--no-run", "--message-format=json", "--package", self.name()]).args(targets);
        command.args(others.iter().flat_map(|other| ["--package", other]));
        let output = command.output()?;
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(if output.status.success() { Ok(messages) } else { Err(messages) })
    }

    /// Builds and judges each mutant alone.
    fn judge_alone(&mut self, mutants: &[(u32, &Mutant)], all: &[(u32, &Mutant)], measured: &[Program]) -> Result<()> {
        println!("{} need a build of their own", mutants.len());
        for (file, text) in &self.texts {
            write_if_different(&self.tree.folder.join(file), text)?;
        }
        for &(_, mutant) in mutants {
            let text = self.text(mutant)?.to_owned();
            let path = self.tree.folder.join(&mutant.file);
            files::write(&path, mutant.apply(&text).context("the list of mutants fits the text")?)?;
            let verdict = self.judge_built(&programs::near_first(measured, &near(mutant, all)))?;
            self.add(mutant, verdict)?;
            files::write(&path, text)?;
        }
        Ok(())
    }

    /// Builds the copy as it is, and runs the tests of the package itself, one program after the other.
    ///
    /// Programs of dependents take minutes to build, and most of these mutants are in constants, which both sides of
    /// a dependent take over. One that only a dependent would notice counts as a survivor.
    fn judge_built(&self, measured: &[&Program]) -> Result<Verdict> {
        // Most of these mutants do not compile; a check says so much earlier than a build.
        if !self.check()?.status.success() {
            return Ok(Verdict::of(Outcome::Unviable));
        }
        for program in measured {
            let Ok(messages) = self.build(&program.target(self.name()), &[])? else {
                return Ok(Verdict::of(Outcome::Unviable));
            };
            let mut built = programs::collect(&messages, self.name(), &self.folder.join("alone"))?;
            programs::set_times_of(&mut built, measured);
            let verdict = programs::judge(&built, None)?;
            if verdict.outcome != Outcome::Survived {
                return Ok(verdict);
            }
        }
        Ok(Verdict::of(Outcome::Survived))
    }

    /// Checks the library of the package in the copy.
    fn check(&self) -> Result<Output> {
        let mut check = self.tree.cargo(self.workspace, "check");
        check.args(["--lib", "--message-format=json", "--package", self.name()]);
        Ok(check.output()?)
    }
}

/// Returns the numbers of the mutants in the same file.
fn near(mutant: &Mutant, all: &[(u32, &Mutant)]) -> Vec<u32> {
    all.iter().filter(|(_, other)| other.file == mutant.file).map(|(number, _)| *number).collect()
}

/// Returns the first error in cargo's messages.
fn first_error(messages: &str) -> anyhow::Error {
    let errors = programs::errors(messages);
    anyhow::anyhow!("{}", errors.first().map_or("cargo failed without an error of the compiler", |error| &error.text))
}
