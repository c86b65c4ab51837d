//! The driver's events for Event Tracing for Windows, as the bench receives them.

use std::collections::BTreeMap;

use bench_protocol::{InterruptSite, RegisteredProvider, SiteStack, Time, WrittenEvent};
use protocol::Record;
use protocol::trace::{
    CHANNEL, EventId, LEVEL, Loss, PROVIDER_ID, PROVIDER_NAME, Sample, SessionStart, VERSION, cookie,
};
use tests::Lab;
use zerocopy::FromBytes;

use crate::sampling::Sampler;

/// Code in user mode, its caller, and the kernel function that it called.
const USER: u64 = 0x1_4000_1000;
const CALLER: u64 = 0x1_4000_2000;
const KERNEL: u64 = 0xFFFF_F800_0000_5000;

/// Code at DISPATCH_LEVEL.
const RAISED: u64 = 0xFFFF_F800_0000_6000;

const PROCESS: u32 = 4_321;
const THREAD: u32 = 99;

const INTERVAL: u32 = 10_000;

/// TotalIssues.
const EVENT: (u16, u16) = (0xC0, 0);

fn site(ip: u64, user: bool) -> InterruptSite {
    InterruptSite { ip, user, process: PROCESS, thread: THREAD, weight: 1 }
}

fn stack(ip: u64, kernel: &[u64], user: &[u64], raised: bool) -> SiteStack {
    SiteStack { ip, process: PROCESS, kernel: kernel.to_vec(), user: user.to_vec(), raised }
}

fn parsed(event: &WrittenEvent) -> Option<Sample> {
    (event.id == EventId::Sample as u16).then(|| Sample::read_from_bytes(&event.payload).unwrap())
}

/// Lets the events of an interval occur on processor 0, and returns the events that the driver wrote.
fn overflow(lab: &mut Lab) -> Vec<WrittenEvent> {
    lab.wire.run(0, &[(EVENT.0, EVENT.1, INTERVAL.into())], &[]).unwrap();
    lab.wire.set_time(Time::Script).unwrap(); // waits for DPCs
    lab.wire.take_events().unwrap()
}

#[test]
fn each_sample_has_an_event_with_the_stack_of_the_interrupted_code() {
    let mut lab = Lab::boot("haswell-4710mq").unwrap();
    lab.install().unwrap();
    let known = |enabled| [RegisteredProvider { provider: PROVIDER_ID, name: PROVIDER_NAME.to_owned(), enabled }];
    assert_eq!(lab.wire.providers().unwrap(), known(false));
    lab.wire.set_interrupt_sites(0, &[site(USER, true), site(KERNEL, false), site(RAISED, false)]).unwrap();
    let stacks = [
        stack(USER, &[], &[USER, CALLER], false),
        stack(KERNEL, &[KERNEL], &[USER + 8, CALLER], false),
        stack(RAISED, &[RAISED], &[], true),
    ];
    lab.wire.set_stacks(stacks.to_vec()).unwrap();

    let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
    assert_eq!(overflow(&mut lab), [], "no trace session wants them");
    lab.wire.enable_provider(PROVIDER_ID, LEVEL, 0).unwrap();
    assert_eq!(lab.wire.providers().unwrap(), known(true));
    lab.wire.tick(0, 1).unwrap();
    let mut found = BTreeMap::new();
    for number in 1..=6 {
        let events = overflow(&mut lab);
        let [event] = &events[..] else { panic!("{events:?}") };
        let sample = parsed(event).unwrap();
        assert_eq!((sample.cookie, sample.first, sample.count), (cookie(0, number), cookie(0, number), 1));
        assert_eq!((sample.weight, sample.source, sample.cpu), (INTERVAL.into(), 2, 0));
        assert_eq!((event.version, event.channel, event.level), (VERSION, CHANNEL, LEVEL));
        assert_eq!(event.metadata, EventId::Sample.metadata());
        found.insert(sample.ip, (event.clone(), sample.mode));
    }
    let (event, mode) = &found[&USER];
    assert_eq!((*mode, &event.user[..], event.process, event.thread), (0, &[USER, CALLER][..], PROCESS, THREAD));
    let (event, mode) = &found[&KERNEL];
    assert_eq!((*mode, event.kernel.last(), &event.user[..]), (1, Some(&KERNEL), &[USER + 8, CALLER][..]));
    let (event, _) = &found[&RAISED];
    assert!(!event.kernel.contains(&RAISED) && event.process == 0, "{event:?}");

    let (records, _) = sampler.fetch(64);
    let cookies = records.iter().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample.cookie),
        _ => None,
    });
    assert_eq!(cookies.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);

    sampler.stop();
    let stopped = lab.wire.take_events().unwrap();
    assert_eq!(stopped.iter().map(|event| event.id).collect::<Vec<_>>(), [EventId::SessionStop as u16]);
    lab.wire.disable_provider(PROVIDER_ID).unwrap();
    drop(sampler);
    lab.finish().unwrap();
}

#[test]
fn a_trace_session_gets_what_it_asks_for() {
    let mut lab = Lab::boot("zen4-7700x").unwrap();
    lab.install().unwrap();
    let mut written = |level, keywords| {
        lab.wire.enable_provider(PROVIDER_ID, level, keywords).unwrap();
        let mut sampler = Sampler::start(&lab, 64, INTERVAL, 900);
        let mut events = overflow(&mut lab);
        sampler.stop();
        events.extend(lab.wire.take_events().unwrap());
        events.iter().filter_map(|event| EventId::from_number(event.id)).collect::<Vec<_>>()
    };
    assert_eq!(written(LEVEL, 0), [EventId::SessionStart, EventId::Sample, EventId::SessionStop]);
    assert_eq!(written(LEVEL, EventId::Sample.keyword()), [EventId::Sample]);
    assert_eq!(written(LEVEL, EventId::SessionStart.keyword()), [EventId::SessionStart, EventId::SessionStop]);
    assert_eq!(written(LEVEL - 1, 0), []);
    lab.finish().unwrap();
}

#[test]
fn sessions_and_losses_are_told() {
    let mut lab = Lab::boot("skylake-6600k").unwrap();
    lab.install().unwrap();
    lab.wire.enable_provider(PROVIDER_ID, LEVEL, 0).unwrap();
    // Interrupts may take a thousandth of the time, so that a handler under Wine uses it up at once.
    let mut running = Sampler::start(&lab, 1_024, INTERVAL, 1);
    for _ in 0..40 {
        lab.wire.run(0, &[(EVENT.0, EVENT.1, INTERVAL.into())], &[]).unwrap();
        lab.wire.tick(0, 1).unwrap();
    }
    let counts = running.stop();
    lab.wire.set_time(Time::Script).unwrap(); // waits for DPCs
    let events = lab.wire.take_events().unwrap();
    let start = &events[0];
    let (start, name) = SessionStart::read_from_prefix(&start.payload).unwrap();
    assert_eq!((start.session, start.event.source, start.interval), (running.session, 2, INTERVAL));
    assert_eq!(name, b"\x0B\0TotalIssues");
    let of = |id: EventId| events.iter().filter(move |event| event.id == id as u16);
    let sampled: u64 = of(EventId::Sample).filter_map(parsed).map(|sample| sample.count).sum();
    let throttled = of(EventId::Throttled).map(|event| Loss::read_from_bytes(&event.payload).unwrap().count);
    let throttled: u64 = throttled.map(u64::from).sum();
    let [taken, _, of_driver]: [u64; 3] =
        counts.into_iter().reduce(|a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]).unwrap();
    assert_eq!(sampled, taken);
    assert!(throttled <= of_driver, "{throttled} of {of_driver}");
    drop(running);
    lab.finish().unwrap();
}
