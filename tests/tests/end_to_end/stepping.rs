//! Interrupts at instructions of the driver that are chosen at random. `cargo xtask interrupts` takes every one.

use tests::Lab;
use tests::interrupts::{Scenario, Sweep, sweep};

/// The seed of a run; another one in the soak would find other instructions.
const SEED: u64 = 24;

/// Instructions that are interrupted in each scenario.
const SAMPLE: usize = 25;

#[test]
fn an_interrupt_at_any_instruction_leaves_every_account_exact() {
    for (identity, is_intel) in [("skylake-6600k", true), ("zen4-7700x", false)] {
        let mut lab = Lab::boot(identity).unwrap();
        lab.install().unwrap();
        for scenario in Scenario::ALL.into_iter().filter(|scenario| is_intel || !scenario.needs_pebs()) {
            let wanted = Sweep {
                scenario,
                is_intel,
                seed: SEED,
                single: Some(SAMPLE),
                pairs: SAMPLE / 5,
                elsewhere: Some(SAMPLE / 5),
            };
            let row = sweep(&mut lab, wanted).unwrap();
            assert!(row.failures.is_empty(), "{identity}, {scenario}, seed {SEED}: {:#?}", row.failures);
            assert!(row.instructions > 100, "{identity}, {scenario}: {row:?}");
        }
        lab.finish().unwrap();
    }
}
