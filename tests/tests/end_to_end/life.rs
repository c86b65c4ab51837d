//! The life cycle of the service.

use std::time::{Duration, Instant};

use protocol::status::STATUS_SUCCESS;
use protocol::{Code, Event, EventRequest, Hello, PROTOCOL_VERSION, ReplyHeader, StartHeader, modes};
use tests::{Lab, Probe, Reply, hex, rounds, thousands, wait_until};
use zerocopy::{FromBytes, IntoBytes};

/// Opens the device and negotiates the version.
pub fn connect(probe: &mut Probe) -> u32 {
    connect_with(probe, "")
}

/// Opens the device with another kind of handle and negotiates the version.
pub fn connect_with(probe: &mut Probe, kind: &str) -> u32 {
    let handle = probe.open(kind).unwrap().expect("the device opens");
    let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
    let reply = probe.control(handle, Code::Hello as u32, &hex(hello.as_bytes()), "72").unwrap();
    let is_greeted = matches!(&reply, Reply::Done(bytes) if header(bytes).status == STATUS_SUCCESS.number());
    assert!(is_greeted, "{reply:?}");
    handle
}

pub fn header(bytes: &[u8]) -> ReplyHeader {
    ReplyHeader::read_from_prefix(bytes).expect("a header").0
}

/// Returns a start request for sources in both modes on all processors, in the format of the probe.
pub fn start_request(sources: &[u64]) -> String {
    let header = StartHeader::EMPTY;
    let mut bytes = header.as_bytes().to_vec();
    for source in sources {
        let event = EventRequest { event: Event::of(*source), modes: modes::BOTH, ..EventRequest::EMPTY };
        bytes.extend_from_slice(event.as_bytes());
    }
    hex(&bytes)
}

/// Starts sources in a session of this handle.
pub fn start(probe: &mut Probe, handle: u32, sources: &[u64]) -> ReplyHeader {
    match probe.control(handle, Code::Start as u32, &start_request(sources), "4096").unwrap() {
        Reply::Done(bytes) => header(&bytes),
        Reply::Failed(code) => panic!("start failed: {code}"),
    }
}

/// Waits until exactly this many counters are enabled, because a killed process takes some time to end.
pub fn wait_for_enabled_counters(lab: &mut Lab, wanted: usize) {
    wait_until(&format!("not {wanted} count"), || lab.enabled_counters().unwrap() == wanted);
}

#[test]
fn repeated_life_cycles_leave_nothing_behind() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for round in 0..rounds(4, 20) {
        lab.client(&["install", "--any-signature"]).unwrap().success().unwrap();

        let (mut first, mut second) = (lab.probe().unwrap(), lab.probe().unwrap());
        let handles = [connect(&mut first), connect(&mut second)];
        assert_eq!(start(&mut first, handles[0], &[2, 6]).status, STATUS_SUCCESS.number(), "round {round}");
        assert_eq!(start(&mut second, handles[1], &[8, 9]).status, STATUS_SUCCESS.number(), "round {round}");
        wait_for_enabled_counters(&mut lab, 8);

        first.kill().unwrap();
        wait_for_enabled_counters(&mut lab, 4);
        assert_eq!(
            start(&mut second, handles[1], &[2, 6]).status,
            STATUS_SUCCESS.number(),
            "free again, round {round}"
        );

        // The handle is still open, and its session is running.
        lab.stop().unwrap();
        wait_for_enabled_counters(&mut lab, 0);
        drop(second);
        let pool = lab.wire.pool().unwrap();
        assert_eq!((pool.allocations, lab.wire.images().unwrap().len()), (0, 0), "round {round}: {pool:?}");

        lab.client(&["install", "--any-signature"]).unwrap().success().unwrap(); // starts the installed driver
        let json = lab.client(&["info", "--json"]).unwrap().json().unwrap();
        assert_eq!((&json["sessions"], &json["counters_in_use"]), (&0.into(), &0.into()), "round {round}");
        lab.client(&["uninstall"]).unwrap().success().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn thousands_of_loads_and_unloads_leave_nothing_behind() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    probe.service("unload", "halprof").unwrap().unwrap();
    let (begun, loads) = (Instant::now(), rounds(20, 10_000));
    for round in 0..loads {
        probe.service("load", "halprof").unwrap().unwrap_or_else(|error| panic!("load {round}: error {error}"));
        let handle = connect(&mut probe);
        // A session of each fourth driver ends with its handle.
        if round % 4 == 0 {
            assert_eq!(start(&mut probe, handle, &[2, 6]).status, STATUS_SUCCESS.number(), "load {round}");
        }
        probe.command(&format!("close {handle}")).unwrap();
        probe.service("unload", "halprof").unwrap().unwrap_or_else(|error| panic!("unload {round}: error {error}"));
        assert!(lab.wire.images().unwrap().is_empty(), "load {round}");
        lab.check_clean().unwrap_or_else(|error| panic!("load {round}: {error:#}"));
        if round % 1_000 == 999 {
            println!("{} loads in {:.0} s", round + 1, begun.elapsed().as_secs_f64());
        }
    }
    println!("{loads} loads and unloads in {:.1} s", begun.elapsed().as_secs_f64());
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn killing_a_client_during_stat_frees_its_counters() {
    let mut lab = Lab::boot("intel-v1").unwrap();
    lab.install().unwrap();
    let hang = ["stat", "-a", "-e", "TotalIssues,TotalCycles", "--", "cmd", "/c", "pause"];
    let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 4;
    let mut child = lab.client_running(&hang, "not 4 count", counts).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_enabled_counters(&mut lab, 0);
    lab.finish().unwrap();
}

#[test]
fn a_detached_session_outlives_its_client_and_ends_with_the_driver() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 2);
    lab.client(&["uninstall"]).unwrap().success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.finish().unwrap();
}

#[test]
fn the_driver_reads_running_counters_periodically() {
    let mut lab = Lab::boot("core2-6420").unwrap();
    lab.install().unwrap();
    lab.client(&["start", "TotalIssues"]).unwrap().success().unwrap();
    // In thousands, with room for those between accesses. Half of 40 bits: a larger step looks like one backwards.
    let most = (1 << 39) / 1_000 - 1;
    for round in 1..=3 {
        let before = lab.wire.accesses().unwrap()[0].rdpmc;
        lab.wire.run(0, &[(0xC0, 0, 1_000 * most)], &[]).unwrap();
        lab.wire.advance(5_000).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(lab.wire.accesses().unwrap()[0].rdpmc, before, "not before 10 s, round {round}");
        lab.wire.advance(5_000).unwrap();
        wait_until(&format!("the counts do not follow, round {round}"), || {
            lab.wire.accesses().unwrap()[0].rdpmc != before
        });
    }
    let json = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(thousands(json["events"][0]["count"].as_u64().unwrap()), 3 * most);
    lab.finish().unwrap();
}

#[test]
fn installing_twice_and_uninstalling_twice_is_no_error() {
    let lab = Lab::boot("amd-legacy").unwrap();
    for _ in 0..2 {
        lab.client(&["install", "--any-signature"]).unwrap().success().unwrap();
    }
    for _ in 0..2 {
        lab.client(&["uninstall"]).unwrap().success().unwrap();
    }
    assert!(!lab.wine().drive_c("windows/system32/drivers/halprof.sys").exists());
    lab.finish().unwrap();
}
