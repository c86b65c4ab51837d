//! Samples of windows in which the ratio of two counts was bad, from the overflow to the report.

use tests::Lab;

use bench_protocol::InterruptSite;
use serde_json::{Value, json};

use crate::life::wait_for_enabled_counters;

/// Instructions in a phase for each hundred of its cycles.
const GOOD: u64 = 150;
const BAD: u64 = 30;

/// Cycles between two overflows.
const WINDOW: u64 = 100_000;

/// Returns where code of a phase is interrupted, in the kernel.
const fn site(percent: u64) -> InterruptSite {
    InterruptSite { ip: 0xFFFF_F800_0001_0000 + percent, user: false, process: 4, thread: 8, weight: 1 }
}

/// Returns number and unit mask of cycles and instructions.
fn events(identity: &str) -> [(u16, u16); 2] {
    let is_amd = identity.starts_with("zen") || identity.starts_with("amd");
    [if is_amd { (0x76, 0) } else { (0x3C, 0) }, (0xC0, 0)]
}

/// Counters of this processor reload each other: an interrupt of a good phase would be one that they did not spare.
const RELOADING: &str = "arrow-lake-s-265k-efficient";

#[test]
fn more_than_99_percent_of_the_samples_are_of_the_phases_with_few_instructions_per_cycle() {
    for identity in ["haswell-4710mq", "zen4-7700x", "amd-legacy", "intel-v1", RELOADING] {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        let arguments =
            ["record", "-a", "-C", "0", "-e", "cycles:k@100k", "--when", "IPC<0.5", "-o", "C:\\halprof.rec"];
        let arguments = [&arguments[..], &["--", "cmd", "/c", "pause"]].concat();
        let counts = |lab: &mut Lab| lab.enabled_counters().unwrap() == 2;
        let mut client = lab.client_running(&arguments, "not 2 count", counts).unwrap();
        let [cycles, instructions] = events(identity);
        let of_phase = |phase: u64| if phase.is_multiple_of(2) { GOOD } else { BAD };
        let mut bad_windows = 0;
        for phase in 0..12 {
            let percent = of_phase(phase);
            lab.wire.set_interrupt_sites(0, &[site(percent)]).unwrap();
            // From 7 to 40 windows, in quarters of a window.
            let quarters = 28 + 13 * phase % 132;
            bad_windows += if percent == BAD { quarters / 4 } else { 0 };
            for _ in 0..quarters {
                let counted = WINDOW / 4 + 7;
                let kernel = [(cycles, counted), (instructions, counted * percent / 100)];
                lab.wire.run(0, &[], &kernel.map(|((event, umask), count)| (event, umask, count))).unwrap();
            }
        }
        drop(client.stdin.take()); // ends the pause
        assert!(client.wait().unwrap().success());
        wait_for_enabled_counters(&mut lab, 0);

        let report = ["report", "C:\\halprof.rec", "--json", "--sort", "address"];
        let report = lab.client(&report).unwrap().json().unwrap();
        let source = &report["sources"][0];
        let samples = source["samples"].as_u64().unwrap();
        let at = |percent: u64| {
            let address = format!("{:#x}", site(percent).ip);
            let rows = source["rows"].as_array().unwrap();
            let of = rows.iter().filter(|row| row["address"].as_str().unwrap().eq_ignore_ascii_case(&address));
            of.map(|row| row["samples"].as_u64().unwrap()).sum::<u64>()
        };
        assert_eq!(at(GOOD) + at(BAD), samples, "{identity}: {report}");
        assert!(at(BAD) * 100 > samples * 99, "{identity}: {} of {samples}", at(BAD));
        assert!(samples * 10 > bad_windows * 9, "{identity}: {samples} of {bad_windows}");
        let condition = &source["condition"];
        assert_eq!((condition["text"].as_str(), condition["met"].as_u64()), (Some("IPC<0.5"), Some(samples)));
        if identity == RELOADING {
            assert_eq!(condition["unmet"], Value::Null);
            let kind = json!([{ "counter": "reloaded", "processors": 1 }]);
            assert_eq!(source["recorders"], kind);
        } else {
            let unmet = condition["unmet"].as_u64().unwrap();
            assert!(unmet > samples / 2, "{identity}: {unmet} of the good phases");
        }
        assert_eq!(source["lost"], 0, "{identity}");
        lab.finish().unwrap();
    }
}
