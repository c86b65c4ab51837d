//! Reads at random beside sleeps, other sessions and other programs: two reads of a processor with the same generation,
//! the second with a comparison, bracket exactly the events that happened, up to those during the reads themselves.

use std::collections::BTreeSet;

use engine::{Engine, Interrupted};
use model::Mode;
use proptest::prelude::*;
use protocol::{EventRequest, GroupReply, ProcessorSet, StartHeader, flags, group_flags, modes};
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, control_registers, engine, event, group, header, on, started};

const PROCESSORS: u32 = 2;

/// Runs of a plain test. `PROPTEST_CASES` asks for more.
const RUNS: u32 = 1_000;

#[derive(Debug, Clone)]
enum Step {
    /// Executes events, and serves interrupts.
    Run { processor: u32, user: bool, events: u64 },
    /// Reads the group.
    Read { processor: u32, compare: bool },
    /// Another session starts, on one processor or on all; sampling or not.
    Start { source: usize, sampled: bool, everywhere: bool, turns: bool },
    /// The oldest of the other sessions stops.
    Stop,
    /// Another program flips a bit of a control register.
    Write { processor: u32, register: usize, bit: u32 },
    /// Another program clears a control register.
    Clear { processor: u32, register: usize },
    /// The processor loses its registers in deep idle.
    Idle { processor: u32 },
    /// The machine sleeps, and is read meanwhile.
    Sleep { wakes_at_once: bool },
    /// The tick of sampling sessions.
    Tick,
    /// The thread that follows the counts.
    Follow,
}

fn step() -> impl Strategy<Value = Step> {
    let processor = 0..PROCESSORS;
    prop_oneof![
        6 => (processor.clone(), any::<bool>(), 0..20_000_u64)
            .prop_map(|(processor, user, events)| Step::Run { processor, user, events }),
        8 => (processor.clone(), any::<bool>()).prop_map(|(processor, compare)| Step::Read { processor, compare }),
        2 => (any::<usize>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(source, sampled, everywhere, turns)| Step::Start { source, sampled, everywhere, turns }),
        1 => Just(Step::Stop),
        1 => (processor.clone(), any::<usize>(), 0..36_u32)
            .prop_map(|(processor, register, bit)| Step::Write { processor, register, bit }),
        1 => (processor.clone(), any::<usize>()).prop_map(|(processor, register)| Step::Clear { processor, register }),
        1 => processor.prop_map(|processor| Step::Idle { processor }),
        1 => any::<bool>().prop_map(|wakes_at_once| Step::Sleep { wakes_at_once }),
        1 => Just(Step::Tick),
        1 => Just(Step::Follow),
    ]
}

/// What is known of a processor.
#[derive(Default)]
struct Known {
    happened: u64,
    /// The last read, and what the counter had counted before and after it.
    read: Option<(GroupReply, [u64; 2])>,
    /// Registers that another program wrote since they were last compared. A program that writes a bit back before that
    /// leaves no trace, so that none is written twice.
    written: BTreeSet<u32>,
}

fn compared(known: &mut [Known]) {
    for known in known {
        known.written.clear();
    }
}

/// The number of reads of which the count was shown to be exact.
#[derive(Default)]
struct Proven(u64);

fn check(name: &str, steps: &[Step], proven: &mut Proven) -> Result<(), TestCaseError> {
    let machine = SimMachine::named(name, PROCESSORS);
    let mut engine = engine(&machine);
    let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let session = started(client, &mut engine, 0, &[EventRequest { modes: modes::BOTH, ..event(6, 0) }]);
    let counters: Vec<u32> = client.read(&mut engine, session).iter().map(|count| count.counter).collect();
    let mut others = Vec::new();
    let mut known: [Known; PROCESSORS as usize] = Default::default();
    let interrupted = Interrupted { ip: 0x1000, process: 100, thread: 200, mode: protocol::Mode::User };
    let serve = |engine: &Engine<&SimMachine>, processor| _ = machine.deliver(engine, processor, &interrupted);
    for step in steps {
        match *step {
            Step::Run { processor, user, events } => {
                known[processor as usize].happened += events;
                machine.run(processor, if user { Mode::User } else { Mode::Kernel }, &|_| events);
                serve(&engine, processor);
            }
            Step::Read { processor, compare } => {
                machine.set_current(processor);
                let flags = if compare { group_flags::COMPARE } else { 0 };
                let known = &mut known[processor as usize];
                let counted = || known.happened + machine.between(processor, counters[processor as usize]);
                let from = counted();
                let read = group(client, &mut engine, session, flags).unwrap();
                let until = counted();
                if let Some((last, [last_from, last_until])) = known.read.filter(|_| compare)
                    && last.generation == read.generation
                {
                    let counted = read.counts[0].wrapping_sub(last.counts[0]);
                    let bounds = from - last_until..=until - last_from;
                    prop_assert!(bounds.contains(&counted), "{name} on {processor}: {counted} instead of {bounds:?}");
                    proven.0 += 1;
                }
                known.read = Some((read, [from, until]));
                if compare {
                    known.written.clear();
                }
            }
            Step::Start { source, sampled, everywhere, turns } => {
                let interval = if sampled { 5_000 } else { 0 };
                let processors = if everywhere { ProcessorSet::EMPTY } else { on(&[1]) };
                let header = header(if turns { flags::MULTIPLEX } else { 0 }, processors);
                let ring = if sampled { 64 } else { 0 };
                let event = event([2, 6, 11, 0x13][source % 4], interval);
                let answer = other.start_with(&mut engine, StartHeader { ring, ..header }, &[event]).header();
                if answer.cause == 0 {
                    others.push(answer.detail[0]);
                }
            }
            Step::Stop => {
                if !others.is_empty() {
                    other.stop(&mut engine, others.remove(0), None);
                }
            }
            Step::Write { processor, register, bit } => {
                let all = control_registers(name);
                write(&machine, &mut known, processor, all[register % all.len()], &|found| found ^ 1 << bit);
            }
            Step::Clear { processor, register } => {
                let all = control_registers(name);
                write(&machine, &mut known, processor, all[register % all.len()], &|_| 0);
            }
            Step::Idle { processor } => machine.processor(processor).model().lose_power(),
            Step::Sleep { wakes_at_once } => {
                machine.fall_asleep(&engine);
                if !wakes_at_once {
                    prop_assert!(group(client, &mut engine, session, 0).is_err());
                    // What runs meanwhile is not counted.
                    for known in &mut known {
                        known.happened += 1;
                    }
                }
                machine.wake(&engine);
                compared(&mut known);
            }
            Step::Tick => {
                machine.ticking().into_iter().for_each(|processor| machine.tick_sampling(&engine, processor));
            }
            Step::Follow => {
                engine.accumulate_counts();
                compared(&mut known);
            }
        }
    }
    engine.close(client.0);
    engine.close(other.0);
    prop_assert!(!machine.is_in_use());
    prop_assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0));
    Ok(())
}

/// Writes a register as another program does.
fn write(machine: &SimMachine, known: &mut [Known], processor: u32, msr: u32, change: &dyn Fn(u64) -> u64) {
    // The overflow flag of a CCCR: a program that sets or clears it leaves no trace.
    const CCCRS: std::ops::Range<u32> = 0x360..0x372;
    const CCCR_OVF: u64 = 1 << 31;
    let (cpu, known) = (machine.processor(processor), &mut known[processor as usize]);
    let Ok(found) = cpu.model().uncounted(|model| model.rdmsr(msr)) else { return };
    let kept = if CCCRS.contains(&msr) { CCCR_OVF } else { 0 };
    let value = change(found) & !kept | found & kept;
    if !known.written.contains(&msr) && value != found && cpu.write_foreign(msr, value) {
        known.written.insert(msr);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(RUNS), ..ProptestConfig::default() })]

    #[test]
    fn two_reads_with_the_same_generation_bracket_what_happened(
        name in prop::sample::select(IDENTITIES.to_vec()),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        check(name, &steps, &mut Proven::default())?;
    }
}

#[test]
fn other_sessions_do_not_change_the_generation_and_the_counts_stay_exact() {
    for name in IDENTITIES {
        let run =
            |processor| [Step::Run { processor, user: true, events: 7_001 }, Step::Read { processor, compare: true }];
        let start = |sampled, everywhere| Step::Start { source: 2, sampled, everywhere, turns: false };
        let steps: Vec<_> = [start(true, true), start(false, true), start(false, false), Step::Tick]
            .into_iter()
            .chain([Step::Stop, Step::Follow, Step::Stop, Step::Stop])
            .flat_map(|step| [run(0), run(1)].concat().into_iter().chain([step]))
            .chain([run(0), run(1)].concat())
            .collect();
        let mut proven = Proven::default();
        check(name, &steps, &mut proven).unwrap();
        assert_eq!(proven.0, 16, "{name}: every read but the first two");
    }
}
