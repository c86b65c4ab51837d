//! Command lines that fail.

use super::*;

/// Checks that each error says what to do: a remedy, what exists, a name that is near, or the file that is missing.
fn check(text: &str) {
    const WAYS: [&str; 4] = ["  try: ", "; it has ", "did you mean: ", "cannot read "];
    for usage in text.split("\n> ").filter(|usage| usage.contains("  ! error: ")) {
        assert!(WAYS.iter().any(|way| usage.contains(way)), "{usage}");
    }
}

#[test]
fn wrong_options() {
    let text = on(
        machine,
        &[
            "frobnicate",
            "repot",
            "help frobnicate",
            "stat --per-cup app",
            "record -Z",
            "record --duraton=5",
            "branches --kernal app",
            "list --al",
            "--colour never list",
            "--color red list",
            "stat",
            "branches -C 0",
            "stat --",
            "stat -a --",
            "record --",
            "record -o NEW --",
            "start",
            "stop",
            "stop --all 2",
            "interval 2",
            "export FILE",
            "flamegraph FILE",
            "report --limit",
            "report a.rec b.rec",
            "stat --json --csv -a",
            "stat -A --per-core app",
            "stat --duration 1s -- app",
            "stat --summary app",
            "record -a -a",
            "branches -a --user --kernel",
            "report --merge --sort module",
            "control-area --current -C 0",
        ],
    );
    check(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn wrong_values() {
    let text = on(
        machine,
        &[
            "stat -e 2:x -- app",
            "stat -e 2:p -- app",
            "stat -e {2,6 -- app",
            "stat -e cpu/evnt=3/ -- app",
            "stat -e cpu/event=3 -- app",
            "stat -e 2,,6 -- app",
            "stat -I 9 -a",
            "stat -I 1k -a",
            "stat -D -1 app",
            "stat -r 0 app",
            "stat -x ;; app",
            "stat -C 3-1 -a",
            "stat -C x -a",
            "record --duration 5d",
            "record --duration 500",
            "top -d 2",
            "report FILE --time 1-2",
            "record --max-size 10MiB",
            "record -o -",
            "branches -a -o -",
            "record --duration 0",
            "record --ring 100",
            "record --ring 5Q",
            "record --budget 91",
            "record -F 0",
            "record -F 1.5k",
            "record -e 2@0",
            "record -e 2:p --batch 0",
            "branches -a --buffer 63",
            "branches -a --ring 4096",
            "interval 2 1x",
            "interval 2 5G",
            "interval 2 -5",
            "report --sort colour",
            "report --percent-limit 101",
            "report --time 2s-1s",
            "report --time 5",
            "report --thread x",
            "export FILE --format perf",
            "list --interface itanium",
            "control-area make",
        ],
    );
    check(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn names_that_the_machine_does_not_have() {
    let text = on(
        machine,
        &[
            "query brunch",
            "query 0x77",
            "stat -e page-faults -- app",
            "stat -e sched:sched_switch -- app",
            "stat -e power/energy-pkg/,cycles -- app",
            "record -e L1-dcache-load-misses -o NEW -- app",
            "record -F 99 -e 2@1k -o NEW -- app",
            "encode MEM_LOAD_RETIRED.L3_MISS --cpuid DUMP",
            "encode RETIRED_INSTRUCTIONS --cpuid DUMP",
            "encode cpu/event=0x1c2/ --cpuid DUMP",
            "list context-switches --cpuid DUMP",
            "start TotalIsues",
            "stat -e DcacheMisses -- app",
            "stat -M NoSuchMetric -- app",
            "record -e CacheMisses -o NEW -- app",
            "record -e 2 --batch 4 -o NEW -- app",
            "record -g -e 2:p -o NEW -- app",
            "record --call-graph dwarf",
            "record -g --etl x.etl",
            "stop DcacheMisses",
            "stat -e 2 -- no-such-command-anywhere",
            "record -o NEW -- no-such-command-anywhere",
            "record -o GONE -- APP",
            "branches --duration 1ms -o GONE",
            "stat -e 2 -o GONE -- APP",
        ],
    );
    check(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn recordings_that_cannot_be_shown() {
    let text = without_windows(&[
        "report NEW",
        "export NEW --format csv",
        "flamegraph GONE -o SVG",
        "report TEXT",
        "report FILE -e CacheMisses",
        "annotate nothing FILE",
        "annotate",
        "script NEW",
        "diff FILE",
        "diff FILE NEW",
        "diff FILE TEXT",
        "diff FILE FILE --fail-above x",
        "export FILE --format pprof -o GONE",
        "report FILE --process missing",
        "report FILE --cpu 7",
        "report FILE --time 5s-6s",
        "report FILE --symbol nothing",
        "export FILE --format csv -o FILE",
        "export FILE --format csv -o GONE",
        "flamegraph FILE -o GONE",
        "diagnose --cpuid TEXT",
        "diagnose --cpuid GONE",
        "encode NO_SUCH.EVENT --cpuid DUMP",
        "list nothing_like_it --cpuid DUMP",
        "events import GONE",
        "stat -- app",
    ]);
    check(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_driver_that_is_missing_or_refuses() {
    let stopped = || {
        let system = machine();
        system.service.set(Some(ServiceState::Stopped));
        system
    };
    let missing = || {
        let system = machine();
        system.service.set(None);
        system
    };
    let denied = || FakeSystem { failure: Some(win32::ERROR_ACCESS_DENIED), ..machine() };
    let newer = || FakeSystem::running(FakeDriver { protocol: 99, ..FakeDriver::default() });
    let full = || refusing(ErrorCode::NoFreeCounter, [4, 1]);
    let taken = || refusing(ErrorCode::CountersDoNotWork, [0, 0]);
    let root = || {
        let root = InfoReply { hypervisor: pmu::Hypervisor::Root as u32, ..info() };
        let refuse = Some((Code::Start, ErrorCode::CountersDoNotWork, [0, 0]));
        FakeSystem::running(FakeDriver { info: root, refuse, ..FakeDriver::default() })
    };
    let hidden = || {
        let info = InfoReply {
            interface: pmu::Kind::Default as u32,
            reason: pmu::Reason::MaskedByHypervisor as u32,
            hypervisor: pmu::Hypervisor::Root as u32,
            ..info()
        };
        FakeSystem::running(FakeDriver { sources: vec![record(0, "Time", 0)], info, ..FakeDriver::default() })
    };
    let idle = || FakeSystem::running(FakeDriver::default());
    let texts = [
        on(missing, &["status", "list", "stat -- app"]),
        on(stopped, &["status", "record -o NEW -- app"]),
        on(denied, &["info"]),
        on(newer, &["list"]),
        on(full, &["start 6", "stat -e 6 -- app", "record -e 6 -o NEW -- app"]),
        on(taken, &["start 6"]),
        on(root, &["start 6"]),
        on(hidden, &["info", "stat --strict -- app", "record --duration 1ms -o NEW"]),
        on(idle, &["read 6", "stop 6", "read"]),
    ];
    let text = texts.join("\n");
    check(&text);
    insta::assert_snapshot!(text);
}
