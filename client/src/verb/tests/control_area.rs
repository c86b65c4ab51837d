//! Tests of `control-area`.

use pmu::debug_store::MissingFeature;
use protocol::{AreaRecord, AreaRequest, area};
use zerocopy::FromBytes;

use super::*;

fn area(processor: u32, status: u32, address: u64, flags: u32) -> AreaRecord {
    let size = if address == 0 { 0 } else { 0xA0 };
    AreaRecord { processor, status, address, size, flags, format: 4, missing_feature: 0 }
}

/// Returns an area of the kernel in use, one of the driver, one of another program, and a processor without PEBS.
fn system() -> FakeSystem {
    let all = area::BRANCHES | area::PRECISE | area::MODES;
    let areas = vec![
        area(0, 0, 0xFFFF_9A01_2345_6000, all | area::OF_KERNEL | area::USED),
        AreaRecord { size: 0x60, ..area(1, 0xC000_00BB, 0xFFFF_9A01_2345_7000, area::BRANCHES) },
        area(2, 0xC000_0018, 0, all),
        AreaRecord { missing_feature: MissingFeature::PebsUnavailable.numbers().0 + 1, ..area(3, 0xC000_009A, 0, 0) },
    ];
    FakeSystem::running(FakeDriver { areas, ..FakeDriver::default() })
}

fn request(system: &FakeSystem) -> AreaRequest {
    let [input] = &system.driver.inputs(Code::ControlArea)[..] else { panic!() };
    AreaRequest::read_from_bytes(input).unwrap()
}

#[test]
fn each_operation_is_sent_once_with_its_processors() {
    for (line, operation, current, processors) in [
        ("control-area", area::QUERY, 0, &[][..]),
        ("control-area show -C 0,2", area::QUERY, 0, &[0, 2]),
        ("control-area ALLOCATE -C 1-3", area::ALLOCATE, 0, &[1, 2, 3]),
        ("control-area free --current", area::FREE, 1, &[]),
    ] {
        let system = system();
        run(&system, line).outcome.unwrap();
        let request = request(&system);
        assert_eq!((request.operation, request.current, request.reserved), (operation, current, 0), "{line}");
        assert!(request.processors.iter().eq(processors.iter().copied()), "{line}");
    }
}

#[test]
fn the_table_shows_owner_of_each_area_and_features_of_its_processor() {
    let out = run(&system(), "control-area").out;
    assert!(out.lines().all(|line| line.len() <= 80), "{out}");
    insta::assert_snapshot!(out);
}

#[test]
fn json_has_null_for_a_missing_area() {
    let areas = run(&system(), "control-area --json -C 0,3").json();
    assert_eq!(
        areas,
        json!({"areas": [
            {
                "processor": 0, "address": "0xffff9a0123456000", "size": 160, "owner": "kernel", "used": true,
                "status": "STATUS_SUCCESS", "branches": true, "branches_by_mode": true, "precise_format": 4,
                "lack": null
            },
            {
                "processor": 3, "address": null, "size": null, "owner": null, "used": false, "status": "0xC000009A",
                "branches": false, "branches_by_mode": false, "precise_format": null,
                "lack": halprof::text::missing_feature::sentence(MissingFeature::PebsUnavailable.numbers().0, 4)
            }
        ]})
    );
}

#[test]
fn an_unknown_format_is_reported_by_its_number() {
    let unknown = AreaRecord {
        format: 6,
        missing_feature: MissingFeature::UnknownFormat(6).numbers().0 + 1,
        ..area(0, 0, 0, area::BRANCHES)
    };
    let system = FakeSystem::running(FakeDriver { areas: vec![unknown], ..FakeDriver::default() });
    let out = run(&system, "control-area").out;
    assert!(out.lines().nth(2).unwrap().ends_with("  yes  no"), "{out}");
    let note = "\nOn CPU 0:\n  its precise records have format 6, which this driver does not know\n";
    assert!(out.ends_with(note), "{out}");
    let shown = &run(&system, "control-area --json").json()["areas"][0];
    assert_eq!(shown["precise_format"], Value::Null);
    assert_eq!(
        shown["lack"],
        halprof::text::missing_feature::sentence(MissingFeature::UnknownFormat(6).numbers().0, 6)
    );
}

#[test]
fn missing_branches_are_reported_with_the_format_of_precise_records() {
    let missing_feature = MissingFeature::BranchesUnavailable.numbers().0 + 1;
    let precise_alone = AreaRecord { missing_feature, ..area(0, 0, 0, area::PRECISE | area::MODES) };
    let system = FakeSystem::running(FakeDriver { areas: vec![precise_alone], ..FakeDriver::default() });
    let out = run(&system, "control-area").out;
    assert!(out.lines().nth(2).unwrap().ends_with("  no   4"), "{out}");
    assert!(out.contains("\nOn CPU 0:\n  the processor's Branch Trace Store is unavailable\n"), "{out}");
    assert_eq!(out.matches("\nOn ").count(), 1, "{out}");
    let shown = &run(&system, "control-area --json").json()["areas"][0];
    assert_eq!((&shown["branches"], &shown["precise_format"]), (&json!(false), &json!(4)));
    assert_eq!(shown["lack"], halprof::text::missing_feature::sentence(missing_feature - 1, 4));
}

#[test]
fn areas_of_the_maximum_number_of_processors_fit_into_one_reply() {
    let areas = (0..2048).map(|processor| area(processor, 0, 0, 0)).collect();
    let system = FakeSystem::running(FakeDriver { areas, ..FakeDriver::default() });
    let answer = run(&system, "control-area allocate --json").json();
    assert_eq!(answer["areas"].as_array().unwrap().len(), 2048);
    assert_eq!(system.driver.inputs(Code::ControlArea).len(), 1, "allocating twice is another matter");
}

#[test]
fn a_refused_area_is_reported_with_the_name_of_the_status() {
    let refuse = Some((Code::ControlArea, ErrorCode::ControlArea, [0xC000_00A0, 0]));
    let system = FakeSystem::running(FakeDriver { refuse, ..FakeDriver::default() });
    let (exit, report) = run(&system, "control-area free -C 0").failure();
    assert_eq!(exit, Exit::DebugStoreTaken);
    assert_eq!(
        report,
        "error: CPU 0 has no control area (STATUS_MEMORY_NOT_ALLOCATED)\n  \
         try: .\\client control-area   (shows all areas)"
    );
}
