//! The main job, shown: install, look, count, uninstall; each line as one would type it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use processors::Identity;
use serde_json::Value;
use tests::{Lab, package};

/// Show halprof at work.
#[derive(Parser)]
struct Arguments {
    /// Processors to show it on, by their names in lab/processors
    #[arg(
        long = "processor",
        value_name = "NAME",
        default_values = ["haswell-4710mq", "amd-legacy"],
        value_parser = processors::named
    )]
    processors: Vec<&'static Identity>,
    /// One after the other, a processor of each generation
    #[arg(long, conflicts_with = "processors")]
    generations: bool,
}

/// Command lines of the client, in order, and what each is for.
const STEPS: [(&str, &[&str]); 13] = [
    ("Copy the driver, make its service, start it.", &["install"]),
    ("Which profile interface was chosen, and why?", &["info"]),
    ("What can be counted here?", &["list"]),
    ("Count until told otherwise, whoever asks later.", &["start", "TotalIssues", "BranchInstructions:u"]),
    ("Who counts what?", &["status"]),
    ("What has been counted so far? (another run of the client)", &["read", "--per-cpu"]),
    ("Stop one, with its final counts,", &["stop", "BranchInstructions"]),
    ("then all that is left.", &["stop", "--all"]),
    ("Count while a command runs.", &["stat", "--", "cmd", "/c", "for /L %i in (1,1,20000) do @rem"]),
    ("The same for programs.", &["stat", "-e", "TotalIssues", "--csv", "--", "cmd", "/c", "ver"]),
    ("Sample: where are the processors at every four millionth instruction?", &RECORD),
    ("There, by process, module and symbol.", &["report", RECORDING, "--error"]),
    ("Stop the driver, delete its service, remove its file.", &["uninstall"]),
];

/// The same on a processor that records by itself; before the last of [`STEPS`].
const RECORDED: [(&str, &[&str]); 4] = [
    ("What does the processor record by itself?", &["control-area"]),
    ("Which branches does processor 0 take most?", &["branches", "-C", "0", "--duration", "1", "--top", "5"]),
    ("Sample by the records of the processor,", &PRECISE),
    ("and see how far from it they are, and where.", &["report", PRECISELY, "--limit", "5"]),
];

const PRECISELY: &str = "C:\\windows\\temp\\precise.rec";
const PRECISE: [&str; 8] = ["record", "-a", "--duration", "1", "-e", "InstructionRetired:p@4M", "-o", PRECISELY];

const RECORDING: &str = "C:\\windows\\temp\\halprof.rec";
const RECORD: [&str; 8] = ["record", "-a", "--duration", "1", "-e", "TotalIssues@4M", "-o", RECORDING];

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if cfg!(windows) {
        println!("halprof.sys and client.exe on this machine's own processor.");
        let client = package()?.join("client.exe");
        // Whether Windows lets the processor record by itself is not for a demonstration to find out.
        return show(|| Ok(false), |arguments| on_windows(&client, arguments));
    }
    println!("halprof.sys and client.exe, byte for byte as they ship, under Wine on this machine.");
    println!("THE COUNTERS ARE A MODEL'S: no performance counter of this computer is read. A model of the");
    println!("processor named below answers the driver's CPUID, RDMSR, WRMSR and RDPMC instructions, and its");
    println!("events happen at made-up rates as time goes by. So is made up what an interrupt finds: target.exe, a");
    println!("program of the bench, in its functions alpha, beta and gamma 45 : 30 : 15 times, else the kernel.");
    let chosen: Vec<&str> = arguments.processors.iter().map(|identity| identity.name).collect();
    for name in if arguments.generations { &processors::GENERATIONS[..] } else { &chosen } {
        println!("\n======== {name} ========");
        let mut lab = Lab::boot(name)?;
        let target = lab.target()?;
        for processor in 0..lab.processors()? {
            lab.wire.set_scene(processor, &target.places())?;
        }
        lab.live()?;
        let client = |arguments: &[&str]| {
            let ran = lab.client(arguments)?;
            print!("{}{}", beginning(&ran.out), ran.err);
            Ok(ran.code)
        };
        show(|| records(&lab), client)?;
        drop(target);
        lab.finish()?;
    }
    println!("\nThe driver left no memory, no counter and no handler behind, and called nothing above its IRQL.");
    Ok(())
}

/// Whether the processor has all of the Debug Store, as the driver found.
fn records(lab: &Lab) -> Result<bool> {
    let told = lab.client(&["control-area", "--json"])?.json()?;
    let areas = told.get("areas").and_then(Value::as_array).context("areas")?;
    let has = |area: &Value, name: &str| area.get(name).is_some_and(|it| *it != false && !it.is_null());
    Ok(areas.iter().all(|area| has(area, "branches") && has(area, "precise_format")))
}

fn show(records: impl Fn() -> Result<bool>, client: impl Fn(&[&str]) -> Result<i32>) -> Result<()> {
    let step = |(purpose, arguments): &(&str, &[&str])| {
        println!("\n# {purpose}\n> client {}", arguments.join(" "));
        let code = client(arguments)?;
        ensure!(code == 0, "client {} exited with {code}", arguments.join(" "));
        Ok(())
    };
    let (last, first) = STEPS.split_last().context("steps")?;
    first.iter().try_for_each(step)?;
    if records()? {
        RECORDED.iter().try_for_each(step)?;
    }
    step(last)
}

/// All of it, or of a long table what fits a screen.
fn beginning(text: &str) -> String {
    const ENOUGH: usize = 18;
    let lines: Vec<&str> = text.lines().collect();
    match lines.get(..ENOUGH) {
        Some(first) if lines.len() > ENOUGH + 2 => {
            format!("{}\n[... and {} more lines]\n", first.join("\n"), lines.len() - ENOUGH)
        }
        _ => text.to_owned(),
    }
}

fn on_windows(client: &Path, arguments: &[&str]) -> Result<i32> {
    let status = Command::new(client).args(arguments).status();
    Ok(status.with_context(|| format!("cannot start {}", client.display()))?.code().unwrap_or(-1))
}
