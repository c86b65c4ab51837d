//! The lab for users: a shell in which `client` talks to the driver on a chosen processor of the model.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use tests::Shell;

/// Open a shell beside a running driver
#[derive(Parser)]
struct Arguments {
    /// The processor, by its name in lab/machine/cpuid-dumps
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    processor: &'static CpuIdentity,
    /// Run this instead of a shell
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What the lab says is on standard error, because standard output is the command's.
fn run(Arguments { processor, command }: &Arguments) -> Result<ExitCode> {
    let mut lab = Shell::open(processor.name)?;
    let installed = lab.run(Command::new("client").arg("install").stdout(std::io::stderr()))?;
    ensure!(installed.success(), "the driver cannot be installed");
    eprintln!("\nhalprof runs under Wine, on a model of {}.", processor.name);
    eprintln!(
        "ALL COUNTS AND RATES ARE SIMULATED: a second has a fixed number of events, whatever a program does, and"
    );
    eprintln!("the samples are in workload.exe and the kernel, in fixed shares.\n");

    let shell = env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
    let (program, arguments) = command.split_first().unwrap_or((&shell, &[]));
    if command.is_empty() {
        eprintln!("Some commands to try; `exit` ends the lab:\n");
        for line in ["info", "stat -e cycles -- workload", "record -g -- workload", "report --children", "--help"] {
            eprintln!("  client {line}");
        }
        eprintln!();
    }
    let ended = lab.run(Command::new(program).args(arguments))?;
    lab.finish()?;
    eprintln!("The driver left no memory, counter or handler behind and called no function at too high an IRQL.");
    // The status of a shell is that of its last command.
    let code = if command.is_empty() { Some(0) } else { ended.code() };
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
