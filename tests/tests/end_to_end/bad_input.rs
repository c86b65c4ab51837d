//! Mistakes of users, and the client's messages: what happened, why, and what to do.

use tests::{Lab, ProgramOutput};

/// Checks that the client failed with this exit code and a message that contains all of these words.
fn assert_fails_with(ran: &ProgramOutput, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{}\n{}{}", ran.line, ran.out, ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{} does not say {word:?}:\n{}", ran.line, ran.err);
    }
    assert!(ran.out.is_empty(), "{} prints nothing but its error:\n{}", ran.line, ran.out);
}

#[test]
fn each_mistake_has_its_own_exit_code_and_advice() {
    let mut lab = Lab::boot("intel-half-events").unwrap();
    assert_fails_with(&lab.client(&["info"]).unwrap(), 3, &["not installed", ".\\client install"]);
    lab.client(&["install", "--no-start", "--any-signature"]).unwrap().success().unwrap();
    assert_fails_with(&lab.client(&["list"]).unwrap(), 4, &["not started", "sc.exe start halprof"]);
    lab.install().unwrap();

    assert_fails_with(&lab.client(&["query", "TotalCycels"]).unwrap(), 6, &["TotalCycels", "TotalCycles"]);
    assert_fails_with(&lab.client(&["start", "0x999"]).unwrap(), 6, &["0x999"]);
    let all = lab.client(&["list", "--all", "--json"]).unwrap().json().unwrap();
    let unsupported = |source: &&serde_json::Value| source["supported"] == false && source["id"] != 0;
    let unsupported = all["sources"].as_array().unwrap().iter().find(unsupported).expect("half the events");
    let name = unsupported["name"].as_str().unwrap();
    assert_fails_with(&lab.client(&["start", name]).unwrap(), 7, &[name, "0xA"]);
    assert_fails_with(&lab.client(&["start", "NBProbeResult"]).unwrap(), 7, &["NBProbeResult", "Amd64"]);
    assert_fails_with(&lab.client(&["start", "Time:u"]).unwrap(), 2, &["Time"]);
    assert_fails_with(&lab.client(&["start", "TotalCycles", "-C", "5"]).unwrap(), 13, &["5"]);
    assert_fails_with(&lab.client(&["stop", "TotalCycles"]).unwrap(), 10, &["TotalCycles"]);
    assert_fails_with(
        &lab.client(&["stat", "-e", "TotalCycles", "--", "no-such-program"]).unwrap(),
        11,
        &["no-such-program"],
    );
    assert_eq!(lab.enabled_counters().unwrap(), 0, "no mistake starts anything");

    lab.client(&["start", "TotalCycles"]).unwrap().success().unwrap();
    assert_fails_with(&lab.client(&["start", "TotalCycles"]).unwrap(), 12, &["TotalCycles"]);
    for more in ["TotalCycles:u", "TotalCycles:k", "UnhaltedCoreCycles", "UnhaltedCoreCycles:k"] {
        lab.client(&["start", more]).unwrap().success().unwrap();
    }
    let ran = lab.client(&["stat", "-e", "UnhaltedCoreCycles:u", "--", "cmd", "/c", "ver"]).unwrap();
    assert_fails_with(&ran, 8, &["UnhaltedCoreCycles", "all 5", "process", "TotalCycles", ".\\client stop"]);
    lab.client(&["stop", "--all"]).unwrap().success().unwrap();
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    lab.client(&["uninstall"]).unwrap().success().unwrap();
    lab.finish().unwrap();
}

#[test]
fn install_names_a_missing_driver_file() {
    let lab = Lab::boot("amd-legacy").unwrap();
    assert_fails_with(&lab.client(&["install", "--driver", "C:\\nowhere\\halprof.sys"]).unwrap(), 15, &["nowhere"]);
    assert_fails_with(&lab.client(&["info"]).unwrap(), 3, &["not installed"]);
    lab.finish().unwrap();
}
