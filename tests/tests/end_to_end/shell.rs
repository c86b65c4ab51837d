//! The commands of `cargo xtask lab`, as a stranger types them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::Shell;

/// Runs a line of a Unix shell with an input that stays open. Returns its exit code and what it printed.
fn typed(lab: &mut Shell, line: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let file = File::create(&path).unwrap();
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line]).stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file);
    let code = lab.run(shell).unwrap().code().unwrap();
    (code, fs::read_to_string(path).unwrap().replace("\r\n", "\n"))
}

/// Returns the processes with samples in `alpha`, and the core types of the sources, from `report --json`.
fn sampled(report: &str) -> (BTreeSet<u64>, Vec<String>) {
    let report: Value = serde_json::from_str(report).unwrap();
    let sources = report["sources"].as_array().unwrap();
    let rows = sources.iter().flat_map(|source| source["rows"].as_array().unwrap());
    let alpha = rows.filter(|row| row["symbol"].as_str().is_some_and(|symbol| symbol.contains("alpha")));
    let core_types = sources.iter().map(|source| source["core_type"].as_str().unwrap().to_owned());
    (alpha.map(|row| row["process"].as_u64().unwrap()).collect(), core_types.collect())
}

#[test]
fn a_stranger_counts_and_samples_a_workload_on_a_processor_with_two_core_types() {
    let mut lab = Shell::open("alder-lake-p-12900h").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("w.rec").display().to_string();
    let mut done = |line: &str| {
        let (code, said) = typed(&mut lab, line);
        assert_eq!(code, 0, "{line}: {said}");
        said
    };
    done("client install");

    let help = done("workload --help");
    assert!(help.contains("workload [SECONDS]") && help.contains("alpha"), "{help}");
    let counted = done("client stat -e cycles -- workload 1");
    for part in ["workload: executed", "cpu_core is CPU 0, cpu_atom CPU 1", "cpu_core/cycles/", "cpu_atom/cycles/"] {
        assert!(counted.contains(part), "{part}: {counted}");
    }
    let info = done("client info");
    assert!(info.contains("11 on each cpu_core, 9 on each cpu_atom processor"), "{info}");

    // Without the driver the client knows the processor by CPUID alone, which Wine's programs execute themselves.
    for (line, parts) in [
        ("client encode cycles", ["cpu_core", "cpu_atom"]),
        ("client list MEM_LOAD", ["MEM_LOAD_RETIRED.L1_MISS ", "MEM_LOAD_UOPS_RETIRED.L1_MISS "]),
        ("client diagnose", ["i9-12900H", "the machine also has processors of the other type"]),
    ] {
        let said = done(line);
        assert!(parts.iter().all(|part| said.contains(part)), "{line}: {said}");
    }

    let report = format!("client report {recording} --sort process,symbol --json");
    done(&format!("client record -a --duration 0.2s -o {recording}"));
    let (usual, _) = sampled(&done(&report));
    done(&format!("client record -g -o {recording} -- workload 1"));
    let (processes, core_types) = sampled(&done(&report));
    assert_eq!(processes.difference(&usual).count(), 1, "{usual:?}, then {processes:?}");
    assert_eq!(core_types, ["cpu_core", "cpu_atom"]);
    let called = done(&format!("client report {recording} --children --sort module,symbol"));
    let kernel = ["KeWaitForSingleObject", "ExAcquireResourceExclusiveLite", "IofCallDriver"];
    assert!(kernel.iter().all(|name| called.contains(name)) && !called.contains("[unknown]"), "{called}");

    let (code, said) = typed(&mut lab, "client selftest --cpu 0");
    assert_eq!(code, 28, "{said}");
    assert!(said.starts_with("lab: the model does not execute the loops of selftest"), "{said}");
    lab.finish().unwrap();
}
