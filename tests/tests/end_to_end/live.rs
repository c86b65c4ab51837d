//! `client diagnose --live` as it ships: the registers of each processor as they are, and no write.

use bench_protocol::TraceScript;
use serde_json::Value;
use tests::Lab;

/// Another program's registers, with their values: a counter that is enabled, and the mode of fixed counter 0.
const OF_ANOTHER: [(u32, u64); 2] = [(0x186, 0x0041_00C0), (0x38D, 0x3)];

/// The LVT entry as the HAL leaves it, and masked.
const ENTRY: u32 = 0xFE;
const MASKED: u32 = ENTRY | 1 << 16;

fn live(lab: &Lab) -> Value {
    // Wine has none of the functions for the HAL's own list.
    lab.traced_client(&TraceScript::default(), &["diagnose", "--live", "--json"]).unwrap().json().unwrap()
}

/// Returns the value of a register of a processor, or why there is none.
fn register<'a>(json: &'a Value, processor: usize, number: &str) -> &'a str {
    let registers = json["processors"][processor]["registers"].as_array().unwrap();
    let found = registers.iter().find(|register| register["number"] == number).expect(number);
    found["value"].as_str().or(found["error"].as_str()).unwrap()
}

#[test]
fn live_diagnosis_shows_the_registers_of_each_processor_and_writes_none() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    for (number, value) in OF_ANOTHER {
        lab.wire.write_msr(1, number, value).unwrap();
    }
    lab.wire.set_lvt(1, MASKED).unwrap();
    let writes = |lab: &mut Lab| -> Vec<u64> { lab.wire.accesses().unwrap().iter().map(|one| one.wrmsr).collect() };
    let before = writes(&mut lab);
    let json = live(&lab);
    assert_eq!(writes(&mut lab), before);
    assert!(!lab.wire.counters_reserved().unwrap() && lab.wire.handler().unwrap().registration.is_none());
    assert_eq!(lab.wire.lvt(1).unwrap(), MASKED);

    assert_eq!(json["processors"].as_array().unwrap().len(), before.len());
    assert_eq!(register(&json, 1, "0x186"), "0x00000000004100c0");
    assert_eq!(register(&json, 0, "0x186"), "0x0000000000000000");
    assert_eq!(register(&json, 1, "0x38d"), "0x0000000000000003");
    assert_eq!(register(&json, 0, "0x340"), "0x00000000000000fe");
    assert_eq!(register(&json, 1, "0x340"), "0x00000000000100fe");
    assert!(json["windows"]["build"].is_string(), "{}", json["windows"]);
    assert_eq!(json["driver"]["interface"], "Emon");
    // Windows 10 passes 24 bytes; the headers of the WDK declare 12.
    for size in [24, 12] {
        lab.wire.hal_information_size(size).unwrap();
        let json = live(&lab);
        let sources = json["hal_sources"].as_array().unwrap();
        let hal = sources.iter().find(|source| source["name"] == "TotalIssues").unwrap();
        assert_eq!((&hal["supported"], &hal["interval"]), (&true.into(), &65_536.into()), "{size} bytes: {hal}");
    }
    lab.wire.hal_information_size(24).unwrap();

    // What the other program uses is still its own.
    let refused = lab.client(&["start", "TotalIssues", "-C", "1"]).unwrap();
    assert!(refused.err.contains("IA32_PERFEVTSEL0"), "{}", refused.err);
    for (number, _) in OF_ANOTHER {
        lab.wire.write_msr(1, number, 0).unwrap();
    }
    lab.wire.set_lvt(1, ENTRY).unwrap();
    lab.uninstall().unwrap();
    lab.finish().unwrap();
}

#[test]
fn live_diagnosis_shows_registers_that_fault_and_the_entry_in_x2apic_mode() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.wire.set_apic(true).unwrap();
    lab.wire.set_faulting(&[0x1A6, 0x38F]).unwrap();
    lab.install().unwrap();
    let json = live(&lab);
    assert_eq!(register(&json, 0, "0x1a6"), "#GP");
    assert_eq!(register(&json, 0, "0x38f"), "#GP");
    assert_eq!(register(&json, 0, "0x1a7"), "0x0000000000000000");
    assert_eq!(register(&json, 0, "0x834"), "0x00000000000000fe");
    lab.wire.set_faulting(&[]).unwrap();
    lab.uninstall().unwrap();
    lab.wire.set_apic(false).unwrap();
    lab.finish().unwrap();
}
