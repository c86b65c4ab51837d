//! What is refused, with its cause, before a register is written.

use engine::Interrupted;
use model::{Mode, Selected};
use pmu::extra::Selector;
use pmu::source::RawEvent;
use pmu::{Kind, Support};
use protocol::{ErrorCode, Event, EventRequest, ExtraInUse, SessionEvent, StartHeader, event_flags, flags, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    CODE_READS, ONLY_COUNTED, READS, WRITES, engine, extra, front_end, off_module, offcore, registers, start, started,
};

fn latency(value: u64) -> EventRequest {
    let event = extra(0xCD, 0x01, Selector::LoadLatency, value);
    EventRequest { modes: modes::USER | modes::PRECISE, interval: 4_096, ..event }
}

fn plain(event: u16, umask: u16) -> EventRequest {
    let raw = RawEvent::new().with_event(event).with_umask(umask);
    EventRequest { event: Event::of(raw.source().0), modes: modes::USER, ..EventRequest::EMPTY }
}

#[test]
fn a_third_value_is_refused_with_the_register_and_its_holder() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let [first, second] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let session = started(first, &mut engine, ONLY_COUNTED, &[offcore(READS), offcore(WRITES)]);
    let answer = second.start_with(&mut engine, ONLY_COUNTED, &[front_end(0x15), offcore(CODE_READS)]);
    let refused = answer.header();
    assert_eq!(refused.cause, ErrorCode::ExtraRegisterTaken as u32);
    assert_eq!(ExtraInUse::from_detail(refused.detail[0]), ExtraInUse { register: 0x1A6, holder: 0 });
    assert_eq!((refused.source, refused.processor, refused.detail[1]), (offcore(0).event.source, 0, READS));
    let holders = answer.records::<SessionEvent>();
    assert_eq!(
        holders.iter().map(|it| (it.session, it.event.extra)).collect::<Vec<_>>(),
        [(session, READS), (session, WRITES)]
    );
    assert_eq!(registers(&machine, 0)[3], Some(0), "nothing was written for the refused session");
    first.stop(&mut engine, session, None);
    started(second, &mut engine, ONLY_COUNTED, &[front_end(0x15), offcore(CODE_READS)]);
}

#[test]
fn an_event_is_refused_by_its_register_and_its_value() {
    let any = RawEvent::new().with_event(0xC4).with_any(true);
    let any = EventRequest { event: Event::of(any.source().0), modes: modes::BOTH, ..plain(0xC4, 0) };
    for (name, event, support) in [
        ("skylake-6600k", plain(0xB7, 0x01), Support::NeedsExtraRegister),
        ("skylake-6600k", plain(0xC6, 0x01), Support::NeedsExtraRegister),
        ("skylake-6600k", extra(0xC4, 0x00, Selector::OffcoreResponse, READS), Support::NoExtraRegister),
        ("skylake-6600k", extra(0xB7, 0x01, Selector::FrontEnd, 0x15), Support::NoExtraRegister),
        ("skylake-6600k", offcore(1 << 38), Support::ReservedExtraBits),
        ("skylake-6600k", offcore(0), Support::ReservedExtraBits),
        ("sandy-bridge-2600k", offcore(READS | 1 << 24), Support::ReservedExtraBits),
        ("skylake-6600k", front_end(0x08), Support::ReservedExtraBits),
        ("skylake-6600k", latency(0x1_0000), Support::ReservedExtraBits),
        ("skylake-6600k", latency(2), Support::ReservedExtraBits),
        ("haswell-4710mq", front_end(0x15), Support::NoExtraRegister),
        ("nehalem-920", extra(0xBB, 0x01, Selector::OffcoreResponse, 0x101), Support::NoExtraRegister),
        ("zen4-7700x", offcore(READS), Support::NoExtraRegister),
        ("nova-lake-derived", plain(0x2A, 0x01), Support::NeedsExtraRegister),
        ("diamond-rapids-derived", plain(0x2A, 0x01), Support::NeedsExtraRegister),
        ("nova-lake-derived", plain(0xD6, 0x08), Support::NeedsExtraRegister),
        ("nova-lake-derived", plain(0xC6, 0x03), Support::NeedsExtraRegister),
        ("nova-lake-derived", off_module(0, READS), Support::ReservedExtraBits),
        ("nova-lake-derived", extra(0x2B, 0x01, Selector::OffcoreResponse, 1), Support::NoExtraRegister),
        ("nova-lake-derived-efficient", plain(0xB7, 0x04), Support::NeedsExtraRegister),
        (
            "nova-lake-derived-efficient",
            extra(0xB7, 0x01, Selector::OffcoreResponse, 1 << 56),
            Support::ReservedExtraBits,
        ),
        ("alder-lake-n-95", any, Support::NoAnyThread),
        ("zen4-7700x", any, Support::NoAnyThread),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let header = StartHeader { ring: if event.interval > 0 { 64 } else { 0 }, ..ONLY_COUNTED };
        let refused = start(client, &mut engine, header, &[event]);
        let found = (refused.cause, refused.detail[0]);
        assert_eq!(found, (ErrorCode::UnsupportedSource as u32, support as u64), "{name} {event:x?}");
        assert!(machine.all().all(|cpu| cpu.model().accesses().wrmsr == 0), "no register is written");
    }
}

#[test]
fn any_thread_is_counted_where_it_exists() {
    let any = RawEvent::new().with_event(0xC4).with_any(true);
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = EventRequest { event: Event::of(any.source().0), modes: modes::BOTH, ..plain(0xC4, 0) };
    started(client, &mut engine, ONLY_COUNTED, &[event]);
    let select = machine.processor(0).model().rdmsr(0x186).unwrap();
    assert_eq!(select & 0xFFFF_FFFF, 0x0063_00C4);
}

#[test]
fn load_latency_is_refused_without_precise_records() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let counted = EventRequest { modes: modes::USER, interval: 0, ..latency(30) };
    let refused = start(client, &mut engine, ONLY_COUNTED, &[counted]);
    assert_eq!((refused.cause, refused.source), (ErrorCode::PreciseOnly as u32, counted.event.source));
}

/// Without the companion the record would say that the first-level cache had every load.
#[test]
fn load_latency_of_golden_cove_is_recorded_beside_its_companion_or_refused() {
    const AUXILIARY: u64 = pmu::extra::AUXILIARY.source().0;
    let auxiliary =
        |modes, flags| EventRequest { event: Event::of(AUXILIARY), modes, flags, interval: 0, ..EventRequest::EMPTY };
    let always = auxiliary(modes::USER, event_flags::PINNED);
    let header = StartHeader { ring: 64, ..ONLY_COUNTED };
    let in_turns = StartHeader { flags: flags::MULTIPLEX, ..header };
    for (name, header, others, is_served) in [
        ("sapphire-rapids-2475x", header, vec![always], true),
        ("sapphire-rapids-2475x", header, vec![auxiliary(modes::USER, 0)], true),
        ("sapphire-rapids-2475x", header, vec![], false),
        ("sapphire-rapids-2475x", header, vec![plain(0x03, 0x88)], false),
        ("sapphire-rapids-2475x", in_turns, vec![always], true),
        ("sapphire-rapids-2475x", in_turns, vec![auxiliary(modes::USER, 0)], false),
        ("alder-lake-p-12900h", header, vec![always], true),
        ("raptor-lake-p-13900h", header, vec![], false),
        ("bartlett-lake-273pqe", header, vec![], false),
        ("alder-lake-p-12900h-efficient", header, vec![], true),
        ("granite-rapids-658x", header, vec![], true),
        ("meteor-lake-155h", header, vec![], true),
        ("arrow-lake-u-265u", header, vec![], true),
        ("lunar-lake-288v", header, vec![], true),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let (event, umask) = if name.ends_with("efficient") { (0xD0, 0x05) } else { (0xCD, 0x01) };
        let event = extra(event, umask, Selector::LoadLatency, 30);
        let event = EventRequest { modes: modes::USER | modes::PRECISE, interval: 4_096, ..event };
        let answer = start(client, &mut engine, header, &[vec![event], others].concat());
        if !is_served {
            let (cause, reason) = (ErrorCode::UnsupportedSource as u32, Support::NeedsAuxiliaryEvent as u64);
            assert_eq!(
                (answer.cause, answer.source, answer.detail),
                (cause, event.event.source, [reason, 0]),
                "{name}"
            );
            continue;
        }
        assert_eq!(answer.status, 0, "{name}: cause {}", answer.cause);
        machine.run(0, Mode::User, &|_| 3 * 4_097);
        assert_eq!(machine.processor(0).model().stored().records.values().sum::<u64>(), 3, "{name}");
    }
}

#[test]
fn contradicting_fields_are_refused() {
    let good = offcore(READS);
    let raw = RawEvent::from_bits(good.event.source);
    for source in [
        0,
        2,
        raw.with_selector(0).into_bits(),
        raw.with_selector(7).into_bits(),
        raw.with_is_event(false).into_bits(),
        raw.into_bits() | 1 << 50,
        u64::MAX,
    ] {
        let event = EventRequest { event: Event { source, ..good.event }, ..good };
        let machine = SimMachine::named("skylake-6600k", 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let refused = start(client, &mut engine, ONLY_COUNTED, &[event]);
        assert_eq!((refused.cause, refused.detail[0]), (ErrorCode::BadEvent as u32, source), "{event:x?}");
    }
}

#[test]
fn samples_of_two_values_of_one_event_have_the_index_of_theirs() {
    for sampled in [[false, false], [true, false], [false, true], [true, true]] {
        let machine = SimMachine::named("skylake-6600k", 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let ring = if sampled.contains(&true) { 64 } else { 0 };
        let [reads, writes] = sampled.map(|sampled| if sampled { 65_536 } else { 0 });
        let events =
            [EventRequest { interval: reads, ..offcore(READS) }, EventRequest { interval: writes, ..offcore(WRITES) }];
        let session = started(client, &mut engine, StartHeader { ring, ..ONLY_COUNTED }, &events);
        // The reads overflow twice as often as the writes.
        let happens = |_: Selected, value: u64| if value == READS { 65_536 } else { 32_768 };
        for _ in 0..6 {
            machine.processor(0).model().run_with_extra(Mode::User, &happens);
            machine.deliver(&engine, 0, &Interrupted { ip: 0x1000, process: 1, thread: 2, mode: protocol::Mode::User });
        }
        let counts = client.read(&mut engine, session);
        assert_eq!(
            [counts[0].samples, counts[1].samples],
            [6, 3]
                .into_iter()
                .zip(sampled)
                .map(|(most, is_sampled)| if is_sampled { most } else { 0 })
                .collect::<Vec<u64>>()[..],
            "{sampled:?}"
        );
        if ring != 0 {
            let records = client.samples(&mut engine, session, None, 1_000).unwrap().try_samples().unwrap();
            for count in counts {
                let own = records.iter().filter(|record| record.event() == count.index).count() as u64;
                assert_eq!(own, count.samples, "{sampled:?} {}", count.index);
            }
        }
        engine.close(client.0);
    }
}

#[test]
fn a_register_that_a_hypervisor_lacks_refuses_the_session_and_no_other() {
    let machine = SimMachine::named("kvm-8650u", 1);
    let mut engine = engine(&machine);
    assert_eq!(engine.sampler().hal().interface().kind(), Kind::Emon);
    let client = Client::open(&mut engine, 1, 10);
    let refused = start(client, &mut engine, ONLY_COUNTED, &[offcore(READS)]);
    assert_eq!(refused.cause, ErrorCode::RegisterFault as u32);
    assert_eq!(protocol::RegisterFault::from_detail(refused.detail[0]).number, 0x1A6);
    started(client, &mut engine, ONLY_COUNTED, &[plain(0xC4, 0)]);
}
