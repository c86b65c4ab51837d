//! Tests of every verb with a fake driver and a fake Windows, or without either.

mod branches;
mod closed_pipe;
mod code;
mod control_area;
mod diagnose;
mod diff;
mod disturbed;
mod encode;
mod extra;
mod hostile;
mod hybrid;
mod imports;
mod installing;
mod mem;
mod named;
mod narrowing;
mod record;
mod report;
mod schemas;
mod search;
mod selftest;
mod selftest_threads;
mod stat;
mod stat_metrics;
mod stat_tasks;
mod tables;
mod top;
mod transcript;
mod unsupported;

use std::sync::Arc;
use std::{fs, io};

use clap::Parser;
use halprof::ServiceState;
use halprof::event::SourceName;
use proptest::prelude::*;
use protocol::{
    ALL_SOURCES, Code, CountRecord, DETACHED, ErrorCode, Event, InfoReply, ReplyHeader, SessionEvent, StopRequest,
    modes,
};
use serde_json::{Value, json};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::*;
use crate::cli::Cli;
use fake_system::{FakeDriver, FakeSystem, Shared, count, info, record, sources};
use user_error::win32;

const SECOND: u64 = 10_000_000;

#[cfg(not(windows))]
const EXIT_3: &str = "sh -c";
#[cfg(windows)]
const EXIT_3: &str = "cmd /c";

/// Output of a run, and its exit code or error.
struct Run {
    out: String,
    err: String,
    outcome: Result<i32, Error>,
}

impl Run {
    fn json(&self) -> Value {
        document(&self.out)
    }

    fn failure(&self) -> (Exit, String) {
        let error = self.outcome.as_ref().unwrap_err();
        (error.exit(), error.report())
    }
}

/// Parses JSON output, which must agree with its schema, and removes the name of the schema.
fn document(text: &str) -> Value {
    let mut document: Value = serde_json::from_str(text).unwrap();
    json_schemas::check(&document).unwrap();
    document.as_object_mut().unwrap().remove("schema");
    document
}

fn run_words(system: &FakeSystem, words: &[&str]) -> Run {
    let cli = Cli::try_parse_from(["client"].iter().chain(words)).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut input = io::empty();
    let mut context = Context::new(Some(system), &mut input, &mut out, &mut err);
    let outcome = super::run(&cli.verb, &mut context);
    Run { out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap(), outcome }
}

/// Runs a verb without Windows, with `input` as standard input.
fn run_anywhere(line: &str, input: &[u8]) -> Run {
    run_on(None, line, input)
}

/// Runs a verb without Windows on a terminal on which text can fill so many columns.
fn run_on(columns: Option<usize>, line: &str, mut input: &[u8]) -> Run {
    let cli = Cli::try_parse_from(["client"].into_iter().chain(line.split_whitespace())).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut context = Context::new(None, &mut input, &mut out, &mut err);
    context.columns = columns;
    let outcome = super::run(&cli.verb, &mut context);
    Run { out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap(), outcome }
}

fn run(system: &FakeSystem, line: &str) -> Run {
    run_words(system, &line.split_whitespace().collect::<Vec<_>>())
}

/// Runs `stat -a` with a command that exits with code 3.
fn stat(system: &FakeSystem, options: &str) -> Run {
    let line = format!("stat -a {options} -- {EXIT_3}");
    run_words(system, &line.split_whitespace().chain(["exit 3"]).collect::<Vec<_>>())
}

fn with_counts(counts: &[CountRecord]) -> FakeSystem {
    let driver = FakeDriver::default();
    driver.counts.replace(counts.to_vec());
    FakeSystem::running(driver)
}

fn two_processors() -> FakeSystem {
    with_counts(&[
        count(2, 0, 1_400_000, SECOND),
        count(2, 1, 600_000, SECOND),
        count(0x13, 0, 700_000, SECOND),
        count(0x13, 1, 300_000, SECOND),
    ])
}

mod missing_driver {
    use super::*;

    #[test]
    fn every_verb_except_install_reports_a_missing_or_stopped_driver() {
        let system = FakeSystem::running(FakeDriver::default());
        for line in [
            "info",
            "list",
            "query 2",
            "interval 2 5000",
            "start 2",
            "stop 2",
            "read",
            "stat -e 2 -- app",
            "record -- app",
            "branches -a",
            "control-area",
        ] {
            system.service.set(None);
            assert_eq!(run(&system, line).failure().0, Exit::NotInstalled, "{line}");
            system.service.set(Some(ServiceState::Stopped));
            assert_eq!(run(&system, line).failure().0, Exit::NotStarted, "{line}");
        }
    }

    #[test]
    fn status_names_the_command_that_starts_the_driver() {
        let system = FakeSystem::running(FakeDriver::default());
        system.service.set(None);
        let status = run(&system, "status");
        assert_eq!(status.out, "The driver is not installed. To install and start it: .\\client install\n");
        assert_eq!(status.outcome.unwrap(), Exit::NotInstalled.code());
        for (state, word) in [
            (ServiceState::Stopped, "stopped"),
            (ServiceState::Starting, "starting"),
            (ServiceState::Stopping, "stopping"),
        ] {
            system.service.set(Some(state));
            let status = run(&system, "status");
            assert_eq!(status.out, format!("The driver is installed and {word}. To start it: .\\client install\n"));
            assert_eq!(status.outcome.unwrap(), Exit::NotStarted.code());
        }
    }

    #[test]
    fn access_denied_and_a_missing_privilege_have_one_code() {
        for code in [win32::ERROR_ACCESS_DENIED, win32::ERROR_PRIVILEGE_NOT_HELD] {
            let system = FakeSystem { failure: Some(code), ..FakeSystem::running(FakeDriver::default()) };
            for line in ["info", "status", "list"] {
                let (exit, report) = run(&system, line).failure();
                assert_eq!(exit, Exit::Denied);
                assert!(report.contains("elevated prompt") && report.contains("SeSystemProfilePrivilege"), "{report}");
            }
        }
    }
}

mod versions {
    use super::*;

    #[test]
    fn a_version_mismatch_reports_both_versions() {
        let system = FakeSystem::running(FakeDriver { protocol: 22, ..FakeDriver::default() });
        let (exit, report) = run(&system, "list").failure();
        assert_eq!(exit, Exit::VersionMismatch);
        assert!(report.contains("protocol version 21, and the driver has version 22"), "{report}");

        let refuse = Some((Code::Hello, ErrorCode::VersionMismatch, [1, 8]));
        let system = FakeSystem::running(FakeDriver { refuse, ..FakeDriver::default() });
        let (exit, report) = run(&system, "status").failure();
        assert_eq!(exit, Exit::VersionMismatch);
        assert!(report.contains("protocol version 1, and the driver has version 8"), "{report}");
        assert_eq!(system.driver.asked.borrow().len(), 1, "nothing is requested from a driver of another version");
    }
}

mod asking {
    use super::*;

    #[test]
    fn list_shows_supported_sources_and_with_all_the_reasons_for_the_others() {
        let system = FakeSystem::running(FakeDriver::default());
        assert_eq!(
            run(&system, "list").out,
            "Id  Name                  Interval   Min         Max\n\
             --  --------------------  --------  ----  ----------\n \
             2  TotalIssues              65536  4096  2147483647\n \
             6  BranchInstructions       65536  4096  2147483647\n\
             11  BranchMispredictions     65536  4096  2147483647\n\
             19  TotalCycles              65536  4096  2147483647\n\
             \nAt the same time on a processor: any 3 of them, and Time.\n\
             \n3 more are not supported on this machine: .\\client list --all\n"
        );
        let all = run(&system, "list --all").out;
        assert!(all.contains(" 0  Time                     65536  no: memory\n"), "{all}");
        assert!(
            all.ends_with(
                "\nno: interface: the profile interface of this machine has no such source\n\
            no: not available: CPUID leaf 0xA says that the event is not available (EBX)\n\
            no: memory: the driver had no memory for the counters' state when it started\n"
            ),
            "{all}"
        );
    }

    #[test]
    fn list_reports_that_no_source_is_supported() {
        let sources = vec![record(0, "Time", 4)];
        let system = FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() });
        let sentence = "no source is supported on this machine; why: .\\client info, .\\client list --all\n";
        assert_eq!(run(&system, "list").out, sentence);
        assert_eq!(run(&system, "list --json").json(), json!({"sources": []}));
    }

    /// On AMD by what IBS counts, on Intel by the tables of the driver.
    #[test]
    fn list_says_which_sources_can_be_precise_or_why_none_can() {
        use pmu::ibs::MissingFeature as NoIbs;
        use protocol::SourceRecord;

        let with_select = |source, name, select| SourceRecord { select, ..record(source, name, 0) };
        let amd = |ibs| {
            let sources = vec![
                with_select(2, "TotalIssues", 0x300C0),
                with_select(6, "BranchInstructions", 0x300C2),
                with_select(0x13, "TotalCycles", 0x30076),
                SourceRecord { support: 3, ..with_select(10, "CacheMisses", 0x30076) },
            ];
            let mut driver = FakeDriver { sources, ..FakeDriver::default() };
            driver.info.vendor[..12].copy_from_slice(b"AuthenticAMD");
            driver.info.ibs = ibs;
            FakeSystem::running(driver)
        };
        let intel = || {
            let sources = vec![SourceRecord { precise: 0b110, ..record(2, "TotalIssues", 0) }, record(6, "Other", 0)];
            FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() })
        };
        let lacking = |feature: NoIbs| (feature as u32 + 1) << 8;
        for (system, by, names, text) in [
            (amd(0b111), "IBS", &["TotalIssues", "TotalCycles"][..], "itself (IBS): TotalIssues, TotalCycles.\n"),
            (amd(0b001), "IBS", &["TotalCycles"], "itself (IBS): TotalCycles.\n"),
            (amd(0b100), "IBS", &[], "\nNo source can be precise (:p)\n  because: its IBS counts cycles alone"),
            (amd(lacking(NoIbs::NoUnit)), "IBS", &[], "\n  because: it has no Instruction-Based Sampling (IBS), or"),
            (amd(lacking(NoIbs::Hypervisor)), "IBS", &[], "\n  because: a hypervisor runs the system, also where"),
            (intel(), "PEBS", &["TotalIssues"], " (PEBS, if .\\client control-area\nshows it): TotalIssues.\n"),
        ] {
            let out = run(&system, "list").out;
            assert!(out.contains(text) && out.lines().all(|line| line.len() <= 80), "{text}: {out}");
            let precise = &run(&system, "list --json").json()["precise"];
            assert_eq!((&precise["by"], &precise["sources"]), (&json!(by), &json!(names)), "{precise}");
            assert_eq!(precise["reason"].is_null(), !names.is_empty(), "{precise}");
            let is_by_ibs = run(&system, "query TotalIssues").out.contains("\nPrecise    by IBS\n");
            assert_eq!(is_by_ibs, by == "IBS" && names.contains(&"TotalIssues"));
        }
    }

    #[test]
    fn a_list_longer_than_the_first_buffer_is_requested_again() {
        let sources: Vec<_> = (0..700).map(|number| record(number, &format!("S{number}"), 0)).collect();
        let system = FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() });
        let list = run(&system, "list --json").json();
        assert_eq!(list["sources"].as_array().unwrap().len(), 700);
        assert_eq!(system.driver.inputs(Code::ListSources).len(), 2);
    }

    #[test]
    fn list_and_query_have_the_same_keys() {
        let system = FakeSystem::running(FakeDriver::default());
        let wanted = json!({
            "id": 2, "name": "TotalIssues", "supported": true, "reason": null, "interval": 65536, "minimum": 4096,
            "maximum": 2_147_483_647, "select": "0x000300c0", "counters": [0, 1, 2], "unlisted": false, "precise_counters": [],
            "running": 0, "errata": []
        });
        assert_eq!(run(&system, "query ProfileTotalIssues --json").json(), wanted);
        assert_eq!(run(&system, "list --json").json()["sources"][0], wanted);
    }

    #[test]
    fn query_shows_all_properties_of_a_source() {
        let system = FakeSystem::running(FakeDriver::default());
        assert_eq!(
            run(&system, "query cachemisses").out,
            "Id         10 (0x0a)\n\
             Name       CacheMisses\n\
             Supported  no: CPUID leaf 0xA says that the event is not available (EBX)\n\
             Interval   65536\n\
             Min        4096\n\
             Max        2147483647\n\
             Select     0x000300c0\n\
             Counters   any of 0-2\n\
             Precise    no\n\
             Running    no\n"
        );
    }

    /// A driver on a processor with this signature.
    fn on(signature: u32) -> FakeSystem {
        FakeSystem::running(FakeDriver { info: InfoReply { signature, ..info() }, ..FakeDriver::default() })
    }

    #[test]
    fn query_list_and_info_name_the_errata_of_a_source() {
        // Skylake.
        let system = on(0x0005_06E3);
        let query = run(&system, "query TotalIssues").out;
        assert!(query.ends_with("\nRunning    no\nErrata     SKL044, SKL091\n"), "{query}");
        assert!(!run(&system, "query TotalCycles").out.contains("Errata"));
        let list = run(&system, "list").out;
        insta::assert_snapshot!("the_list_ends_with_the_errata", list);
        let info = run(&system, "info").out;
        assert!(
            info.contains("\nErrata          SKL044, SKL057, SKL091; .\\client list names the sources\n"),
            "{info}"
        );
        let skl091 = json!({"number": "SKL091", "efficient_cores_only": false});
        assert_eq!(run(&system, "query 6 --json").json()["errata"], json!([skl091]));
        assert_eq!(run(&system, "list --json").json()["sources"][1]["errata"], json!([skl091]));
        assert_eq!(
            run(&system, "info --json").json()["errata"][1],
            json!({"number": "SKL057", "efficient_cores_only": false, "sources": ["CacheMisses", "LLCReference", "LLCMisses"]})
        );
    }

    #[test]
    fn info_names_the_workarounds_with_their_errata() {
        let info = InfoReply { workarounds: 1 << 0 | 1 << 2 | 1 << 63, ..info() };
        let system = FakeSystem::running(FakeDriver { info, ..FakeDriver::default() });
        let text = run(&system, "info").out;
        let lines = "\nWorkaround      the general counters are reset before each start\n\
                     \x20               (AAK100, AAP53, BD53)\n\
                     Workaround      counter 3 is left to the microcode of TSX\n";
        assert!(text.contains(lines), "{text}");
        let json = run(&system, "info --json").json();
        assert_eq!(json["workarounds"].as_array().unwrap().len(), 2, "a newer driver may have numbers without a text");
        assert_eq!(
            json["workarounds"][0],
            json!({
                "number": 0, "errata": ["AAK100", "AAP53", "BD53"],
                "effect": "the general counters are reset before each start",
                "source": "Linux, arch/x86/events/intel/core.c, intel_pmu_nhm_enable_all"
            })
        );
    }

    #[test]
    fn errata_of_efficient_cores_say_so_and_another_vendor_has_none() {
        let meteor_lake = on(0x000A_06A4);
        let query = run(&meteor_lake, "query BranchInstructions").out;
        assert!(query.contains("Errata     MTL012, MTL013 (efficient cores)\n"), "{query}");
        let mut info = InfoReply { signature: 0x0005_06E3, interface: 2, ..info() };
        info.vendor[..12].copy_from_slice(b"AuthenticAMD");
        let amd = FakeSystem::running(FakeDriver { info, ..FakeDriver::default() });
        assert_eq!(run(&amd, "info --json").json()["errata"], json!([]));
        assert_eq!(run(&amd, "query TotalIssues --json").json()["errata"], json!([]));
    }

    #[test]
    fn the_document_shows_the_lines_of_info() {
        fn labels(text: &str) -> Vec<&str> {
            text.lines().map(|line| line.get(..16).unwrap_or(line).trim_end()).collect()
        }
        let document = include_str!("../../../docs/windows.md");
        let block = document.split("```").find(|block| block.starts_with("\nInterface ")).unwrap().trim();
        // The processor of the document, which has errata: numbers 1 and 10 of the table are worked around.
        let info = InfoReply { signature: 0x0003_06C3, workarounds: 1 << 1 | 1 << 10, ..info() };
        let system = FakeSystem::running(FakeDriver { info, ..FakeDriver::default() });
        let text = run(&system, "info").out;
        assert_eq!(labels(block), labels(&text));
        for line in block.lines().skip_while(|line| !line.starts_with("Workaround")) {
            assert!(text.contains(line), "{line}");
        }
        let version = format!("protocol {}", protocol::PROTOCOL_VERSION);
        assert!(block.lines().any(|line| line.starts_with("Driver ") && line.ends_with(&version)), "{block}");
    }

    #[test]
    fn query_shows_that_no_table_lists_an_event() {
        let raw = pmu::source::RawEvent::new().with_event(0xA1).with_umask(3);
        let sources = vec![protocol::SourceRecord { unlisted: 1, ..record(raw.source().0, "", 0) }];
        let system = FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() });
        let out = run(&system, "query cpu/event=0xa1,umask=0x03/").out;
        assert!(out.contains("Counters   any of 0-2, but unlisted: it may count nothing on some\n"), "{out}");
        assert_eq!(run(&system, "query cpu/event=0xa1,umask=0x03/ --json").json()["unlisted"], true);
    }

    #[test]
    fn info_shows_the_interface_and_the_reason() {
        let system = FakeSystem::running(FakeDriver::default());
        assert_eq!(
            run(&system, "info").out,
            "Interface       Emon\n\
             Reason          GenuineIntel with architectural performance monitoring\n\
             Windows 10 HAL  Emon as well\n\
             Counters        3 on each processor, 40 bits wide\n\
             In use          1 at most on a processor, by 1 session\n\
             Processors      2 active, 4 at most\n\
             Counter state   64 bytes\n\
             Vendor          GenuineIntel\n\
             Processor       Some CPU\n\
             Signature       0x000106CA: family 0x6, model 0x1c, stepping 10\n\
             PMU version     2\n\
             Hypervisor      none that shows itself\n\
             Driver          1.2.3, protocol 21\n"
        );
        assert_eq!(
            run(&system, "info --json").json(),
            json!({
                "interface": "Emon", "reason": "GenuineIntel with architectural performance monitoring",
                "reason_number": 1, "windows10_interface": "Emon", "counters": 3, "counter_width": 40,
                "counters_in_use": 1, "sessions": 1, "processors": 2, "maximum_processors": 4, "state_bytes": 64,
                "vendor": "GenuineIntel", "brand": "Some CPU", "signature": 0x106CA, "family": 6, "model": 0x1C,
                "stepping": 10, "pmu_version": 2, "hypervisor": "none that shows itself", "hypervisor_number": 0,
                "counters_reserved": false, "reservation_refused": null, "least_counters": 3, "fixed_counters": 0, "blocker": null, "errata": [], "workarounds": [], "includes_smm": null, "driver_version": "1.2.3", "driver_protocol": 21,
                "sampling": {
                    "interrupts": 0, "spurious": 0, "delivered": 0, "lost": 0, "throttled": 0, "discarded": 0,
                    "throttles": 0, "sleeps": 0, "asleep_seconds": 0.0
                }
            })
        );
    }

    #[test]
    fn status_shows_the_sessions_and_their_events() {
        let holder = SessionEvent {
            event: Event::of(2),
            session: 3,
            modes: modes::USER,
            process: 12,
            flags: 1,
            processors: 2,
            first_processor: 0,
            ..SessionEvent::new_zeroed()
        };
        let session_events = vec![holder, SessionEvent { event: Event::of(6), modes: modes::BOTH, ..holder }];
        let system = FakeSystem::running(FakeDriver { session_events, ..FakeDriver::default() });
        assert_eq!(
            run(&system, "status").out,
            "Service   running\n\
             Driver    1.2.3\n\
             Protocol  21\n\
             Sessions  1\n          \
             session 3 (process 12, detached): TotalIssues:u, BranchInstructions\n"
        );
        let status = run(&system, "status --json").json();
        assert_eq!(status["service"], "running");
        assert_eq!(
            status["sessions"],
            json!([{
                "session": 3, "process": 12, "detached": true, "events": [
                    {"id": 2, "name": "TotalIssues", "modes": "u", "processors": 2, "first_processor": 0},
                    {"id": 6, "name": "BranchInstructions", "modes": "uk", "processors": 2, "first_processor": 0}
                ]
            }])
        );
    }

    #[test]
    fn status_shows_sessions_with_branches_and_precise_events() {
        let holder = SessionEvent {
            event: Event::of(protocol::BRANCHES),
            session: 3,
            modes: modes::KERNEL,
            process: 12,
            flags: 0,
            processors: 2,
            first_processor: 0,
            ..SessionEvent::new_zeroed()
        };
        let session_events =
            vec![holder, SessionEvent { event: Event::of(6), modes: modes::BOTH | modes::PRECISE, ..holder }];
        let system = FakeSystem::running(FakeDriver { session_events, ..FakeDriver::default() });
        let status = run(&system, "status").out;
        assert!(status.ends_with(" session 3 (process 12): Branches:k, BranchInstructions:p\n"), "{status}");
        assert_eq!(run(&system, "status --json").json()["sessions"][0]["events"][1]["modes"], "ukp");
    }

    #[test]
    fn an_interval_outside_the_range_is_reported_with_the_one_in_use() {
        let system = FakeSystem::running(FakeDriver::default());
        assert_eq!(run(&system, "interval 2 100000").out, "TotalIssues: interval 100000, before 65536\n");
        assert_eq!(
            run(&system, "interval 2 10").out,
            "TotalIssues: interval 4096, before 65536\n\
             TotalIssues: 10 is out of the range from 4096 to 2147483647; 4096 is used\n"
        );
        assert_eq!(
            run(&system, "interval 2 10 --json").json(),
            json!({
                "id": 2, "name": "TotalIssues", "requested": 10, "interval": 4096, "previous_interval": 65536,
                "clamped": true, "minimum": 4096, "maximum": 2_147_483_647
            })
        );
    }

    #[test]
    fn an_unknown_source_changes_nothing() {
        let system = FakeSystem::running(FakeDriver::default());
        for line in [
            "query brunch",
            "interval brunch 1",
            "start 2 brunch",
            "stop brunch",
            "read brunch",
            "stat -e brunch -- app",
            "record -e brunch -- app",
        ] {
            assert_eq!(run(&system, line).failure().0, Exit::UnknownSource, "{line}");
        }
        for (code, _) in system.driver.asked.borrow().iter() {
            let is_question = matches!(code, Code::Hello | Code::ListSources | Code::Info | Code::ListCoreTypes);
            assert!(is_question, "{code:?}");
        }
    }
}

mod counting {
    use super::*;

    #[test]
    fn start_names_each_event_once_and_passes_processors_and_modes_on() {
        let system = FakeSystem::running(FakeDriver::default());
        let started = run(&system, "start TotalIssues,2 6:u -C 0,2-3");
        assert_eq!(
            started.out,
            "session 7 counts on CPUs 0,2-3: TotalIssues, BranchInstructions:u\n\
             until: .\\client stop TotalIssues BranchInstructions\n"
        );
        let [input] = &system.driver.inputs(Code::Start)[..] else { panic!() };
        let words: Vec<u64> = input.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!((words[0], words[1], words[2]), (1 | 4, 0, 0), "detached and multiplexed");
        assert_eq!(words[3], 0b1101, "on 0, 2 and 3");
        assert_eq!(words[4..35].iter().sum::<u64>(), 0);
        assert_eq!(words[35..], [2, 0, 0, 3, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            run(&system, "start 2 --json").json(),
            json!({"session": 7, "events": [{"id": 2, "name": "TotalIssues", "modes": "uk"}]})
        );
    }

    #[test]
    fn a_refused_start_names_the_sessions_that_hold_counters() {
        let session_events = vec![SessionEvent {
            event: Event::of(2),
            session: 3,
            modes: 3,
            process: 12,
            flags: 1,
            processors: 2,
            first_processor: 0,
            ..SessionEvent::new_zeroed()
        }];
        let refuse = Some((Code::Start, ErrorCode::NoFreeCounter, [4, 1]));
        let system = FakeSystem::running(FakeDriver { session_events, refuse, ..FakeDriver::default() });
        let (exit, report) = run(&system, "start 6").failure();
        assert_eq!(exit, Exit::NoFreeCounter);
        assert_eq!(
            report,
            "error: no free counter for BranchInstructions on CPU 0: all 4 are in use\n  \
             held by: session 3 (process 12, detached): TotalIssues\n  \
             try: .\\client stop TotalIssues"
        );
    }

    #[test]
    fn broken_counters_are_blamed_on_hyper_v_only_on_its_root_partition() {
        for (hypervisor, advice) in [
            (0, "give this virtual machine performance counters, if its hypervisor has them"),
            (2, "give this virtual machine performance counters, if its hypervisor has them"),
            (3, halprof::text::unavailable::HYPER_V_BELOW),
        ] {
            let refuse = Some((Code::Start, ErrorCode::CountersDoNotWork, [0, 0]));
            let info = InfoReply { hypervisor, ..info() };
            let system = FakeSystem::running(FakeDriver { info, refuse, ..FakeDriver::default() });
            let (exit, report) = run(&system, "start 6").failure();
            assert_eq!(exit, Exit::UnsupportedSource);
            assert_eq!(
                report,
                format!(
                    "error: the counters of CPU 0 do not work: a hypervisor reports them in CPUID only\n  try: {advice}"
                )
            );
        }
    }

    #[test]
    fn info_reports_a_reservation_that_the_hal_refused() {
        for (reserved, in_use, text) in [
            (1, 1, None),
            (0xC000_009A, 1, Some("Reservation     the HAL refused to reserve the counters again: 0xC000009A\n")),
            (0xC000_000D, 0, Some("Reservation     the HAL refused to free the counters: 0xC000000D\n")),
        ] {
            let info = InfoReply { reserved, counters_in_use: in_use, ..info() };
            let system = FakeSystem::running(FakeDriver { info, ..FakeDriver::default() });
            let out = run(&system, "info").out;
            assert_eq!(out.contains("; reserved with the HAL\n"), reserved == 1, "{out}");
            assert_eq!(out.contains("Reservation"), text.is_some(), "{out}");
            assert!(text.is_none_or(|text| out.contains(text)) && out.lines().all(|line| line.len() <= 80), "{out}");
            assert_eq!(run(&system, "info --json").json()["counters_reserved"], reserved == 1);
        }
    }

    #[test]
    fn info_names_what_to_turn_off_on_a_pc_with_virtualization_based_security() {
        let (reason, hypervisor) = (pmu::Reason::VersionZero as u32, pmu::Hypervisor::Root as u32);
        let info = InfoReply { interface: 0, reason, hypervisor, ..info() };
        let system = FakeSystem::running(FakeDriver { info, ..FakeDriver::default() });
        let out = run(&system, "info").out;
        assert!(out.contains("\nHypervisor      Hyper-V; this Windows is its root partition"), "{out}");
        assert!(
            out.contains("\n\nNo counters: Hyper-V runs underneath this Windows and hides the counters\n"),
            "{out}"
        );
        assert!(out.ends_with(&format!("\n  try: {}\n", halprof::text::unavailable::HYPER_V_BELOW)), "{out}");
        assert!(out.lines().all(|line| line.len() <= 80), "{out}");
    }

    #[test]
    fn more_events_than_a_session_takes_are_not_sent() {
        let sources: Vec<_> = (0..65).map(|number| record(number, &format!("S{number}"), 0)).collect();
        let system = FakeSystem::running(FakeDriver { sources, ..FakeDriver::default() });
        let numbers: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        assert_eq!(run(&system, &format!("start {}", numbers.join(","))).failure().0, Exit::Usage);
        assert!(system.driver.inputs(Code::Start).is_empty());
    }

    #[test]
    fn read_shows_running_sources_and_changes_nothing() {
        let system = two_processors();
        for _ in 0..2 {
            assert_eq!(
                run(&system, "read TotalIssues -A").out,
                "Source       CPU      Count  Per second  Seconds\n\
                 -----------  ---  ---------  ----------  -------\n\
                 TotalIssues    0  1,400,000   1,400,000    1.000\n\
                 TotalIssues    1    600,000     600,000    1.000\n\
                 TotalIssues  all  2,000,000   2,000,000    1.000\n"
            );
        }
        let counts = run(&system, "read --json").json();
        assert_eq!(counts["events"].as_array().unwrap().len(), 2);
        assert_eq!(
            counts["events"][1],
            json!({
                "session": 7, "id": 19, "name": "TotalCycles", "modes": "uk", "count": 1_000_000,
                "scaled": 1_000_000, "error": 0.0, "percent_running": 100.0,
                "enabled_seconds": 1.0, "asleep_seconds": 0.0, "per_second": 1_000_000.0,
                "disturbed": false, "processors": [
                    {"processor": 0, "counter": 0, "count": 700_000, "scaled": 700_000, "error": 0.0,
                     "enabled_seconds": 1.0, "running_seconds": 1.0, "asleep_seconds": 0.0,
                     "per_second": 700_000.0, "disturbed": null},
                    {"processor": 1, "counter": 0, "count": 300_000, "scaled": 300_000, "error": 0.0,
                     "enabled_seconds": 1.0, "running_seconds": 1.0, "asleep_seconds": 0.0,
                     "per_second": 300_000.0, "disturbed": null}
                ]
            })
        );
    }

    #[test]
    fn stop_stops_the_named_sources_and_shows_their_final_counts() {
        let system = two_processors();
        let stopped = run(&system, "stop totalcycles --json").json();
        assert_eq!(stopped["events"][0]["count"], 1_000_000);
        assert_eq!(stopped["events"].as_array().unwrap().len(), 1);
        assert_eq!(run(&system, "stop totalcycles").failure().0, Exit::NotRunning);
        let rest = run(&system, "stop --all").out;
        assert!(rest.contains("TotalIssues  0-1  2,000,000"), "{rest}");
        let requests: Vec<_> = system
            .driver
            .inputs(Code::Stop)
            .iter()
            .map(|input| {
                let StopRequest { session, source, .. } = StopRequest::read_from_bytes(input).unwrap();
                (session, source)
            })
            .collect();
        assert_eq!(requests, [(DETACHED, 0x13), (DETACHED, ALL_SOURCES)]);
    }

    #[test]
    fn stop_stops_nothing_if_one_source_is_not_running() {
        let system = two_processors();
        let (exit, report) = run(&system, "stop 2 6 11").failure();
        assert_eq!(exit, Exit::NotRunning);
        assert!(
            report.starts_with("error: BranchInstructions, BranchMispredictions are not running detached"),
            "{report}"
        );
        assert!(system.driver.inputs(Code::Stop).is_empty());
    }

    #[test]
    fn stop_all_succeeds_and_read_fails_if_nothing_runs() {
        let refuse = Some((Code::Read, ErrorCode::NoSuchSession, [DETACHED, 0]));
        for refuse in [None, refuse] {
            let system = FakeSystem::running(FakeDriver { refuse, ..FakeDriver::default() });
            assert_eq!(run(&system, "stop --all").out, "no source runs detached; nothing to stop\n");
            assert_eq!(run(&system, "stop --all --json").json(), json!({"events": []}));
            assert_eq!(run(&system, "read").failure().0, Exit::NotRunning);
            assert_eq!(run(&system, "read 2").failure().0, Exit::NotRunning);
        }
    }

    #[test]
    fn final_counts_that_exceed_the_default_buffer_are_complete() {
        let counts: Vec<_> = (0..2000).map(|processor| count(2, processor, 1, SECOND)).collect();
        let stopped = run(&with_counts(&counts), "stop --all --json").json();
        assert_eq!(stopped["events"][0]["count"], 2000);
    }
}

mod stat_basics {
    use super::*;

    #[test]
    fn stat_counts_in_its_own_session_and_exits_with_the_code_of_the_command() {
        let system = two_processors();
        let ran = stat(&system, "-e TotalCycles,TotalIssues -C 0-1");
        assert_eq!(ran.outcome.unwrap(), 3);
        assert!(ran.out.is_empty(), "standard output is the command's");
        let lines: Vec<&str> = ran.err.lines().collect();
        assert_eq!(lines[1], format!(" Counts of CPUs 0-1, system wide, while '{EXIT_3} exit 3' ran:"));
        assert_eq!(lines[3], "           1,000,000  TotalCycles               #    0.001 GHz per processor");
        // Two instructions for each cycle.
        assert_eq!(lines[4], "           2,000,000  TotalIssues               #    2.000 insn per cycle");
        assert!(lines[6].ends_with(" seconds time elapsed"), "{}", ran.err);

        let [start] = &system.driver.inputs(Code::Start)[..] else { panic!() };
        assert_eq!(start[..4], [4, 0, 0, 0], "multiplexed, and tied to the handle");
        let [stop] = &system.driver.inputs(Code::Stop)[..] else { panic!() };
        assert_eq!(StopRequest::read_from_bytes(stop).unwrap().session, 7);
        assert_eq!(*system.done.borrow(), ["note interrupts"]);
    }

    #[test]
    fn stat_without_events_counts_the_default_events_that_have_free_counters() {
        let asked = |refused_sources: &[(u64, ErrorCode, [u64; 2])]| {
            let system =
                FakeSystem::running(FakeDriver { refused_sources: refused_sources.to_vec(), ..FakeDriver::default() });
            let outcome = stat(&system, "").outcome;
            let starts = system.driver.inputs(Code::Start);
            let sources = |start: &Vec<u8>| {
                start[280..].chunks(size_of::<protocol::EventRequest>()).map(|event| event[0]).collect::<Vec<_>>()
            };
            (outcome.map_err(|error| error.exit()), starts.iter().map(sources).collect::<Vec<_>>())
        };
        let (no_counter, elsewhere) = ((ErrorCode::NoFreeCounter, [1, 1]), (ErrorCode::UnsupportedSource, [3, 1]));
        let all = vec![0x13, 2, 6, 11];
        assert_eq!(asked(&[]), (Ok(3), vec![all.clone()]));
        let refused_sources = |source, (cause, detail)| (source, cause, detail);
        assert_eq!(asked(&[refused_sources(11, no_counter)]), (Ok(3), vec![all.clone(), vec![0x13, 2, 6]]));
        assert_eq!(
            asked(&[refused_sources(6, elsewhere), refused_sources(11, no_counter)]),
            (Ok(3), vec![all.clone(), vec![0x13, 2, 11], vec![0x13, 2]])
        );
        let none = [0x13, 2, 6, 11].map(|source| refused_sources(source, no_counter));
        assert_eq!(asked(&none), (Err(Exit::NoFreeCounter), vec![all.clone(), vec![2, 6, 11], vec![6, 11], vec![11]]));
        let (refused, tries) = asked(&[(6, ErrorCode::CountersTaken, [0; 2])]);
        assert_eq!((refused, tries), (Err(Exit::CountersTaken), vec![all]), "the refusal does not depend on the event");
    }

    #[test]
    fn json_is_one_object_with_counts_on_every_processor() {
        let ran = stat(&two_processors(), "-e 0x13,2 --json -o -");
        let mut stat = ran.json();
        assert!(stat["elapsed_seconds"].as_f64().unwrap() > 0.0);
        let total = stat["events"][1].clone();
        assert_eq!(total["metric"], json!({"value": 2.0, "unit": "insn per cycle"}));
        assert_eq!(total["processors"][1]["count"], 600_000);
        let events = stat.as_object_mut().unwrap().remove("events").unwrap();
        assert_eq!(events.as_array().unwrap().len(), 2);
        stat.as_object_mut().unwrap().remove("elapsed_seconds");
        let command: Vec<&str> = EXIT_3.split(' ').chain(["exit 3"]).collect();
        assert_eq!(stat, json!({"command": command, "exit_code": 3, "processors": [0, 1]}));
    }

    /// Returns the names of the columns in the help of `stat`.
    fn columns() -> Vec<&'static str> {
        let (_, rest) = crate::cli::STAT_HELP.split_once("\nCSV\n").unwrap();
        rest.lines().next().unwrap().trim().split(',').map(|name| name.trim_matches(['[', ']'])).collect()
    }

    /// Returns the lines of CSV, each as the values of the columns that the help names.
    fn csv(text: &str, columns: &[&str]) -> Vec<Vec<(String, String)>> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let line = |record: csv::StringRecord| {
            assert_eq!(record.len(), columns.len(), "{record:?}");
            columns.iter().zip(&record).map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect()
        };
        reader.records().map(|record| line(record.unwrap())).collect()
    }

    /// Returns three events with distinct numbers, one of them with commas in its name.
    fn distinct() -> FakeSystem {
        let raw: SourceName = "cpu/event=0xD1,umask=0x20/".parse().unwrap();
        let SourceName::Raw(raw) = raw else { panic!("{raw}") };
        let of = |source, processor, number, enabled, asleep| CountRecord {
            asleep,
            ..count(source, processor, number, enabled)
        };
        with_counts(&[
            of(0x13, 0, 700_000, 9_000_001, 0),
            of(0x13, 1, 300_000, 9_000_003, 0),
            of(2, 0, 1_400_000, 9_000_005, 1_000_000),
            of(2, 1, 600_001, 9_000_007, 1_000_000),
            CountRecord { modes: modes::USER, ..of(raw.source, 0, 41, 9_000_009, 0) },
            CountRecord { modes: modes::USER, ..of(raw.source, 1, 43, 9_000_011, 0) },
        ])
    }

    #[test]
    fn csv_has_the_columns_that_the_help_names_in_that_order() {
        const EVENTS: &str = "-e 0x13,2,cpu/event=0xD1,umask=0x20/u --csv";
        const RAW: &str = "cpu/event=0xd1,umask=0x20/:u";
        let fields = |names: &[&str], values: &[&str]| -> Vec<(String, String)> {
            assert_eq!(names.len(), values.len());
            names.iter().zip(values).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let columns = columns();
        let names = ["CPUn", "count", "unit", "event", "running_ns", "percent_running", "metric", "metric_unit"];
        assert_eq!(columns, names);

        let of = |values: &[&str]| fields(&names[1..], values);
        assert_eq!(
            csv(&stat(&distinct(), EVENTS).err, &columns[1..]),
            [
                of(&["1000000", "", "TotalCycles", "900000300", "100.00", "0.001", "GHz per processor"]),
                of(&["2000001", "", "TotalIssues", "800000700", "100.00", "2.000", "insn per cycle"]),
                of(&["84", "", RAW, "900001100", "100.00", "93.333", "/sec"]),
            ]
        );

        let of = |values: &[&str]| fields(&names, values);
        assert_eq!(
            csv(&stat(&distinct(), &format!("{EVENTS} -A")).err, &columns),
            [
                of(&["CPU0", "700000", "", "TotalCycles", "900000100", "100.00", "0.001", "GHz per processor"]),
                of(&["CPU1", "300000", "", "TotalCycles", "900000300", "100.00", "0.000", "GHz per processor"]),
                of(&["CPU0", "1400000", "", "TotalIssues", "800000500", "100.00", "2.000", "insn per cycle"]),
                of(&["CPU1", "600001", "", "TotalIssues", "800000700", "100.00", "2.000", "insn per cycle"]),
                of(&["CPU0", "41", "", RAW, "900000900", "100.00", "45.556", "/sec"]),
                of(&["CPU1", "43", "", RAW, "900001100", "100.00", "47.778", "/sec"]),
            ]
        );
    }

    #[test]
    fn stat_per_cpu_shows_a_row_for_each_processor() {
        let text = stat(&two_processors(), "-e 2,0x13 -A").err;
        let rows = "CPU0     1,400,000  TotalIssues  #    2.000 insn per cycle\n\
                    CPU1       600,000  TotalIssues  #    2.000 insn per cycle\n";
        assert!(text.contains(rows), "{text}");
    }

    #[test]
    fn stat_stops_the_session_if_the_command_cannot_be_run() {
        let system = two_processors();
        let (exit, report) = run(&system, "stat -e 2 -- no-such-command-anywhere").failure();
        assert_eq!(exit, Exit::Command);
        assert!(
            report.starts_with("error: the command no-such-command-anywhere could not be run\n  because: "),
            "{report}"
        );
        assert_eq!(system.driver.inputs(Code::Stop).len(), 1);
    }

    #[test]
    fn stat_writes_to_the_named_file_and_reports_a_bad_file_before_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.csv");
        let ran = stat(&two_processors(), &format!("-e 2 --csv -o {}", path.display()));
        assert!(ran.out.is_empty() && ran.err.is_empty());
        assert!(fs::read_to_string(&path).unwrap().starts_with("2000000,,TotalIssues,"));

        let system = two_processors();
        let ran = stat(&system, &format!("-e 2 -o {}", folder.path().join("no").join("where").display()));
        assert_eq!(ran.failure().0, Exit::Failure);
        assert!(system.driver.inputs(Code::Start).is_empty());
    }
}

#[cfg(not(windows))]
const RECORD: &str = "record -e 2 -C 0 --ring 64 -a --duration 0.0001s -o /dev/null";
#[cfg(windows)]
const RECORD: &str = "record -e 2 -C 0 --ring 64 -a --duration 0.0001s -o NUL";

/// Command lines of every verb that uses the driver.
const LISTENERS: [&str; 15] = [
    "status",
    "info",
    "list --all",
    "query 2",
    "interval 2 5000",
    "start 2",
    "stop 2",
    "stop --all",
    "read -A",
    "read --json",
    "list --json",
    "stat -e 2 -- no-such-command-anywhere",
    RECORD,
    "control-area",
    "branches -C 0 --ring 64 --duration 0.0001s",
];

fn header() -> impl Strategy<Value = ReplyHeader> {
    let small = || prop_oneof![0_u32..20, any::<u32>()];
    let mostly_zero = || prop_oneof![4 => Just(0_u32), 1 => 0_u32..20, 1 => any::<u32>()];
    let detail = || prop_oneof![0_u64..20, any::<u64>()];
    (mostly_zero(), mostly_zero(), small(), small(), [detail(), detail()], small(), small()).prop_map(
        |(status, cause, source, processor, detail, count, total)| ReplyHeader {
            status,
            cause,
            source: source.into(),
            processor,
            detail,
            count,
            total,
            ..ReplyHeader::new_zeroed()
        },
    )
}

proptest! {
    #[test]
    fn the_client_ends_in_order_with_any_reply_of_the_driver(
        head in header(),
        body in prop::collection::vec(any::<u8>(), 0..800),
        cut in prop_oneof![4 => Just(usize::MAX), 1 => 0_usize..100],
        extra in prop_oneof![4 => Just(0_usize), 1 => any::<usize>()],
    ) {
        let mut bytes = [head.as_bytes(), &body].concat();
        bytes.truncate(cut);
        let length = bytes.len().saturating_add(extra);
        // The replies are invalid from the first one on, or after the versions were compared.
        let hello = protocol::HelloReply { protocol: protocol::PROTOCOL_VERSION, ..protocol::HelloReply::new_zeroed() };
        let (_, fields) = hello.as_bytes().split_at(size_of::<ReplyHeader>());
        let polite = [head.as_bytes(), fields, &body].concat();
        for raw in [(bytes, length), (polite.clone(), polite.len())] {
            let system = FakeSystem::running(FakeDriver { raw: Some(raw), sources: sources(), ..FakeDriver::default() });
            for line in LISTENERS {
                let run = run(&system, line);
                if let Err(error) = run.outcome {
                    prop_assert!(error.report().starts_with("error: "));
                }
            }
        }
    }
}
