//! Counts the instructions of each operation of `pmu` and of the whole interrupt handler with callgrind, without
//! the accesses to model-specific registers. With the same compiler the counts are the same on every machine and in
//! every run. Times are measured only on request.
//!
//! `crates/pmu/benches/instructions.rs`, `handler.rs` and `session.rs` in `crates/engine/benches`, `names.rs` in
//! `crates/events/benches`, and `region.rs` in `crates/halprof/benches` execute every operation once. Callgrind counts
//! only inside their `measured_` functions, and writes its counts before each call of `report`. A register access of
//! the simulated processor is a function of its own; its cost is subtracted, and so is the call, which stands for the
//! instruction that makes the access.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{files, run, workspace::Workspace};

/// The profile of `halprof.sys`: link-time optimization changes the counts considerably.
const PROFILE: &str = "driver";

/// Package and bench that count instructions.
const PROGRAMS: [(&str, &str); 5] =
    [("pmu", "instructions"), ("engine", "handler"), ("engine", "session"), ("events", "names"), ("halprof", "region")];

/// Package and bench that measure times.
const TIMED: [(&str, &str); 5] = [
    ("pmu", "operations"),
    ("sample-ring", "throughput"),
    ("engine", "pipeline"),
    ("recording", "throughput"),
    ("recorder", "off_cpu"),
];

/// Maximum number of instructions for the interrupt of one of four counters, from the overflow to the sample in the
/// ring.
const INTERRUPT_TARGET: u64 = 190;

/// The functions that simulate RDMSR, WRMSR and RDPMC, in the order in which a bench prints the numbers of accesses.
/// The names are suffixes, which follow the name of the bench.
const ACCESSES: [&str; 3] = [
    "::scene::Recorder as pmu::cpu::Cpu>::rdmsr",
    "::scene::Recorder as pmu::cpu::Cpu>::wrmsr",
    "::scene::Recorder as pmu::cpu::Cpu>::rdpmc",
];

/// Instructions of each access in a bench that inlines them as loads and stores. RDPMC takes more, because it finds the
/// counter by its number.
const INLINE_ACCESSES: [u64; 3] = [1, 1, 3];

/// Counts the instructions twice and checks that both runs agree. With `time`, measures times as well.
pub fn run(workspace: &Workspace, time: bool) -> Result<()> {
    ensure_valgrind()?;
    let mut runs = [Vec::new(), Vec::new()];
    for (package, bench) in PROGRAMS {
        let program = build(workspace, package, bench)?;
        for (which, run) in ["first", "second"].into_iter().zip(&mut runs) {
            run.extend(measure(workspace, &program, bench, which)?);
        }
    }
    let [first, second] = runs;
    if let Some((before, after)) = first.iter().zip(&second).find(|(before, after)| before != after) {
        bail!("two runs differ:\n{before}\n{after}");
    }
    ensure!(first.len() == second.len(), "one run has {} operations, the next {}", first.len(), second.len());
    println!("\n{}", table(&first));
    if time {
        for (package, bench) in TIMED {
            let mut command = cargo(workspace, "bench");
            command.args(["--locked", "--profile", PROFILE, "--package", package, "--bench", bench]);
            run::verbose(&mut command)?;
        }
    }
    Ok(())
}

fn ensure_valgrind() -> Result<()> {
    match Command::new("valgrind").arg("--version").stdout(Stdio::null()).status() {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "valgrind, which counts the instructions (only on Linux), is missing. To install it on Debian:\n\n    \
             sudo apt-get install -y --no-install-recommends valgrind\n"
        ),
        Err(error) => Err(error).context("cannot start valgrind"),
        Ok(status) => {
            ensure!(status.success(), "`valgrind --version` failed ({status})");
            Ok(())
        }
    }
}

/// The crates of the driver that are compiled for size. The driver's interrupt path, which is compiled for speed, has
/// their generic functions, and those that it inlines: the benches count these.
const FOR_SIZE: [&str; 3] = ["engine", "pmu", "protocol"];

/// Returns a cargo command with the driver's compiler flags (.cargo/config.toml) and a target folder of its own.
fn cargo(workspace: &Workspace, subcommand: &str) -> Command {
    let mut command = workspace.cargo(subcommand);
    for package in FOR_SIZE {
        command.arg("--config").arg(format!("profile.{PROFILE}.package.{package}.opt-level=3"));
    }
    command.env("RUSTFLAGS", "-C jump-tables=no").env("CARGO_TARGET_DIR", workspace.target().join("bench"));
    command
}

/// Builds a bench and returns its executable.
fn build(workspace: &Workspace, package: &str, bench: &str) -> Result<PathBuf> {
    let mut command = cargo(workspace, "build");
    command.args(["--locked", "--profile", PROFILE, "--package", package, "--bench", bench]);
    let messages = run::output(command.arg("--message-format=json-render-diagnostics"))?;
    executable(&messages, bench).context("cargo did not report the executable of the bench")
}

/// Returns the last executable for the target `name` in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message.pointer("/target/name").is_some_and(|found| found == name));
    programs.find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
}

/// Runs a bench under callgrind and returns its operations.
fn measure(workspace: &Workspace, program: &Path, bench: &str, which: &str) -> Result<Vec<Operation>> {
    let folder = workspace.target().join("bench");
    files::make_folder(&folder)?;
    let counts = folder.join(format!("callgrind.{bench}.{which}"));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--combine-dumps=yes", "--toggle-collect=*measured_*"]);
    command.arg(format!("--dump-before=*{bench}::report*"));
    command.arg(format!("--callgrind-out-file={}", counts.display())).arg(program);
    // Callgrind appends to a file that exists.
    let _ = fs::remove_file(&counts);
    let output = run::output(&mut command)?;
    let text = files::read_text(&counts)?;
    operations(&output, &parts(&text)?)
}

/// An operation and its cost.
#[derive(Debug, PartialEq, Eq)]
struct Operation {
    interface: String,
    name: String,
    /// Number of counters.
    n: u64,
    /// Number of counters that have overflowed.
    k: u64,
    /// Numbers of RDMSR, WRMSR and RDPMC.
    accesses: [u64; 3],
    /// Instructions without the accesses.
    instructions: u64,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, name, n, k, accesses: [rdmsr, wrmsr, rdpmc], instructions } = self;
        write!(f, "{interface:9} {name:16} {n:>2} {k:>2} {instructions:>13}   {rdmsr:>2} {wrmsr:>2} {rdpmc:>2}")
    }
}

/// Callgrind's counts between two dumps: the instructions of each function, without those of its callees.
type Part = BTreeMap<String, u64>;

/// Parses callgrind's output file.
///
/// A line with a cost begins with a line number, absolute or relative to the one before. The line after `calls=` has
/// the cost of the callee, which also has lines of its own. A name is written once; after that only its number is.
fn parts(text: &str) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut function = None;
    let mut called = false;
    for line in text.lines() {
        if line.starts_with("part:") {
            parts.push(Part::new());
            function = None;
        } else if let Some(name) = line.strip_prefix("fn=") {
            function = Some(named(&mut names, name)?);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            named(&mut names, name)?;
        } else if let Some(events) = line.strip_prefix("events:") {
            ensure!(events.trim() == "Ir", "callgrind counted {}, not only instructions", events.trim());
        } else if line.starts_with("calls=") {
            called = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            if std::mem::take(&mut called) {
                continue;
            }
            // Callgrind may omit a cost of zero.
            let cost = line.split_ascii_whitespace().nth(1).unwrap_or("0");
            let cost: u64 = cost.parse().with_context(|| format!("callgrind wrote `{line}`"))?;
            let (Some(part), Some(function)) = (parts.last_mut(), function) else {
                bail!("callgrind wrote a cost before a function: `{line}`")
            };
            *part.entry(function.to_owned()).or_default() += cost;
        } else if let Some(total) = line.strip_prefix("totals:") {
            let sum = parts.last().map_or(0, |part| part.values().sum::<u64>());
            ensure!(
                total.trim().parse() == Ok(sum),
                "callgrind counted {} in total, its lines add up to {sum}",
                total.trim()
            );
        }
    }
    Ok(parts)
}

/// Returns the name in `(number) name`, or the earlier name for `(number)`.
fn named<'a>(names: &mut BTreeMap<&'a str, &'a str>, text: &'a str) -> Result<&'a str> {
    let (number, name) = text.split_once(')').with_context(|| format!("callgrind wrote the function `{text}`"))?;
    let name = name.trim_start();
    if !name.is_empty() {
        names.insert(number, name);
    }
    names.get(number).copied().with_context(|| format!("callgrind did not name the function {number})"))
}

/// Combines the bench's output with callgrind's counts for each operation.
fn operations(output: &str, parts: &[Part]) -> Result<Vec<Operation>> {
    // The last part covers what ran after the last operation.
    let (rest, parts) = parts.split_last().context("callgrind wrote nothing")?;
    ensure!(rest.values().all(|cost| *cost == 0), "callgrind counted an operation that the bench did not print");
    let lines: Vec<&str> = output.lines().collect();
    ensure!(
        lines.len() == parts.len(),
        "the bench printed {} operations, callgrind counted {}",
        lines.len(),
        parts.len()
    );
    let mut costs = [None; ACCESSES.len()];
    lines.into_iter().zip(parts).map(|(line, part)| operation(line, part, &mut costs)).collect()
}

/// Returns the operation that a line of the bench's output describes. `costs` are the instructions of each kind of
/// access, as far as they are known.
fn operation(line: &str, part: &Part, costs: &mut [Option<u64>; ACCESSES.len()]) -> Result<Operation> {
    let cells: Vec<&str> = line.split('|').collect();
    let [interface, name, numbers @ ..] = cells.as_slice() else { bail!("the bench printed `{line}`") };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let Ok(Ok([n, k, accesses @ ..])) = numbers.map(<[u64; 2 + ACCESSES.len()]>::try_from) else {
        bail!("the bench printed `{line}`")
    };
    let mut spent = 0;
    for (((function, inline), count), known) in ACCESSES.iter().zip(INLINE_ACCESSES).zip(accesses).zip(costs) {
        let here = part.iter().filter(|(name, _)| name.ends_with(function)).map(|(_, cost)| cost).sum::<u64>();
        if !part.keys().any(|name| name.ends_with(function)) && part.keys().all(|name| !name.contains("::scene::")) {
            spent += count * inline; // this bench inlines the accesses
            continue;
        }
        // An access always costs the same. If the cost varies or is zero, something else would be subtracted.
        let cost = here.checked_div(count).map_or(0, |cost| *known.get_or_insert(cost));
        ensure!(here == count * cost && here >= count, "{count} calls of {function} took {here} instructions: {line}");
        spent += here + count;
    }
    let all: u64 = part.values().sum();
    let instructions =
        all.checked_sub(spent).with_context(|| format!("accesses alone took {spent} of {all}: {line}"))?;
    Ok(Operation { interface: (*interface).to_owned(), name: (*name).to_owned(), n, k, accesses, instructions })
}

fn table(operations: &[Operation]) -> String {
    let head = "interface operation         N  k  instructions    R  W  P\n";
    let foot = "Instructions without the accesses: R RDMSR, W WRMSR, P RDPMC. N counters, k of them overflowed.\n";
    let rows: Vec<String> = operations.iter().map(ToString::to_string).collect();
    let most = operations.iter().filter(|one| one.name == "sample" && (one.n, one.k) == (4, 1));
    let most = most.map(|one| one.instructions).max().unwrap_or(0);
    let verdict = if most <= INTERRUPT_TARGET { "met" } else { "missed" };
    format!(
        "{head}{}\n\n{foot}Target for a sample, 1 of 4: at most {INTERRUPT_TARGET}; {verdict} with {most}.",
        rows.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Abridged output of callgrind 3.19: two dumps and the remainder.
    const COUNTS: &str = "\
# callgrind format
version: 1
part: 1
desc: Trigger: --dump-before=instructions::report
positions: line
events: Ir
summary: 52

ob=(1) /bench
fl=(1) hal.rs
fn=(10) pmu::hal::Hal::count
276 10
fi=(2) interface.rs
-9 8
+2
cfi=(3) cell.rs
cfn=(11) <instructions::scene::Recorder as pmu::cpu::Cpu>::rdpmc
calls=738 555
* 17
fe=(1)
* 3

fl=(3)
fn=(11)
+4 17

fn=(12) instructions::scene::measured_read
cfn=(10)
calls=1 555
+1 38
+1 14
totals: 52

part: 2
events: Ir
fn=(10)
276 20
cfn=(11)
calls=2 0
277 34
fn=(11)
555 34
totals: 54

part: 3
desc: Trigger: Program termination
events: Ir
fn=(12)
cfn=(10)
calls=1 0
12 0
totals: 0
";

    const OUTPUT: &str = "Amd64|read|1|0|0|0|1\nEmon v2+|read|4|0|0|0|2\n";

    #[test]
    fn the_cost_of_a_function_excludes_its_callees() {
        let parts = parts(COUNTS).unwrap();
        let costs: Vec<Vec<u64>> = parts.iter().map(|part| part.values().copied().collect()).collect();
        assert_eq!(costs, [vec![17, 14, 21], vec![34, 20], vec![]]);
        assert_eq!(parts[1]["pmu::hal::Hal::count"], 20);
    }

    #[test]
    fn accesses_and_their_calls_are_subtracted() {
        let found = operations(OUTPUT, &parts(COUNTS).unwrap()).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.interface.as_str(), one.n, one.instructions)).collect();
        assert_eq!(found, [("Amd64", 1, 34), ("Emon v2+", 4, 18)]);
    }

    fn error_of(output: &str, counts: &str) -> String {
        parts(counts).and_then(|parts| operations(output, &parts)).unwrap_err().to_string()
    }

    #[test]
    fn inconsistent_outputs_are_an_error() {
        let one_line = OUTPUT.lines().next().unwrap();
        assert_eq!(error_of(one_line, COUNTS), "the bench printed 1 operations, callgrind counted 2");
        assert_eq!(error_of(OUTPUT, ""), "callgrind wrote nothing");
        assert!(error_of(&OUTPUT.replace("0|2\n", "0|1\n"), COUNTS).starts_with("1 calls of"));
        assert!(error_of(&OUTPUT.replace("1|0|0|0|1", "1|0|0|0|0"), COUNTS).starts_with("0 calls of"));
        assert!(error_of(OUTPUT, &COUNTS.replace("Recorder as", "Other as")).contains("took 0 instructions"));
        assert!(error_of(&OUTPUT.replace("read|4", "read|four"), COUNTS).starts_with("the bench printed"));
        assert!(error_of(&OUTPUT.replace("|2\n", "\n"), COUNTS).starts_with("the bench printed"));
        assert_eq!(
            error_of(OUTPUT, &COUNTS.replace("+4 17", "+4 16")),
            "callgrind counted 52 in total, its lines add up to 51"
        );
        assert_eq!(
            error_of(OUTPUT, &COUNTS.replace("(12) instructions::scene::measured_read", "(12)")),
            "callgrind did not name the function (12)"
        );
        assert!(error_of(OUTPUT, &COUNTS.replace("events: Ir\n", "events: Ir Dr\n")).contains("counted Ir Dr"));
    }

    #[test]
    fn the_last_executable_in_the_messages_of_cargo_is_used() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"pmu"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"instructions"},"executable":"/t/instructions-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "instructions"), Some("/t/instructions-1".into()));
        assert_eq!(executable(messages, "pmu"), None);
    }

    #[test]
    fn the_table_says_whether_the_target_is_met() {
        let of = |instructions| Operation {
            interface: "Amd64".into(),
            name: "sample".into(),
            n: 4,
            k: 1,
            accesses: [0, 1, 4],
            instructions,
        };
        let text = table(&[of(190)]);
        assert!(text.contains("Amd64     sample            4  1           190    0  1  4\n"), "{text}");
        assert!(text.ends_with("met with 190."), "{text}");
        assert!(table(&[of(190), of(191)]).ends_with("missed with 191."));
    }
}
