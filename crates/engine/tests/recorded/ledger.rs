//! Branches and overflows in the model = delivered + lost + throttled, exactly, for every processor and kind.

use std::collections::BTreeMap;

use model::{Fragments, InterruptMode, Mode};
use proptest::prelude::*;
use protocol::{BRANCHES, CountRecord, PreciseSample, Record, modes};
use simulation::{Client, SimMachine};

use super::scene::{
    FORMATS, INSTRUCTIONS, branch, branches, engine, interrupted, is_left_clean, machine, overflows, precise,
    registers, run, stored,
};

const PROCESSORS: u32 = 2;

/// A step of the sequence.
#[derive(Debug, Clone)]
enum Step {
    /// Executes events and serves the interrupt immediately.
    Run {
        processor: u32,
        events: u64,
    },
    /// Executes events. The interrupt is late: it is not served until the next run there.
    RunUnserved {
        processor: u32,
        events: u64,
    },
    /// Executes events up to an overflow whose record the next event writes.
    Arm {
        processor: u32,
    },
    /// Takes branches.
    Branch {
        processor: u32,
        count: u64,
    },
    Fetch {
        room: usize,
    },
    Read,
    Start {
        interval: u32,
        ring: u32,
        batch: u32,
        what: u32,
    },
    StopOne {
        branches: bool,
    },
    Stop,
    Kill,
    /// Makes the next clock readings far apart, so that the budget is soon exhausted.
    Slow {
        units: u64,
    },
    Tick,
    /// Lets other software mask the LVT entry of a processor.
    Mask {
        processor: u32,
    },
    Sleep,
    Wake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..PROCESSORS, 0..60_000_u64).prop_map(|(processor, events)| Step::Run { processor, events }),
        1 => (0..PROCESSORS, 0..20_000_u64).prop_map(|(processor, events)| Step::RunUnserved { processor, events }),
        2 => (0..PROCESSORS).prop_map(|processor| Step::Arm { processor }),
        10 => (0..PROCESSORS, 0..200_u64).prop_map(|(processor, count)| Step::Branch { processor, count }),
        3 => (1..200_usize).prop_map(|room| Step::Fetch { room }),
        2 => Just(Step::Read),
        3 => (4_096..9_000_u32, 6..10_u32, 0..16_u32, 1..4_u32).prop_map(
            |(interval, ring, batch, what)| Step::Start { interval, ring: 1 << ring, batch, what }
        ),
        1 => any::<bool>().prop_map(|branches| Step::StopOne { branches }),
        1 => Just(Step::Stop),
        1 => Just(Step::Kill),
        1 => (0..40_000_u64).prop_map(|units| Step::Slow { units }),
        2 => Just(Step::Tick),
        1 => (0..PROCESSORS).prop_map(|processor| Step::Mask { processor }),
        1 => Just(Step::Sleep),
        2 => Just(Step::Wake),
    ]
}

/// A sum for each processor, of branches or of precise records.
type Sums = BTreeMap<(u32, bool), u64>;

#[derive(Default)]
struct Told {
    finally: Sums,
    /// Lost or throttled. A throttled record is fetched, but an overflow without a record is not.
    lost: Sums,
    fetched: Sums,
    /// The minimum number of the next precise record of each processor.
    next: BTreeMap<u32, u64>,
}

impl Told {
    fn counts(&mut self, counts: &[CountRecord]) {
        for count in counts {
            let key = (count.processor, count.event.source == BRANCHES);
            *self.finally.entry(key).or_default() += count.samples;
            *self.lost.entry(key).or_default() += count.lost + count.throttled;
        }
    }

    fn records(&mut self, records: &[Record]) {
        for record in records {
            match record {
                Record::Branch(branch) => *self.fetched.entry((branch.processor, true)).or_default() += 1,
                Record::Precise(PreciseSample { processor, number, .. }) => {
                    *self.fetched.entry((*processor, false)).or_default() += 1;
                    let next = self.next.entry(*processor).or_default();
                    assert!(number >= next, "in the order in which they were written");
                    *next = number + 1;
                }
                _ => {}
            }
        }
    }
}

/// Events of each counter in the model, by processor and number.
type Counted = BTreeMap<(u32, u32), u64>;

fn counted_so_far(machine: &SimMachine, counts: &[CountRecord]) -> Counted {
    let of = |count: &CountRecord| ((count.processor, count.counter), machine.counted(count.processor, count.counter));
    counts.iter().filter(|count| count.event.source != BRANCHES).map(of).collect()
}

/// Returns whether a count is what the model has counted since the session began.
fn is_exact(machine: &SimMachine, count: &CountRecord, begun: &Counted) -> bool {
    if count.event.source == BRANCHES {
        return true;
    }
    let before = begun.get(&(count.processor, count.counter)).copied().unwrap_or_default();
    count.count == machine.counted(count.processor, count.counter) - before
}

fn check(
    (name, format, _): (&str, u8, bool),
    mode: InterruptMode,
    (fragments, are_late): (Fragments, bool),
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let machine = machine(name, format, PROCESSORS).with_interrupt_mode(mode);
    for cpu in machine.all() {
        cpu.model().set_fragments(fragments);
        cpu.model().set_late_records(are_late);
    }
    let mut engine = engine(&machine);
    let observer = Client::open(&mut engine, 1, 1);
    let mut told = Told::default();
    let mut session: Option<(Client, u64)> = None;
    // Events of each counter before the session.
    let mut begun = Counted::new();
    let mut handles = 1;
    for step in steps {
        match (step, session) {
            (Step::Run { processor, events }, _) => run(&machine, &engine, processor, 0x1000, events),
            (Step::RunUnserved { processor, events }, _) => machine.run(processor, Mode::User, &|_| events),
            (Step::Arm { processor }, _) => {
                let id = machine.processor(processor).model().enabled_counters().first().map(|(id, _)| *id);
                let left = id.and_then(|id| machine.processor(processor).model().until_overflow(id));
                // Armed already, the counter is at zero.
                run(&machine, &engine, processor, 0x1000, left.filter(|left| *left < 10_000).unwrap_or_default());
            }
            (Step::Branch { processor, count }, _) => {
                (0..count).for_each(|number| branch(&machine, &engine, processor, Mode::Kernel, number));
            }
            (Step::Fetch { room }, Some((client, number))) => {
                told.records(&client.samples(&mut engine, number, None, room).unwrap().try_samples().unwrap());
            }
            (Step::Read, Some((client, number))) => {
                for count in client.read(&mut engine, number) {
                    // The shortest interval.
                    let least = if count.event.source == BRANCHES { 1 } else { 4_096 };
                    prop_assert!((count.samples + count.lost) * least <= count.count, "{:?}", count);
                    prop_assert!(is_exact(&machine, &count, &begun), "{:?}", count);
                }
            }
            (Step::Start { interval, ring, batch, what }, None) => {
                handles += 1;
                let client = Client::open(&mut engine, handles, 1);
                let (traced, recorded) = (what & 1 != 0, what & 2 != 0);
                let events: Vec<_> = traced
                    .then_some(branches(modes::BOTH))
                    .into_iter()
                    .chain(recorded.then_some(precise(INSTRUCTIONS, interval)))
                    .collect();
                let header = super::scene::header(if recorded { batch } else { 0 });
                let answer = client.start_with(&mut engine, protocol::StartHeader { ring, ..header }, &events).header();
                if machine.is_asleep() {
                    prop_assert_eq!(answer.cause, protocol::ErrorCode::Asleep as u32);
                    engine.close(client.0);
                } else {
                    prop_assert_eq!(answer.status, 0, "cause {}", answer.cause);
                    session = Some((client, answer.detail[0]));
                    told.next.clear();
                    begun = counted_so_far(&machine, &client.read(&mut engine, answer.detail[0]));
                }
            }
            (Step::StopOne { branches }, Some((client, number))) => {
                let source = if branches { BRANCHES } else { INSTRUCTIONS };
                told.counts(&client.stop(&mut engine, number, Some(source)).records::<CountRecord>());
            }
            (Step::Stop, Some((client, number))) => {
                told.counts(&client.stop(&mut engine, number, None).records::<CountRecord>());
                told.records(&client.samples(&mut engine, number, None, 100_000).unwrap().try_samples().unwrap());
                session = None;
            }
            (Step::Kill, Some((client, _))) => {
                engine.close(client.0);
                session = None;
            }
            (Step::Slow { units }, _) => machine.set_pace(units),
            (Step::Tick, _) => {
                machine.ticking().into_iter().for_each(|processor| machine.tick_sampling(&engine, processor));
            }
            (Step::Mask { processor }, _) => machine.processor(processor).model().set_lvt(0x1_00FE),
            (Step::Sleep, _) => machine.fall_asleep(&engine),
            (Step::Wake, _) => machine.wake(&engine),
            _ => {}
        }
    }
    if let Some((client, number)) = session {
        told.counts(&client.stop(&mut engine, number, None).records::<CountRecord>());
        told.records(&client.samples(&mut engine, number, None, 100_000).unwrap().try_samples().unwrap());
    }
    for processor in 0..PROCESSORS {
        machine.deliver(&engine, processor, &interrupted(processor)); // late interrupts
    }
    let written = |processor| (stored(&machine, processor).branches, overflows(&machine, processor));
    let all = super::scene::info(observer, &mut engine);
    let total: u64 = (0..PROCESSORS).map(written).map(|(branches, overflows)| branches + overflows).sum();
    prop_assert_eq!(all.delivered + all.lost + all.discarded + all.throttled, total, "{:?}", all);
    prop_assert_eq!(all.delivered, told.fetched.values().sum::<u64>());
    prop_assert_eq!(stored(&machine, 0).faults, 0);
    machine.wake(&engine);
    engine.accumulate_counts(); // frees control areas of a session that stopped during sleep
    prop_assert!(is_left_clean(&machine));
    for processor in 0..PROCESSORS {
        prop_assert_eq!(registers(&machine, processor), [Some(0); 3]);
        prop_assert_eq!(machine.processor(processor).model().accesses().faulted, 0);
    }
    Ok(())
}

proptest! {
    #[test]
    fn it_adds_up_through_interrupts_stops_kills_throttling_and_sleep(
        format in prop::sample::select(FORMATS.to_vec()),
        mode in prop::sample::select(InterruptMode::ALL.to_vec()),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        check(format, mode, (Fragments::None, false), steps)?;
    }

    /// The property above takes one format in eight.
    #[test]
    fn it_adds_up_with_architectural_pebs(
        mode in prop::sample::select(InterruptMode::ALL.to_vec()),
        fragments in prop::sample::select(vec![Fragments::None, Fragments::ByTurns]),
        are_late: bool,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        check(FORMATS[7], mode, (fragments, are_late), steps)?;
    }
}

#[test]
fn for_each_processor_and_kind_what_was_written_is_delivered_or_lost() {
    for (format, mode) in FORMATS.into_iter().flat_map(|format| InterruptMode::ALL.map(|mode| (format, mode))) {
        let (name, number, _) = format;
        let machine = machine(name, number, PROCESSORS).with_interrupt_mode(mode);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 1);
        let events = [branches(modes::BOTH), precise(INSTRUCTIONS, 5_000)];
        let header = protocol::StartHeader { ring: 64, ..super::scene::header(3) };
        let session = super::scene::started(client, &mut engine, &header, &events);
        let mut told = Told::default();
        for round in 0..200 {
            for processor in 0..PROCESSORS {
                run(&machine, &engine, processor, 0x1000, 3_333 + u64::from(processor) * 1_000);
                (0..5).for_each(|number| branch(&machine, &engine, processor, Mode::Kernel, number));
            }
            if round % 30 == 0 {
                told.records(&client.samples(&mut engine, session, None, 50).unwrap().try_samples().unwrap());
            }
        }
        told.counts(&client.stop(&mut engine, session, None).records::<CountRecord>());
        told.records(&client.samples(&mut engine, session, None, 100_000).unwrap().try_samples().unwrap());
        for processor in 0..PROCESSORS {
            for (is_branch, written) in
                [(true, stored(&machine, processor).branches), (false, overflows(&machine, processor))]
            {
                let of = |sums: &Sums| sums.get(&(processor, is_branch)).copied().unwrap_or_default();
                assert_eq!(of(&told.finally) + of(&told.lost), written, "{name} {number} {processor} {is_branch}");
                assert_eq!(of(&told.fetched), of(&told.finally), "{name} {number} {processor} {is_branch}");
                assert!(of(&told.lost) > 0 || !is_branch);
            }
        }
    }
}
