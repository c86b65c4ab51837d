//! `cargo xtask lab`: a shell beside a running driver. The program `lab` of the package `tests` starts it.

use std::io::{self, ErrorKind, Write};

use anyhow::{Result, ensure};
use cpuid_dumps::CpuIdentity;
use raw_cpuid::{CpuId, CpuIdResult};

use crate::{demo, workspace::Workspace};

/// Builds what is missing and runs `command`, or a shell, beside a driver on the processor `identity`.
pub fn run(workspace: &Workspace, identity: &CpuIdentity, command: &[String]) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench runs on Linux; here, `client` uses this machine's own processor");
    demo::bench(workspace, "lab")?;
    let mut program = workspace.cargo("run");
    program.args(["--quiet", "--locked", "--package", "tests", "--bin", "lab", "--"]);
    program.args(["--processor", identity.name, "--"]).args(command);
    demo::on_bench(workspace, &mut program)
}

/// Prints the processors of the test bench. It is no error if the reader closes the pipe.
pub fn list() -> Result<()> {
    let mut text = format!("{:36}{:10}{:>8}  Processor\n", "Name", "Interface", "Counters");
    for identity in cpuid_dumps::all() {
        let CpuIdentity { name, expected, .. } = identity;
        let line = format!("{name:36}{:10}{:>8}  {}", expected.interface, counters(identity), processor(identity));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the number of counters of each core type.
fn counters(identity: &CpuIdentity) -> String {
    let [even, odd] = [0, 1].map(|number| identity.of_processor(number).expected.counters.to_string());
    if identity.odd_processors.is_some() { format!("{even}+{odd}") } else { even }
}

/// Returns the brand string of a processor, cut to fit the line, or that it is made up.
fn processor(identity: &CpuIdentity) -> String {
    const WIDTH: usize = 24;
    let leaves = identity.cpuid();
    let cpuid = CpuId::with_cpuid_fn(|leaf, subleaf| {
        let [eax, ebx, ecx, edx] = leaves.cpuid(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    });
    let brand = cpuid.get_processor_brand_string();
    let brand = brand.as_ref().map_or("", |brand| brand.as_str().trim());
    let plain = brand.replace("(R)", "").replace("(TM)", "").replace("(tm)", "");
    let words: Vec<&str> = plain.split_whitespace().filter(|word| !["CPU", "Intel", "AMD"].contains(word)).collect();
    let text = if identity.real { words.join(" ") } else { "made up".to_owned() };
    text.chars().take(WIDTH).collect()
}
