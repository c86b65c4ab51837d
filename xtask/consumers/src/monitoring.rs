//! Checks the rules and the dashboard of `integrations` with the programs that they are for.
//!
//! The agent on the bench is scraped by Prometheus, and its text is checked by promtool and pushed to the Pushgateway,
//! of Debian's packages. promtool also loads the rules, evaluates every alert on series that are made up
//! (`alerts.yml`), and parses every expression of the dashboard. Grafana is in no package registry, but its types for
//! TypeScript are. With them the compiler proves that each field of the dashboard and of its panels exists and has the
//! right type, or one of the values of an enumeration, and that no required field is missing (`dashboard.ts`). It does
//! not prove that Grafana shows the dashboard as intended, nor that units and colors exist, which are any text.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::bench;
use xtask::{demo, files, prerequisites, run, workspace::Workspace};

/// The packages of npm, with their releases. Grafana's types lack those of its data source for Prometheus, which its
/// foundation SDK has.
const NPM: [&str; 3] = ["@grafana/schema@13.2.3", "@grafana/grafana-foundation-sdk@0.0.21", "typescript@5.9.3"];

/// A collector of OpenTelemetry, in a package of PyPI.
const ROTEL: &str = "rotel==0.0.1a15";

/// Series, and the alerts that they must raise.
const ALERTS: &str = include_str!("alerts.yml");

/// Types, to which the dashboard is appended.
const TYPES: &str = include_str!("dashboard.ts");

/// Damages to the text of the dashboard that the compiler must notice, each by another rule.
const DAMAGES: [(&str, &str); 6] = [
    (r#""legendFormat":"#, r#""legend":"#),
    (r#""drawStyle":"line""#, r#""drawStyle":"lines""#),
    (r#""textMode":"#, r#""textmode":"#),
    (r#""calcs":["lastNotNull"]"#, r#""calcs":"lastNotNull""#),
    (r#""refresh":2"#, r#""refresh":9"#),
    (r#""graphTooltip":"#, r#""tooltip":"#),
];

/// Checks the rules and the dashboard.
pub fn run(workspace: &Workspace) -> Result<()> {
    prerequisites::for_monitoring(workspace)?;
    let folder = workspace.tools().join("monitoring");
    files::make_folder(&folder)?;
    let programs = programs(&folder)?;
    let promtool = programs.join("promtool");
    servers(workspace, &folder, &programs)?;
    let integrations = workspace.root().join("integrations");
    let dashboard = files::read_text(&integrations.join("grafana/halprof.json"))?;
    let dashboard: Value = serde_json::from_str(&dashboard).context("the dashboard is not JSON")?;
    let alerts = rules(&promtool, &folder, &integrations.join("prometheus/halprof.rules.yml"))?;
    let expressions = expressions(&promtool, &folder, &dashboard)?;
    let panels = types(&folder, dashboard)?;
    println!(
        "promtool runs {alerts} alerts and parses {expressions} expressions; {panels} panels have Grafana's types"
    );
    Ok(())
}

/// Lets Prometheus scrape the agent on the bench, the Pushgateway take its text, and a collector of OpenTelemetry
/// receive what it exports.
fn servers(workspace: &Workspace, folder: &Path, programs: &Path) -> Result<()> {
    let collector = folder.join("collector");
    let wheel = collector.join("rotel/rotel-agent");
    if !wheel.is_file() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--break-system-packages", "--target"]);
        run::verbose(pip.arg(&collector).arg(ROTEL))?;
    }
    let mut tests = bench::tests(workspace, &["agent::"])?;
    for (variable, name) in [
        ("HALPROF_PROMETHEUS", "prometheus"),
        ("HALPROF_PROMTOOL", "promtool"),
        ("HALPROF_PUSHGATEWAY", "prometheus-pushgateway"),
    ] {
        tests.env(variable, programs.join(name));
    }
    tests.env("HALPROF_ROTEL", wheel);
    demo::on_bench(workspace, &mut tests)
}

/// Unpacks Prometheus, promtool and the Pushgateway, and returns their folder. The package lists are for this call
/// only, so that it needs no privileges.
fn programs(folder: &Path) -> Result<PathBuf> {
    const PACKAGES: [&str; 2] = ["prometheus", "prometheus-pushgateway"];
    let unpacked = folder.join("prometheus");
    let programs = unpacked.join("usr/bin");
    let is_there = || ["promtool", "prometheus-pushgateway"].iter().all(|name| programs.join(name).is_file());
    if is_there() {
        return Ok(programs);
    }
    let (lists, cache, packages) = (folder.join("apt-lists"), folder.join("apt-cache"), folder.join("packages"));
    files::remove_folder(&packages)?;
    for folder in [&lists.join("partial"), &cache.join("archives/partial"), &packages] {
        files::make_folder(folder)?;
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-o").arg(format!("Dir::State::Lists={}", lists.display()));
        command.arg("-o").arg(format!("Dir::Cache={}", cache.display()));
        command.args(arguments).current_dir(&packages);
        command
    };
    run::quiet(&mut apt(&["update"]))?;
    run::quiet(apt(&["download"]).args(PACKAGES))?;
    for package in std::fs::read_dir(&packages)? {
        run::quiet(Command::new("dpkg").arg("--extract").args([&package?.path(), &unpacked]))?;
    }
    ensure!(is_there(), "the packages {PACKAGES:?} have no promtool or no prometheus-pushgateway in usr/bin");
    Ok(programs)
}

/// Checks the rules, and that each alert is raised where it should be. Returns the number of alerts.
fn rules(promtool: &Path, folder: &Path, rules: &Path) -> Result<usize> {
    let text = files::read_text(rules)?;
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    ensure!(names.len() > 10, "{} has only the alerts {names:?}", rules.display());
    for name in &names {
        ensure!(ALERTS.contains(name), "no test raises the alert {name}");
    }
    // The tests name the rules beside them.
    files::write(&folder.join("halprof.rules.yml"), &text)?;
    files::write(&folder.join("alerts.yml"), ALERTS)?;
    run::verbose(Command::new(promtool).args(["check", "rules", "halprof.rules.yml"]).current_dir(folder))?;
    run::verbose(Command::new(promtool).args(["test", "rules", "alerts.yml"]).current_dir(folder))?;
    // Rules that never raise an alert must fail the tests.
    files::write(&folder.join("halprof.rules.yml"), text.replace(" > ", " < "))?;
    fails(Command::new(promtool).args(["test", "rules", "alerts.yml"]).current_dir(folder))?;
    Ok(names.len())
}

/// Has promtool parse the expressions of the dashboard as rules. Returns their number.
fn expressions(promtool: &Path, folder: &Path, dashboard: &Value) -> Result<usize> {
    let mut expressions: Vec<&str> = Vec::new();
    for panel in items(dashboard)? {
        let targets = panel.get("targets").and_then(Value::as_array).into_iter().flatten();
        expressions.extend(targets.filter_map(|target| target.get("expr")?.as_str()));
    }
    ensure!(expressions.len() > 20, "the dashboard has only the expressions {expressions:?}");
    let check = |expressions: &[&str]| {
        // Grafana replaces its variable by a range. Its other variables are within texts.
        let ranged = expressions.iter().map(|expression| expression.replace("$__rate_interval", "5m"));
        let named = ranged.enumerate().map(|(index, expr)| json!({ "record": format!("panel:{index}"), "expr": expr }));
        let rules: Vec<Value> = named.collect();
        // JSON is YAML.
        let text = json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string();
        files::write(&folder.join("dashboard.rules.yml"), text)?;
        let mut command = Command::new(promtool);
        command.args(["check", "rules", "dashboard.rules.yml"]).current_dir(folder);
        anyhow::Ok(command)
    };
    fails(&mut check(&["rate(halprof_events_total)"])?)?;
    run::verbose(&mut check(&expressions)?)?;
    Ok(expressions.len())
}

/// Compares the dashboard with Grafana's types. Returns the number of panels, with the headings.
fn types(folder: &Path, mut dashboard: Value) -> Result<usize> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--silent", "--prefix"]).arg(folder).args(NPM);
    run::verbose(&mut npm)?;
    let panels = dashboard.get_mut("panels").map(Value::take).context("the dashboard has no panels")?;
    let panels = panels.as_array().context("the panels are no list")?;
    if let Some(frame) = dashboard.as_object_mut() {
        frame.remove("panels");
    }
    let mut values = format!("export const dashboard: Frame = {dashboard};\n");
    for (index, panel) in panels.iter().enumerate() {
        let of = match panel.get("type").and_then(Value::as_str) {
            Some("row") => "Row",
            Some("timeseries") => "TimeSeries",
            Some("stat") => "Stat",
            other => bail!("no type is known for the panel {other:?}"),
        };
        writeln!(values, "export const panel{index}: {of} = {panel};")?;
    }
    let compiler = |name: &str, values: &str| {
        files::write(&folder.join(name), format!("{TYPES}{values}"))?;
        let mut command = Command::new("node");
        command.args([
            "node_modules/typescript/bin/tsc",
            "--noEmit",
            "--strict",
            "--skipLibCheck",
            "--pretty",
            "false",
        ]);
        command.args(["--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", name]);
        command.current_dir(folder);
        anyhow::Ok(command)
    };
    run::verbose(&mut compiler("dashboard.ts", &values)?)?;
    for (whole, damaged) in DAMAGES {
        ensure!(values.contains(whole), "the dashboard has no {whole} to damage");
        fails(&mut compiler("damaged.ts", &values.replacen(whole, damaged, 1))?)
            .with_context(|| format!("{whole} is now {damaged}"))?;
    }
    Ok(panels.len())
}

fn items(dashboard: &Value) -> Result<&Vec<Value>> {
    dashboard.get("panels").and_then(Value::as_array).context("the dashboard has no panels")
}

/// Checks that a program finds a fault: it must start, and say so by its exit code.
fn fails(command: &mut Command) -> Result<()> {
    let output = command.output().context("cannot start a check that must fail")?;
    ensure!(output.status.code().is_some_and(|code| code != 0), "a check accepts what is damaged");
    Ok(())
}
