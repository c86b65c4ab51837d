//! Tests of `mem record`.

use protocol::{EventRequest, StartHeader};

use super::*;
use fake_system::core_type_record;

const SKYLAKE: u32 = 0x0005_06E3;
const SANDY_BRIDGE: u32 = 0x0002_06A7;
const NEHALEM: u32 = 0x0001_06A5;
const ALDER_LAKE: u32 = 0x0009_0672;
const CORE: u32 = 0x40;
const ATOM: u32 = 0x20;

fn on(signature: u32) -> FakeSystem {
    let mut driver = FakeDriver::default();
    driver.info.signature = signature;
    FakeSystem::running(driver)
}

fn amd() -> FakeSystem {
    let mut driver = FakeDriver::default();
    driver.info.vendor[..12].copy_from_slice(b"AuthenticAMD");
    driver.info.signature = 0x00A2_0F12;
    FakeSystem::running(driver)
}

fn hybrid() -> FakeSystem {
    let mut driver = FakeDriver {
        core_types: vec![core_type_record(CORE, &[0, 2]), core_type_record(ATOM, &[1, 3])],
        ..FakeDriver::default()
    };
    driver.info.signature = ALDER_LAKE;
    FakeSystem::running(driver)
}

/// Runs `mem record` for a moment. Returns the run, and the text of each event that was started.
fn recorded(system: &FakeSystem, options: &str) -> (Run, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("halprof.rec");
    let ran = run(system, &format!("mem record --duration 0.001s -o {} {options}", file.display()));
    assert!(ran.outcome.is_ok() || !file.exists(), "nothing is written before a refusal");
    let text = |event: &EventRequest| {
        let raw = pmu::Source(event.event.source).raw()?;
        let precise = if event.modes & modes::PRECISE == 0 { "" } else { ":p" };
        let EventRequest { event, .. } = event;
        Some(format!("{:02x}/{:02x} {} {:#x}{precise}", raw.event(), raw.umask(), event.extra, event.core_type))
    };
    let events = started(system).iter().filter_map(text).collect();
    (ran, events)
}

/// Returns the events that were started last.
fn started(system: &FakeSystem) -> Vec<EventRequest> {
    let inputs = system.driver.inputs(Code::Start);
    let events =
        inputs.last().map(|input| <[EventRequest]>::ref_from_bytes(&input[size_of::<StartHeader>()..]).unwrap());
    events.map(<[EventRequest]>::to_vec).unwrap_or_default()
}

#[test]
fn each_processor_records_its_own_events() {
    for (system, options, wanted) in [
        (on(SKYLAKE), "", &["cd/01 30 0x0:p", "d0/82 0 0x0:p"][..]),
        (on(SKYLAKE), "-t load", &["cd/01 30 0x0:p"]),
        (on(SKYLAKE), "-t load,store --ldlat 50", &["cd/01 50 0x0:p", "d0/82 0 0x0:p"]),
        (on(SKYLAKE), "--type STORE", &["d0/82 0 0x0:p"]),
        (on(NEHALEM), "", &["0b/10 30 0x0:p"]),
        // One counter is for both.
        (on(SANDY_BRIDGE), "", &["cd/01 30 0x0:p"]),
        (on(SANDY_BRIDGE), "-t store", &["cd/02 0 0x0:p"]),
        (hybrid(), "-t store", &["cd/02 0 0x40:p", "d0/06 0 0x20:p"]),
        (hybrid(), "-t store -C 1", &["d0/06 0 0x20:p"]),
        // The auxiliary event of the P cores is beside the loads.
        (hybrid(), "-t load", &["cd/01 30 0x40:p", "d0/05 30 0x20:p", "03/82 0 0x40"]),
        (on(SKYLAKE), "-e cpu/event=0xd1,umask=0x20/p", &["d1/20 0 0x0:p"]),
    ] {
        let (ran, events) = recorded(&system, options);
        assert_eq!(events, wanted, "{options} {} {:?}", ran.err, ran.outcome.err().map(|error| error.report()));
    }
}

#[test]
fn one_mode_is_that_of_all_chosen_events() {
    const P: u32 = modes::PRECISE;
    for (options, mode) in [("", modes::BOTH), ("--all-user", modes::USER), ("--all-kernel", modes::KERNEL)] {
        for system in [on(SKYLAKE), amd()] {
            let (ran, _) = recorded(&system, options);
            let modes: Vec<u32> = started(&system).iter().map(|event| event.modes).collect();
            assert!(!modes.is_empty() && modes.iter().all(|one| *one == mode | P), "{options}: {modes:?} {}", ran.err);
        }
    }
}

/// The ops of AMD's processors are sampled by one event, and the driver keeps those that are wanted.
#[test]
fn amd_samples_ops_that_load_or_store() {
    use protocol::event_flags::{LOADS, STORES};
    for (options, flags) in [("", LOADS | STORES), ("-t load", LOADS), ("-t store", STORES)] {
        let system = amd();
        let (ran, _) = recorded(&system, options);
        let events = started(&system);
        let [event] = &events[..] else { panic!("{options}: {:?}", ran.outcome.map_err(|error| error.report())) };
        assert_eq!((event.modes, event.flags), (modes::BOTH | modes::PRECISE, flags), "{options}");
        let (exit, report) = recorded(&system, "--ldlat 30").0.failure();
        assert!(exit == Exit::Usage && report.contains("IBS samples loads of any latency"), "{report}");
    }
}

#[test]
fn the_options_of_record_are_those_of_mem_record() {
    let (ran, _) = recorded(&on(SKYLAKE), "-t load -c 20k --budget 10");
    assert!(ran.err.starts_with("[ sampling cpu/event=0xcd,umask=0x01,ldlat=30/p ]\n"), "{}", ran.err);
    let (exit, report) = recorded(&on(SKYLAKE), "-F 99 -e 2@1M").0.failure();
    assert!(exit == Exit::Usage && report.contains("-F is for events without an interval"), "{report}");
}

#[test]
fn a_processor_that_records_none_is_told_before_anything_is_written() {
    let mut other = FakeDriver::default();
    other.info.vendor[..12].copy_from_slice(b"CentaurHauls");
    for (system, options, what) in [
        (FakeSystem::running(FakeDriver::default()), "", "loads"),
        (on(NEHALEM), "-t store", "stores"),
        (FakeSystem::running(other), "", "loads"),
    ] {
        let (ran, _) = recorded(&system, options);
        let (exit, report) = ran.failure();
        assert_eq!(exit, Exit::UnsupportedSource);
        let start = format!("error: no core of this machine records {what} with the addresses of their data\n");
        assert!(report.starts_with(&start) && report.contains("\n  try: .\\client record -e cache-misses"), "{report}");
    }
}

#[test]
fn command_lines_of_mem_are_checked() {
    for line in [
        "mem",
        "mem record --ldlat 2",
        "mem record -t loads",
        "mem record -e 2:p --ldlat 30",
        "mem record -e 2:p --all-user",
        "mem record --all-user --all-kernel",
        "mem report --sort colour",
        "mem report --json --csv",
        "c2c --limit -1",
    ] {
        let words = ["client"].into_iter().chain(line.split_whitespace());
        assert!(Cli::try_parse_from(words).is_err(), "{line}");
    }
    let words = ["client", "mem", "record", "--tid", "7", "-t", "load", "--", "app", "-t", "x"];
    assert!(Cli::try_parse_from(words).is_ok());
}
