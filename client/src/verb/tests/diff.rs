//! `diff` and `stat --baseline`.

use std::collections::VecDeque;
use std::path::PathBuf;

use protocol::{CounterSample, SampleRecord};
use recording::Writer;
use tempfile::TempDir;

use super::report::html::data;
use super::report::{APP, NT, NTDLL, processes, record, session, summary};
use super::*;

/// Two files that are compared.
struct Pair {
    _folder: TempDir,
    old: PathBuf,
    new: PathBuf,
}

impl Pair {
    fn of(old: &[u8], new: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [old_path, new_path] = ["old", "new"].map(|name| folder.path().join(name));
        fs::write(&old_path, old).unwrap();
        fs::write(&new_path, new).unwrap();
        Self { _folder: folder, old: old_path, new: new_path }
    }

    fn diff(&self, options: &str) -> Run {
        run_on(Some(80), &format!("diff {} {} {options}", self.old.display(), self.new.display()), &[])
    }

    fn code(&self, options: &str) -> i32 {
        self.diff(options).outcome.unwrap()
    }
}

/// A recording of these numbers of samples of cycles at three addresses of two processes.
fn recording([app, ntdll, kernel]: [usize; 3]) -> Vec<u8> {
    let cycles = [(app, 8, APP + 0x1000), (ntdll, 4321, NTDLL + 0x20), (kernel, 8, NT + 0x50)];
    let samples = cycles
        .into_iter()
        .flat_map(|(number, process, ip)| vec![SampleRecord::from(record(0, 100_003, process, ip)); number]);
    let samples: Vec<SampleRecord> = samples.collect();
    let mut writer = Writer::new(Vec::new(), &session()).unwrap();
    for process in processes() {
        writer.process(&process).unwrap();
    }
    writer.samples(&samples).unwrap();
    writer.finish(&summary()).unwrap()
}

fn samples(old: [usize; 3], new: [usize; 3]) -> Pair {
    Pair::of(&recording(old), &recording(new))
}

#[test]
fn rows_are_ordered_by_the_size_of_their_change_and_marked() {
    let run = samples([1000, 900, 100], [1210, 930, 110]).diff("--fail-above 1%");
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    insta::assert_snapshot!(run.out, @r"
    Event  TotalCycles
    Total  200,006,000 to 225,006,750 events, ! +12.50 +/- 6.98 %

       Old     New   Change   +/-    Events  Module              Symbol
    ------  ------  -------  ----  --------  ------------------  ------------------
    50.00%  53.78%    +3.78  3.01  ! +10.50  app.exe             app.exe+0x1000
    45.00%  41.33%    -3.67  2.98     +1.50  a_librar..umns.dll  a_librar..dll+0x20
     5.00%   4.89%  ~ -0.11  1.33     +0.50  ntoskrnl.exe        ntoskrnl.exe+0x50

    Changes of shares are in percentage points. Those of events are in percent of
    the old total; --fail-above judges by them.
    ~ not significant: the 95 % confidence interval contains zero

    --fail-above 1%: 2 changes significantly worse, marked with !
    ");
}

#[test]
fn a_change_of_shares_is_in_points_and_has_newcombes_interval() {
    let pair = samples([1000, 900, 100], [1210, 930, 110]);
    let diff = pair.diff("--json --sort process,module").json();
    assert_eq!((&diff["kind"], &diff["columns"]), (&json!("samples"), &json!(["process", "module"])));
    let section = &diff["sections"][0];
    let row = &section["rows"][0];
    assert_eq!((&section["event"], &row["names"]), (&json!("TotalCycles"), &json!(["app.exe", "app.exe"])));
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let change = 1210.0 / 2250.0 - 0.5;
    assert!((number(row, "change") - change).abs() < 1e-12 && row["significant"] == true);
    // The normal approximation, which is good for so many samples.
    let error = 1.96 * (0.25_f64 / 2000.0 + 0.5378 * 0.4622 / 2250.0).sqrt();
    assert!((number(row, "low") - (change - error)).abs() < 2e-4, "{row}");
    assert!((number(row, "high") - (change + error)).abs() < 2e-4, "{row}");
    let total = &section["total"];
    assert!((number(total, "change") - 0.125).abs() < 1e-12 && number(total, "low") < 0.065);
    assert_eq!(diff["unmatched"], json!([]));
    let of_process = pair.diff("--json --process app --sort process").json();
    assert_eq!(of_process["sections"][0]["rows"].as_array().unwrap().len(), 1);
    let rows = pair.diff("--limit 1").out;
    assert!(rows.contains("2 rows left out; --limit N shows N"), "{rows}");
}

/// The kernel takes its turn alone, the application on both CPUs: half of its samples are as much wall time.
#[test]
fn with_latency_the_shares_are_those_of_the_wall_time() {
    let recording = |alone: u64, parallel: u64| {
        let at = |time, processor, process, ip| {
            let sample = CounterSample { time: time * 100_000, processor, ..record(0, 100_003, process, ip) };
            SampleRecord::from(sample)
        };
        let mut samples: Vec<SampleRecord> = (0..alone).map(|time| at(time, 0, 8, NT + 0x50)).collect();
        let both = (alone..alone + parallel).flat_map(|time| [0, 1].map(|cpu| at(time, cpu, 8, APP + 0x1000)));
        samples.extend(both);
        let mut writer = Writer::new(Vec::new(), &session()).unwrap();
        for process in processes() {
            writer.process(&process).unwrap();
        }
        writer.samples(&samples).unwrap();
        writer.finish(&summary()).unwrap()
    };
    let pair = Pair::of(&recording(1_200, 800), &recording(600, 800));
    let shares = |options: &str| {
        let diff = pair.diff(&format!("--json --sort module {options}")).json();
        let rows = diff["sections"][0]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["names"][0] == "ntoskrnl.exe").unwrap();
        ["old", "new"].map(|name| format!("{:.0}", row[name].as_f64().unwrap() * 100.0))
    };
    assert_eq!([shares(""), shares("--latency")], [["43", "27"], ["60", "43"]]);
    let text = pair.diff("--latency").out;
    assert!(text.contains("Shares are those of the wall time in which a process runs (latency)."), "{text}");

    let page = data(&run_on(Some(80), &format!("export {} --format html", pair.old.display()), &[]).out);
    let rows = page["sources"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["module"] == "ntoskrnl.exe").unwrap();
    let percent = |name: &str| format!("{:.0}", row[name].as_f64().unwrap() * 100.0);
    assert_eq!(["share", "latency"].map(percent), ["43", "60"], "{row}");
}

/// Of 2,000 samples each, a row rises by 200, which is 10 % of the old total. The deviation is that of 2,200 samples,
/// 2.35 %, and 2.50 of it on a side are certain for four changes together: from 4.14 % on.
#[test]
fn fail_above_has_its_exit_code_only_beyond_the_limit() {
    let worse = samples([1000, 900, 100], [1200, 700, 100]);
    for (limit, code) in
        [("0", Exit::Worse), ("3%", Exit::Worse), ("4.1", Exit::Worse), ("4.2", Exit::Done), ("20%", Exit::Done)]
    {
        assert_eq!(worse.code(&format!("--fail-above {limit}")), code.code(), "{limit}");
    }
    assert_eq!(worse.code(""), Exit::Done.code(), "only with a limit");
    let same = samples([1000, 900, 100], [1010, 890, 100]);
    assert_eq!(same.code("--fail-above 0"), Exit::Done.code(), "not significant");
    // The total falls and rises by a quarter; every row falls and rises with it.
    let (falls, rises) = (samples([1000, 900, 100], [750, 675, 75]), samples([750, 675, 75], [1000, 900, 100]));
    assert_eq!(falls.code("--fail-above 0"), Exit::Done.code(), "less is not worse");
    assert_eq!(rises.code("--fail-above 20%"), Exit::Worse.code());
    assert_eq!(rises.code("--fail-above 30%"), Exit::Done.code());
    assert_eq!(rises.diff("--fail-above 20% --json").json()["failed"], true);
}

/// A share rises if another function becomes faster, and stays if everything becomes slower alike. What became more
/// decides.
#[test]
fn fail_above_judges_by_amount_and_not_by_share() {
    let faster = samples([500, 500, 0], [500, 100, 0]);
    assert_eq!(faster.code("--fail-above 5%"), Exit::Done.code(), "{}", faster.diff("--fail-above 5%").out);
    let rows = &faster.diff("--json").json()["sections"][0]["rows"];
    let app = rows.as_array().unwrap().iter().find(|row| row["names"][0] == "app.exe").unwrap();
    assert!(app["change"].as_f64().unwrap() > 0.3 && app["significant"] == true, "{app}");
    assert_eq!(app["events"]["change"], 0.0, "{app}");
    // One function became slower, while the total fell.
    let hidden = samples([500, 1_500, 0], [800, 300, 0]);
    assert_eq!(hidden.code("--fail-above 5%"), Exit::Worse.code(), "{}", hidden.diff("--fail-above 5%").out);
    assert_eq!(hidden.code("--fail-above 20%"), Exit::Done.code());
    // Twice the work with twice the events of one function, and as many of the other.
    let twice = samples([500, 500, 0], [1_000, 500, 0]);
    assert_eq!(twice.code("--fail-above 5%"), Exit::Worse.code());
    assert_eq!(twice.code("--fail-above 5% --work 10,20"), Exit::Done.code());
    assert_eq!(twice.code("--fail-above 5% --work 20,10"), Exit::Worse.code());
    let diff = twice.diff("--work 10,20 --json").json();
    assert_eq!(diff["work"], json!([10.0, 20.0]));
    let total = &diff["sections"][0]["total"];
    assert!((total["change"].as_f64().unwrap() + 0.25).abs() < 1e-9, "{total}");
    assert!((total["old"].as_f64().unwrap() - 1_000.0 * 100_003.0 / 10.0).abs() < 1e-6);
}

#[test]
fn counts_are_compared_for_a_unit_of_work() {
    let pair = Pair::of(&counts([1000, 1010, 990], &[0x13]), &counts([2000, 2020, 1980], &[0x13]));
    assert_eq!(pair.code("--fail-above 5%"), Exit::Worse.code());
    assert_eq!(pair.code("--fail-above 5% --work 7,14"), Exit::Done.code());
    let row = &pair.diff("--work 10,20 --json").json()["sections"][0]["rows"][0];
    assert_eq!((&row["old"], &row["new"], &row["change"]), (&json!(100.0), &json!(100.0), &json!(0.0)));
}

/// Many rows of few samples each change by chance. Together they fail in at most 5 of 100 cases.
#[test]
fn many_unchanged_rows_do_not_fail_by_chance() {
    let recording = |seed: u64| {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let samples: Vec<SampleRecord> =
            (0..2000).map(|_| record(0, 100_003, 8, APP + 16 * (next() % 100)).into()).collect();
        let mut writer = Writer::new(Vec::new(), &session()).unwrap();
        writer.process(&processes()[1]).unwrap();
        writer.samples(&samples).unwrap();
        writer.finish(&summary()).unwrap()
    };
    let failed = (0..20).filter(|seed| {
        let pair = Pair::of(&recording(2 * seed + 1), &recording(2 * seed + 2));
        pair.code("--fail-above 0") == Exit::Worse.code()
    });
    let failed = failed.count();
    assert!(failed <= 3, "{failed} of 20");
}

/// A system that counts so many of each event in three runs.
fn counted(cycles: [u64; 3], events: &[u64]) -> FakeSystem {
    let of = |one| events.iter().map(|event| count(*event, 0, one, SECOND)).collect();
    let runs: VecDeque<Vec<CountRecord>> = cycles.map(of).into();
    FakeSystem::running(FakeDriver { runs: Shared::from(runs), ..FakeDriver::default() })
}

/// What `stat -r 3 --json` prints of them.
fn counts(cycles: [u64; 3], events: &[u64]) -> Vec<u8> {
    let names: Vec<String> = events.iter().map(ToString::to_string).collect();
    let line = format!("stat -e {} -r 3 --json -o - --duration 0.001s", names.join(","));
    let mut saved: Value = serde_json::from_str(&run(&counted(cycles, events), &line).out).unwrap();
    saved["elapsed_seconds"] = json!(1.0);
    saved.to_string().into_bytes()
}

#[test]
fn repeated_counts_have_the_error_of_their_means() {
    let pair = Pair::of(&counts([1000, 1010, 990], &[0x13, 2]), &counts([1100, 1111, 1089], &[0x13, 2]));
    let diff = pair.diff("--json").json();
    let row = &diff["sections"][0]["rows"][0];
    assert_eq!((&diff["kind"], &row["names"]), (&json!("counts"), &json!(["TotalCycles"])));
    assert_eq!((&row["old"], &row["new"], &row["significant"]), (&json!(1000.0), &json!(1100.0), &json!(true)));
    // Both have a relative error of 1 % / sqrt(3), together 0.8165 %, and Student's quantile of 4 is 2.7764.
    let factor = (0.008_165_f64 * 2.776_4).exp();
    assert!((row["low"].as_f64().unwrap() - (1.1 / factor - 1.0)).abs() < 1e-4, "{row}");
    assert!((row["high"].as_f64().unwrap() - (1.1 * factor - 1.0)).abs() < 1e-4, "{row}");
    for (limit, code) in [("5%", Exit::Worse), ("9%", Exit::Done)] {
        assert_eq!(pair.code(&format!("--fail-above {limit}")), code.code(), "{limit}");
    }
    insta::assert_snapshot!(pair.diff("--fail-above 5%").out, @r"
      Old    New     Change   +/-  Event
    -----  -----  ---------  ----  -----------
    1,000  1,100  ! +10.00%  2.52  TotalCycles
    1,000  1,100  ! +10.00%  2.52  TotalIssues

    --fail-above 5%: 2 changes significantly worse, marked with !
    ");
}

#[test]
fn a_count_of_one_run_has_no_error_and_cannot_fail() {
    let one = |cycles| {
        let system = with_counts(&[count(0x13, 0, cycles, SECOND)]);
        run(&system, "stat -e 0x13 --json -o - --duration 0.001s").out.into_bytes()
    };
    let pair = Pair::of(&one(1000), &one(1500));
    let out = pair.diff("").out;
    assert!(out.contains("1,000  1,500  +50.00%    ?  TotalCycles"), "{out}");
    assert!(out.contains("\n? no error known: the count of one run; .\\client stat -r N counts N\n"), "{out}");
    let (exit, report) = pair.diff("--fail-above 5%").failure();
    assert!(exit == Exit::Usage && report.contains("the count of TotalCycles has no error"), "{report}");
}

#[test]
fn a_comparison_of_two_durations_tells_both() {
    let saved = |seconds: f64| {
        let event = json!({ "name": "A", "modes": "uk", "scaled": 1, "error": null, "percent_running": 100.0 });
        json!({ "schema": "halprof.stat/1", "elapsed_seconds": seconds, "events": [event] }).to_string().into_bytes()
    };
    let pair = Pair::of(&saved(1.0), &saved(2.5));
    assert!(pair.diff("").out.contains("\nmeasured for 1.000 s and 2.500 s\n"), "{}", pair.diff("").out);
    assert_eq!(pair.diff("--json").json()["elapsed_seconds"], json!([1.0, 2.5]));
    assert!(!Pair::of(&saved(1.0), &saved(1.01)).diff("").out.contains("measured for"));
}

#[test]
fn a_scaled_count_has_its_own_error() {
    let saved = |scaled: u64, error: f64| {
        let event = json!({ "name": "A", "modes": "u", "scaled": scaled, "error": error, "percent_running": 50.0 });
        json!({ "schema": "halprof.stat/1", "events": [event] }).to_string().into_bytes()
    };
    let row = &Pair::of(&saved(1000, 30.0), &saved(1200, 0.0)).diff("--json").json()["sections"][0]["rows"][0];
    assert_eq!((&row["names"], &row["significant"]), (&json!(["A:u"]), &json!(true)));
    assert!((row["high"].as_f64().unwrap() - (1.2 * 0.03_f64.exp() - 1.0)).abs() < 1e-6, "{row}");
    let row = &Pair::of(&saved(1000, 150.0), &saved(1100, 0.0)).diff("--json").json()["sections"][0]["rows"][0];
    assert_eq!(row["significant"], false);
}

#[test]
fn stat_compares_its_counts_with_a_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let baseline = folder.path().join("old.json");
    fs::write(&baseline, counts([1000, 1010, 990], &[0x13, 2])).unwrap();
    let stat = |options: &str| {
        let line = format!("stat -e 0x13 -r 3 --baseline {} {options} --duration 0.001s", baseline.display());
        run(&counted([1100, 1111, 1089], &[0x13]), &line)
    };
    let ran = stat("");
    assert_eq!(ran.outcome.unwrap(), Exit::Done.code());
    assert!(ran.err.contains(" seconds time elapsed"), "{}", ran.err);
    assert!(ran.err.contains("1,000  1,100  +10.00%"), "{}", ran.err);
    assert!(ran.err.ends_with("only in one of the two: TotalIssues\n"), "{}", ran.err);
    assert_eq!(stat("--fail-above 5%").outcome.unwrap(), Exit::Worse.code());
    assert_eq!(stat("--fail-above 9%").outcome.unwrap(), Exit::Done.code());
    let line = format!("stat -e INST_RETIRED.ANY -r 3 --baseline {} --duration 0.001s", baseline.display());
    let ran = run(&counted([1100, 1111, 1089], &[2]), &line);
    assert!(ran.err.contains("+10.00%  2.52  INST_RETIRED.ANY\n"), "an event by another name: {}", ran.err);
    let line = format!("-e 0x13 -r 3 --baseline {} --fail-above 5%", baseline.display());
    let of_command = super::stat(&counted([1100, 1111, 1089], &[0x13]), &line);
    assert_eq!(of_command.outcome.unwrap(), 3, "the code of the command comes first");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let (recorded, saved) = (recording([1, 1, 1]), counts([1, 2, 3], &[0x13]));
    let other = counts([1, 2, 3], &[2]);
    for (old, new, options, exit, words) in [
        (&recorded[..], &saved[..], "", Exit::Usage, "old is a recording, and "),
        (&saved, &recorded, "", Exit::Usage, "new is a recording, and "),
        (
            &saved,
            b"TotalCycles 1",
            "",
            Exit::Recording,
            "new is neither a recording nor the output of .\\client stat --json",
        ),
        (&saved, &other, "", Exit::NotRecorded, "the two have no event in common: TotalCycles, TotalIssues"),
        (&saved, &saved, "--cpu 0", Exit::Usage, "options that select samples do not apply to counts"),
        (&recorded, &recorded, "--cpu 7", Exit::NotRecorded, "the recording has no CPU 7"),
        (&recorded, &recorded[..20], "", Exit::Recording, "cannot read"),
    ] {
        let (code, report) = Pair::of(old, new).diff(options).failure();
        assert!(code == exit && report.contains(words), "{options}: {report}");
    }
    for line in ["diff a", "diff a b --fail-above five", "diff a b --sort address", "stat --fail-above 5 -- app"] {
        assert!(Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).is_err(), "{line}");
    }
}
