//! Every written event is delivered or counted as lost, with its own stack, in any disorder.

use std::{collections::HashMap, time::Duration};

use bench_protocol::{Disorder, UserParts, WrittenEvent};
use etw_model::{DeliveredEvent, Delivery, STACK_WALK};
use proptest::prelude::*;

const PROVIDER: [u8; 16] = [7; 16];

/// Returns an event whose payload and frames have its number.
fn written(number: u64, kernel: usize, user: usize) -> WrittenEvent {
    let frames = |base: u64, count: usize| (0..count as u64).map(|frame| base + (number << 16) + frame).collect();
    WrittenEvent {
        provider: PROVIDER,
        id: 1,
        version: 1,
        channel: 11,
        level: 4,
        keyword: 1,
        processor: u32::try_from(number % 3).unwrap_or_default(),
        process: 12,
        thread: 13,
        time: 1_000 + 10 * number,
        metadata: b"\x05\0\0S\0".to_vec(),
        payload: number.to_le_bytes().to_vec(),
        kernel: frames(1 << 63, kernel),
        user: frames(0, user),
    }
}

/// Delivers events that are written at intervals of a millisecond.
fn run(disorder: &Disorder, events: &[WrittenEvent]) -> (Vec<DeliveredEvent>, Delivery) {
    let mut delivery = Delivery::new(disorder.clone());
    let mut delivered = Vec::new();
    for (now, event) in (0..).map(Duration::from_millis).zip(events) {
        delivery.add(event.clone(), true, now);
        delivered.extend(std::iter::from_fn(|| delivery.next(now)));
    }
    delivered.extend(delivery.finish());
    (delivered, delivery)
}

fn number(event: &DeliveredEvent) -> Option<u64> {
    Some(u64::from_le_bytes(*event.payload.first_chunk()?))
}

#[test]
fn without_disorder_events_come_at_once_in_order_with_both_parts() {
    let events: Vec<_> = (0..100).map(|number| written(number, 3, 4)).collect();
    let mut delivery = Delivery::new(Disorder::default());
    for event in &events {
        delivery.add(event.clone(), true, Duration::ZERO);
        let delivered = delivery.next(Duration::ZERO).unwrap();
        let stack = delivered.stack.as_ref().unwrap();
        assert_eq!((stack.match_id, &stack.frames), (0, &[&event.kernel[..], &event.user].concat()));
        assert_eq!((number(&delivered), &delivered.metadata), (Some((event.time - 1_000) / 10), &event.metadata));
        assert_eq!(delivery.next(Duration::MAX), None);
    }
    delivery.add(written(1, 3, 4), false, Duration::ZERO);
    assert_eq!(delivery.next(Duration::ZERO).unwrap().stack, None);
    assert_eq!((delivery.report().written, delivery.report().delivered), (101, 101));
}

#[test]
fn a_user_part_comes_with_another_event_and_the_same_match_id() {
    for (user_parts, provider) in [(UserParts::SameProvider, PROVIDER), (UserParts::StackWalk, STACK_WALK)] {
        let events = [written(0, 3, 4), written(1, 3, 0), written(2, 3, 4)];
        let (delivered, _) = run(&Disorder { user_parts, ..Disorder::default() }, &events);
        let [first, first_part, second, third, third_part] = &delivered[..] else { panic!("{delivered:#?}") };
        assert_eq!(second.stack.as_ref().unwrap().match_id, 0, "no frames in user mode");
        for (event, part, frames) in [(first, first_part, &events[0]), (third, third_part, &events[2])] {
            let [own, user] = [event, part].map(|event| event.stack.as_ref().unwrap());
            assert_eq!((&own.frames, &user.frames), (&frames.kernel, &frames.user));
            assert!(own.match_id != 0 && own.match_id == user.match_id);
            assert_eq!((part.provider, part.payload.is_empty(), part.thread), (provider, true, event.thread));
            assert!(part.time > event.time);
        }
        assert_ne!(first.stack.as_ref().unwrap().match_id, third.stack.as_ref().unwrap().match_id);
    }
}

#[test]
fn stacks_are_cut_at_the_outermost_end() {
    let (delivered, delivery) = run(&Disorder::default(), &[written(0, 100, 93), written(1, 100, 92)]);
    let frames = |event: &DeliveredEvent| event.stack.as_ref().unwrap().frames.clone();
    let whole = |event: WrittenEvent| [event.kernel, event.user].concat();
    assert_eq!(frames(&delivered[0]), whole(written(0, 100, 93))[..192]);
    assert_eq!((frames(&delivered[1]), delivery.report().cut), (whole(written(1, 100, 92)), 1));
}

#[test]
fn delays_shuffles_and_first_user_parts_change_the_order_as_far_as_said() {
    let events: Vec<_> = (0..200).map(|number| written(number, 2, 2)).collect();
    let (delivered, _) = run(&Disorder { shuffle: 5, ..Disorder::default() }, &events);
    let numbers: Vec<u64> = delivered.iter().filter_map(number).collect();
    let moved = numbers.iter().zip(0_u64..).filter(|(number, place)| **number != *place).count();
    assert!(moved > 50, "{moved}");
    assert!(numbers.iter().zip(0_u64..).all(|(number, place)| number.abs_diff(place) <= 5), "{numbers:?}");

    let first = Disorder { user_parts: UserParts::SameProvider, user_first: 100, ..Disorder::default() };
    let (delivered, _) = run(&first, &events);
    assert!(delivered.iter().step_by(2).all(|event| number(event).is_none()), "each part comes before its event");

    let late = Disorder { user_delay: 40, ..Disorder { user_first: 0, ..first } };
    let mut delivery = Delivery::new(late);
    delivery.add(written(0, 2, 2), true, Duration::ZERO);
    assert!(number(&delivery.next(Duration::ZERO).unwrap()).is_some());
    let waited = (0..=40).find(|now| delivery.next(Duration::from_millis(*now) + Duration::from_secs(1)).is_some());
    assert!(waited.is_some());
}

#[test]
fn an_event_is_not_held_back_when_no_other_follows() {
    let seeds = 0..50;
    let held = seeds.filter(|seed| {
        let mut delivery = Delivery::new(Disorder { seed: *seed, shuffle: 9, ..Disorder::default() });
        delivery.add(written(0, 1, 1), true, Duration::ZERO);
        let is_held = delivery.next(Duration::ZERO).is_none();
        assert_eq!(delivery.next(Duration::from_secs(1)).is_some(), is_held);
        is_held
    });
    assert!(held.count() > 10);
}

#[test]
fn buffers_are_lost_as_a_whole() {
    let events: Vec<_> = (0..3_000).map(|number| written(number, 1, 0)).collect();
    let (delivered, delivery) = run(&Disorder { lost_buffers: 20, buffer: 10, ..Disorder::default() }, &events);
    let mut of_buffers: HashMap<(u64, u64), u64> = HashMap::new();
    for number in delivered.iter().filter_map(number) {
        *of_buffers.entry((number % 3, number / 3 / 10)).or_default() += 1;
    }
    assert!(of_buffers.values().all(|count| *count == 10), "{of_buffers:?}");
    let report = delivery.report();
    assert_eq!(
        (300 - of_buffers.len() as u64, report.lost_with_buffers),
        (report.lost_buffers, 10 * report.lost_buffers)
    );
    assert!((30..90).contains(&report.lost_buffers), "{report:?}");
}

fn disorders() -> impl Strategy<Value = Disorder> {
    let variants = [UserParts::Together, UserParts::SameProvider, UserParts::StackWalk, UserParts::Mixed];
    let shares = prop::array::uniform5(0_u32..60);
    let times = prop::array::uniform2(0_u64..30);
    (any::<u64>(), prop::sample::select(variants.to_vec()), shares, times, 0_u32..20, 1_u32..10, 1_usize..8).prop_map(
        |(seed, user_parts, shares, [user_delay, delay], shuffle, buffer, frames)| {
            let [user_first, lost_user_parts, lost_events, duplicates, lost_buffers] = shares;
            Disorder {
                seed,
                user_parts,
                user_delay,
                user_first,
                lost_user_parts,
                delay,
                shuffle,
                lost_events,
                duplicates,
                buffer,
                lost_buffers,
                frames,
            }
        },
    )
}

proptest! {
    #[test]
    fn every_event_is_delivered_or_counted_and_keeps_its_own_stack(
        disorder in disorders(),
        sizes in prop::collection::vec((1_usize..6, 0_usize..6), 0..120),
    ) {
        let events: Vec<_> =
            (0..).zip(&sizes).map(|(number, (kernel, user))| written(number, *kernel, *user)).collect();
        let (delivered, delivery) = run(&disorder, &events);
        let report = delivery.report().clone();
        let mut of_event: HashMap<u64, u64> = HashMap::new();
        let mut owners = HashMap::new();
        for event in &delivered {
            let stack = event.stack.as_ref().unwrap();
            prop_assert!(stack.frames.len() <= disorder.frames);
            let Some(number) = number(event) else { continue };
            *of_event.entry(number).or_default() += 1;
            let source = &events[usize::try_from(number).unwrap()];
            let whole = if stack.match_id == 0 { [&source.kernel[..], &source.user].concat() } else { source.kernel.clone() };
            prop_assert_eq!(&stack.frames[..], &whole[..whole.len().min(disorder.frames)]);
            if stack.match_id != 0 {
                prop_assert!(owners.insert(stack.match_id, number).is_none_or(|before| before == number));
            }
        }
        let parts: Vec<_> = delivered.iter().filter(|event| number(event).is_none()).collect();
        for part in &parts {
            let stack = part.stack.as_ref().unwrap();
            let source = &events[usize::try_from(owners[&stack.match_id]).unwrap()];
            prop_assert_eq!(&stack.frames[..], &source.user[..source.user.len().min(disorder.frames)]);
        }
        prop_assert_eq!(of_event.len() as u64, report.delivered);
        prop_assert_eq!(report.written, report.delivered + report.lost_events + report.lost_with_buffers);
        prop_assert_eq!(delivered.len() as u64, report.delivered + report.user_parts + report.duplicates);
        prop_assert!(of_event.values().all(|times| *times <= 2));
        let again = run(&disorder, &events);
        prop_assert_eq!((delivered, report), (again.0, again.1.report().clone()));
    }
}
