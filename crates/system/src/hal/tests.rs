//! The counts of processes, against a model of the scheduler that knows what each has executed.

use std::collections::BTreeMap;

use bench_protocol::{Disorder, HalScript};
use etw_model::{DeliveredEvent, Delivery, LiveThread, SwitchModel};
use halprof::Task;
use proptest::prelude::*;
use std::time::Duration;

use super::attribution::{Attribution, Sum};
use crate::trace::raw::{Extension, RawTraceEvent};
use crate::trace::switches::scheduling;

const SOURCES: [u32; 3] = [2, 6, 19];

/// Two flush periods, in units of 100 ns.
pub const WINDOW: u64 = 20_000_000;

/// The command, a process that it starts, one that existed, and one that gets the thread ID of one that has ended.
pub fn threads(millisecond: u64) -> Vec<LiveThread> {
    let of = |process, thread, parent| LiveThread { process, thread, parent, name: format!("p{process}.exe") };
    let mut threads = vec![of(4, 8, 0), of(4, 12, 0), of(50, 52, 4), of(50, 56, 4)];
    if (20..200).contains(&millisecond) {
        threads.extend([of(100, 104, 50), of(100, 108, 50)]);
    }
    if (60..120).contains(&millisecond) {
        threads.push(of(200, 204, 100));
    }
    if millisecond >= 150 {
        threads.push(of(300, 204, 4));
    }
    threads
}

/// Runs the scheduler for 250 ms, and delivers its events.
fn run(script: &HalScript, disorder: Disorder) -> (Attribution, SwitchModel) {
    let mut model = SwitchModel::new(script, &SOURCES, 1_000);
    let mut delivery = Delivery::new(disorder);
    let mut attribution = Attribution::new(WINDOW);
    for millisecond in 0..250 {
        let now = Duration::from_millis(millisecond);
        for event in model.run_until(1_000 + millisecond * 10_000, &threads(millisecond)) {
            delivery.add_of_kernel(event, now);
        }
        while let Some(event) = delivery.next(now) {
            deliver(&event, &mut attribution);
        }
    }
    delivery.finish().iter().for_each(|event| deliver(event, &mut attribution));
    attribution.finish();
    (attribution, model)
}

fn deliver(event: &DeliveredEvent, attribution: &mut Attribution) {
    with_raw(event, |raw| {
        if let Some(event) = scheduling(raw, SOURCES.len()) {
            attribution.add(event);
        }
    });
}

/// Calls a function with an event as Windows delivers it.
pub fn with_raw(event: &DeliveredEvent, call: impl FnOnce(&RawTraceEvent)) {
    let mut provider = event.provider; // its first three groups are little-endian
    provider[..4].reverse();
    provider[4..6].reverse();
    provider[6..8].reverse();
    let provider = u128::from_be_bytes(provider);
    let bytes: Vec<u8> = event.counters.iter().flat_map(|value| value.to_le_bytes()).collect();
    let item = [Extension { kind: 8, bytes: &bytes }];
    call(&RawTraceEvent {
        provider,
        opcode: event.opcode,
        version: event.version,
        processor: event.processor,
        time: event.time,
        payload: &event.payload,
        extensions: if bytes.is_empty() { &[] } else { &item },
        ..RawTraceEvent::EMPTY
    });
}

fn counted(sum: &Sum) -> Vec<u64> {
    sum.events[..SOURCES.len()].to_vec()
}

fn processes(ids: &[(u32, u64)]) -> Vec<(Task, u64)> {
    ids.iter().map(|(id, time)| (Task::Process(*id), *time)).collect()
}

fn of(attribution: &Attribution, roots: &[(u32, u64)]) -> Vec<u64> {
    let mut all = Sum::default();
    attribution.of_tasks(&processes(roots)).values().for_each(|sum| all.add(sum));
    counted(&all)
}

/// Returns what the processes executed, by the model.
fn truth(model: &SwitchModel, processes: &[u32]) -> Vec<u64> {
    let ledger = model.ledger();
    let wanted = ledger.processes.iter().filter(|one| processes.contains(&one.process));
    let mut sums = vec![0; SOURCES.len()];
    wanted.for_each(|one| sums.iter_mut().zip(&one.events).for_each(|(sum, events)| *sum += events));
    sums
}

/// Checks that on each CPU the parts add up to the whole.
fn check_ledger(attribution: &Attribution) {
    let processes = attribution.of_tasks(&[4, 50, 100, 200, 300].map(|process| (Task::Process(process), 2_501_000)));
    for (cpu, account) in attribution.accounts() {
        let mut parts = processes[&cpu];
        parts.add(&account.idle);
        parts.add(&account.unattributed);
        assert_eq!(parts, account.total, "CPU {cpu}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn without_losses_every_process_has_exactly_what_it_executed(
        (seed, processors, version) in (0..1_000_u64, 1..5_u32, prop_oneof![Just(2_u8), Just(4)]),
        (delay, shuffle, duplicates) in (0..200_u64, 0..40_u32, 0..20_u32),
    ) {
        let script = HalScript { seed, processors, version, withheld: 3, ..HalScript::default() };
        let (attribution, model) = run(&script, Disorder { seed, delay, shuffle, duplicates, ..Disorder::default() });
        let at = 1_000 + 25 * 10_000;
        prop_assert_eq!(of(&attribution, &[(100, at)]), truth(&model, &[100, 200]));
        prop_assert_eq!(of(&attribution, &[(50, at)]), truth(&model, &[50, 100, 200]));
        prop_assert_eq!(of(&attribution, &[(300, 2_501_000)]), truth(&model, &[300]));
        prop_assert_eq!(of(&attribution, &[(4, at)]), truth(&model, &[4, 300]));
        prop_assert_eq!(counted(&attribution.of_unknown_processes()), vec![0; SOURCES.len()]);
        check_ledger(&attribution);
        prop_assert!(attribution.accounts().all(|(_, account)| account.broken + account.bare + account.set_back == 0));
    }

    #[test]
    fn whatever_is_lost_the_parts_add_up_and_the_loss_is_told(
        seed in 0..1_000_u64,
        (untold, bare, narrow, set_back) in (0..10_u32, 0..10_u32, 0..10_u32, 0..10_u32),
        (lost_events, lost_buffers, duplicates, delay) in (0..5_u32, 0..3_u32, 0..10_u32, 0..100_u64),
    ) {
        let script = HalScript { seed, untold, bare, narrow, set_back, withheld: 3, processors: 2, ..HalScript::default() };
        let disorder = Disorder { seed, lost_events, lost_buffers, duplicates, delay, ..Disorder::default() };
        let (attribution, _) = run(&script, disorder);
        let accounts: BTreeMap<u32, _> = attribution.accounts().collect();
        let processes = attribution.of_tasks(&[]);
        prop_assert_eq!(processes.keys().collect::<Vec<_>>(), accounts.keys().collect::<Vec<_>>());
        let mut all = attribution.of_unknown_processes();
        attribution
            .of_tasks(&[4, 50, 100, 200, 300].map(|process| (Task::Process(process), 2_501_000)))
            .values()
            .for_each(|sum| all.add(sum));
        let mut total = Sum::default();
        for account in accounts.values() {
            all.add(&account.idle);
            all.add(&account.unattributed);
            total.add(&account.total);
        }
        prop_assert_eq!(all, total);
        let told = |account: &super::attribution::CpuAccount| account.broken + account.bare + account.set_back > 0;
        prop_assert!(untold + bare + narrow + set_back < 4 || accounts.values().any(told));
    }
}

#[test]
fn a_cpu_without_counters_is_named_and_one_whose_counters_stand_still_has_none() {
    let script = HalScript { processors: 3, silent: vec![1], still: vec![2], ..HalScript::default() };
    let (attribution, _) = run(&script, Disorder::default());
    assert_eq!(attribution.silent().collect::<Vec<_>>(), [1]);
    let totals: Vec<_> = attribution.accounts().map(|(cpu, account)| (cpu, account.total.events[0] > 0)).collect();
    assert_eq!(totals, [(0, true), (2, false)]);
}
