//! The modules that are skipped on Windows because their tests need the model.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

/// Module, its source text, and the reason why its tests need the model or the bench.
const NEED_THE_MODEL: [(&str, &str, &str); 54] = [
    ("accesses", include_str!("accesses.rs"), "the model accesses the memory"),
    ("added", include_str!("added.rs"), "the bench adds processors"),
    ("agent", include_str!("agent.rs"), "the model reports the events to count"),
    ("bad_input", include_str!("bad_input.rs"), "half of the events are missing from its processor"),
    ("bench", include_str!("bench.rs"), "the bench itself is under test"),
    ("c_programs", include_str!("c_programs.rs"), "the bench schedules the threads of the program"),
    ("conditions", include_str!("conditions.rs"), "the model has the ratios of its phases"),
    ("counts", include_str!("counts.rs"), "the model reports the events to count"),
    ("debug_store", include_str!("debug_store.rs"), "the model writes the records"),
    ("device", include_str!("device.rs"), "the bench chooses the caller's privileges and watches the memory"),
    ("extra", include_str!("extra.rs"), "the model has the registers"),
    ("faults", include_str!("faults.rs"), "the bench makes calls of the kernel fail"),
    ("generations", include_str!("generations.rs"), "the processor changes, and the model makes every event occur"),
    ("groups", include_str!("groups.rs"), "the model reports the events to count"),
    ("guarded", include_str!("guarded.rs"), "the processor lacks registers that it enumerates"),
    ("hidden", include_str!("hidden.rs"), "the model has the counters that CPUID hides"),
    ("hybrid", include_str!("hybrid.rs"), "the machine has processors of two core types"),
    ("identities", include_str!("identities.rs"), "the processor changes"),
    ("interrupt_sites", include_str!("interrupt_sites.rs"), "the model reports the interrupted code"),
    ("interruptions", include_str!("interruptions.rs"), "the bench counts what interrupts the processors"),
    ("interrupts", include_str!("interrupts.rs"), "the model decides how interrupts behave at a masked entry"),
    ("intervals", include_str!("intervals.rs"), "the model counts at constant rates"),
    ("last_branches", include_str!("last_branches.rs"), "the model takes the branches"),
    ("life", include_str!("life.rs"), "the model reports the counters that are enabled after a client dies"),
    ("live", include_str!("live.rs"), "the model has the registers of another program"),
    ("ops", include_str!("ops.rs"), "the model executes the loads"),
    ("local_apic", include_str!("local_apic.rs"), "the local APIC is part of the model"),
    ("metrics", include_str!("metrics.rs"), "the model reports the events to count"),
    ("movement", include_str!("movement.rs"), "the model has the counters that do not count"),
    ("multiplexing", include_str!("multiplexing.rs"), "the model counts at known rates"),
    ("names", include_str!("names.rs"), "the model reports the events to count"),
    ("own_hal", include_str!("own_hal.rs"), "the bench schedules the threads, and stands in for the HAL's sources"),
    (
        "own_hal_samples",
        include_str!("own_hal_samples.rs"),
        "the bench schedules the threads, and stands in for the HAL's sources",
    ),
    ("off_cpu", include_str!("off_cpu.rs"), "the bench schedules the threads"),
    ("ownership", include_str!("ownership.rs"), "the bench decides which driver has the counters"),
    ("power", include_str!("power.rs"), "the bench sends the machine to sleep"),
    ("record", include_str!("record.rs"), "the model reports where the interrupts fell"),
    ("sampling", include_str!("sampling.rs"), "the model raises the interrupts"),
    ("selftest", include_str!("selftest.rs"), "the model has the events of the loops"),
    ("shell", include_str!("shell.rs"), "the lab's shell is under test"),
    ("sources", include_str!("sources.rs"), "the model makes every event occur"),
    ("stacks", include_str!("stacks.rs"), "the bench has the stacks, and stands in for Event Tracing for Windows"),
    ("stand_ins", include_str!("stand_ins.rs"), "the bench itself is under test"),
    ("stepping", include_str!("stepping.rs"), "the bench steps through the driver"),
    ("storms", include_str!("storms.rs"), "the bench disturbs the machine and watches the driver"),
    ("tasks", include_str!("tasks.rs"), "the model decides which code runs on which processor"),
    ("threads", include_str!("threads.rs"), "the bench schedules the threads, and stands in for thread profiling"),
    ("time", include_str!("time.rs"), "the bench has the clock, the timers and the interrupted code"),
    ("teardown", include_str!("teardown.rs"), "the bench watches what an unload leaves"),
    ("top", include_str!("top.rs"), "the model raises the interrupts"),
    ("tracing", include_str!("tracing.rs"), "the bench receives the events and has the stacks"),
    ("unwinding", include_str!("unwinding.rs"), "it compares with the unwinder of Wine"),
    ("waiting", include_str!("waiting.rs"), "the model raises the interrupts that are waited for"),
    ("workarounds", include_str!("workarounds.rs"), "the model has the errata of its processors"),
];

/// Returns the names of the tests in a source text.
fn tests_in(text: &str) -> Vec<&str> {
    let parts = text.split("#[test]").skip(1);
    parts.filter_map(|part| part.split_once("fn ")?.1.split_once('(')).map(|(name, _)| name).collect()
}

#[test]
fn tests_that_need_the_model_are_named_with_the_reason() {
    for (module, text, reason) in NEED_THE_MODEL {
        let names = tests_in(text);
        assert!(!names.is_empty(), "{module} has no tests");
        for name in names.into_iter().filter(|_| cfg!(windows)) {
            // The test harness hides the output of `println` if the test passes.
            writeln!(stdout(), "skipped: {module}::{name}: needs the model: {reason}").unwrap();
        }
    }
}

#[test]
fn every_module_that_needs_the_lab_is_skipped_on_windows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end");
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.is_file()) {
        let module = path.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let boots = text
            .lines()
            .any(|line| line.starts_with("use tests::") && ["Lab", "Shell"].iter().any(|one| line.contains(one)));
        let named = NEED_THE_MODEL.iter().any(|(name, ..)| *name == module);
        let left_out = main.replace('\r', "").contains(&format!("#[cfg(not(windows))]\nmod {module};"));
        assert_eq!((named, left_out), (boots, boots), "{module}");
    }
}
