//! Random requests from two threads at the same time, while the machine is disturbed. `cargo xtask fuzz driver` sends
//! more.

use tests::{Lab, StormRound, StormTotals, first_or_all};

/// Round `n` has this seed and `n`. The first rounds cover all kinds: exact and not, by script and in real time, with a
/// kill and without.
const SEED: u64 = 0x5EED_0000;

#[test]
fn requests_of_two_threads_break_no_rule_and_every_overflow_is_in_the_ledger() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    let mut totals = StormTotals::default();
    for identity in first_or_all(&["haswell-4710mq", "zen4-7700x", "alder-lake-p-12900h", "netburst-cedarmill"], 3) {
        lab.become_processor(identity).unwrap();
        for _ in 0..2 {
            let round = StormRound { seed: SEED + totals.rounds, requests: 300, threads: 2 };
            round.run(&mut lab, &mut totals).unwrap_or_else(|error| panic!("{identity}: {error:#}"));
        }
    }
    println!("{totals}");
    lab.finish().unwrap();
}
