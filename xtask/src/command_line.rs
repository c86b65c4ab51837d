//! The command line of `cargo xtask`, of all its programs: each parses it whole and executes the commands that it has
//! the code for, so that help, errors and documents are the same for all.

mod fuzz;
mod interrupts;
mod mutate;
mod package;
mod proof;
mod vm;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use cpuid_dumps::CpuIdentity;

pub use self::{
    fuzz::{AddArguments, DriverArguments, FilesArguments, FuzzTarget, RequestArguments},
    interrupts::InterruptArguments,
    mutate::MutateArguments,
    package::{Extras, Repository},
    proof::ProofArguments,
    vm::VmArguments,
};

/// Build, test and show halprof. On Debian, missing packages are listed and installed first.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// A command of the repository.
#[derive(Subcommand)]
pub enum Command {
    /// Build the driver, the client and (on Linux) the test bench
    ///
    /// On Linux: installs what is missing, prepares a stand-in for the Windows Driver Kit under target/kit and puts the
    /// files into target/lab/artifacts. On Windows: builds the driver with the installed WDK and the client.
    Build,

    /// Run every check and every test
    ///
    /// Formatting, lints of all packages, the native tests, the build, the package, and the tests of the real driver
    /// from end to end. On Windows these run on this machine's own processor, from an elevated prompt, and those that
    /// need the model are listed with the reason. Stops at the first stage that fails, and ends with the duration of
    /// each.
    Test {
        /// Run the tests that need a program from outside, and no others
        ///
        /// Each program is installed first, below target/tools or with apt-get. On Linux these are libpfm4, with whose
        /// encodings of events ours are compared, and the programs that open exports: pprof, inferno, flameshow,
        /// gprof2dot, the code of Firefox's profiler, ajv, Chromium and speedscope. promtool runs the rules for
        /// Prometheus, and the dashboard is compared with Grafana's types. google/benchmark and criterion count on the
        /// bench with our integrations, and the examples in Python and C# run. cabextract, unzip and llvm-readobj open
        /// what `package` makes. cargo-make runs the tasks of Makefile.toml, `test` among them.
        #[arg(long)]
        consumers: bool,
    },

    /// Load the driver and run the main job
    ///
    /// Builds what is needed, then installs the driver, shows what it found, counts events and uninstalls it. On Linux
    /// this happens under Wine and the counters are those of a model; on Windows they are the machine's own.
    Demo {
        /// Name of the processor that the model simulates; the demo has a default
        #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
        processor: Option<&'static CpuIdentity>,
        /// Show a processor of each generation, one after the other
        #[arg(long, conflicts_with = "processor")]
        generations: bool,
    },

    /// Open a shell in which `client` talks to the driver on a processor of the model
    ///
    /// Builds what is needed, and installs the driver under Wine on Linux. At the end of the shell the driver is
    /// removed, and it is checked that it left nothing behind. Counts and rates are simulated. `workload` is a program
    /// to count and sample: `client record -- workload`.
    Lab {
        /// The processor: its name, or the beginning of only one name
        #[arg(long, value_name = "NAME", default_value = "zen4", value_parser = cpuid_dumps::parse_beginning)]
        processor: &'static CpuIdentity,
        /// List the processors
        #[arg(long)]
        list: bool,
        /// Run this command instead of a shell, such as `client info`
        #[arg(trailing_var_arg = true, conflicts_with = "list")]
        command: Vec<String>,
    },

    /// Make the folder to take to a Windows machine
    ///
    /// Builds everything, signs the driver with a certificate for tests that is made on this machine once, checks the
    /// signature, and puts driver, client, halprof.inf, the catalog, the certificate and instructions into
    /// target/package.
    Package {
        /// What is made besides
        #[command(flatten)]
        extras: Extras,
    },

    /// Install the driver on this machine and start it
    ///
    /// On Windows, from an elevated prompt: makes the package, then calls its client. docs/windows.md describes
    /// the settings of Windows that it needs.
    Install,

    /// Stop the driver on this machine and remove it
    ///
    /// On Windows, from an elevated prompt.
    Uninstall,

    /// Run everything in a virtual machine with Windows, and report a verdict for each claim
    ///
    /// Makes the package and the end-to-end tests as a program, so that the guest needs neither Rust nor the WDK.
    /// Copies both to the guest, runs the steps of docs/windows.md there, and collects their output and crash dumps.
    /// The report is target/vm/NAME/report.html, and report.json beside it. A run that was ended goes on where it was.
    /// Reaches a machine of Hyper-V by PowerShell Direct, from an elevated prompt, and any other by SSH.
    Vm(VmArguments),

    /// Run at length what `test` runs briefly
    ///
    /// Builds the driver twice and compares the files, runs the property tests with 20,000 cases each, the demo on a
    /// processor of each generation, the end-to-end tests three times with more rounds and every processor of the
    /// model, the concurrency models with more preemptions, every fuzzer, and the consumer tests. Takes hours.
    Soak,

    /// Interrupt the driver at every instruction
    ///
    /// Steps through the calls into the driver under Wine, with an overflow of a counter before each instruction, and
    /// compares the driver's account with the model's ledger after each. Prints a table for an Intel and an AMD
    /// processor.
    Interrupts(InterruptArguments),

    /// Make the manifest of a release: what was checked of this halprof.sys, with commands and results
    ///
    /// Builds the driver, and runs audits, tests, fuzzers, Miri and sweeps of interrupts for a stated time. The
    /// manifest proof.json names the driver by its SHA-256. It is signed as the package is and put into the package,
    /// and docs/proof.md gets its table. A stage that was not run is listed as such.
    Proof(ProofArguments),

    /// Look for input for which a law does not hold
    Fuzz {
        /// What to fuzz
        #[command(subcommand)]
        target: FuzzTarget,
    },

    /// Make deliberate faults, and list those that no test notices
    ///
    /// Tries a sample of the mutants of a package against its tests and those of its dependents. A run that was ended
    /// goes on where it was. The report is target/mutants/AREA/report.txt. Fails if less than 95 % are noticed.
    Mutate(MutateArguments),

    /// Generate the tables of event constraints from the facts in crates/events/facts and crates/pmu/facts
    Constraints,

    /// Generate the tables of events from the facts in crates/events/facts
    Events {
        /// Make the facts first, from a folder with tables of Intel's and AMD's events
        #[arg(long, value_name = "FOLDER")]
        import: Option<PathBuf>,
        /// Compare with the tables that are there instead of writing them
        #[arg(long)]
        check: bool,
    },

    /// Count the instructions of starts, stops, reads and interrupts
    ///
    /// On Linux, under callgrind: how many each takes on one processor besides its accesses to model-specific
    /// registers. The figures repeat exactly. BENCHMARKS.md explains them.
    Bench {
        /// Measure times as well, which takes some minutes and does not repeat
        #[arg(long)]
        time: bool,
    },

    /// Reproduce surprises of outside programs
    ///
    /// Runs the scripts in findings/, which install pinned packages in temporary folders and look at them without
    /// halprof. Prints a table, and fails if one of them behaves differently now. The output is in target/findings.
    Findings {
        /// Names of scripts without `.sh`; all if there is none
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },

    /// Stop the test bench's Wine and remove target/lab
    ///
    /// Removes the built files and the Wine prefix, nothing else. The next build or demo creates them again.
    CleanLab,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;
    use serde_json::Value;

    use super::*;

    const TASKS: &str = include_str!("../../Makefile.toml");

    const DOCUMENTS: [(&str, &str); 10] = [
        ("README.md", include_str!("../../README.md")),
        ("CONTRIBUTING.md", include_str!("../../CONTRIBUTING.md")),
        ("CHANGELOG.md", include_str!("../../CHANGELOG.md")),
        ("docs/proof.md", include_str!("../../docs/proof.md")),
        ("BENCHMARKS.md", include_str!("../../BENCHMARKS.md")),
        ("docs/windows.md", include_str!("../../docs/windows.md")),
        ("docs/release.md", include_str!("../../docs/release.md")),
        ("docs/security.md", include_str!("../../docs/security.md")),
        ("docs/etw.md", include_str!("../../docs/etw.md")),
        ("docs/guide/README.md", include_str!("../../docs/guide/README.md")),
    ];

    fn tasks() -> BTreeMap<String, Value> {
        let mut file: BTreeMap<String, BTreeMap<String, Value>> = toml::from_str(TASKS).unwrap();
        file.remove("tasks").unwrap()
    }

    /// Returns the calls of this command in a document: lines that begin with it, and code between backquotes.
    fn calls<'a>(text: &'a str, command: &str) -> Vec<Vec<&'a str>> {
        let spans = text.lines().flat_map(|line| line.split('`'));
        let found = spans.filter_map(|span| span.trim().strip_prefix(command)?.strip_prefix(' '));
        found.map(|words| words.split('#').next().unwrap_or_default().split_whitespace().collect()).collect()
    }

    #[test]
    fn every_command_that_a_document_names_is_there() {
        let tasks = tasks();
        let mut found = (0, 0);
        for (document, text) in DOCUMENTS {
            for words in calls(text, "cargo xtask") {
                found.0 += 1;
                let line = ["cargo xtask"].into_iter().chain(words.iter().copied());
                assert!(Arguments::try_parse_from(line).is_ok(), "{document}: cargo xtask {words:?}");
            }
            for words in calls(text, "cargo make") {
                found.1 += 1;
                let [task] = words.as_slice() else { panic!("{document}: cargo make {words:?}") };
                assert!(tasks.contains_key(*task), "{document}: cargo make {task}");
            }
        }
        assert!(found.0 > 5 && found.1 > 2, "{found:?}");
    }

    #[test]
    fn a_demo_of_an_unknown_processor_is_refused_with_the_nearest_ones_before_anything_is_built() {
        let parse = |name| Arguments::try_parse_from(["cargo xtask", "demo", "--processor", name]);
        assert!(parse("zen4-7700x").is_ok());
        let refused = parse("zen4").err().unwrap().to_string();
        assert!(refused.starts_with("error: invalid value 'zen4' for '--processor <NAME>': no processor"), "{refused}");
        assert!(refused.contains("the nearest ones: zen4-7700x, "), "{refused}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_task_of_cargo_make_is_a_command_of_xtask_and_takes_arguments() {
        let tasks = tasks();
        for name in ["build", "sign", "package", "install", "test", "uninstall", "demo", "vm-test"] {
            assert!(tasks.contains_key(name), "{name}");
        }
        for (name, task) in &tasks {
            if let Some(other) = task.get("run_task") {
                assert!(tasks.contains_key(other.as_str().unwrap()), "{name}");
                continue;
            }
            assert_eq!(task["command"], "cargo", "{name}");
            let words: Vec<&str> = task["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
            // `${@}` stands for what the user adds.
            let ["xtask", words @ .., "${@}"] = words.as_slice() else { panic!("{name} calls {words:?}") };
            let line = ["cargo xtask"].into_iter().chain(words.iter().copied());
            assert!(Arguments::try_parse_from(line).is_ok(), "{name}");
        }
    }

    #[test]
    fn cargo_make_runs_tasks_at_the_root_and_not_in_each_member() {
        let file: BTreeMap<String, Value> = toml::from_str(TASKS).unwrap();
        assert_eq!(file["config"]["default_to_workspace"], false);
    }
}
