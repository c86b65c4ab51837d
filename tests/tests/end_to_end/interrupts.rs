//! Sampling in each `InterruptMode`: the effects that an overflow can have while the LVT entry is masked.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bench_protocol::{InterruptMode, TimerMode};
use protocol::RecordKind;
use tests::{Lab, is_soak, wait_until};

use crate::sampling::{Sampler, is_sample, overflows};

const INTERVAL: u32 = 200_000;

/// LVT entry of the Windows HAL, masked.
const MASKED: u32 = 0x1_00FE;

/// Makes a counter overflow on processor 1 and delivers its interrupts.
fn overflow(lab: &mut Lab) {
    lab.wire.run(1, &[(0xC0, 0, INTERVAL.into())], &[]).unwrap();
}

#[test]
fn every_overflow_is_accounted_for_in_every_interrupt_mode() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    for identity in ["haswell-4710mq", "zen4-7700x", "alder-lake-p-12900h"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        for (mode, unmasks) in InterruptMode::ALL.into_iter().flat_map(|mode| [(mode, true), (mode, false)]) {
            account_for_overflows(
                &mut lab,
                mode,
                unmasks,
                &format!("{identity}, {mode:?}, the HAL unmasks: {unmasks}"),
            );
        }
        lab.wire.hal_unmasks(true).unwrap();
        lab.wire.set_interrupt_mode(InterruptMode::Edge).unwrap();
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

/// Samples while the entry is masked and while it is not, by script and in real time, and compares with the ledger.
fn account_for_overflows(lab: &mut Lab, mode: InterruptMode, unmasks: bool, what: &str) {
    lab.wire.set_interrupt_mode(mode).unwrap();
    lab.wire.hal_unmasks(unmasks).unwrap();
    lab.wire.clear_ledger().unwrap();
    // Otherwise a busy machine throttles, and the counts below depend on its load.
    lab.wire.hold_clocks(true).unwrap();
    let mut sampler = Sampler::start(lab, 1 << 12, INTERVAL, 900);
    // The time that the handler took in the real time below counts until the next tick.
    lab.wire.tick(1, 1).unwrap();
    (0..5).for_each(|_| overflow(lab));
    lab.wire.set_lvt(1, MASKED).unwrap();
    overflow(lab);
    assert_eq!(sampler.fetch(100).0.len(), 5, "{what}");
    for _ in 0..2 {
        lab.wire.tick(1, 1).unwrap();
        lab.wire.run(1, &[], &[]).unwrap(); // returns after an interrupt that the tick unmasked is delivered
    }
    overflow(lab);
    let lost = u64::from(mode == InterruptMode::LostWhileMasked);
    let (records, _) = sampler.fetch(100);
    assert_eq!(records.iter().filter(|record| is_sample(record)).count() as u64, 2 - lost, "{what}");
    lab.wire.hold_clocks(false).unwrap();
    lab.run_in_real_time().unwrap();
    wait_until(&format!("{what}: in real time"), || sampler.fetch(4_096).0.iter().any(is_sample));
    lab.run_by_script().unwrap();
    let counts = sampler.stop();
    assert!(counts[1][1] >= lost, "{what}: {counts:?}");
    let accounted: Vec<u64> = counts.iter().map(|count| count.iter().sum()).collect();
    assert_eq!(accounted, overflows(lab), "{what}: {counts:?}");
}

/// Else the throttle would stop counters when a busy machine takes the processor away from a handler.
#[test]
fn a_handler_takes_no_scripted_time() {
    /// In thousandths: 1.5 ms until the first tick, which the handlers would exceed in real time.
    const BUDGET: u32 = 30;
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let mut sampler = Sampler::start(&lab, 256, INTERVAL, BUDGET);
    (0..100).for_each(|_| overflow(&mut lab));
    assert_eq!(sampler.stop(), [[0; 3], [100, 0, 0]]);
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_foreign_interrupt_storm_silences_a_processor_until_the_next_session() {
    // Fixed counter 3 counts slots (event A4H, unit mask 01H).
    const FIXED_CTR3: u32 = 0x30C;
    const CONTROL: (u32, u64) = (0x38D, 0xB000);
    const SLOTS: u64 = 1 << 35;
    /// More than occur until the session has begun.
    const LEFT: u64 = 10_000;
    const STATUS: u32 = 0x38E;
    const STATUS_RESET: u32 = 0x390;
    let mut lab = Lab::boot("sapphire-rapids-2475x").unwrap();
    lab.wire.set_interrupt_mode(InterruptMode::RaisedOnUnmask).unwrap();
    lab.wire.hal_unmasks(false).unwrap();
    lab.wire.write_msr(1, FIXED_CTR3, (1 << 48) - LEFT).unwrap();
    lab.wire.write_msr(1, CONTROL.0, CONTROL.1).unwrap();
    lab.wire.write_msr(1, 0x38F, SLOTS).unwrap();
    lab.install().unwrap();
    lab.wire.hold_clocks(true).unwrap();
    let mut first = Sampler::start(&lab, 64, INTERVAL, 900);
    lab.wire.run(1, &[(0xA4, 0x01, LEFT)], &[]).unwrap();
    // Each call delivers the pending interrupt, if any.
    (0..100).for_each(|_| lab.wire.run(1, &[], &[]).unwrap());
    assert_eq!(lab.wire.lvt(1).unwrap(), MASKED);
    overflow(&mut lab);
    let kinds: Vec<_> = first.fetch(100).0.iter().map(|record| (record.kind(), record.processor())).collect();
    assert_eq!(kinds, [(RecordKind::Silenced, 1)]);
    assert_eq!(lab.wire.read_msr(1, STATUS).unwrap(), SLOTS, "it is not ours to clear");

    lab.wire.write_msr(1, STATUS_RESET, SLOTS).unwrap();
    let mut second = Sampler::start(&lab, 64, INTERVAL, 900);
    overflow(&mut lab);
    for sampler in [&mut first, &mut second] {
        assert_eq!(sampler.fetch(100).0.len(), 1);
    }
    assert_eq!([first.stop(), second.stop()], [[[0, 0, 0], [1, 0, 0]]; 2]);
    drop((first, second));
    for (register, value) in [(FIXED_CTR3, 0), (CONTROL.0, 0)] {
        lab.wire.write_msr(1, register, value).unwrap();
    }
    lab.wire.hal_unmasks(true).unwrap();
    lab.finish().unwrap();
}

/// The smallest interval.
const SMALLEST: u32 = 4_096;

/// A quarter of a processor's time.
const BUDGET: u32 = 250;

/// The bench has no faster clock than real time, because its handler takes real time: ten minutes take ten minutes.
#[test]
fn throttled_sampling_at_the_smallest_interval_goes_on_while_unmasking_raises_again() {
    let duration = Duration::from_secs(if is_soak() { 600 } else { 4 });
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    lab.wire.set_interrupt_mode(InterruptMode::RaisedOnUnmask).unwrap();
    lab.wire.set_timers(TimerMode::Clock).unwrap();
    for unmasks in [false, true] {
        lab.wire.hal_unmasks(unmasks).unwrap();
        lab.wire.clear_ledger().unwrap();
        let mut sampler = Sampler::start(&lab, 1 << 14, SMALLEST, BUDGET);
        let before = sampler.info();
        lab.run_in_real_time().unwrap();
        let (begin, mut pauses) = (Instant::now(), 0);
        while begin.elapsed() < duration / 2 {
            sleep(Duration::from_secs(1));
            let (mut fetched, mut rest) = (0, true);
            while rest {
                let (records, _) = sampler.fetch(8_192);
                rest = records.len() == 8_192;
                fetched += records.iter().filter(|record| is_sample(record)).count();
                pauses += records.iter().filter(|record| record.kind() == RecordKind::Resumed).count();
                assert!(records.iter().all(|record| record.kind() != RecordKind::Silenced), "silenced");
            }
            assert!(fetched > 0, "stuck after {:?}, the HAL unmasks: {unmasks}", begin.elapsed());
        }
        lab.run_by_script().unwrap();
        let after = sampler.info();
        let counts = sampler.stop();
        let accounted: Vec<u64> = counts.iter().map(|count| count.iter().sum()).collect();
        assert_eq!(accounted, overflows(&mut lab), "the HAL unmasks: {unmasks}: {counts:?}");
        let (all, spurious) = (after.interrupts - before.interrupts, after.spurious - before.spurious);
        let (throttles, dropped) = (after.throttles - before.throttles, after.throttled - before.throttled);
        println!(
            "{:?}, the HAL unmasks: {unmasks}: {} interrupts served, {spurious} spurious, {throttles} pauses, \
             {dropped} samples throttled",
            duration / 2,
            all - spurious
        );
        assert!(throttles > 0 && pauses > 0, "it was never throttled");
        // A HAL that unmasks before the handler has cleared the status raises each interrupt a second time.
        let most = if unmasks { all / 2 } else { all / 10 };
        assert!(spurious <= most, "{spurious} of {all} interrupts were spurious");
        drop(sampler);
    }
    lab.wire.hal_unmasks(true).unwrap();
    lab.finish().unwrap();
}
