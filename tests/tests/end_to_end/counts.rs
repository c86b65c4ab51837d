//! Counts match the model's ledger on every processor.

use serde_json::Value;
use tests::{Lab, is_soak, thousands};

/// A source with its event select and unit mask, taken from the manuals instead of the driver.
type Source = (&'static str, u16, u16);

/// SDM Vol. 3B, "Performance Monitoring Events for Processors Based on Intel NetBurst Microarchitecture": in the
/// model's form, with bits 15:8 of the event mask above the event.
const NETBURST: [Source; 4] = [
    ("TotalIssues", 0x02, 0x01),
    ("BranchInstructions", 0x06, 0x0F),
    ("CacheMisses", 0x70C, 0x00),
    ("TotalCycles", 0x13, 0x01),
];

/// Sources on processors without fixed counters.
const ARCHITECTURAL: [Source; 4] =
    [("TotalIssues", 0xC0, 0), ("TotalCycles", 0x3C, 0), ("CacheMisses", 0x2E, 0x41), ("LLCReference", 0x2E, 0x4F)];

/// Sources on processors with fixed counters.
const FIXED: [Source; 4] = [
    ("TotalIssues", 0xC0, 0),
    ("UnhaltedReferenceCycles", 0x3C, 1),
    ("LLCMisses", 0x2E, 0x41),
    ("TotalCycles", 0x3C, 0),
];

const K8: [Source; 4] = [
    ("TotalIssues", 0xC0, 0),
    ("BranchInstructions", 0xC2, 0),
    ("DcacheMisses", 0x41, 0),
    ("FpInstructions", 0xCB, 0x0F),
];

/// Sources of family 10h.
const FAMILY_10: [Source; 4] = [K8[0], K8[1], K8[2], ("FpInstructions", 0xCB, 0x07)];

/// Sources of family 15h, on which misses of the data cache have units.
const FAMILY_15: [Source; 4] = [K8[0], K8[1], ("DcacheMisses", 0x41, 0x01), ("FpInstructions", 0xCB, 0x07)];

/// Sources of family 17h.
const ZEN: [Source; 4] = [
    ("TotalIssues", 0xC0, 0),
    ("BranchMispredictions", 0xC3, 0),
    ("DcacheAccesses", 0x29, 0x07),
    ("ICMiss", 0x60, 0x10),
];

/// Sources of families 19h and 1Ah.
const ZEN3: [Source; 4] = [
    ("BranchMispredictions", 0xC3, 0),
    ("IcacheIssues", 0x18E, 0x1F),
    ("DcacheAccesses", 0x29, 0x07),
    ("ICMiss", 0x18E, 0x18),
];

/// Identity and its sources. The first has two threads that share the counters of a core, so cycles and cache misses
/// compete for one counter.
const CASES: [(&str, &[Source]); 16] = [
    ("netburst-irwindale", &[NETBURST[0], NETBURST[1], NETBURST[3]]),
    ("netburst-cedarmill", &NETBURST),
    ("intel-v1", &ARCHITECTURAL),
    ("core2-6420", &[ARCHITECTURAL[0], ARCHITECTURAL[2]]),
    ("nehalem-920", &FIXED),
    ("haswell-4710mq", &FIXED),
    ("skylake-6600k", &FIXED),
    ("sapphire-rapids-2475x", &FIXED),
    ("intel-hybrid", &[FIXED[0], FIXED[1], ("BranchInstructions", 0xC4, 0), FIXED[3]]),
    ("k8-clawhammer", &K8),
    ("k10-thuban", &FAMILY_10),
    ("bulldozer-fx8150", &FAMILY_15),
    ("zen-1800x", &ZEN),
    ("zen3-5950x", &ZEN3),
    ("zen4-7700x", &ZEN3),
    ("zen5-9800x3d", &ZEN3),
];

/// One identity for each interface and register layout; `cargo xtask soak` uses all of them. The others differ only in
/// the decisions of `pmu`, which its native tests cover.
pub const SOME: [&str; 6] =
    ["netburst-irwindale", "intel-v1", "haswell-4710mq", "intel-hybrid", "k8-clawhammer", "zen4-7700x"];

#[test]
fn the_cases_include_every_generation() {
    for generation in cpuid_dumps::GENERATIONS {
        assert!(CASES.iter().any(|(name, _)| *name == generation), "{generation}");
    }
}

const PROCESSORS: usize = 2;

fn names(sources: &[Source]) -> Vec<&'static str> {
    sources.iter().map(|(name, ..)| *name).collect()
}

/// Returns the count of a source on a processor from `--json` output. On a hybrid each core type has an event of its
/// own.
fn count(json: &Value, name: &str, processor: usize) -> u64 {
    let names = [name.to_owned(), format!("cpu_core/{name}/"), format!("cpu_atom/{name}/")];
    let events = json["events"].as_array().unwrap();
    let events: Vec<&Value> = events.iter().filter(|event| names.iter().any(|name| event["name"] == **name)).collect();
    let processors_of = |event: &&Value| event["processors"].as_array().unwrap().clone();
    assert_eq!(events.iter().flat_map(processors_of).count(), PROCESSORS, "{name}");
    let is_on = |row: &Value| row["processor"] == processor;
    let event = events.iter().find(|event| processors_of(event).iter().any(is_on)).expect(name);
    let processors = processors_of(event);
    let on = processors.iter().find(|row| is_on(row)).unwrap();
    let total: u64 = processors.iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(event["count"], total, "the total of {name}");
    on["count"].as_u64().unwrap()
}

/// Checks every count in `json` against the model's ledger, on each processor.
fn agree(lab: &mut Lab, json: &Value, sources: &[Source]) {
    for (name, event, umask) in sources {
        for processor in 0..PROCESSORS {
            let ledger = lab.ledger(processor, *event, *umask).unwrap();
            let count = count(json, name, processor);
            assert!(ledger.contains(&count), "{name} on processor {processor}: {count}, not {ledger:?}");
        }
    }
}

/// Makes a different number of each event occur on each processor.
fn happen(lab: &mut Lab, sources: &[Source], round: u64) {
    for processor in 0..PROCESSORS {
        let work = |times: u64| -> Vec<_> {
            let of = |(place, (_, event, umask)): (usize, &Source)| {
                let number = 1_000_003 * round * times + 7919 * (place as u64 + 1) + 13 * processor as u64;
                (*event, *umask, number)
            };
            sources.iter().enumerate().map(of).collect()
        };
        lab.wire.run(u32::try_from(processor).unwrap(), &work(1), &work(2)).unwrap();
    }
}

#[test]
fn read_and_stop_return_the_counts_of_the_model() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for (identity, sources) in CASES.into_iter().filter(|(identity, _)| is_soak() || SOME.contains(identity)) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let started: Vec<&str> = ["start"].into_iter().chain(names(sources)).collect();
        lab.client(&started).unwrap().success().unwrap();
        for round in 1..=2 {
            happen(&mut lab, sources, round);
            let json = lab.client(&["read", "--per-cpu", "--json"]).unwrap().json().unwrap();
            agree(&mut lab, &json, sources);
        }
        let json = lab.client(&["stop", "--all", "--per-cpu", "--json"]).unwrap().json().unwrap();
        agree(&mut lab, &json, sources);
        assert!(*lab.ledger(0, sources[0].1, sources[0].2).unwrap().start() > 3_000_000, "something was counted");
        happen(&mut lab, sources, 4);
        agree(&mut lab, &json, sources);
        lab.stop().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn stat_prints_the_counts_of_the_model() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.run_in_real_time().unwrap();
    for (identity, sources) in CASES.into_iter().filter(|(identity, _)| SOME.contains(identity)) {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let events = names(sources).join(",");
        let stat = ["stat", "-a", "-e", &events, "--per-cpu", "--json", "-o", "-", "--", "cmd", "/c", "exit 0"];
        let json = lab.client(&stat).unwrap().json().unwrap();
        agree(&mut lab, &json, sources);
        assert!(count(&json, sources[0].0, 0) > 0, "time went by");
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn one_mode_or_one_processor_can_be_counted() {
    let mut lab = Lab::boot("intel-v1").unwrap();
    lab.install().unwrap();
    lab.client(&["start", "TotalIssues:u", "TotalCycles:k", "-C", "1"]).unwrap().success().unwrap();
    for processor in 0..2 {
        let (user, kernel) = ([(0xC0, 0, 500_000), (0x3C, 0, 70_000)], [(0xC0, 0, 20_000), (0x3C, 0, 3_000)]);
        lab.wire.run(processor, &user, &kernel).unwrap();
    }
    let json = lab.client(&["read", "--json"]).unwrap().json().unwrap();
    let counts = json["events"].as_array().unwrap().iter().map(|event| thousands(event["count"].as_u64().unwrap()));
    assert_eq!(counts.collect::<Vec<u64>>(), [500, 3]);
    lab.finish().unwrap();
}

#[test]
fn stat_ends_with_the_exit_code_of_its_command() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    lab.install().unwrap();
    for code in [0, 1, 42] {
        let ran = lab.client(&["stat", "-a", "-e", "TotalIssues", "--", "cmd", "/c", &format!("exit {code}")]).unwrap();
        assert_eq!(ran.code, code);
        assert!(ran.err.contains("TotalIssues"), "the counts are printed all the same:\n{}", ran.err);
    }
    lab.finish().unwrap();
}
