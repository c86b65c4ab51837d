//! `agent`: its configuration and its service.

use std::path::{Path, PathBuf};

use super::*;
use crate::exit::Exit;

/// Writes a configuration into a folder of its own.
fn configuration(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn check(path: &Path) -> Run {
    run_anywhere(&format!("agent check --config {}", path.display()), &[])
}

#[test]
fn the_example_is_in_order_with_every_option() {
    let example = run_anywhere("agent example", &[]).out;
    let (_folder, path) = configuration(&example);
    let checked = check(&path);
    assert_eq!(checked.out, format!("{} is in order\n", path.display()), "{:?}", checked.outcome);
    // Each option that is a comment becomes one that is used: `# name = value` and `# [section]`.
    let option = |line: &str| {
        let text = line.trim_start_matches(['#', ' ']);
        let name = text.split(" = ").next().unwrap_or_default();
        let is_name = text.contains(" = ") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if text.starts_with('[') || is_name { text.to_owned() } else { line.to_owned() }
    };
    let all: Vec<String> = example.lines().map(option).collect();
    let (_folder, path) = configuration(&all.join("\n"));
    assert!(check(&path).outcome.is_ok(), "{}", check(&path).failure().1);
    let sections =
        ["[counting]", "[budget]", "[prometheus]", "[otlp]", "[profiles]", "[profiles.push]", "tls = ", "users = "];
    assert!(sections.iter().all(|section| all.iter().any(|line| line.starts_with(section))), "{all:#?}");
}

#[test]
fn what_is_wrong_with_a_configuration_is_said_before_anything_is_done() {
    let system = two_processors();
    let (_folder, path) = configuration("[counting]\nevent = [\"cycles\"]\n");
    let words = path.to_str().unwrap();
    for line in ["check", "run", "install"] {
        let (exit, report) = run_words(&system, &["agent", line, "--config", words]).failure();
        assert_eq!(exit, Exit::Usage);
        assert!(report.starts_with(&format!("error: {words} is malformed\n  because: ")), "{report}");
        assert!(report.contains("unknown field `event`") && report.contains("try: client agent example"), "{report}");
    }
    assert!(system.done.borrow().is_empty());
    let (exit, report) = run(&system, "agent check --config nothing.toml").failure();
    assert_eq!((exit, report.starts_with("error: cannot read nothing.toml")), (Exit::Usage, true), "{report}");
}

#[test]
fn the_service_is_created_replaced_and_deleted() {
    let system = two_processors();
    let (_folder, path) = configuration("[counting]\nevents = [\"cycles\"]\n");
    let words = path.to_str().unwrap();
    for _ in 0..2 {
        let ran = run_words(&system, &["agent", "install", "--config", words]);
        let log = path.with_extension("log");
        assert_eq!(ran.out, format!("service halprof-agent started; its log is {}\n", log.display()));
        let (arguments, runs) = system.agent.state().unwrap();
        assert!(runs);
        let expected = ["agent", "run", "--service", "--config", words].map(std::ffi::OsString::from);
        assert_eq!(arguments, expected);
    }
    let order =
        ["stop agent", "register agent", "start agent", "stop agent", "stop agent", "register agent", "start agent"];
    assert_eq!(*system.done.borrow(), order);
    assert_eq!(run(&system, "agent uninstall").out, "service halprof-agent deleted\n");
    assert_eq!(run(&system, "agent uninstall").out, "not installed; nothing to do\n");
    assert_eq!(system.agent.state(), None);
}

#[test]
fn a_service_that_cannot_be_changed_is_reported_with_a_remedy() {
    let (_folder, path) = configuration("[counting]\nevents = [\"cycles\"]\n");
    let install = ["agent", "install", "--config", path.to_str().unwrap()];
    let mut system = two_processors();
    system.failure = Some(win32::ERROR_ACCESS_DENIED);
    let (exit, report) = run_words(&system, &install).failure();
    assert_eq!(exit, Exit::Denied);
    assert!(report.contains("cannot stop the service halprof-agent") && report.contains("elevated prompt"), "{report}");
    let mut system = two_processors();
    run_words(&system, &install);
    system.busy = true;
    let (exit, report) = run(&system, "agent uninstall").failure();
    assert_eq!(exit, Exit::Busy);
    assert!(report.starts_with("error: the service halprof-agent does not stop"), "{report}");
}
