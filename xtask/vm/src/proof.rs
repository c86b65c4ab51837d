//! What the result of a step means.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guest::Ran;

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "because", rename_all = "snake_case")]
pub enum Outcome {
    /// What the step shows is so.
    Passed,
    /// It is not so, for this reason.
    Failed(String),
    /// The step shows nothing, for this reason.
    NotTried(String),
}

use Outcome::{Failed, NotTried, Passed};

/// The client's exit code for a wrong command line.
const USAGE: i32 = 2;
/// Those for a source that the processor or the machine does not have, and for a driver file that is refused.
const UNKNOWN: i32 = 6;
const UNSUPPORTED: i32 = 7;
const DRIVER_FILE: i32 = 15;
/// That for a Debug Store or a control area in use.
const DEBUG_STORE_TAKEN: i32 = 25;
/// That of `selftest` for a failed check.
const SELFTEST_FAILED: i32 = 28;

/// Smallest share of whole stacks in percent. Interrupt handlers and other code at DISPATCH_LEVEL have none.
const MIN_STACKS: f64 = 50.0;

fn fail_unless(holds: bool, reason: impl FnOnce() -> String) -> Outcome {
    if holds { Passed } else { Failed(reason()) }
}

fn exited(ran: &Ran) -> String {
    let line = ran.err.lines().chain(ran.out.lines()).find(|line| !line.trim().is_empty());
    line.map_or_else(|| format!("exit code {}", ran.code), |line| format!("exit code {}: {}", ran.code, line.trim()))
}

/// Parses the output as JSON of a schema; the version may be any.
fn document(ran: &Ran, schema: &str) -> Result<Value, Outcome> {
    if ran.code != 0 {
        return Err(Failed(exited(ran)));
    }
    let document: Value =
        serde_json::from_str(&ran.out).map_err(|error| Failed(format!("the output is no JSON: {error}")))?;
    let found = document.get("schema").and_then(Value::as_str).unwrap_or_default();
    let prefix = format!("halprof.{schema}/");
    if found.starts_with(&prefix) {
        Ok(document)
    } else {
        Err(Failed(format!("the output has the schema \"{found}\"")))
    }
}

/// Makes an outcome of a check of a document.
fn check(ran: &Ran, schema: &str, check: impl FnOnce(&Value) -> Outcome) -> Outcome {
    document(ran, schema).map_or_else(|outcome| outcome, |document| check(&document))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Passes if the program exits with 0.
pub fn done(ran: &Ran) -> Outcome {
    fail_unless(ran.code == 0, || exited(ran))
}

/// Passes with any exit code: only a crash of the guest fails.
pub fn any_exit(_: &Ran) -> Outcome {
    Passed
}

/// Passes if the client refuses the driver because test signing is off.
pub fn refused_without_test_signing(ran: &Ran) -> Outcome {
    match ran.code {
        0 => NotTried("test signing was on before the run".to_owned()),
        _ => fail_unless(ran.code == DRIVER_FILE && ran.err.contains("test signing is off"), || exited(ran)),
    }
}

/// Passes if bcdedit turns test signing on.
pub fn test_signing_on(ran: &Ran) -> Outcome {
    if format!("{}{}", ran.out, ran.err).contains("Secure Boot") {
        return Failed("Secure Boot is on: turn it off in the settings of the virtual machine".to_owned());
    }
    done(ran)
}

/// Passes if Windows was started with test signing.
pub fn test_signing_is_on(ran: &Ran) -> Outcome {
    fail_unless(ran.code == 0 && ran.out.contains("TESTSIGNING"), || {
        format!("Windows was started with \"{}\"", ran.out.trim())
    })
}

/// Passes if PowerShell prints whether memory integrity runs.
pub fn true_or_false(ran: &Ran) -> Outcome {
    fail_unless(["True", "False"].contains(&ran.out.trim()), || exited(ran))
}

/// Passes if `.\client install` leaves a driver that runs.
pub fn installed(ran: &Ran) -> Outcome {
    let runs = ran.out.contains("started") || ran.out.contains("and running");
    fail_unless(ran.code == 0 && runs, || exited(ran))
}

/// Passes if `.\client info` reports an interface.
pub fn info(ran: &Ran) -> Outcome {
    check(ran, "info", |info| fail_unless(!text(info, "interface").is_empty(), || "no interface".to_owned()))
}

/// Passes if `.\client info` says that the counters are reserved with the HAL.
pub fn reserved(ran: &Ran) -> Outcome {
    check(ran, "info", |info| {
        let reserved = info.get("counters_reserved") == Some(&Value::Bool(true));
        fail_unless(reserved, || "counters_reserved is not true while a session counts".to_owned())
    })
}

/// Passes if `.\client info` names the reason and, in a guest of Hyper-V, the command for it.
pub fn reason_of_no_counters(ran: &Ran) -> Outcome {
    check(ran, "info", |info| {
        let Some(blocker) = info.get("blocker").filter(|blocker| blocker.is_object()) else {
            return Failed("no reason is named".to_owned());
        };
        if !text(info, "hypervisor").starts_with("Hyper-V") {
            return NotTried("the guest is not one of Hyper-V".to_owned());
        }
        let remedy = text(blocker, "remedy");
        fail_unless(remedy.contains("Set-VMProcessor"), || format!("the remedy is: {remedy}"))
    })
}

/// Passes if `.\client diagnose --live` has read the registers of every processor, and the HAL has told its sources. A
/// register that raises #GP passes: a hypervisor may lack it, and the output, which is kept, shows it.
pub fn diagnosed(ran: &Ran) -> Outcome {
    check(ran, "live", |document| {
        let (processors, sources) = (list(document, "processors"), list(document, "hal_sources"));
        if processors.is_empty() || sources.is_empty() {
            return Failed("no processor was read, or the HAL was not asked".to_owned());
        }
        let registers = processors.iter().flat_map(|processor| list(processor, "registers"));
        let is_failure = |answer: &&Value| !["", "#GP"].contains(&text(answer, "error"));
        let failures = registers
            .chain(sources)
            .filter(is_failure)
            .map(|one| format!("{}: {}", text(one, "name"), text(one, "error")));
        let failures: Vec<String> = failures.collect();
        fail_unless(failures.is_empty(), || failures.join(", "))
    })
}

/// Passes if `.\client selftest` passes; else names the checks that fail.
pub fn selftest(ran: &Ran) -> Outcome {
    // A failed check has an exit code of its own, and the document with it.
    let code = if ran.code == SELFTEST_FAILED { 0 } else { ran.code };
    check(&Ran { code, ..ran.clone() }, "selftest", |document| {
        if ran.code == 0 && text(document, "verdict") == "passed" {
            return Passed;
        }
        let failed = list(document, "checks").iter().filter(|check| text(check, "verdict") == "failed");
        let names: Vec<&str> = failed.map(|check| text(check, "name")).collect();
        Failed(format!(
            "verdict \"{}\", exit code {}; failed: {}",
            text(document, "verdict"),
            ran.code,
            names.join(", ")
        ))
    })
}

/// Passes if a self-test has verified counts of threads. If it could not test them, it shows nothing.
pub fn counts_of_threads(ran: &Ran) -> Outcome {
    let outcome = selftest(ran);
    if outcome != Passed {
        return outcome;
    }
    check(ran, "selftest", |document| {
        if document["verified_threads"].is_object() {
            return Passed;
        }
        let reasons =
            list(document, "checks").iter().map(|check| text(check, "reason")).filter(|text| !text.is_empty());
        NotTried(reasons.collect::<Vec<_>>().join("; "))
    })
}

/// Passes if `.\client stat` counted every event.
pub fn counted(ran: &Ran) -> Outcome {
    check(ran, "stat", |document| {
        let events = list(document, "events");
        let zero: Vec<&str> = events
            .iter()
            .filter(|event| number(event, "count").max(0.0) == 0.0)
            .map(|event| text(event, "name"))
            .collect();
        fail_unless(!events.is_empty() && zero.is_empty(), || format!("no count of {}", zero.join(", ")))
    })
}

/// Passes if cycles and instructions have a plausible ratio.
pub fn plausible(ran: &Ran) -> Outcome {
    let outcome = counted(ran);
    if outcome != Passed {
        return outcome;
    }
    check(ran, "stat", |document| {
        let of = |name: &str| -> f64 {
            let events = list(document, "events").iter().filter(|event| text(event, "name").contains(name));
            events.map(|event| number(event, "count")).sum()
        };
        if let Some(event) = list(document, "events").iter().find(|event| event.get("missed").is_some()) {
            return Failed(format!("the counter of {} does not count", text(event, "name")));
        }
        let ratio = of("TotalIssues") / of("TotalCycles");
        fail_unless((0.2..=5.0).contains(&ratio), || format!("{ratio:.2} instructions per cycle instead of 0.2 to 5"))
    })
}

/// Passes if events took turns and every one was counted.
pub fn took_turns(ran: &Ran) -> Outcome {
    if [UNKNOWN, UNSUPPORTED].contains(&ran.code) {
        return NotTried(exited(ran));
    }
    check(ran, "stat", |document| {
        let shares: Vec<f64> = list(document, "events").iter().map(|event| number(event, "percent_running")).collect();
        let in_range = |share: &f64| *share > 0.0 && *share <= 100.0;
        if shares.is_empty() || !shares.iter().all(in_range) {
            return Failed(format!("shares of the time with a counter: {shares:?}"));
        }
        if shares.iter().all(|share| *share >= 100.0) {
            return NotTried("the processor has a counter for each event".to_owned());
        }
        Passed
    })
}

/// Passes if the metrics of level 1 sum to 100 %.
pub fn top_down(ran: &Ran) -> Outcome {
    if ran.code == UNSUPPORTED {
        return NotTried(exited(ran));
    }
    check(ran, "stat", |document| {
        let metrics = list(document, "metrics");
        if let Some(reason) = metrics.iter().find_map(|metric| metric.get("unavailable").and_then(Value::as_str)) {
            return NotTried(reason.to_owned());
        }
        let sum: f64 = metrics.iter().map(|metric| number(metric, "value")).sum();
        fail_unless((99.0..=101.0).contains(&sum), || format!("{} metrics sum to {sum:.1} %", metrics.len()))
    })
}

/// Passes if the summary of `.\client record` has samples.
pub fn recorded(ran: &Ran) -> Outcome {
    let samples = |line: &str| {
        let digits: String = line.split_once("[ recorded ")?.1.split(' ').next()?.replace(',', "");
        digits.parse::<u64>().ok()
    };
    match (ran.code, ran.err.lines().chain(ran.out.lines()).find_map(samples)) {
        (0, Some(0)) => Failed("no samples".to_owned()),
        (0, Some(_)) => Passed,
        (0, None) => Failed("no summary".to_owned()),
        _ => Failed(exited(ran)),
    }
}

/// Returns the line of `.\client record -g` that says how many samples have stacks.
fn stacks_line(ran: &Ran) -> Option<&str> {
    ran.err.lines().chain(ran.out.lines()).find(|line| line.starts_with("[ stacks: "))
}

/// Passes if `.\client record -g` has samples, and Windows did not refuse its trace session.
pub fn traced(ran: &Ran) -> Outcome {
    let outcome = recorded(ran);
    if outcome != Passed {
        return outcome;
    }
    fail_unless(stacks_line(ran).is_some(), || {
        let warning = ran.err.lines().find(|line| line.contains("without call stacks"));
        warning.unwrap_or("no line about stacks").to_owned()
    })
}

/// Passes if at least half of the samples of `.\client record -g` have a whole stack.
pub fn recorded_with_stacks(ran: &Ran) -> Outcome {
    let outcome = traced(ran);
    if outcome != Passed {
        return outcome;
    }
    let line = stacks_line(ran).unwrap_or_default();
    let share = line.trim_start_matches("[ stacks: ").split(' ').next().and_then(|share| share.parse::<f64>().ok());
    fail_unless(share.is_some_and(|share| share >= MIN_STACKS), || line.to_owned())
}

/// Passes if `.\client report` finds samples of every source.
pub fn reported(ran: &Ran) -> Outcome {
    check(ran, "report", |document| {
        let sources = list(document, "sources");
        let empty = sources.iter().filter(|source| number(source, "samples").max(0.0) == 0.0);
        let empty: Vec<&str> = empty.map(|source| text(source, "name")).collect();
        fail_unless(!sources.is_empty() && empty.is_empty(), || format!("no samples of {}", empty.join(", ")))
    })
}

/// Passes if `.\client control-area` reports areas; if it allocates, they have the size of the later layout.
pub fn areas(ran: &Ran) -> Outcome {
    if ran.code == DEBUG_STORE_TAKEN {
        return NotTried(exited(ran));
    }
    check(ran, "control-area", |document| {
        let areas = list(document, "areas");
        let other = areas.iter().filter_map(|area| area.get("size")?.as_u64()).find(|size| *size != 0xA0);
        match other {
            Some(size) => Failed(format!("an area has {size:#x} bytes instead of 0xA0")),
            None => fail_unless(!areas.is_empty(), || "no areas".to_owned()),
        }
    })
}

/// Passes if Driver Verifier names the driver.
pub fn verified(ran: &Ran) -> Outcome {
    let names = ran.out.to_lowercase().contains("halprof.sys");
    fail_unless(ran.code == 0 && names, || "Driver Verifier does not name halprof.sys".to_owned())
}

/// Passes if every test passed, and at least one ran.
pub fn tests(ran: &Ran) -> Outcome {
    if let Some(line) = ran.out.lines().find(|line| line.starts_with("skipped: this machine")) {
        return NotTried(line.to_owned());
    }
    let failed = ran.out.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: Vec<&str> = failed.collect();
    let summary = ran.out.lines().find_map(|line| line.strip_prefix("test result: ")).unwrap_or_default();
    let ran_any = summary.starts_with("ok. ") && !summary.starts_with("ok. 0 passed");
    fail_unless(ran.code == 0 && ran_any, || {
        if failed.is_empty() { format!("{}; {summary}", exited(ran)) } else { format!("failed: {}", failed.join(", ")) }
    })
}

/// Passes if the driver is not installed.
pub fn not_installed(ran: &Ran) -> Outcome {
    const NOT_INSTALLED: i32 = 3;
    fail_unless(ran.code == NOT_INSTALLED, || exited(ran))
}

/// Returns the outcome of a client that does not know its command line, which shows nothing about the claims.
pub fn usage(ran: &Ran) -> Option<Outcome> {
    (ran.code == USAGE)
        .then(|| NotTried(format!("the client of the package refuses the command line: {}", exited(ran))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ran(code: i32, out: &str, err: &str) -> Ran {
        Ran { code, out: out.to_owned(), err: err.to_owned() }
    }

    fn printed(value: &Value) -> Ran {
        ran(0, &value.to_string(), "")
    }

    fn failed(outcome: &Outcome) -> &str {
        let Failed(reason) = outcome else { panic!("{outcome:?}") };
        reason
    }

    /// A stat document with these counts and shares of the time.
    fn stat(events: &[(&str, u64, f64)]) -> Ran {
        let event =
            |(name, count, share): &(&str, u64, f64)| json!({ "name": name, "count": count, "percent_running": share });
        printed(&json!({ "schema": "halprof.stat/1", "events": events.iter().map(event).collect::<Vec<_>>() }))
    }

    #[test]
    fn a_count_of_zero_and_an_implausible_ratio_fail() {
        let both = |cycles, issues| plausible(&stat(&[("TotalCycles", cycles, 100.0), ("TotalIssues", issues, 100.0)]));
        assert_eq!(both(1000, 1400), Passed);
        assert_eq!(failed(&both(1000, 0)), "no count of TotalIssues");
        assert_eq!(failed(&both(1000, 100)), "0.10 instructions per cycle instead of 0.2 to 5");
        assert_eq!(failed(&both(1000, 5100)), "5.10 instructions per cycle instead of 0.2 to 5");
        assert!(matches!(plausible(&stat(&[("TotalIssues", 5, 100.0)])), Failed(_)), "no cycles");
        assert!(matches!(counted(&stat(&[])), Failed(_)), "no events");
    }

    #[test]
    fn events_that_all_have_a_counter_do_not_show_that_events_take_turns() {
        assert_eq!(took_turns(&stat(&[("a", 1, 60.0), ("b", 1, 100.0)])), Passed);
        assert!(matches!(took_turns(&stat(&[("a", 1, 100.0)])), NotTried(_)));
        assert!(matches!(took_turns(&stat(&[("a", 1, 60.0), ("b", 1, 0.0)])), Failed(_)));
        assert!(matches!(took_turns(&stat(&[("a", 1, 101.0)])), Failed(_)));
        assert!(matches!(took_turns(&ran(7, "", "error: not supported")), NotTried(_)));
        assert!(matches!(took_turns(&ran(8, "", "error: no counter is free")), Failed(_)));
    }

    #[test]
    fn metrics_that_do_not_sum_to_all_fail() {
        let metrics = |values: &[f64], unavailable: Value| {
            let metric = |value| json!({ "name": "m", "value": value, "unavailable": unavailable });
            let metrics: Vec<Value> = values.iter().map(metric).collect();
            top_down(&printed(&json!({ "schema": "halprof.stat/1", "events": [], "metrics": metrics })))
        };
        assert_eq!(metrics(&[25.0, 75.2], Value::Null), Passed);
        assert_eq!(failed(&metrics(&[25.0, 50.0], Value::Null)), "2 metrics sum to 75.0 %");
        assert!(matches!(metrics(&[], Value::Null), Failed(_)));
        assert_eq!(metrics(&[1.0], "no slots".into()), NotTried("no slots".to_owned()));
        assert!(matches!(top_down(&ran(7, "", "error: not here")), NotTried(_)));
    }

    #[test]
    fn a_selftest_fails_with_the_names_of_its_failed_checks() {
        let run = |code, verdict: &str, checks: Value| {
            let document = json!({ "schema": "halprof.selftest/1", "verdict": verdict, "checks": checks });
            selftest(&Ran { code, ..printed(&document) })
        };
        assert_eq!(run(0, "passed", json!([])), Passed);
        let checks = json!([{ "name": "cycles", "verdict": "passed" }, { "name": "branches", "verdict": "failed" }]);
        assert_eq!(failed(&run(28, "failed", checks)), "verdict \"failed\", exit code 28; failed: branches");
        assert!(matches!(run(0, "failed", json!([])), Failed(_)), "the document counts");
        assert!(matches!(run(28, "passed", json!([])), Failed(_)), "the exit code counts");
        assert_eq!(failed(&run(1, "passed", json!([]))).split(':').next(), Some("exit code 1"));
    }

    #[test]
    fn documents_of_another_schema_and_texts_fail() {
        let live = |error: Value| {
            let registers = [json!({ "name": "LVT entry", "error": error })];
            let sources = [json!({ "name": "Time", "error": null })];
            printed(&json!({
                "schema": "halprof.live/2", "processors": [{ "registers": registers }], "hal_sources": sources
            }))
        };
        assert_eq!((diagnosed(&live(Value::Null)), diagnosed(&live(json!("#GP")))), (Passed, Passed));
        assert_eq!(failed(&diagnosed(&live(json!("NTSTATUS 0xC0000001")))), "LVT entry: NTSTATUS 0xC0000001");
        assert!(matches!(diagnosed(&printed(&json!({ "schema": "halprof.live/1" }))), Failed(_)));
        assert_eq!(
            failed(&diagnosed(&printed(&json!({ "schema": "halprof.lives/1" })))),
            "the output has the schema \"halprof.lives/1\""
        );
        assert!(failed(&diagnosed(&ran(0, "Interface Emon", ""))).starts_with("the output is no JSON: "));
        assert_eq!(failed(&diagnosed(&ran(5, "", "\nerror: denied\n"))), "exit code 5: error: denied");
        assert!(matches!(info(&printed(&json!({ "schema": "halprof.info/1" }))), Failed(_)));
        let in_use = |reserved: bool| json!({ "schema": "halprof.info/1", "counters_reserved": reserved });
        assert_eq!(reserved(&printed(&in_use(true))), Passed);
        assert!(matches!(reserved(&printed(&in_use(false))), Failed(_)));
    }

    #[test]
    fn the_reason_of_no_counters_needs_the_command_on_hyper_v_only() {
        let info = |hypervisor: &str, remedy: &str| {
            let blocker = json!({ "what": "masked", "remedy": remedy });
            let info = json!({ "schema": "halprof.info/1", "hypervisor": hypervisor, "blocker": blocker });
            reason_of_no_counters(&printed(&info))
        };
        assert_eq!(info("Hyper-V or one that is compatible", "Set-VMProcessor NAME -Perfmon"), Passed);
        assert_eq!(failed(&info("Hyper-V or one that is compatible", "buy another")), "the remedy is: buy another");
        assert!(matches!(info("KVM with Hyper-V enlightenments", "libvirt"), NotTried(_)));
        let none = printed(&json!({ "schema": "halprof.info/1", "hypervisor": "Hyper-V", "blocker": null }));
        assert_eq!(failed(&reason_of_no_counters(&none)), "no reason is named");
    }

    #[test]
    fn recordings_and_reports_without_samples_fail() {
        let summary =
            |count: &str| ran(0, "", &format!("halprof\n[ recorded {count} samples (0 lost, paused 0.0 %) ]\n"));
        assert_eq!(recorded(&summary("1,820")), Passed);
        assert_eq!(recorded(&summary("0")), Failed("no samples".to_owned()));
        assert_eq!(recorded(&ran(0, "", "")), Failed("no summary".to_owned()));
        assert!(matches!(recorded(&Ran { code: 24, ..summary("5") }), Failed(_)));
        let with_stacks = |share: &str| {
            let stacks = format!("[ stacks: {share} % of samples; 0.0 % truncated; 3.0 % missing ]\n");
            recorded_with_stacks(&Ran { out: stacks, ..summary("5") })
        };
        assert_eq!((with_stacks("97.0"), with_stacks("50.0")), (Passed, Passed));
        assert!(failed(&with_stacks("12.5")).starts_with("[ stacks: 12.5 %"));
        assert!(failed(&with_stacks("<0.1")).starts_with("[ stacks: <0.1 %"));
        assert_eq!(failed(&recorded_with_stacks(&summary("0"))), "no samples");
        assert_eq!(failed(&recorded_with_stacks(&summary("5"))), "no line about stacks");
        let refusal = "warning: samples are recorded without call stacks: Windows refuses the trace session";
        let refused = Ran { err: format!("{refusal}\n{}", summary("5").err), ..Ran::default() };
        assert_eq!(failed(&traced(&refused)), refusal);
        assert_eq!(failed(&recorded_with_stacks(&refused)), refusal);
        let report = |samples: u64| {
            let sources = json!([{ "name": "a", "samples": 5 }, { "name": "b", "samples": samples }]);
            reported(&printed(&json!({ "schema": "halprof.report/1", "sources": sources })))
        };
        assert_eq!(report(1), Passed);
        assert_eq!(failed(&report(0)), "no samples of b");
    }

    #[test]
    fn areas_have_the_later_size_or_are_those_of_windows() {
        let of =
            |size: Value| areas(&printed(&json!({ "schema": "halprof.control-area/1", "areas": [{ "size": size }] })));
        assert_eq!((of(160.into()), of(Value::Null)), (Passed, Passed));
        assert_eq!(failed(&of(96.into())), "an area has 0x60 bytes instead of 0xA0");
        assert!(matches!(areas(&ran(25, "", "STATUS_ADDRESS_ALREADY_EXISTS")), NotTried(_)));
    }

    #[test]
    fn tests_pass_only_if_one_ran_and_none_failed() {
        let of = |code, out: &str| tests(&ran(code, out, ""));
        assert_eq!(of(0, "test a ... ok\ntest result: ok. 1 passed; 0 failed\n"), Passed);
        let broken = "test a::b ... FAILED\ntest c ... ok\ntest result: FAILED. 1 passed; 1 failed\n";
        assert_eq!(failed(&of(101, broken)), "failed: a::b");
        assert!(matches!(of(0, "test result: ok. 0 passed; 0 failed\n"), Failed(_)), "a filter that fits nothing");
        assert!(matches!(of(-1, ""), Failed(_)), "it did not start");
        let skipped = "skipped: this machine does not trust the certificate\ntest result: ok. 1 passed; 0 failed\n";
        assert!(matches!(of(0, skipped), NotTried(_)));
    }

    #[test]
    fn settings_of_windows_are_read_from_its_output() {
        assert_eq!(test_signing_is_on(&ran(0, " TESTSIGNING  NOEXECUTE=OPTIN", "")), Passed);
        assert!(matches!(test_signing_is_on(&ran(0, " NOEXECUTE=OPTIN", "")), Failed(_)));
        assert!(failed(&test_signing_on(&ran(1, "protected by Secure Boot policy", ""))).contains("turn it off"));
        assert!(matches!(test_signing_on(&ran(1, "Access is denied.", "")), Failed(_)));
        let refusal = "error: x\n  because: it is signed for tests, by \"y\", and test signing is off\n";
        assert_eq!(refused_without_test_signing(&ran(15, "", refusal)), Passed);
        assert!(matches!(refused_without_test_signing(&ran(0, "started", "")), NotTried(_)));
        assert!(matches!(refused_without_test_signing(&ran(15, "", "it is truncated")), Failed(_)));
        assert!(matches!(refused_without_test_signing(&ran(1, "", refusal)), Failed(_)));
        assert_eq!(verified(&ran(0, "Name: HALPROF.SYS", "")), Passed);
        assert!(matches!(verified(&ran(0, "none", "")), Failed(_)));
        assert_eq!((not_installed(&ran(3, "", "")), done(&ran(0, "", ""))), (Passed, Passed));
        assert!(matches!(not_installed(&ran(0, "", "")), Failed(_)));
        assert_eq!(installed(&ran(0, "already installed, with the same file, and running\n", "")), Passed);
        assert!(matches!(installed(&ran(0, "service halprof created\n", "")), Failed(_)));
        assert!(usage(&ran(2, "", "error: no verb")).is_some() && usage(&ran(1, "", "")).is_none());
        assert!(matches!(true_or_false(&ran(0, "", "")), Failed(_)));
    }
}
