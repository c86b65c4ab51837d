//! A guest whose counters do not all count: the driver tries them at each start, and the client says which do not.

use bench_protocol::{Counter, TraceScript};
use tests::{Lab, thousands};

#[test]
fn a_fixed_counter_that_stands_still_is_replaced_and_what_cannot_be_replaced_is_marked() {
    let mut lab = Lab::boot("kvm-8650u").unwrap();
    lab.install().unwrap();
    let count = |lab: &mut Lab| {
        lab.client(&["start", "TotalCycles", "UnhaltedReferenceCycles"]).unwrap().success().unwrap();
        lab.wire.run(0, &[(0x3C, 0, 700_000), (0x3C, 1, 70_000)], &[]).unwrap();
        lab.client(&["stop", "--all", "--json"]).unwrap().json().unwrap()
    };
    let counter = |event: &serde_json::Value| event["processors"][0]["counter"].as_u64().unwrap();
    let fine = count(&mut lab);
    assert_eq!((counter(&fine["events"][0]), counter(&fine["events"][1])), (5, 6), "{fine}");
    let processors = u32::try_from(lab.wire.accesses().unwrap().len()).unwrap();
    for processor in 0..processors {
        lab.wire.set_movement(processor, &[(Counter::Fixed(1), 0), (Counter::Fixed(2), 0)]).unwrap();
    }
    let still = count(&mut lab);
    let [cycles, reference] = [&still["events"][0], &still["events"][1]];
    let number = thousands(cycles["count"].as_u64().unwrap());
    assert!(counter(cycles) < 4 && number == 700 && cycles["missed"].is_null(), "{cycles}");
    assert_eq!((counter(reference), &reference["count"], &reference["missed"]), (6, &0.into(), &"all".into()));
    let text = lab.client(&["stat", "-a", "-e", "UnhaltedReferenceCycles", "--", "cmd", "/c", "ver"]).unwrap();
    assert!(
        text.err.contains("!0  UnhaltedReferenceCycles") && text.err.contains("! does not count here"),
        "{}",
        text.err
    );
    let csv = lab.client(&["stat", "-a", "-x,", "-e", "UnhaltedReferenceCycles", "--", "cmd", "/c", "ver"]).unwrap();
    assert!(csv.err.contains("0,does not count here,UnhaltedReferenceCycles,"), "{}", csv.err);
    for verb in [&["info"][..], &["diagnose", "--live"]] {
        let shown = lab.traced_client(&TraceScript::default(), verb).unwrap().success().unwrap().out;
        assert!(shown.contains("F1 F2 stand still"), "{shown}");
    }
    lab.uninstall().unwrap();
    lab.finish().unwrap();
}
