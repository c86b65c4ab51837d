//! The lab for users: a shell in which `client` talks to the driver on a chosen processor of the model.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use bench_protocol::TraceScript;
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use tests::{Lab, package};

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

fn run(Arguments { processor, command }: &Arguments) -> Result<ExitCode> {
    let mut lab = Lab::boot(processor.name)?;
    let workload = lab.workload()?;
    lab.execute_with_stacks(&workload)?;
    lab.run_in_real_time()?;
    let folder = commands(&lab)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder.clone()].into_iter().chain(env::split_paths(&path)))?;
    let client = package()?.join("client.exe");
    let installed = lab.run_traced(&client.to_string_lossy(), &TraceScript::default(), &["install"])?.success()?;
    print!("{}{}", installed.out, installed.err);

    let shell = env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
    let (program, arguments) = command.split_first().unwrap_or((&shell, &[]));
    if command.is_empty() {
        println!("\nhalprof runs on a model of {}. THE COUNTERS ARE SIMULATED.", processor.name);
        println!("Some commands to try; `exit` ends the lab:\n");
        for line in ["info", "stat -- cmd /c dir", "record -g -a --duration 2s", "report --children", "--help"] {
            println!("  client {line}");
        }
        println!();
    }
    let ended = Command::new(program).args(arguments).env("PATH", path).status();
    let ended = ended.with_context(|| format!("cannot start {program}"))?;
    drop(workload);
    lab.finish()?;
    println!("The driver left no memory, counter or handler behind and called no function at too high an IRQL.");
    // The status of a shell is that of its last command.
    let code = if command.is_empty() { Some(0) } else { ended.code() };
    Ok(code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Makes a folder with the commands `client` and `halprof`, which run the package's client under Wine.
fn commands(lab: &Lab) -> Result<PathBuf> {
    let folder = lab.wine().drive_c("lab/bin");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // A Unix shell takes `.\client` of the documents for `.client`.
    for (name, file) in [("client", "client"), (".client", "client"), ("halprof", "halprof")] {
        let program = package()?.join(format!("{file}.exe"));
        let script = script(&lab.traced_program(&program.to_string_lossy(), &TraceScript::default())?());
        let path = folder.join(name);
        write_program(&path, &script).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}

fn write_program(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
    options.open(path)?.write_all(text.as_bytes())
}

/// Returns a shell script that runs a command with the arguments of the script.
fn script(command: &Command) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let set = |(name, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>)| {
        let name = name.to_string_lossy();
        value.map_or_else(
            || format!("unset {name}\n"),
            |value| format!("export {name}={}\n", quoted(&value.to_string_lossy())),
        )
    };
    let environment: String = command.get_envs().map(set).collect();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    format!("#!/bin/sh\n{environment}exec {} \"$@\"\n", words.join(" "))
}
