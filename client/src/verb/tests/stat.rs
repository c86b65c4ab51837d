//! `stat` with intervals, repetitions, delays, and rows for sets of processors.

use std::collections::VecDeque;

use super::*;
use system::topology::{CorePlace, Topology};

/// Two cores of two threads each in one package, and a core of another one.
fn topology() -> Topology {
    let place = |package, core| CorePlace { package, core };
    Topology::from([(0, place(0, 0)), (1, place(0, 0)), (2, place(0, 1)), (3, place(0, 1)), (4, place(1, 0))])
}

/// Counts cycles and instructions on so many processors: on processor n, n + 1 million cycles and twice as many
/// instructions.
fn on_processors(processors: u32) -> Vec<CountRecord> {
    let of = |processor| {
        let cycles = 1_000_000 * (u64::from(processor) + 1);
        [count(0x13, processor, cycles, SECOND), count(2, processor, 2 * cycles, SECOND)]
    };
    (0..processors).flat_map(of).collect()
}

fn system(counts: &[CountRecord]) -> FakeSystem {
    let processors = counts.iter().map(|one| one.processor + 1).max().unwrap();
    let info = InfoReply { processors, ..info() };
    let driver = FakeDriver { info, ..FakeDriver::default() };
    driver.counts.replace(counts.to_vec());
    FakeSystem { topology: topology(), ..FakeSystem::running(driver) }
}

/// Returns a system that counts as much again between two readings.
fn growing(counts: &[CountRecord]) -> FakeSystem {
    let driver = FakeDriver { growth: counts.to_vec(), ..FakeDriver::default() };
    driver.counts.replace(counts.to_vec());
    FakeSystem::running(driver)
}

fn lines(json: &str) -> Vec<Value> {
    json.lines().map(document).collect()
}

#[test]
fn intervals_are_lines_of_json_whose_counts_add_up_to_the_total() {
    let ran = run(&growing(&on_processors(2)), "stat -e 0x13,2 -I 20 --summary --duration 0.07s --json -o -");
    let found = lines(&ran.out);
    let (total, intervals) = found.split_last().unwrap();
    assert!(intervals.len() >= 3, "{}", ran.out);
    for event in [0, 1] {
        let of = |line: &Value| line["events"][event]["count"].as_u64().unwrap();
        assert_eq!(intervals.iter().map(of).sum::<u64>(), of(total));
        assert_eq!(of(&intervals[0]), [3_000_000, 6_000_000][event]);
    }
    let times: Vec<f64> = intervals.iter().map(|line| line["time_seconds"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] >= 0.02, "{times:?}");
    assert_eq!(intervals[0]["events"][1]["metric"]["value"], 2.0);
}

#[test]
fn intervals_as_text_and_csv_begin_with_the_time() {
    let ran = run(&growing(&on_processors(2)), "stat -e 0x13,2 -I 20 --duration 0.05s");
    let text: Vec<&str> = ran.err.lines().collect();
    assert_eq!(text[0], "#    seconds since the start, and the counts of each interval");
    assert!(text[1].starts_with("    0.0") && text[1].contains("  3,000,000  TotalCycles  #"), "{}", ran.err);
    assert!(text.iter().all(|line| line.len() <= 80) && text.len() >= 5, "{}", ran.err);
    assert!(!ran.err.contains("elapsed"), "only with --summary");
    let csv = run(&growing(&on_processors(2)), "stat -e 0x13,2 -I 20 --duration 0.05s -x ;").err;
    let fields: Vec<&str> = csv.lines().next().unwrap().split(';').collect();
    assert_eq!((fields.len(), fields[1], fields[3]), (8, "3000000", "TotalCycles"), "{csv}");
    assert!(fields[0].parse::<f64>().unwrap() >= 0.02);
}

#[test]
fn repeated_runs_have_a_mean_and_its_standard_error() {
    let cycles = [10, 12, 17_u64];
    let runs: VecDeque<Vec<CountRecord>> =
        cycles.map(|one| vec![count(0x13, 0, one, SECOND), count(2, 0, 2 * one, SECOND)]).into();
    let repeated = |options: &str| {
        let driver = FakeDriver { runs: Shared::from(runs.clone()), ..FakeDriver::default() };
        let system = FakeSystem::running(driver);
        let ran = stat(&system, &format!("-e 0x13,2 -r 3 {options}"));
        assert_eq!(system.driver.inputs(Code::Start).len(), 3);
        ran
    };
    let json = repeated("--json -o -").json();
    let event = &json["events"][0];
    assert_eq!((&event["scaled"], &event["repeated"]["runs"]), (&json!(13), &json!([10, 12, 17])));
    // The squares of the differences from 13 are 9, 1 and 16.
    let error = (26.0_f64 / 2.0 / 3.0).sqrt();
    assert!((event["repeated"]["standard_error"].as_f64().unwrap() - error).abs() < 1e-12, "{event}");
    assert_eq!(json["elapsed"]["runs"].as_array().unwrap().len(), 3);
    let text = repeated("").err;
    assert!(text.contains("ran, mean of 3 times:"), "{text}");
    assert!(text.contains(" 13  TotalCycles  #    0.000 GHz per processor  ( +- 16.01% )"), "{text}");
    assert!(text.contains(" seconds time elapsed  ( +-"), "{text}");
    let csv = repeated("--csv").err;
    assert!(csv.starts_with("13,,TotalCycles,16.01%,1000000000,100.00,"), "{csv}");
}

#[test]
fn each_core_package_and_core_type_has_its_sums() {
    let text = |options: &str| stat(&system(&on_processors(5)), &format!("-e 0x13,2 {options}")).err;
    let rows = |options: &str| -> Vec<String> {
        let text = text(options);
        assert!(text.lines().skip(2).all(|line| line.len() <= 80), "{text}");
        let rows = text.lines().filter(|line| line.contains("Total"));
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        rows("--per-core"),
        [
            "S0-C0 2 3,000,000 TotalCycles # 0.002 GHz per processor",
            "S0-C0 2 6,000,000 TotalIssues # 2.000 insn per cycle",
            "S0-C1 2 7,000,000 TotalCycles # 0.004 GHz per processor",
            "S0-C1 2 14,000,000 TotalIssues # 2.000 insn per cycle",
            "S1-C0 1 5,000,000 TotalCycles # 0.005 GHz per processor",
            "S1-C0 1 10,000,000 TotalIssues # 2.000 insn per cycle",
        ]
    );
    assert_eq!(
        rows("--per-socket")[..2],
        ["S0 4 10,000,000 TotalCycles # 0.003 GHz per processor", "S0 4 20,000,000 TotalIssues # 2.000 insn per cycle",]
    );
    assert_eq!(rows("--per-core-type")[0], "cpu 5 15,000,000 TotalCycles # 0.003 GHz per processor");
    assert_eq!(
        rows("-A")[..2],
        [
            "CPU0 1,000,000 TotalCycles # 0.001 GHz per processor",
            "CPU1 2,000,000 TotalCycles # 0.002 GHz per processor",
        ]
    );
    let json = stat(&system(&on_processors(5)), "-e 0x13,2 --per-core --json -o -").json();
    let of = |block: &Value| (block["name"].clone(), block["processors"].clone(), block["events"][1]["count"].clone());
    let blocks: Vec<_> = json["blocks"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(blocks[1], (json!("S0-C1"), json!([2, 3]), json!(14_000_000)));
    assert_eq!(json["events"][1]["count"], 30_000_000);
    let csv = stat(&system(&on_processors(5)), "-e 0x13 --per-socket --csv").err;
    assert!(csv.starts_with("S0,4,10000000,,TotalCycles,"), "{csv}");
}

#[test]
fn the_processors_of_each_block_are_those_of_the_list() {
    let system = system(&on_processors(5)[2..8]);
    let text = stat(&system, "-e 0x13 -C 1-3 --per-core").err;
    assert!(text.contains("S0-C0      1 ") && text.contains("S0-C1      2 "), "{text}");
}

#[test]
fn a_processor_without_a_place_is_reported_before_anything_is_counted() {
    let system = FakeSystem { topology: Topology::new(), ..system(&on_processors(2)) };
    let (exit, report) = stat(&system, "-e 2 --per-core").failure();
    assert_eq!(exit, Exit::Failure);
    assert!(report.starts_with("error: Windows tells the cores of 0 CPUs, and CPU 0 is not among them"), "{report}");
    assert!(system.driver.inputs(Code::Start).is_empty());
}

#[test]
fn metrics_alone_are_one_line_of_the_machine_or_of_a_block() {
    let text = |options: &str| stat(&system(&on_processors(2)), &format!("-e 0x13,2,6 --metric-only {options}")).err;
    assert!(text("").contains("\n     0.002 GHz per processor        2.000 insn per cycle\n"), "{}", text(""));
    assert!(
        text("-A").contains("CPU1         0.002 GHz per processor        2.000 insn per cycle\n"),
        "{}",
        text("-A")
    );
    assert_eq!(
        text("--csv").lines().collect::<Vec<_>>(),
        ["0.002,GHz per processor,TotalCycles", "2.000,insn per cycle,TotalIssues"]
    );
    let none = stat(&system(&[count(6, 0, 5, SECOND)]), "-e 6 --metric-only").err;
    assert!(none.contains("no metric: count cycles and instructions, for example"), "{none}");
}

#[test]
fn nothing_is_counted_if_the_command_ends_within_the_delay() {
    let counted = system(&on_processors(1));
    let (exit, report) = stat(&counted, "-e 2 -D 60000").failure();
    assert_eq!(exit, Exit::NotRunning);
    assert!(report.starts_with("error: nothing was counted: the command ended within the delay of 60000 ms"));
    assert!(counted.driver.inputs(Code::Start).is_empty());
    let ran = run(&system(&on_processors(1)), "stat -e 2 -D 10 --duration 0.02s");
    assert!(ran.err.contains(" system wide, for 0.02") && ran.outcome.unwrap() == 0, "{}", ran.err);
}

#[test]
fn without_a_command_ctrl_c_ends_the_counting() {
    let system = system(&on_processors(1));
    system.until_interrupt.set(Some(3));
    let ran = run(&system, "stat -e 2 -a -r 5 --json -o -");
    assert_eq!(ran.json()["elapsed"]["runs"].as_array().unwrap().len(), 1, "no further run");
}

/// AMD's revision guide for family 19h models 00h to 0Fh, erratum 1292; Intel's specification update of Haswell, HSD11.
#[test]
fn counts_name_the_errata_that_make_them_wrong() {
    let of = |vendor, interface: pmu::Kind, signature| {
        let driver = FakeDriver {
            info: InfoReply { vendor, interface: interface as u32, signature, ..info() },
            ..FakeDriver::default()
        };
        driver.counts.replace(on_processors(1));
        run(&FakeSystem::running(driver), "stat -e 0x13,2 --duration 0.001s -o -").out
    };
    let amd = |signature| of(*b"AuthenticAMD\0\0\0\0", pmu::Kind::Amd64, signature);
    let note = "\nCounted wrongly by errata of the processor: TotalIssues (1292).\n";
    assert!(amd(0x00A0_0F11).contains(note), "{}", amd(0x00A0_0F11));
    // Vermeer has no such erratum.
    assert!(!amd(0x00A2_0F10).contains("Counted wrongly"));
    let intel = |signature| of(*b"GenuineIntel\0\0\0\0", pmu::Kind::Emon, signature);
    let haswell = intel(0x0003_06C3);
    assert!(haswell.contains("\nCounted wrongly by errata of the processor: "), "{haswell}");
    assert!(haswell.contains("HSD11"), "{haswell}");
}
