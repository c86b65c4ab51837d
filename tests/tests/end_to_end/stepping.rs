//! Interrupts at instructions of the driver that are chosen at random. `cargo xtask interrupts` takes every one.

use tests::Lab;
use tests::interrupts::{Scenario, Stage, Sweep, sweep};

/// The seed of a run; another one in the soak would find other instructions.
const SEED: u64 = 24;

/// Instructions that are interrupted in each scenario, pairs of them, and instructions at which the other processor is.
const SAMPLE: usize = 8;
const PAIRS: usize = 2;
const ELSEWHERE: usize = 2;

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
                pairs: PAIRS,
                elsewhere: Some(ELSEWHERE),
            };
            let row = sweep(&mut lab, wanted).unwrap();
            assert!(row.failures.is_empty(), "{identity}, {scenario}, seed {SEED}: {:#?}", row.failures);
            assert!(row.instructions > 100, "{identity}, {scenario}: {row:?}");
        }
        lab.finish().unwrap();
    }
}

/// A foreign program changes a counter and enables another one, as a defect of the driver could.
#[test]
fn a_wrong_count_and_an_enabled_counter_are_noticed() {
    const FIXED_COUNTER: u32 = 0x309;
    const SELECT: u32 = 0x187;
    const GLOBAL_CONTROL: u32 = 0x38F;
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    let mut stage = Stage::new(&mut lab, Scenario::Read, true).unwrap();
    let mut check = |changes: &[(u32, u64)]| {
        for (register, value) in changes {
            stage.lab().wire.write_msr(0, *register, *value).unwrap();
        }
        stage.step(&[], false, true).unwrap();
        let wrong = stage.check(&[]).unwrap().concat();
        stage.restart().unwrap();
        wrong
    };
    assert_eq!(check(&[]), "");
    let wrong = check(&[(FIXED_COUNTER, 0xFFFF_FFFF_FFF0)]);
    assert!(wrong.contains("between accesses, but a count of"), "{wrong}");
    let wrong = check(&[(SELECT, 0x43_00C5), (GLOBAL_CONTROL, 1 << 32 | 1 << 1)]);
    assert!(wrong.contains("1 counters should be enabled"), "{wrong}");
    stage.finish().unwrap();
    lab.finish().unwrap();
}
