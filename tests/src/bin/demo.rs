//! The demo: install, inspect, count, sample, uninstall. Each command is printed as a user types it.

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use bench_protocol::TraceScript;
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use serde_json::Value;
use tests::{Lab, package};

/// Show halprof at work
#[derive(Parser)]
struct Arguments {
    /// Processors to show it on, by their names in lab/machine/cpuid-dumps
    #[arg(
        long = "processor",
        value_name = "NAME",
        default_values = ["haswell-4710mq", "amd-legacy"],
        value_parser = cpuid_dumps::parse_name
    )]
    processors: Vec<&'static CpuIdentity>,
    /// Show one processor of each generation after the other
    #[arg(long, conflicts_with = "processors")]
    generations: bool,
}

/// Commands of the client in order, each with its purpose.
const STEPS: [(&str, &[&str]); 16] = [
    ("Copy the driver, create its service and start it.", &["install"]),
    ("Which profile interface was chosen, and why?", &["info"]),
    ("What can be counted here?", &["list"]),
    ("Start counting, in a session that outlives this command.", &["start", "TotalIssues", "BranchInstructions:u"]),
    ("Which sessions are there?", &["status"]),
    ("Read the counts so far, from another run of the client.", &["read", "--per-cpu"]),
    ("Stop one event and print its final counts.", &["stop", "BranchInstructions"]),
    ("Stop everything else.", &["stop", "--all"]),
    ("Count while a command runs.", &["stat", "-a", "--", "cmd", "/c", "for /L %i in (1,1,20000) do @rem"]),
    ("The same, in a format for programs.", &["stat", "-e", "TotalIssues", "--csv", "--", "cmd", "/c", "ver"]),
    ("Sample where the processors are, every four million instructions.", &RECORD),
    ("Show the samples by process, module and symbol.", &["report", RECORDING, "--error"]),
    ("Sample with the callers of each function.", &CALLS),
    ("Show the functions with all that they call.", &REPORT_CALLS),
    ("Draw a flame graph of the calls.", &["flamegraph", CALLS_RECORDING, "-o", FLAME_GRAPH]),
    ("Stop the driver, delete its service and its file.", &["uninstall"]),
];

/// Further commands for a processor with a Debug Store, run before the last of [`STEPS`].
const RECORDED: [(&str, &[&str]); 4] = [
    ("What can the processor record by itself?", &["control-area"]),
    ("Which branches does CPU 0 take most often?", &["branches", "-C", "0", "--duration", "1s", "--top", "5"]),
    ("Sample with the processor's own records.", &PRECISE),
    ("Show these samples.", &["report", PRECISE_RECORDING, "--limit", "5"]),
];

const PRECISE_RECORDING: &str = "C:\\windows\\temp\\precise.rec";
const PRECISE: [&str; 8] =
    ["record", "-a", "--duration", "1s", "-e", "InstructionRetired:p@4M", "-o", PRECISE_RECORDING];

const RECORDING: &str = "C:\\windows\\temp\\halprof.rec";
const RECORD: [&str; 8] = ["record", "-a", "--duration", "1s", "-e", "TotalIssues@4M", "-o", RECORDING];

const CALLS_RECORDING: &str = "C:\\windows\\temp\\calls.rec";
const CALLS: [&str; 9] = ["record", "-g", "-a", "--duration", "1s", "-e", "TotalIssues@16M", "-o", CALLS_RECORDING];

const REPORT_CALLS: [&str; 7] = ["report", CALLS_RECORDING, "--children", "--sort", "symbol", "--limit", "9"];

/// The flame graph as a Windows path, and on Linux relative to drive C:.
const FLAME_GRAPH: &str = "C:\\windows\\temp\\calls.svg";
const FLAME_GRAPH_FILE: &str = "windows/temp/calls.svg";

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
        // The demo does not test whether Windows supports the Debug Store.
        return show(|| Ok(false), |arguments| on_windows(&client, arguments));
    }
    println!("halprof.sys and client.exe, byte for byte as they ship, under Wine on this machine.");
    println!("THE COUNTERS ARE SIMULATED: no performance counter of this computer is read. A model of the");
    println!("processor named below executes the driver's CPUID, RDMSR, WRMSR and RDPMC instructions, and its");
    println!("events occur at made-up rates. The interrupted code is made up as well: in 45, 30 and 15 % of the");
    println!("cases it is in the functions alpha, beta and gamma of workload.exe, otherwise in the kernel. Their");
    println!("callers are those that workload.exe has executed: run calls forward in 59 % of the cases and backward");
    println!("in 26 %, and descend in the others. A stand-in for Event Tracing for Windows delivers these stacks.");
    let chosen: Vec<&str> = arguments.processors.iter().map(|identity| identity.name).collect();
    for name in if arguments.generations { &cpuid_dumps::GENERATIONS[..] } else { &chosen } {
        println!("\n======== {name} ========");
        let mut lab = Lab::boot(name)?;
        let workload = lab.workload()?;
        for processor in 0..lab.processors()? {
            lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites())?;
        }
        lab.run_in_real_time()?;
        let program = package()?.join("client.exe");
        let program = program.to_string_lossy();
        let lab = RefCell::new(lab);
        let client = |arguments: &[&str]| {
            let mut lab = lab.borrow_mut();
            let ran = if arguments == CALLS {
                lab.execute_with_stacks(&workload.description)?;
                lab.run_traced(&program, &TraceScript::default(), arguments)?
            } else {
                lab.wine().run(&program, arguments)?
            };
            print!("{}{}", shortened(&ran.out), ran.err);
            Ok(ran.code)
        };
        show(|| records(&lab.borrow()), client)?;
        let lab = lab.into_inner();
        println!("\nThe flame graph is {}", lab.wine().drive_c(FLAME_GRAPH_FILE).display());
        drop(workload);
        lab.finish()?;
    }
    println!("\nThe driver left no memory, counter or handler behind and called no function at too high an IRQL.");
    Ok(())
}

/// Returns whether the driver found the complete Debug Store on every processor.
fn records(lab: &Lab) -> Result<bool> {
    let reply = lab.client(&["control-area", "--json"])?.json()?;
    let areas = reply.get("areas").and_then(Value::as_array).context("areas")?;
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

/// Returns the text, cut to what fits a screen.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 22;
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
