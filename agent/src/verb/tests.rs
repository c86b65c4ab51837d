//! The configuration and the service.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use fake_system::{FakeDriver, FakeSystem, FakeVolume};
use halprof::event::event_cache::EventCache;
use user_error::win32;

use super::*;
use crate::Cli;

/// Output of a run, and its exit code or error.
struct Run {
    out: String,
    err: String,
    outcome: Result<i32, Error>,
}

impl Run {
    fn failure(&self) -> (Exit, String) {
        let error = self.outcome.as_ref().unwrap_err();
        (error.exit(), error.report())
    }
}

fn run_on(system: Option<&dyn System>, words: &[&str]) -> Run {
    run_with(system, EventCache::default(), words)
}

fn run_with(system: Option<&dyn System>, cache: EventCache, words: &[&str]) -> Run {
    let cli = Cli::try_parse_from(["halprof-agent"].iter().chain(words)).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut input = io::empty();
    let mut context = Context::new(system, &mut input, &mut out, &mut err);
    context.cache = cache;
    let ended = super::run(&cli.verb, &mut context);
    let outcome = context.finish(ended);
    let [out, err] = [out, err].map(|bytes| String::from_utf8(bytes).unwrap());
    Run { out, err, outcome }
}

fn run_words(system: &FakeSystem, words: &[&str]) -> Run {
    run_on(Some(system), words)
}

fn run(system: &FakeSystem, line: &str) -> Run {
    run_words(system, &line.split_whitespace().collect::<Vec<_>>())
}

/// Runs a verb without Windows.
fn run_anywhere(line: &str) -> Run {
    run_on(None, &line.split_whitespace().collect::<Vec<_>>())
}

fn two_processors() -> FakeSystem {
    FakeSystem::running(FakeDriver::default())
}

/// Writes a configuration into a folder of its own.
fn configuration(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn check(path: &Path) -> Run {
    run_anywhere(&format!("check --config {}", path.display()))
}

#[test]
fn the_example_is_in_order_with_every_option() {
    let example = run_anywhere("example").out;
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
        let (exit, report) = run_words(&system, &[line, "--config", words]).failure();
        assert_eq!(exit, Exit::Usage);
        assert!(report.starts_with(&format!("error: {words} is malformed\n  because: ")), "{report}");
        assert!(
            report.contains("unknown field `event`") && report.contains("try: .\\client agent example"),
            "{report}"
        );
    }
    assert!(system.done.borrow().is_empty());
    let (exit, report) = run(&system, "check --config nothing.toml").failure();
    assert_eq!((exit, report.starts_with("error: cannot read nothing.toml")), (Exit::Usage, true), "{report}");
}

/// A system with an unpacked package, and a configuration in a folder for administrators.
struct Machine {
    folder: tempfile::TempDir,
    system: FakeSystem,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("programs")).unwrap();
        fs::write(folder.path().join("unpacked.exe"), "version 1").unwrap();
        let machine = Self { system: two_processors(), folder };
        let programs = ["programs/halprof/halprof-agent.exe", "unpacked.exe"].map(|path| machine.path(path));
        let machine = Self { system: FakeSystem { programs, ..machine.system }, ..machine };
        machine.configure("");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, more: &str) {
        fs::write(self.path("agent.toml"), format!("[counting]\nevents = [\"cycles\"]\n{more}")).unwrap();
    }

    fn install(&self) -> Run {
        run_words(&self.system, &["install", "--config", self.path("agent.toml").to_str().unwrap()])
    }

    fn program(&self) -> Option<String> {
        fs::read_to_string(&self.system.programs[0]).ok()
    }

    /// Returns what an installation changes: the service, its program and the files beside that.
    fn state(&self) -> (Option<AgentService>, Option<String>, Vec<OsString>) {
        let folder = fs::read_dir(self.system.programs[0].parent().unwrap());
        let names = folder.map(|files| files.map(|file| file.unwrap().file_name()).collect()).unwrap_or_default();
        (self.system.agent.state(), self.program(), names)
    }
}

#[test]
fn the_service_runs_a_copy_in_a_protected_folder_and_is_replaced_and_deleted() {
    let machine = Machine::new();
    let (config, program) = (machine.path("agent.toml"), &machine.system.programs[0]);
    for version in ["version 1", "version 1", "version 2"] {
        fs::write(machine.path("unpacked.exe"), version).unwrap();
        let ran = machine.install();
        let (log, program) = (config.with_extension("log"), program.display());
        assert_eq!(ran.out, format!("service halprof-agent started: {program}; its log is {}\n", log.display()));
        let command = format!("{program} run --service --config {}", config.display());
        let service = AgentService { command: command.into(), runs: true };
        let only = vec!["halprof-agent.exe".into()];
        assert_eq!(machine.state(), (Some(service), Some(version.to_owned()), only));
    }
    let removed = format!("service halprof-agent deleted\nremoved {}\n", program.display());
    assert_eq!(run(&machine.system, "uninstall").out, removed);
    assert_eq!(run(&machine.system, "uninstall").out, "not installed; nothing to do\n");
    assert_eq!(machine.state(), (None, None, Vec::new()));
    assert!(!program.parent().unwrap().exists());
}

#[test]
fn the_service_is_started_stopped_and_shown() {
    let machine = Machine::new();
    for verb in ["start", "stop", "status"] {
        let (exit, report) = run(&machine.system, verb).failure();
        assert_eq!(
            (exit, report.lines().next()),
            (Exit::NotInstalled, Some("error: the service halprof-agent is not installed"))
        );
        assert!(report.ends_with("try: .\\client agent install --config FILE"), "{report}");
    }
    machine.install().outcome.unwrap();
    let command = machine.system.agent.state().unwrap().command;
    for (verb, said, exit) in [
        ("start", "runs already".to_owned(), Exit::Done),
        ("status", format!("runs: {}", command.display()), Exit::Done),
        ("stop", "stopped; it starts again with Windows".to_owned(), Exit::Done),
        ("stop", "does not run; nothing to do".to_owned(), Exit::Done),
        ("status", format!("does not run: {}", command.display()), Exit::NotStarted),
        ("start", "started".to_owned(), Exit::Done),
    ] {
        let ran = run(&machine.system, verb);
        assert_eq!((ran.out, ran.outcome.unwrap()), (format!("service halprof-agent {said}\n"), exit.code()), "{verb}");
    }
}

#[test]
fn what_is_in_order_and_probably_not_meant_is_a_warning() {
    for (text, warned) in [
        ("", vec!["nothing receives the counts"]),
        ("[otlp]\nendpoint = \"http://127.0.0.1:4318/v1/metrics\"\n", vec![]),
        ("[prometheus]\n", vec![]),
        ("[prometheus]\nlisten = \"[::1]:9464\"\n", vec![]),
        ("[prometheus]\nlisten = \"0.0.0.0:9464\"\n", vec!["lets everybody who reaches 0.0.0.0:9464 read"]),
        (
            "[prometheus]\nlisten = \"0.0.0.0:9464\"\nusers = [{ name = \"a\", password-hash = \"$2b$04$BREWZbEDH/fn1NuD.             xyg9uGFcVOBbOcWHyMsuDbIEMi9nJdbhlS.S\" }]\n",
            vec![],
        ),
    ] {
        let (_folder, path) = configuration(&format!("[counting]\nevents = [\"cycles\"]\n{text}"));
        let ran = check(&path);
        assert_eq!(ran.out, format!("{} is in order\n", path.display()), "{:?}", ran.outcome);
        let warnings: Vec<&str> = ran.err.lines().collect();
        assert_eq!(warnings.len(), warned.len(), "{text}{warnings:#?}");
        assert!(
            warnings.iter().zip(&warned).all(|(line, words)| line.starts_with("warning: ") && line.contains(words)),
            "{warnings:#?}"
        );
    }
}

#[test]
fn a_misspelt_event_is_a_warning() {
    let (_folder, path) = configuration("[counting]\nevents = [\"cycles,TotalIsues:u\"]\n[prometheus]\n");
    let ran = check(&path);
    assert!(ran.err.starts_with("warning: for this processor, no event is called TotalIsues"), "{}", ran.err);
    assert_eq!((ran.err.lines().count(), ran.outcome.unwrap()), (1, 0));
}

#[test]
fn a_copy_that_still_runs_is_replaced_and_removed_by_a_later_command() {
    let machine = Machine::new();
    machine.install().outcome.unwrap();
    let running =
        || machine.system.volume.state().running.insert(machine.system.programs[0].clone(), b"version 1".to_vec());
    running();
    fs::write(machine.path("unpacked.exe"), "version 2").unwrap();
    machine.install().outcome.unwrap();
    assert_eq!(machine.program().as_deref(), Some("version 2"));
    // A program removes everything but itself.
    fs::write(&machine.system.programs[0], "version 1").unwrap();
    let left = run(&machine.system, "uninstall").out;
    assert!(left.contains(" stays: ") && left.ends_with("; delete it yourself\n"), "{left}");
    assert_eq!(machine.system.agent.state(), None);
}

/// Each change of a file and each call of the service fails in turn, in a first installation and in an upgrade.
#[test]
fn an_installation_that_fails_leaves_the_service_and_the_program_of_before() {
    let mut failures = 0;
    for is_upgrade in [false, true] {
        for step in 0.. {
            let machine = Machine::new();
            if is_upgrade {
                machine.install().outcome.unwrap();
                fs::write(machine.path("unpacked.exe"), "version 2").unwrap();
                fs::copy(machine.path("agent.toml"), machine.path("other.toml")).unwrap();
            }
            let before = machine.state();
            let (changes, calls) = (machine.system.volume.changes(), machine.system.calls.borrow().len());
            // Even steps are changes of files, odd ones calls.
            match step % 2 {
                0 => machine.system.volume.state().failing = Some(changes + step / 2),
                _ => machine.system.failing.borrow_mut().push(calls + step / 2),
            }
            let config = machine.path(if is_upgrade { "other.toml" } else { "agent.toml" });
            let ran = run_words(&machine.system, &["install", "--config", config.to_str().unwrap()]);
            if ran.outcome.is_ok() {
                assert!(machine.system.agent.state().is_some_and(|service| service.runs));
            } else {
                failures += 1;
                let report = ran.failure().1;
                assert!(!report.contains("could not be put back"), "{report}");
                let (service, program, names) = machine.state();
                assert_eq!((&service, &program), (&before.0, &before.1), "{is_upgrade} {step}: {report}");
                assert_eq!(names, before.2, "{is_upgrade} {step}: {report}");
            }
            if step >= 20 {
                break;
            }
        }
    }
    assert!(failures >= 12, "{failures}");
}

#[test]
fn what_others_can_change_is_refused_before_the_running_service_is_stopped() {
    let machine = Machine::new();
    machine.configure(&format!(
        "[prometheus]\ntls = {{ certificate = '{0}/key', key = '{0}/key' }}\n\
         [profiles]\nevent = \"Time\"\nfolder = {{ path = '{0}/profiles' }}\n",
        machine.folder.path().display()
    ));
    fs::write(machine.path("key"), "").unwrap();
    machine.install().outcome.unwrap();
    assert!(machine.path("profiles").is_dir(), "it was not created for administrators");
    let before = machine.state();
    let done = machine.system.done.borrow().len();
    for (path, named) in [("agent.toml", "agent.toml"), ("key", "key"), ("profiles", "profiles"), ("", "agent.toml")] {
        let exposed = if path.is_empty() { machine.folder.path().to_owned() } else { machine.path(path) };
        let state = || machine.system.volume.state();
        for (is_link, text) in
            [(false, "is not protected: it belongs to S-1-5-21-1001"), (true, "leads to another place")]
        {
            if is_link {
                state().links.insert(exposed.clone())
            } else {
                state().of_user.insert(exposed.clone())
            };
            let (exit, report) = machine.install().failure();
            assert_eq!(exit, Exit::Usage);
            let begin = "error: the service halprof-agent runs as SYSTEM, and must not use ";
            assert!(report.starts_with(&format!("{begin}{}\n  because: ", machine.path(named).display())), "{report}");
            assert!(report.contains(&format!("{} {text}", exposed.display())), "{report}");
            assert!(report.contains("icacls C:\\halprof /inheritance:r"), "{report}");
            state().links.clear();
            state().of_user.clear();
        }
    }
    // The folder of the program, which a user made first.
    machine.system.volume.state().of_user.insert(machine.path("programs/halprof"));
    let (exit, report) = machine.install().failure();
    assert_eq!(exit, Exit::Denied);
    assert!(report.starts_with("error: cannot read ") && report.contains("S-1-5-21-1001"), "{report}");
    machine.system.volume.state().of_user.clear();
    assert_eq!((machine.state(), machine.system.done.borrow().len()), (before, done));
}

#[test]
fn a_service_that_cannot_be_changed_is_reported_with_a_remedy() {
    let mut machine = Machine::new();
    machine.system.volume.state().is_limited = true;
    let (exit, report) = machine.install().failure();
    assert_eq!(exit, Exit::Denied);
    assert!(report.starts_with("error: cannot write ") && report.contains("elevated prompt"), "{report}");
    assert_eq!(machine.state(), (None, None, Vec::new()));
    machine.system.volume.state().is_limited = false;
    machine.install().outcome.unwrap();
    machine.system.failure = Some(win32::ERROR_ACCESS_DENIED);
    let (exit, report) = machine.install().failure();
    assert_eq!(exit, Exit::Denied);
    assert!(report.contains("cannot stop the service halprof-agent") && report.contains("elevated prompt"), "{report}");
    machine.system.failure = None;
    machine.system.busy = true;
    let (exit, report) = run(&machine.system, "uninstall").failure();
    assert_eq!(exit, Exit::Busy);
    assert!(report.starts_with("error: the service halprof-agent does not stop"), "{report}");
}

#[test]
fn check_reads_what_the_service_will_read() {
    const MAP: &str = "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
                       GenuineIntel-6-[45]E,V99,/SKL/core.json,core,,,\n";
    const CORE: &str = r#"{ "Events": [ { "EventCode": "0xA1", "UMask": "0x7F", "EventName": "NEWER.THAN_THIS", "Counter": "0,1" } ] }"#;
    let (folder, config) = configuration("[counting]\nevents = [\"{cycles,newer.than_this:u}\"]\n");
    fs::create_dir(folder.path().join("SKL")).unwrap();
    fs::write(folder.path().join("mapfile.csv"), MAP).unwrap();
    fs::write(folder.path().join("SKL/core.json"), CORE).unwrap();
    let imported = events::import::read(folder.path()).unwrap();
    assert_eq!(imported.events(), 1);
    let volume = FakeVolume::default();
    let [of_machine, own] = ["machine", "alice"].map(|name| folder.path().join(name));
    let cache = || EventCache::new(Some((of_machine.clone(), Arc::new(volume.clone()))), Some(own.clone()));
    let check = || run_with(None, cache(), &["check", "--config", config.to_str().unwrap()]);
    check().outcome.unwrap(); // Nothing is imported: whether the machine has the event, only its driver knows.
    volume.state().is_limited = true;
    cache().store(&imported).unwrap();
    let (exit, report) = check().failure();
    assert_eq!(exit, Exit::Usage);
    assert_eq!(
        report,
        "error: the service halprof-agent will not find newer.than_this\n  because: they were imported for this account \
         only, and the service runs under another one\n  try: .\\client events import DIR   (from an elevated prompt: for \
         the whole machine)"
    );
    volume.state().is_limited = false;
    cache().store(&imported).unwrap();
    check().outcome.unwrap();
}
