//! Profiles that do not have all samples.

use serde_json::Value;

use super::*;

/// Returns the sum of the weights of the samples in a profile.
fn weight(profile: &str) -> u64 {
    let profile: Value = profile.parse().unwrap();
    let tracks = profile["threads"].as_array().unwrap().iter();
    let weights = tracks.flat_map(|track| track["samples"]["weight"].as_array().unwrap());
    weights.map(|weight| weight.as_u64().unwrap()).sum()
}

#[test]
fn a_profile_with_some_of_the_samples_has_a_note_and_the_events_of_all() {
    let file = recording();
    let whole = file.run("export FILE --format firefox");
    let thinned = file.run("export FILE --format firefox --max-samples 104");
    assert_eq!((weight(&thinned.out), whole.err.contains("the profile has")), (weight(&whole.out), false));
    let note = "note: the profile has 97 of 2,004 samples, one of every 21 of each CPU and event\n  because: browsers \
                cannot show them all; the weight of each is the events of all for which it stands\n  try: --time 0s-1s, \
                which has all samples of a part, or --max-samples 2004\n";
    assert!(thinned.err.contains(note), "{}", thinned.err);
    let all = file.run("export FILE --format firefox --max-samples 3k");
    assert_eq!((all.out, all.err), (whole.out, whole.err));
}

#[test]
fn only_profiles_for_firefox_have_a_maximum() {
    let (code, report) = recording().run("export FILE --format csv --max-samples 9").failure();
    let words = "--max-samples is only for --format firefox: the other formats have all samples";
    assert!(code == Exit::Usage && report.contains(words), "{report}");
}
