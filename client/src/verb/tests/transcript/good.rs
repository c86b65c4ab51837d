//! Command lines that work.

use super::*;

#[test]
fn the_driver_and_its_sources() {
    let text = on(
        machine,
        &[
            "status",
            "status --json",
            "info",
            "list",
            "list --all",
            "query TotalIssues",
            "query 0x13",
            "query totalcycles --json",
            "interval TotalIssues 100k",
            "interval 2 0x1000",
            "interval 2 100",
            "interval Time 100",
            "interval Time 20k",
            "interval 2 1M --json",
            "control-area",
            "control-area free -C 0 --json",
            "help interval",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn counting() {
    let text = on(
        machine,
        &[
            "start TotalIssues",
            "start 2 BranchInstructions:u",
            "start TotalCycles -C 0-1 --json",
            "read",
            "read TotalIssues --per-cpu",
            "stop --all",
            "stop TotalIssues --json",
            "stat -- APP",
            "stat -a -A -e TotalIssues,TotalCycles -- APP",
            "stat -a -e TotalIssues,TotalCycles --csv -- APP",
            "stat -a -e TotalIssues,TotalCycles -x ; -- APP",
            "stat -e {TotalIssues,TotalCycles} -D 1ms --duration 1ms",
            "stat -a -e TotalIssues,TotalCycles --no-scale -C 0 -- APP",
            "stat -a -e TotalIssues,TotalCycles -r 2 -- APP",
            "stat -a -e TotalIssues,TotalCycles --duration 0.001s",
            "stat -a -e TotalIssues,TotalCycles -o - -- APP",
            "stat -a -e TotalIssues,TotalCycles -- APP --json",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn sampling() {
    let text = on(
        machine,
        &[
            "record --duration 1ms -o NEW",
            "record -e TotalIssues:u@10k,BranchMispredictions@0x2000 -o NEW -- APP",
            "record -e TotalIssues@10 -o NEW -- APP",
            "record -e Time -F 300 -o NEW -- APP",
            "record --duration 5s -o FILE -- APP",
            "record -F 4k --ring 0x1000 --budget 50 -C 0 --duration 1ms -o NEW",
            "branches -C 0 --duration 1ms",
            "branches -C 0 --duration 1ms --csv",
            "branches --duration 1ms --kernel --top 0x10 -o FILE",
        ],
    );
    insta::assert_snapshot!(text);
}

#[test]
fn recordings() {
    let text = without_windows(&[
        "report FILE",
        "report FILE --sort module --error",
        "report FILE --limit 1 -e TotalCycles",
        "report FILE --percent-limit 20",
        "report FILE --cpu 0 --time 0-1ms",
        "report FILE --process app --module ntoskrnl",
        "report FILE --thread 0x9 --fields overhead,symbol",
        "report FILE --csv",
        "report FILE --merge --limit 3",
        "report OLD --sort process",
        "export FILE --format csv",
        "export FILE --format folded",
        "export FILE --format folded -o NEW",
        "export FILE --format json --process 4320",
        "export FILE --format firefox -o NEW",
        "export FILE --format pprof -o NEW",
        "export FILE --format speedscope",
        "script FILE --cpu 1",
        "diff FILE FILE",
        "export FILE --format html -o NEW",
        "flamegraph FILE -o SVG",
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn processors_and_events() {
    let text = without_windows(&[
        "diagnose --cpuid DUMP",
        "encode cycles:u --cpuid DUMP",
        "encode MEM_LOAD_UOPS_RETIRED.L3_MISS:p --cpuid DUMP",
        "list l3_miss --cpuid DUMP",
        "list --interface pentium",
        "list ipc --cpuid DUMP",
        "events update",
    ]);
    insta::assert_snapshot!(text);
}
