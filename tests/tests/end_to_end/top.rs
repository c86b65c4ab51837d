//! `client top`: the driver's samples while they are taken.

use tests::{Lab, is_soak, rounds};

/// Returns the number before `word` in `text`.
fn before(text: &str, word: &str) -> f64 {
    let end = text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    let number = text[..end].trim_end().rsplit([' ', '(']).next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("no number before {word} in {text}"))
}

#[test]
fn top_in_batch_mode_names_the_functions_that_run() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites()).unwrap();
    }
    lab.run_in_real_time().unwrap();
    let arguments = ["top", "--batch", "-n", "3", "--delay", "500ms", "-e", "TotalIssues@4M", "--symbols", "Z:\\"];
    let ran = lab.client(&arguments).unwrap().success().unwrap();
    lab.run_by_script().unwrap();
    let heads: Vec<&str> = ran.out.lines().filter(|line| line.contains(" of the time")).collect();
    assert_eq!(heads.len(), 3, "{}", ran.out);
    let events: Vec<f64> =
        ran.out.lines().filter(|line| line.starts_with("TotalIssues: ")).map(|line| before(line, " samples")).collect();
    assert!(events.len() == 3 && events.iter().all(|samples| *samples > 50.0), "{}", ran.out);
    // Symbols are read at the recorded path of workload.exe.
    assert!(ran.out.contains("workload::functions::"), "{}", ran.out);
    assert!(heads.iter().all(|head| head.starts_with("0.") && head.contains(" of a CPU")), "{heads:?}");
    assert!(ran.err.contains("; the client used "), "{}", ran.err);
}

/// 60 seconds in the soak, in two runs, because a program of the bench has a minute: at 10,000 samples a second on each
/// CPU, the client is never too late for the ring. Prints its processor time.
#[test]
fn top_loses_nothing_at_10000_samples_a_second() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let workload = lab.workload().unwrap();
    for processor in 0..2 {
        lab.wire.set_interrupt_sites(processor, &workload.description.interrupt_sites()).unwrap();
    }
    let updates = if is_soak() { "15" } else { "2" };
    for _ in 0..rounds(1, 2) {
        lab.run_in_real_time().unwrap();
        let arguments =
            ["top", "--batch", "-n", updates, "--delay", "2s", "-F", "10k", "-e", "TotalIssues", "--budget", "90"];
        let ran = lab.client(&arguments).unwrap().success().unwrap();
        lab.run_by_script().unwrap();
        println!("{}", ran.err);
        let samples = before(&ran.err, " samples");
        assert!(samples > 1000.0, "{}", ran.err);
        // A counter that is stopped, at the end or for a pause, can lose the sample of an overflow whose interrupt has
        // not come. So does a tick before a late interrupt, and those are late on a busy machine: 10 of 52,000 with two
        // compilers beside it. A ring that the client empties too late is full.
        assert!(ran.err.contains(" (0 lost, ") || ran.err.contains("none because a ring was full"), "{}", ran.err);
        assert!(before(&ran.err, " lost,") <= 2.0 + samples / 1_000.0, "{}", ran.err);
    }
}
