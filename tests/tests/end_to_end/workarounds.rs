//! Errata that the driver works around: each processor counts exactly, and `info` names the workaround.

use serde_json::Value;
use tests::{Lab, ProgramOutput, thousands};

/// Returns the count, in thousands, of each event on each processor, from `--json` output.
fn counts(json: &Value) -> Vec<Vec<u64>> {
    let of = |event: &Value| {
        let processors = event["processors"].as_array().unwrap();
        processors.iter().map(|row| thousands(row["count"].as_u64().unwrap())).collect()
    };
    json["events"].as_array().unwrap().iter().map(of).collect()
}

/// Makes a processor with an identity, and installs the driver on it.
fn install(lab: &mut Lab, identity: &str) {
    lab.become_processor(identity).unwrap();
    lab.install().unwrap();
}

/// Returns the numbers of the errata that `info` names, and its text.
fn errata(lab: &Lab) -> (Vec<String>, String) {
    let json = lab.client(&["info", "--json"]).unwrap().json().unwrap();
    let errata = json["workarounds"].as_array().unwrap().iter();
    let numbers = errata.flat_map(|row| row["errata"].as_array().unwrap()).map(|it| it.as_str().unwrap().to_owned());
    (numbers.collect(), lab.client(&["info"]).unwrap().success().unwrap().out)
}

fn start(lab: &Lab, events: &[&str]) -> ProgramOutput {
    let arguments: Vec<&str> = ["start"].iter().chain(events).copied().collect();
    lab.client(&arguments).unwrap()
}

#[test]
fn processors_with_errata_count_exactly_and_info_names_the_workarounds() {
    let mut lab = Lab::boot("nehalem-920").unwrap();
    lab.install().unwrap();
    assert_eq!(errata(&lab).0, ["AAK100", "AAP53", "BD53"]);
    for round in 1..=2 {
        lab.wire.run(0, &[(0xC4, 0, 5_000_000)], &[]).unwrap(); // nothing counts
        start(&lab, &["BranchInstructions"]).success().unwrap();
        lab.wire.run(0, &[(0xC4, 0, 600_000 * round)], &[(0xC4, 0, 11_000)]).unwrap();
        let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
        assert_eq!(counts(&stopped), [[600 * round + 11, 0]], "the counters were reset");
    }
    lab.stop().unwrap();

    install(&mut lab, "haswell-4710mq");
    let (numbers, text) = errata(&lab);
    assert_eq!(numbers, ["BJ122", "BV98", "HSD29"]);
    assert!(text.contains("\nWorkaround      events 0xD0 to 0xD3 keep"), "{text}");
    let loads = "cpu/event=0xd1,umask=0x01/";
    let plain = ["cpu/event=0xa1,umask=0x01/", "cpu/event=0xa1,umask=0x02/", "cpu/event=0xa1,umask=0x04/"];
    let refused = start(&lab, &[loads, plain[0], plain[1], plain[2]]);
    assert!(refused.code != 0 && refused.err.contains("errata BJ122, BV98, HSD29"), "{}", refused.err);
    start(&lab, &[loads, plain[0]]).success().unwrap();
    for processor in 0..2 {
        let number = 1_000_000 * u64::from(processor + 1);
        lab.wire.run(processor, &[(0xD1, 1, number), (0xA1, 1, number + 1_000)], &[]).unwrap();
    }
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(counts(&stopped), [[1_000, 2_000], [1_001, 2_001]], "no thread got events of the other");
    lab.stop().unwrap();

    install(&mut lab, "skylake-sp-tsx-derived");
    let (_, text) = errata(&lab);
    assert!(text.contains("\nWorkaround      counter 3 is left to the microcode of TSX\n"), "{text}");
    let four: Vec<String> = (1..=4).map(|umask| format!("cpu/event=0xa1,umask=0x0{umask}/")).collect();
    let four: Vec<&str> = four.iter().map(String::as_str).collect();
    let group = format!("{{{}}}", four.join(","));
    assert!(start(&lab, &[&group]).err.contains("3 fit together"), "the fourth is the microcode's");
    start(&lab, &four[..3]).success().unwrap();
    lab.wire.run(1, &[(0xA1, 1, 10_000), (0xA1, 2, 20_000), (0xA1, 3, 30_000)], &[]).unwrap();
    let stopped = lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap();
    assert_eq!(counts(&stopped), [[0, 10], [0, 20], [0, 30]]);
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.finish().unwrap();
}
