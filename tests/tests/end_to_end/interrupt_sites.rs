//! The driver samples exactly the interrupts and places that the bench sets.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use bench_protocol::{InterruptSite, LedgerEntry};
use object::read::pe::PeFile64;
use object::{Object, ObjectSection};
use protocol::{ErrorCode, Mode, Record};
use tests::{Function, Lab, artifacts};

use crate::sampling::Sampler;

const INTERVAL: u32 = 10_000;

/// The shortest interval of an event.
const SHORTEST: u32 = 4_096;

/// TotalIssues, the same event on Intel and AMD.
const INSTRUCTIONS: u16 = 0xC0;

/// Returns interrupt sites in user and kernel mode, one of them with weight 0.
fn sites(processor: u32) -> Vec<InterruptSite> {
    let kernel = |ip, weight| InterruptSite { ip, user: false, process: 0, thread: 0, weight };
    let user = |ip, thread, weight| InterruptSite { ip, user: true, process: 4_321 + processor, thread, weight };
    vec![
        user(0x7FF6_1234_5678, 77, 5),
        user(0x1_4000_1000, 78, 2 + processor),
        kernel(0xFFFF_F801_2345_6789, 3),
        kernel(0xFFFF_F800_0000_0000, 0),
    ]
}

/// Counts the samples of a processor at each site.
fn count_by_site(records: &[Record], processor: u32) -> BTreeMap<(u64, bool, u32, u32), u64> {
    let mut counts = BTreeMap::new();
    for record in records.iter().filter(|record| record.processor() == processor) {
        let Record::Sample(sample) = record else { panic!("{record:?}") };
        let is_user = sample.mode == Mode::User;
        *counts.entry((sample.ip, is_user, sample.process, sample.thread)).or_default() += 1;
    }
    counts
}

#[test]
fn samples_match_the_interrupted_places_and_their_frequency() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    for identity in ["amd-legacy", "haswell-4710mq"] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        for processor in 0..2 {
            let places = sites(processor);
            lab.wire.set_interrupt_sites(processor, &places).unwrap();
            let round: u32 = places.iter().map(|place| place.weight).sum();
            for _ in 0..2 * round {
                lab.wire.run(processor, &[(INSTRUCTIONS, 0, INTERVAL.into())], &[]).unwrap();
            }
        }
        let (records, _) = sampler.fetch(100);
        for processor in 0..2 {
            let mut expected = BTreeMap::new();
            for InterruptSite { ip, user, process, thread, weight } in sites(processor) {
                if weight > 0 {
                    expected.insert((ip, user, process, thread), 2 * u64::from(weight));
                }
            }
            assert_eq!(count_by_site(&records, processor), expected, "{identity}, processor {processor}");
        }
        let sites = lab.wire.interrupt_sites().unwrap();
        let times: Vec<Vec<u64>> = sites.iter().map(|of| of.iter().map(|site| site.interrupts).collect()).collect();
        assert_eq!(times, [[10, 4, 6, 0], [10, 6, 6, 0]], "{identity}");
        drop(sampler);
        lab.uninstall().unwrap();
    }
    assert!(lab.wire.set_interrupt_sites(2, &sites(0)).is_err(), "there are two processors");
    assert!(lab.wire.set_interrupt_sites(0, &[]).is_err(), "nowhere to be");
    lab.finish().unwrap();
}

#[test]
fn a_start_is_refused_cleanly_if_another_driver_has_the_interrupt() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    lab.wire.refuse_handler(true).unwrap();
    let (probe, _, refused) = Sampler::ask(&lab, "", 64, INTERVAL, 900);
    drop(probe);
    lab.wire.refuse_handler(false).unwrap();
    assert_eq!(ErrorCode::from_number(refused.cause), Some(ErrorCode::HandlerRefused));
    assert_eq!(lab.enabled_counters().unwrap(), 0);
    let sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    assert_eq!(lab.enabled_counters().unwrap(), 2);
    drop(sampler);
    lab.finish().unwrap();
}

/// Returns the events, overflows and interrupts of all counters of a processor together.
pub fn totals(ledger: &[LedgerEntry]) -> [u64; 3] {
    let of = |number: fn(&LedgerEntry) -> u64| ledger.iter().map(number).sum();
    [of(|entry| entry.counted), of(|entry| entry.overflows), of(|entry| entry.interrupts)]
}

/// Returns whether `interval` events lie between two overflows, which shows that the handler reloaded the counter
/// immediately. A tick can cause two overflows, and each of the few pauses of a busy machine shortens an interval.
fn are_apart(events: u64, overflows: u64, interval: u64) -> bool {
    const PAUSES: u64 = 9;
    events.checked_sub(overflows * interval).is_some_and(|rest| rest < (1 + PAUSES) * interval + 2 * overflows)
}

#[test]
fn each_overflow_in_real_time_has_its_own_interrupt() {
    let mut lab = Lab::boot("amd-legacy").unwrap();
    // About a thousand per second, and more than any machine can handle.
    for (identity, interval) in [("amd-legacy", 4_000_000), ("haswell-4710mq", 4_000_000), ("zen4-7700x", SHORTEST)] {
        lab.become_processor(identity).unwrap();
        lab.install().unwrap();
        lab.run_in_real_time().unwrap();
        let mut sampler = Sampler::start(&lab, 1 << 16, interval, 900);
        sleep(Duration::from_millis(200));
        let counts = sampler.stop();
        lab.run_by_script().unwrap();
        let delivered = lab.wire.handler().unwrap().delivered;
        let ledger = lab.wire.ledger().unwrap();
        for (processor, (ledger, [samples, lost, throttled])) in ledger.iter().zip(counts).enumerate() {
            let what = format!("{identity}, processor {processor}: {samples}, {lost}, {throttled}");
            let [events, overflows, interrupts] = totals(ledger);
            assert!(overflows > 50, "{what}");
            assert_eq!(interrupts, overflows, "{what}");
            let pauses = interval == SHORTEST; // the processor pauses constantly
            assert!(pauses || are_apart(events, overflows, interval.into()), "{events} events: {what}");
            assert_eq!(samples + lost + throttled, overflows, "{what}");
            let missing = overflows - delivered[processor];
            assert!(missing <= 1, "one may have been pending when the handler was taken away: {what}");
        }
        drop(sampler);
        lab.uninstall().unwrap();
    }
    lab.finish().unwrap();
}

#[test]
fn the_functions_of_the_workload_do_not_overlap() {
    let lab = Lab::boot("amd-legacy").unwrap();
    let workload = lab.workload().unwrap();
    let file = fs::read(artifacts().unwrap().join("workload.exe")).unwrap();
    let file = PeFile64::parse(&*file).unwrap();
    let code = file.section_by_name(".text").unwrap();
    let mut functions = workload.description.functions.clone();
    let names: Vec<&str> = functions.iter().map(|function| &*function.name).collect();
    assert_eq!(names, ["alpha", "beta", "gamma"]);
    functions.sort_by_key(|function| function.address);
    let mut free = code.address();
    for Function { name, address, size } in functions {
        assert!(address >= free && size > 64, "{name}");
        free = address + size;
    }
    assert!(free <= code.address() + code.size());
    assert!(workload.description.process > 0 && workload.description.thread > 0);
    drop(workload);
    lab.finish().unwrap();
}
