//! Slots, and the metrics of the top-down method, which MSR_PERF_METRICS divides them into.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{Accesses, CounterId, Mode, Processor, Selected};
use pmu::Support;
use pmu::source::RawEvent;
use protocol::{
    Code, CountRecord, ErrorCode, Event, EventRequest, RegisterFault, ReplyHeader, SessionEvent, StartHeader, flags,
    modes,
};
use simulation::{Client, SimMachine};

/// Processors with level 1 and with both levels.
const GENERATIONS: [(&str, u16); 5] = [
    ("ice-lake-1065g7", 4),
    ("sapphire-rapids-2475x", 8),
    ("lunar-lake-288v", 8),
    // CPUID hides the counter, or the capability.
    ("alder-lake-12900k", 8),
    ("meteor-lake-155h", 8),
];

/// Hybrids: their odd processors are E cores, without metrics. The first is made up after Alder Lake.
const HYBRIDS: [&str; 5] =
    ["intel-hybrid", "lunar-lake-288v", "alder-lake-p-12900h", "raptor-lake-p-13900h", "meteor-lake-155h"];

const FIXED_CTR3: u32 = 0x30C;
const PERF_METRICS: u32 = 0x329;
const FIXED_CTR_CTRL: u32 = 0x38D;
const GLOBAL_CTRL: u32 = 0x38F;
const SLOTS_ON: u64 = 1 << 35;
const METRICS_ON: u64 = 1 << 48;

const ONLY_COUNTED: StartHeader = StartHeader::EMPTY;

const fn event(umask: u16) -> EventRequest {
    let source = RawEvent::new().with_event(0).with_umask(umask).source().0;
    EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY }
}

const SLOTS: EventRequest = event(0x04);

const fn metric(number: u16) -> EventRequest {
    event(0x80 + number)
}

/// Slots and all metrics.
fn whole(metrics: u16) -> Vec<EventRequest> {
    core::iter::once(SLOTS).chain((0..metrics).map(metric)).collect()
}

fn of_core(event: EventRequest, core_type: u32) -> EventRequest {
    EventRequest { event: Event { core_type, ..event.event }, ..event }
}

const P_CORE: u32 = 0x40;
const E_CORE: u32 = 0x20;

struct Scene {
    machine: &'static SimMachine,
    engine: Engine<&'static SimMachine>,
    client: Client,
}

impl Scene {
    fn new(name: &str) -> Self {
        Self::of(SimMachine::named(name, 1))
    }

    fn of(machine: SimMachine) -> Self {
        let machine: &SimMachine = Box::leak(Box::new(machine));
        let mut engine = Engine::new(machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        Self { machine, engine, client }
    }

    fn start_with(&mut self, header: &StartHeader, events: &[EventRequest]) -> ReplyHeader {
        self.client.start_with(&mut self.engine, *header, events).header()
    }

    fn start(&mut self, events: &[EventRequest]) -> ReplyHeader {
        self.start_with(&ONLY_COUNTED, events)
    }

    fn started(&mut self, events: &[EventRequest]) -> u64 {
        let header = self.start(events);
        assert_eq!((header.status, header.cause), (0, 0), "{:x?}", header.detail);
        header.detail[0]
    }

    fn read(&mut self, session: u64) -> Vec<CountRecord> {
        self.client.read(&mut self.engine, session)
    }

    fn stop(&mut self, session: u64) -> Vec<CountRecord> {
        self.client.stop(&mut self.engine, session, None).records()
    }

    fn msr(&self, register: u32) -> u64 {
        self.machine.processor(0).model().uncounted(|model| model.rdmsr(register)).unwrap()
    }

    fn write(&self, register: u32, value: u64) {
        assert!(self.machine.processor(0).write_foreign(register, value));
    }

    /// Lets one phase of a program run: `parts` are the slots of level 1.
    fn run(&self, mode: Mode, parts: [u64; 4]) {
        self.machine.run(0, mode, &|selected| occurrences(selected, parts));
    }

    fn ledger(&self, id: CounterId) -> u64 {
        let model = self.machine.processor(0).model();
        model.ledger().entries().filter(|entry| entry.counter == id).map(|entry| entry.counted).sum()
    }

    fn difference(&mut self, body: impl FnOnce(&mut Self)) -> [u64; 3] {
        let before = self.machine.processor(0).model().accesses();
        body(self);
        let Accesses { rdmsr, wrmsr, rdpmc, .. } = self.machine.processor(0).model().accesses();
        [rdmsr - before.rdmsr, wrmsr - before.wrmsr, rdpmc - before.rdpmc]
    }
}

/// Level 2 is a part of each of level 1: a third.
fn occurrences(Selected { event, umask, .. }: Selected, parts: [u64; 4]) -> u64 {
    match (event, umask) {
        (0xA4, 0x01) => parts.iter().sum(),
        (0x00, 0x80..=0x83) => parts[usize::from(umask - 0x80)],
        (0x00, 0x84..=0x87) => parts[usize::from(umask - 0x84)] / 3,
        _ => 7,
    }
}

/// A pseudo-random sequence of phases, each with its own division of the slots.
fn phases() -> impl Iterator<Item = [u64; 4]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    core::iter::repeat_with(move || {
        [(); 4].map(|()| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 3_000_000
        })
    })
}

fn count(records: &[CountRecord], event: EventRequest) -> u64 {
    records.iter().filter(|record| record.event.source == event.event.source).map(|record| record.count).sum()
}

#[test]
fn counts_equal_the_ledger_within_the_rounding_of_each_reading() {
    for (name, metrics) in GENERATIONS {
        let mut scene = Scene::new(name);
        // The first start may let the counter count a loop.
        let first = scene.started(&[SLOTS]);
        scene.stop(first);
        scene.machine.processor(0).model().clear_ledger();
        let session = scene.started(&whole(metrics));
        let (mut rounding, mut before) = (0, 0);
        for (number, parts) in phases().take(60).enumerate() {
            scene.run(if number % 2 == 0 { Mode::User } else { Mode::Kernel }, parts);
            let last = number == 59;
            if number % 4 != 3 && !last {
                continue;
            }
            let records = if last { scene.stop(session) } else { scene.read(session) };
            let slots = count(&records, SLOTS);
            assert_eq!(slots, scene.ledger(CounterId::Fixed(3)), "{name}: slots are exact");
            // Half a unit of 1/255 of the slots since the last reading, and what division leaves.
            rounding += (slots - before).div_ceil(510) + 1;
            before = slots;
            for number in 0..metrics {
                let id = CounterId::Metric(u8::try_from(number).unwrap());
                let (found, exact) = (count(&records, metric(number)), scene.ledger(id));
                assert!(found.abs_diff(exact) <= rounding, "{name}: metric {number}: {found}, {exact} ± {rounding}");
            }
            let level_1: u64 = (0..4).map(|number| count(&records, metric(number))).sum();
            assert!(level_1.abs_diff(slots) <= 4 * rounding, "{name}: {level_1} of {slots}");
            // The readings are enough to tell phases apart: much closer than one reading of everything could.
            assert!(rounding < slots / 400 || slots < 400_000, "{name}");
        }
        let control = [GLOBAL_CTRL, FIXED_CTR_CTRL].map(|register| scene.msr(register));
        assert_eq!([control[0] & (SLOTS_ON | METRICS_ON), control[1]], [0, 0], "{name}: everything is put back");
    }
}

#[test]
fn a_phase_is_not_lost_in_a_long_run() {
    let mut scene = Scene::new("ice-lake-1065g7");
    let session = scene.started(&[SLOTS, metric(0), metric(3)]);
    for _ in 0..100 {
        scene.run(Mode::User, [10_000_000, 0, 0, 0]);
        scene.engine.accumulate_counts();
    }
    // One part in 25,000 of all slots: no fraction of them all could show it.
    scene.run(Mode::User, [0, 0, 0, 40_000]);
    let records = scene.stop(session);
    let counts = [SLOTS, metric(0), metric(3)].map(|event| count(&records, event));
    assert_eq!(counts, [1_000_040_000, 1_000_000_000, 40_000]);
}

#[test]
fn metrics_count_in_the_modes_of_their_events() {
    for (modes, mode, other) in [(modes::USER, Mode::User, Mode::Kernel), (modes::KERNEL, Mode::Kernel, Mode::User)] {
        let mut scene = Scene::new("sapphire-rapids-2475x");
        let events = whole(8).into_iter().map(|event| EventRequest { modes, ..event }).collect::<Vec<_>>();
        let session = scene.started(&events);
        scene.run(other, [9, 9, 9, 9]);
        scene.run(mode, [255, 0, 0, 0]);
        let records = scene.stop(session);
        let [slots, first, last] = [SLOTS, metric(0), metric(3)].map(|event| count(&records, event));
        assert_eq!(slots, scene.ledger(CounterId::Fixed(3)));
        // All but what occurs between the accesses of the driver in kernel mode.
        for (number, counted, events) in [(0, first, 255), (3, last, 0)] {
            let ledger = scene.ledger(CounterId::Metric(number));
            assert_eq!(ledger == events, modes == modes::USER, "{ledger}");
            assert!(counted.abs_diff(ledger) <= slots.div_ceil(255) + 1, "{counted} for {ledger}");
        }
    }
}

#[test]
fn metrics_take_no_counter_from_others() {
    let mut scene = Scene::new("ice-lake-1065g7");
    let general = (0..8).map(|number| {
        let source = RawEvent::new().with_event(0xC4).with_umask(0x10 + number).source().0;
        EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY }
    });
    let fixed =
        [2, 0x13].map(|source| EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY });
    let events: Vec<_> = general.chain(fixed).chain(whole(4)).collect();
    let session = scene.started(&events);
    scene.run(Mode::User, [51, 51, 51, 102]);
    let counts: Vec<u64> = scene.stop(session).iter().map(|record| record.count).collect();
    assert_eq!(counts, [[7; 10].as_slice(), &[255, 51, 51, 51, 102]].concat());
}

/// Events that take turns leave the metrics alone: their round costs as much as without them.
#[test]
fn metrics_have_no_turns() {
    let general = || {
        (0..24).map(|number| {
            let source = RawEvent::new().with_event(0xC4).with_umask(0x20 + number).source().0;
            EventRequest { event: Event::of(source), modes: modes::USER, ..EventRequest::EMPTY }
        })
    };
    let round = |events: &[EventRequest]| {
        let mut scene = Scene::new("ice-lake-1065g7");
        let header = scene.start_with(&StartHeader { flags: flags::MULTIPLEX, ..ONLY_COUNTED }, events);
        assert_eq!((header.status, header.cause), (0, 0));
        let mut costs = Vec::new();
        for _ in 0..7 {
            scene.machine.pass(40_000);
            scene.run(Mode::User, [51, 51, 51, 102]);
            let interrupted = engine::Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
            costs.push(scene.difference(|scene| scene.machine.expire(&scene.engine, 0, &interrupted)));
        }
        let counts = scene.stop(header.detail[0]);
        (costs, [SLOTS, metric(0), metric(3)].map(|event| count(&counts, event)))
    };
    let (without, _) = round(&general().collect::<Vec<_>>());
    let (costs, counts) = round(&general().chain(whole(4)).collect::<Vec<_>>());
    assert_eq!(counts, [7 * 255, 7 * 51, 7 * 102], "counted all the time");
    // A comparison also reads the control register of the fixed counters.
    let plus: Vec<_> = without.iter().map(|[reads, writes, rdpmc]| [reads + 1, *writes, *rdpmc]).collect();
    assert_eq!(costs, plus);
}

/// Slots and all metrics are one unit. The start writes fixed counter 3, the metrics, the control of the fixed counters
/// and the global control. A reading stops both, reads both, clears both and starts both, after a comparison that reads
/// the two control registers, the status and IA32_DEBUGCTL. The stop writes the two control registers, and reads both.
#[test]
fn the_accesses_of_a_start_a_reading_and_a_stop() {
    for (name, metrics) in GENERATIONS {
        for events in [vec![SLOTS], vec![metric(2)], whole(metrics)] {
            let mut scene = Scene::new(name);
            // Beside it, a session keeps the counters initialized.
            scene.started(&[EventRequest { event: Event::of(2), modes: modes::USER, ..EventRequest::EMPTY }]);
            let first = scene.started(&events);
            scene.stop(first);
            let mut session = 0;
            let start = scene.difference(|scene| session = scene.started(&events));
            let read = scene.difference(|scene| _ = scene.read(session));
            let update = scene.difference(|scene| scene.engine.accumulate_counts());
            let stop = scene.difference(|scene| _ = scene.stop(session));
            // In each, the comparison of four registers; at the start, whether another program uses the unit.
            assert_eq!(start, [4 + 1, 4, 0], "{name}: start of {}", events.len());
            assert_eq!(read, [4, 4, 2], "{name}: reading of {}", events.len());
            assert_eq!(update, [4, 4, 2 + 1], "{name}: with the counter of the other session");
            assert_eq!(stop, [4, 2, 2], "{name}: stop of {}", events.len());
        }
    }
}

#[test]
fn one_event_can_stop_while_the_others_go_on() {
    let mut scene = Scene::new("sapphire-rapids-2475x");
    let session = scene.started(&whole(8));
    scene.run(Mode::User, [51, 51, 51, 102]);
    let stopped = scene.client.stop(&mut scene.engine, session, Some(metric(3).event.source)).records::<CountRecord>();
    assert_eq!(count(&stopped, metric(3)), 102);
    scene.run(Mode::User, [255, 0, 0, 0]);
    let records = scene.stop(session);
    assert_eq!([SLOTS, metric(0), metric(1)].map(|event| count(&records, event)), [510, 306, 51]);
}

#[test]
fn counts_continue_after_a_sleep() {
    let mut scene = Scene::new("ice-lake-1065g7");
    let session = scene.started(&whole(4));
    scene.run(Mode::User, [51, 51, 51, 102]);
    scene.machine.fall_asleep(&scene.engine);
    scene.machine.wake(&scene.engine);
    scene.run(Mode::User, [255, 0, 0, 0]);
    let records = scene.stop(session);
    assert_eq!([SLOTS, metric(0), metric(3)].map(|event| count(&records, event)), [510, 306, 102]);
}

#[test]
fn a_hybrid_counts_them_on_its_p_cores_alone() {
    for name in HYBRIDS {
        let mut scene = Scene::of(SimMachine::named(name, 4));
        let events: Vec<_> = whole(8).into_iter().map(|event| of_core(event, P_CORE)).collect();
        let session = scene.started(&events);
        for processor in 0..4 {
            scene.machine.run(processor, Mode::User, &|selected| occurrences(selected, [51, 51, 51, 102]));
        }
        let records = scene.stop(session);
        let of_metric =
            |number| records.iter().filter(move |record| record.event.source == metric(number).event.source);
        let places: Vec<_> = of_metric(3).map(|record| (record.processor, record.count)).collect();
        assert_eq!(places, [(0, 102), (2, 102)], "{name}");
        let refused = scene.start(&[of_core(metric(0), E_CORE)]);
        assert_eq!(
            (refused.cause, refused.detail[0]),
            (ErrorCode::UnsupportedSource as u32, Support::NoMetrics as u64)
        );
    }
}

#[test]
fn processors_without_them_refuse_them_and_write_nothing() {
    for name in ["skylake-6600k", "alder-lake-n-95", "alder-lake-p-12900h-efficient", "kvm-8650u", "intel-v1"] {
        let mut scene = Scene::new(name);
        for event in whole(8) {
            let refused = scene.start(&[event]);
            let found = (refused.cause, refused.detail[0]);
            assert_eq!(found, (ErrorCode::UnsupportedSource as u32, Support::NoMetrics as u64), "{name}");
        }
        assert!(scene.machine.all().all(|cpu| cpu.model().accesses().wrmsr == 0), "{name}");
    }
    // Level 2.
    let refused = Scene::new("ice-lake-1065g7").start(&[metric(4)]);
    assert_eq!((refused.cause, refused.detail[0]), (ErrorCode::UnsupportedSource as u32, Support::NoMetrics as u64));
}

/// A hypervisor shows the processor and its fixed counter 3, but not the metrics.
#[test]
fn a_hypervisor_without_the_capability_is_refused_before_a_register_of_theirs_is_touched() {
    let identity = cpuid_dumps::find("ice-lake-1065g7").unwrap();
    let dump = identity.cpuid();
    let capabilities = identity.perf_capabilities() & !(1 << 15);
    let processor = Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)));
    let mut scene = Scene::of(SimMachine::of([processor.with_perf_capabilities(capabilities)]));
    for _ in 0..2 {
        let refused = scene.start(&whole(4));
        let found = (refused.cause, refused.detail[0], refused.processor);
        assert_eq!(found, (ErrorCode::UnsupportedSource as u32, Support::NoMetrics as u64, 0));
    }
    let touched = scene.machine.processor(0).guarded_accesses();
    assert!(touched.iter().all(|(_, number)| ![FIXED_CTR3, PERF_METRICS].contains(number)), "{touched:x?}");
    assert!(!scene.machine.is_reserved());
    scene.started(&[EventRequest { event: Event::of(2), modes: modes::USER, ..EventRequest::EMPTY }]);
}

#[test]
fn a_register_that_faults_refuses_them_alone() {
    for register in [FIXED_CTR3, PERF_METRICS] {
        let mut scene = Scene::new("sapphire-rapids-2475x");
        let faulting = model::FaultingAccess::without(register);
        scene.machine.processor(0).model().set_faulting(faulting);
        let refused = scene.start(&whole(8));
        assert_eq!(refused.cause, ErrorCode::RegisterFault as u32);
        assert_eq!(RegisterFault::from_detail(refused.detail[0]).number, register);
        scene.started(&[EventRequest { event: Event::of(2), modes: modes::USER, ..EventRequest::EMPTY }]);
    }
}

#[test]
fn they_cannot_be_sampled() {
    let mut scene = Scene::new("sapphire-rapids-2475x");
    for event in whole(8) {
        let sampled = EventRequest { interval: 1_000_000, ..event };
        let refused = scene.start_with(&StartHeader { ring: 64, ..ONLY_COUNTED }, &[sampled]);
        let found = (refused.cause, refused.detail[0], refused.source);
        assert_eq!(found, (ErrorCode::UnsupportedSource as u32, Support::CountedOnly as u64, event.event.source));
    }
    // On an AMD processor the numbers are those of other events.
    let mut scene = Scene::new("zen4-7700x");
    let reply = scene
        .start_with(&StartHeader { ring: 64, ..ONLY_COUNTED }, &[EventRequest { interval: 1_000_000, ..metric(0) }]);
    assert_eq!((reply.status, reply.cause), (0, 0));
}

#[test]
fn another_session_gets_them_when_the_first_ends() {
    let mut scene = Scene::new("ice-lake-1065g7");
    let session = scene.started(&[metric(0)]);
    let second = Client::open(&mut scene.engine, 2, 20);
    for events in [vec![SLOTS], vec![metric(1)], vec![metric(0)]] {
        let answer = second.start_with(&mut scene.engine, ONLY_COUNTED, &events);
        let refused = answer.header();
        assert_eq!((refused.cause, refused.source), (ErrorCode::NoFreeCounter as u32, events[0].event.source));
        let holders: Vec<_> = answer.records::<SessionEvent>().iter().map(|holder| holder.session).collect();
        assert_eq!(holders, [session]);
    }
    scene.stop(session);
    let header = second.start_with(&mut scene.engine, ONLY_COUNTED, &whole(4)).header();
    assert_eq!((header.status, header.cause), (0, 0));
}

#[test]
fn events_in_different_modes_are_refused() {
    let mut scene = Scene::new("ice-lake-1065g7");
    let user = EventRequest { modes: modes::USER, ..metric(1) };
    let [slots, first] = [SLOTS, metric(0)].map(|event| EventRequest { modes: modes::BOTH, ..event });
    for events in [[slots, user], [first, user]] {
        let refused = scene.start(&events);
        assert_eq!((refused.cause, refused.source), (ErrorCode::NoFreeCounter as u32, user.event.source));
    }
    assert!(!scene.machine.is_reserved());
}

#[test]
fn another_program_that_counts_slots_is_not_disturbed_unless_forced() {
    let mut scene = Scene::new("ice-lake-1065g7");
    scene.write(FIXED_CTR_CTRL, 0b11 << 12);
    scene.write(GLOBAL_CTRL, SLOTS_ON);
    // Sessions without these events leave it alone.
    let plain = scene.started(&[EventRequest { event: Event::of(2), modes: modes::USER, ..EventRequest::EMPTY }]);
    scene.run(Mode::User, [1, 1, 1, 1]);
    // What occurs between the accesses of the driver, it counts as well.
    assert_eq!(scene.msr(FIXED_CTR3), scene.ledger(CounterId::Fixed(3)));
    let refused = scene.start(&whole(4));
    assert_eq!(refused.cause, ErrorCode::ForeignUse as u32);
    let session = scene.start_with(&StartHeader { flags: flags::FORCE, ..ONLY_COUNTED }, &whole(4));
    assert_eq!((session.status, session.cause), (0, 0));
    scene.run(Mode::User, [51, 51, 51, 102]);
    assert_eq!(count(&scene.stop(session.detail[0]), metric(3)), 102);
    assert_eq!(scene.msr(FIXED_CTR_CTRL) >> 12, 0b11, "as it was found");
    scene.stop(plain);
    assert_eq!((scene.msr(FIXED_CTR_CTRL), scene.msr(GLOBAL_CTRL)), (0b11 << 12, SLOTS_ON));
}

#[test]
fn what_another_program_changes_is_marked_and_written_again() {
    type Change = fn(&Scene);
    let changes: [(u32, Change); 3] = [
        (GLOBAL_CTRL, |scene| scene.write(GLOBAL_CTRL, scene.msr(GLOBAL_CTRL) & !METRICS_ON)),
        (GLOBAL_CTRL, |scene| scene.write(GLOBAL_CTRL, scene.msr(GLOBAL_CTRL) & !SLOTS_ON)),
        (FIXED_CTR_CTRL, |scene| scene.write(FIXED_CTR_CTRL, 0b01 << 12)),
    ];
    for (register, change) in changes {
        let mut scene = Scene::new("sapphire-rapids-2475x");
        let session = scene.started(&whole(8));
        scene.run(Mode::User, [51, 51, 51, 102]);
        change(&scene);
        scene.engine.accumulate_counts();
        let before = scene.read(session);
        scene.run(Mode::User, [51, 51, 51, 102]);
        let after = scene.stop(session);
        for event in whole(8) {
            let of_event = |records: &[CountRecord]| {
                let record = records.iter().find(|record| record.event.source == event.event.source).unwrap();
                (record.disturbed_register, record.count)
            };
            assert_eq!(of_event(&after).0, register, "marked");
            let expected = match event.event.source {
                source if source == SLOTS.event.source => 255,
                source if source == metric(0).event.source => 51,
                source if source == metric(3).event.source => 102,
                _ => continue,
            };
            assert_eq!(of_event(&after).1 - of_event(&before).1, expected, "counted again");
        }
    }
}

#[test]
fn an_added_processor_counts_them() {
    let mut scene = Scene::of(SimMachine::named("ice-lake-1065g7", 2).with_active(1));
    let session = scene.started(&whole(4));
    scene.machine.add_processor(&mut scene.engine);
    for processor in 0..2 {
        scene.machine.run(processor, Mode::User, &|selected| occurrences(selected, [51, 51, 51, 102]));
    }
    assert_eq!(count(&scene.stop(session), metric(3)), 204);
    assert!(scene.client.tell::<_, SessionEvent>(&mut scene.engine, Code::ListSessions).is_empty());
}
