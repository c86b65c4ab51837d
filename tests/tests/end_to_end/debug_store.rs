//! The Debug Store with the shipped driver and client: control areas, branches and precise samples.

use std::time::Duration;

use bench_protocol::{ControlAreaMode, DebugStore, KvaShadow};
use protocol::{BRANCHES, Code, Event, EventRequest, Record, RecordKind, StartHeader, modes};
use serde_json::Value;
use tests::{Lab, Probe, Reply, hex, wait_until};
use zerocopy::IntoBytes;

use crate::life::{connect, header};

/// An identity for each PEBS format, 15 for architectural PEBS, and an event. From format 6 on one by fixed counter 0,
/// and one with UMASK2.
const FORMATS: [(&str, u64, &str); 11] = [
    ("core2-e5200", 0, "InstructionRetired:p@4M"),
    ("nehalem-920", 1, "InstructionRetired:p@4M"),
    ("haswell-4710mq", 2, "InstructionRetired:p@4M"),
    ("skylake-6600k", 3, "InstructionRetired:p@4M"),
    ("alder-lake-12900k", 4, "InstructionRetired:p@4M"),
    ("lunar-lake-288v", 6, "INST_RETIRED.PREC_DIST:p@4M"),
    ("lunar-lake-288v", 6, "BR_INST_RETIRED.COND_TAKEN:p@100k"),
    ("panther-lake-355", 15, "InstructionRetired:p@4M"),
    ("panther-lake-355", 15, "BR_INST_RETIRED.COND_TAKEN:p@100k"),
    ("nova-lake-derived", 15, "INST_RETIRED.PREC_DIST:p@4M"),
    ("diamond-rapids-derived", 15, "InstructionRetired:p@4M"),
];

/// Exit codes: unsupported on this machine; in use by other software.
const UNSUPPORTED: i32 = 7;
const TAKEN: i32 = 25;

/// Returns whether all Debug Store registers are 0.
fn idle(lab: &mut Lab) -> bool {
    let registers = lab.wire.debug_store().unwrap();
    registers.iter().all(|of| *of == DebugStore { area: 0, debugctl: 0, pebs_enable: 0 })
}

/// Waits until all Debug Store registers are 0, after a handle was closed.
fn wait_until_idle(lab: &mut Lab) {
    wait_until("the Debug Store runs", || idle(lab));
}

/// Replaces the machine and loads the driver on it.
fn become_processor(lab: &mut Lab, probe: &mut Probe, identity: &str) {
    become_machine(lab, probe, identity, ControlAreaMode::Supported);
}

/// Replaces the machine, sets how its kernel handles control areas, and loads the driver.
fn become_machine(lab: &mut Lab, probe: &mut Probe, identity: &str, areas: ControlAreaMode) {
    probe.service("unload", "halprof").unwrap().unwrap();
    lab.check_clean().unwrap();
    lab.run_by_script().unwrap();
    lab.become_processor(identity).unwrap();
    lab.wire.set_control_areas(areas).unwrap();
    probe.service("load", "halprof").unwrap().unwrap();
}

fn json(lab: &Lab, arguments: &[&str]) -> Value {
    lab.client(arguments).unwrap().success().unwrap().json().unwrap()
}

#[test]
fn control_areas_are_allocated_and_freed_on_all_processors() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    for (build, size) in [(17_763, 0x60), (18_362, 0xA0), (26_100, 0xA0)] {
        lab.wire.set_windows(build).unwrap();
        let made = json(&lab, &["control-area", "allocate", "--json"]);
        let areas = lab.wire.control_areas().unwrap();
        let told = made["areas"].as_array().unwrap();
        assert_eq!(told.len(), areas.len());
        for (area, told) in areas.iter().zip(told) {
            assert_eq!(told["address"].as_str(), Some(&*format!("0x{:016x}", area.unwrap())), "{told}");
            assert_eq!((told["size"].as_u64(), told["owner"].as_str()), (Some(size), Some("kernel")), "{told}");
        }
        let again = lab.client(&["control-area", "allocate", "-C", "1"]).unwrap();
        assert_eq!(again.code, TAKEN, "{}", again.err);
        assert!(again.err.contains("STATUS_ADDRESS_ALREADY_EXISTS"), "{}", again.err);
        lab.client(&["control-area", "free"]).unwrap().success().unwrap();
        assert_eq!(lab.control_areas().unwrap(), 0);
        let twice = lab.client(&["control-area", "free", "-C", "0"]).unwrap();
        assert!(twice.code == TAKEN && twice.err.contains("STATUS_MEMORY_NOT_ALLOCATED"), "{}", twice.err);
    }
    lab.client(&["control-area", "allocate", "--current"]).unwrap().success().unwrap();
    assert_eq!(lab.control_areas().unwrap(), 1);
    lab.uninstall().unwrap();
    assert_eq!(lab.control_areas().unwrap(), 0, "freed at the unload");
    lab.finish().unwrap();
}

#[test]
fn a_refused_area_is_reported_and_remaining_areas_are_freed_at_unload() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    lab.wire.occupy_control_area(1).unwrap();
    let refused = lab.client(&["control-area", "allocate"]).unwrap();
    assert_eq!(refused.code, TAKEN, "{}", refused.err);
    assert!(refused.err.contains("CPU 1") && refused.err.contains("ALREADY_EXISTS"), "{}", refused.err);
    assert_eq!(lab.control_areas().unwrap(), 1, "all or none: the other's");
    become_machine(&mut lab, &mut probe, "skylake-6600k", ControlAreaMode::Missing);
    let made = json(&lab, &["control-area", "allocate", "--json"]);
    assert_eq!(made["areas"][0]["owner"], "halprof", "{made}");
    assert_eq!(lab.control_areas().unwrap(), 0, "the kernel knows of none");
    lab.uninstall().unwrap();
    lab.check_clean().unwrap();
    lab.wire.set_control_areas(ControlAreaMode::Supported).unwrap();
    lab.install().unwrap();
    lab.client(&["control-area", "allocate"]).unwrap().success().unwrap();
    // The driver keeps an area that the kernel refuses to free, and frees it later.
    lab.wire.set_control_areas(ControlAreaMode::FreeFails(0xC000_0001)).unwrap();
    let refused = lab.client(&["control-area", "free"]).unwrap();
    assert!(refused.code == TAKEN && refused.err.contains("0xC0000001"), "{}", refused.err);
    lab.wire.set_control_areas(ControlAreaMode::Supported).unwrap();
    lab.uninstall().unwrap();
    assert_eq!(lab.control_areas().unwrap(), 0, "freed at the unload");
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn every_branch_record_is_delivered_or_reported_lost() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, mode, areas) in [
        ("haswell-4710mq", None, ControlAreaMode::OwnedByWindows),
        ("alder-lake-12900k", Some("--user"), ControlAreaMode::Supported),
        ("core2-e5200", None, ControlAreaMode::Supported),
    ] {
        become_machine(&mut lab, &mut probe, identity, areas);
        let found = (lab.wire.debug_store().unwrap(), lab.wire.control_areas().unwrap());
        lab.run_in_real_time().unwrap();
        let arguments = ["branches", "-C", "0", "--duration", "0.4s", "--buffer", "512", "--json"];
        let arguments: Vec<&str> = arguments.into_iter().chain(mode).collect();
        let told = json(&lab, &arguments);
        lab.run_by_script().unwrap();
        let stored = lab.wire.ds_writes().unwrap();
        let of = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("no {name} in {told}"));
        assert_eq!(of("records") + of("lost"), stored[0].branches, "{identity}: {told}");
        assert!(of("records") > 2_000, "{identity}: {told}");
        assert_eq!((stored[1].branches, stored[0].faults), (0, 0), "{identity}: one processor was asked for");
        assert_eq!((lab.wire.debug_store().unwrap(), lab.wire.control_areas().unwrap()), found, "{identity}");
        assert_eq!(found.0[0].area != 0, areas == ControlAreaMode::OwnedByWindows, "{identity}");
    }
    let shown = lab.client(&["branches", "-C", "0-1", "--duration", "0.4s"]).unwrap().success().unwrap();
    assert!(shown.out.lines().all(|line| line.len() <= 80), "{}", shown.out);
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn precise_samples_have_a_known_skid_and_add_up_in_every_format() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, format, event) in FORMATS {
        // On an ordinary Intel PC, Windows has allocated the areas.
        let areas = if format >= 3 { ControlAreaMode::OwnedByWindows } else { ControlAreaMode::Supported };
        become_machine(&mut lab, &mut probe, identity, areas);
        let found = lab.wire.debug_store().unwrap();
        lab.run_in_real_time().unwrap();
        let arguments = ["record", "-a", "--duration", "0.2s", "-e", event, "-o", "C:\\precise.rec"];
        lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        let file = std::fs::File::open(lab.wine().drive_c("precise.rec")).unwrap();
        let mut samples: Vec<Record> = Vec::new();
        let mut counts = Vec::new();
        for block in recording::Reader::new(file).unwrap() {
            match block.unwrap() {
                recording::Block::Samples(more) => samples.extend(more.iter().map(|record| record.parse().unwrap())),
                recording::Block::Summary(summary) => counts = summary.counts,
                _ => {}
            }
        }
        let (kind, next) = if format >= 2 { (RecordKind::Precise, 0) } else { (RecordKind::PreciseNext, 4) };
        let precise = samples.iter().filter(|record| record.kind() == kind).filter_map(Record::sample);
        let precise: Vec<_> = precise.collect();
        assert!(precise.len() > 100, "{identity}: {} of {}", precise.len(), samples.len());
        // The places are 16 bytes apart, and interrupts occur three bytes after them.
        assert!(precise.iter().all(|sample| sample.ip % 16 == next), "{identity}");
        for (processor, stored) in (0..).zip(lab.wire.ds_writes().unwrap()) {
            let written: u64 = stored.records.iter().map(|(_, records)| records).sum();
            let Some(count) = counts.iter().find(|count| count.processor == processor) else {
                assert_eq!(written, 0, "{identity}, {processor}: an E core has no {event}");
                continue;
            };
            let fetched = precise.iter().filter(|sample| sample.processor == processor).count() as u64;
            assert_eq!((count.samples + count.lost, count.samples), (written, fetched), "{identity}, {processor}");
            assert_eq!(stored.faults, 0);
        }
        let report = lab.client(&["report", "C:\\precise.rec"]).unwrap().success().unwrap();
        let skid = if format >= 2 { "0" } else { "the instruction behind" };
        assert!(report.out.lines().any(|line| line.starts_with("Skid") && line.contains(skid)), "{}", report.out);
        let by_fixed =
            matches!(event, "INST_RETIRED.PREC_DIST:p@4M") || format == 4 || event.starts_with("Inst") && format > 4;
        let by = if by_fixed { "by fixed counter 0, with precise distribution" } else { "by general counters" };
        assert!(report.out.lines().any(|line| line.contains(by)), "{identity} {event}: {}", report.out);
        assert_eq!(lab.wire.debug_store().unwrap(), found, "{identity}");
    }
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn merged_reports_order_samples_and_precise_records_together() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let events = "InstructionRetired:p@4M,TotalCycles@7M";
    let arguments = ["record", "-a", "--duration", "0.2s", "-e", events, "--batch", "16", "-o", "C:\\merge.rec"];
    lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let merged = json(&lab, &["report", "--merge", "C:\\merge.rec", "--json", "--limit", "100000"]);
    let rows = merged["samples"].as_array().unwrap_or_else(|| panic!("{merged}"));
    let (mut last, mut kinds) = ((0, 0), [0, 0]);
    for row in rows {
        let place = (row["processor"].as_u64().unwrap(), row["number"].as_u64().unwrap());
        assert!(place >= last, "{row}");
        last = place;
        kinds[usize::from(row["kind"] == "precise")] += 1;
    }
    assert!(kinds.iter().all(|number| *number > 50), "{kinds:?}");
    let shown = lab.client(&["report", "--merge", "C:\\merge.rec"]).unwrap().success().unwrap();
    assert!(shown.out.contains("  InstructionRetired  precise  "), "no name is shortened in a pipe: {}", shown.out);
    lab.finish().unwrap();
}

/// Sets up the cause of a refusal.
type Obstacle = fn(&mut Lab);

#[test]
fn recording_is_refused_with_its_reason() {
    const RECORD: [&str; 6] = ["record", "-a", "--duration", "0.4s", "-e", "InstructionRetired:p"];
    const TRACE: [&str; 3] = ["branches", "--duration", "0.4s"];
    let cases: [(&str, Obstacle, &[&str], i32, &str); 9] = [
        ("haswell-4710mq", |lab| lab.wire.set_kva_shadow(KvaShadow::On).unwrap(), &TRACE, UNSUPPORTED, "VA shadow"),
        ("haswell-4710mq", |lab| lab.wire.set_kva_shadow(KvaShadow::On).unwrap(), &RECORD, UNSUPPORTED, "VA shadow"),
        (
            "haswell-4710mq",
            |lab| lab.wire.set_kva_shadow(KvaShadow::QueryFails(0xC000_0003)).unwrap(),
            &RECORD,
            UNSUPPORTED,
            "0xC0000003",
        ),
        ("skylake-6600k", |lab| lab.wire.set_debug_store(0, 0, 0xC0, None).unwrap(), &RECORD, TAKEN, "0xc0"),
        (
            "skylake-6600k",
            |lab| lab.wire.set_debug_store(1, 0, 0, Some(1 << 7 | 1 << 11)).unwrap(),
            &TRACE,
            UNSUPPORTED,
            "IA32_MISC_ENABLE",
        ),
        (
            "skylake-6600k",
            |lab| lab.wire.set_debug_store(1, 0, 0, Some(1 << 7 | 1 << 12)).unwrap(),
            &RECORD,
            UNSUPPORTED,
            "IA32_MISC_ENABLE",
        ),
        ("zen4-7700x", |_| {}, &TRACE, UNSUPPORTED, "Intel"),
        ("firecracker-cascade-lake", |_| {}, &TRACE, UNSUPPORTED, "Debug Store"),
        (
            "haswell-4710mq",
            |_| {},
            &["record", "-a", "--duration", "0.4s", "-e", "TotalCycles:p"],
            UNSUPPORTED,
            "TotalCycles",
        ),
    ];
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    for (identity, obstacle, arguments, code, said) in cases {
        become_processor(&mut lab, &mut probe, identity);
        obstacle(&mut lab);
        let before = lab.wire.debug_store().unwrap();
        let ran = lab.client(arguments).unwrap();
        assert_eq!(ran.code, code, "{identity} {arguments:?}: {}", ran.err);
        assert!(ran.err.contains(said), "{identity} {arguments:?}: {}", ran.err);
        assert_eq!(lab.wire.debug_store().unwrap(), before, "{identity} {arguments:?}");
        assert_eq!((lab.control_areas().unwrap(), lab.enabled_counters().unwrap()), (0, 0), "{identity} {arguments:?}");
    }
    drop(probe);
    lab.finish().unwrap();
}

#[test]
fn unloading_while_recording_restores_the_registers() {
    /// LBR in IA32_DEBUGCTL, set by other software.
    const OTHERS: u64 = 1;
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    probe.service("unload", "halprof").unwrap().unwrap();
    for identity in ["haswell-4710mq", "alder-lake-12900k", "panther-lake-355"] {
        lab.become_processor(identity).unwrap();
        (0..2).for_each(|processor| lab.wire.set_debug_store(processor, 0, OTHERS, None).unwrap());
        let found = lab.wire.debug_store().unwrap();
        lab.run_in_real_time().unwrap();
        for round in 0..10_u64 {
            probe.service("load", "halprof").unwrap().unwrap();
            let handle = connect(&mut probe);
            match probe.control(handle, Code::Start as u32, &start(), "4096").unwrap() {
                Reply::Done(bytes) => assert_eq!((header(&bytes).status, header(&bytes).cause), (0, 0), "{identity}"),
                Reply::Failed(error) => panic!("{identity}, round {round}: {error}"),
            }
            let running = lab.wire.debug_store().unwrap();
            assert!(running.iter().all(|of| of.area != 0), "{running:?}");
            std::thread::sleep(Duration::from_millis(round % 9));
            probe.command(&format!("close {handle}")).unwrap();
            probe.service("unload", "halprof").unwrap().unwrap();
            assert_eq!(lab.wire.debug_store().unwrap(), found, "{identity}, round {round}");
            assert_eq!(lab.control_areas().unwrap(), 0, "{identity}, round {round}");
            lab.check_clean().unwrap();
        }
        let stored = lab.wire.ds_writes().unwrap();
        assert!(stored.iter().all(|of| of.branches > 0 && !of.records.is_empty() && of.faults == 0), "{stored:?}");
    }
    drop(probe);
    lab.finish().unwrap();
}

/// Returns a start request for branches and precise samples of instructions on all processors.
fn start() -> String {
    let header = StartHeader { ring: 64, budget: 900, batch: 4, ..StartHeader::EMPTY };
    let branches = EventRequest { event: Event::of(BRANCHES), modes: modes::BOTH, interval: 64, ..EventRequest::EMPTY };
    let precise = EventRequest {
        event: Event::of(0x1A),
        modes: modes::BOTH | modes::PRECISE,
        interval: 100_000,
        ..EventRequest::EMPTY
    };
    hex(&[header.as_bytes(), branches.as_bytes(), precise.as_bytes()].concat())
}

#[test]
fn killing_a_client_stops_its_recording() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    lab.run_in_real_time().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    match probe.control(handle, Code::Start as u32, &start(), "4096").unwrap() {
        Reply::Done(bytes) => assert_eq!(header(&bytes).status, 0),
        Reply::Failed(error) => panic!("{error}"),
    }
    std::thread::sleep(Duration::from_millis(50));
    probe.kill().unwrap();
    wait_until_idle(&mut lab);
    assert_eq!((lab.control_areas().unwrap(), lab.enabled_counters().unwrap()), (0, 0));
    lab.finish().unwrap();
}

#[test]
fn recording_continues_after_a_sleep() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut probe = lab.probe().unwrap();
    let handle = connect(&mut probe);
    match probe.control(handle, Code::Start as u32, &start(), "4096").unwrap() {
        Reply::Done(bytes) => assert_eq!(header(&bytes).status, 0),
        Reply::Failed(error) => panic!("{error}"),
    }
    lab.wire.branch(0, true, 0x1000, 16, 100).unwrap();
    lab.wire.sleep().unwrap();
    assert!(idle(&mut lab), "off before the power goes");
    lab.wire.wake(500).unwrap();
    lab.wire.branch(0, true, 0x1000, 16, 100).unwrap();
    assert_eq!(lab.wire.ds_writes().unwrap()[0].branches, 200);
    probe.command(&format!("close {handle}")).unwrap();
    wait_until_idle(&mut lab);
    drop(probe);
    lab.finish().unwrap();
}
