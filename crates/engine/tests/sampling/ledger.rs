//! Overflows in the model = samples delivered + lost + throttled + windows without a condition that the session has,
//! exactly, for every session, processor and source, with late and lost interrupts, and with other programs that write
//! the registers of the counters.

use std::collections::BTreeMap;

use engine::{Engine, Platform};
use model::{InterruptMode, Mode};
use proptest::prelude::*;
use protocol::{CountRecord, EventRequest, InfoReply, LostRecord, MAX_BUDGET, ProcessorSet, Record, event_flags};
use simulation::{Client, SimMachine};

use super::foreign;
use super::scene::{
    IDENTITIES, SOURCES, engine, event, fetched, header, info, interrupted, is_left_clean, is_sample, machine,
    machines, on, run, started, stopped,
};
use pmu::ProcessorIndex;
use pmu::state::CounterState;

const PROCESSORS: u32 = 3;

/// Few sources, so that sessions often share counters.
const INTERVALS: [u32; 2] = [5_000, 7_000];

/// LVT entry of the Windows HAL, masked.
const MASKED: u32 = 0x1_00FE;

/// The entry after a reset: vector 0, masked.
const RESET: u32 = 0x1_0000;

/// A step of the sequence. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone)]
enum Step {
    /// Executes events and serves the interrupt immediately. More events occur before one of the accesses of the
    /// handler.
    Run {
        processor: u32,
        events: u64,
        access: u64,
        late: u64,
    },
    /// Executes events. The interrupt is late: it is not served until the next run there.
    RunUnserved {
        processor: u32,
        events: u64,
    },
    /// Lets other software mask the LVT entry of a processor.
    Mask {
        processor: u32,
    },
    /// Other software resets the LVT entry of a processor, or the HAL sets it up.
    SetUp {
        processor: u32,
        up: bool,
    },
    /// Sets whether the HAL sets up the LVT entry of a processor after the next sleeps.
    Forget {
        processor: u32,
        forgets: bool,
    },
    /// Another program writes a register.
    Foreign {
        processor: u32,
        register: usize,
        bits: u64,
    },
    /// Delivers this many spurious interrupts.
    Spurious {
        processor: u32,
        count: u32,
    },
    Fetch {
        session: usize,
        room: usize,
    },
    StopOne {
        session: usize,
        source: usize,
    },
    Stop {
        session: usize,
    },
    Start {
        source: usize,
        interval: usize,
        /// Only windows in which another source occurred less often.
        is_conditional: bool,
        ring: u32,
        processors: u32,
    },
    /// Makes the next clock readings far apart, so that the budget is soon exhausted.
    Slow {
        units: u64,
    },
    Tick,
    Sleep,
    Wake,
    Kill {
        session: usize,
    },
}

fn step(kills: bool) -> impl Strategy<Value = Step> {
    let late = prop_oneof![3 => Just(0), 1 => 0..20_000_u64];
    prop_oneof![
        10 => (0..PROCESSORS, 0..20_000_u64, 1..20_u64, late).prop_map(
            |(processor, events, access, late)| Step::Run { processor, events, access, late }
        ),
        2 => (0..PROCESSORS, 0..20_000_u64).prop_map(|(processor, events)| Step::RunUnserved { processor, events }),
        1 => (0..PROCESSORS).prop_map(|processor| Step::Mask { processor }),
        1 => (0..PROCESSORS, any::<bool>()).prop_map(|(processor, up)| Step::SetUp { processor, up }),
        1 => (0..PROCESSORS, any::<bool>()).prop_map(|(processor, forgets)| Step::Forget { processor, forgets }),
        2 => (0..PROCESSORS, any::<usize>(), any::<u64>()).prop_map(
            |(processor, register, bits)| Step::Foreign { processor, register, bits }
        ),
        1 => (0..PROCESSORS, 1..100_u32).prop_map(|(processor, count)| Step::Spurious { processor, count }),
        2 => (any::<usize>(), 1..50_usize).prop_map(|(session, room)| Step::Fetch { session, room }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(session, source)| Step::StopOne { session, source }),
        1 => any::<usize>().prop_map(|session| Step::Stop { session }),
        3 => (any::<usize>(), any::<usize>(), any::<bool>(), 6..8_u32, 1..1_u32 << PROCESSORS).prop_map(
            move |(source, interval, conditional, ring, processors)| {
                // The account does not contain what was withheld from a client that was killed.
                Step::Start { source, interval, is_conditional: conditional && !kills, ring: 1 << ring, processors }
            }
        ),
        1 => (0..40_000_u64).prop_map(|units| Step::Slow { units }),
        2 => Just(Step::Tick),
        1 => Just(Step::Sleep),
        2 => Just(Step::Wake),
        1 => any::<usize>().prop_map(move |session| if kills { Step::Kill { session } } else { Step::Tick }),
    ]
}

/// A sum for each processor and source.
type Sums = BTreeMap<(u32, u64), u64>;

/// A counter of a session: its processor, its number, and the overflows before the session.
type Counter = (u32, u8, u64);

/// A session with one event that is sampled, and the known results.
struct LedgerSession {
    client: Client,
    number: u64,
    source: u64,
    counters: Vec<Counter>,
    running: bool,
}

/// Returns the processors of a mask.
fn chosen_processors(mask: u32) -> ProcessorSet {
    on(&(0..PROCESSORS).filter(|number| mask >> number & 1 == 1).collect::<Vec<u32>>())
}

/// Returns the counts of the event that is sampled.
fn sampled(counts: Vec<CountRecord>) -> Vec<CountRecord> {
    counts.into_iter().filter(|count| count.index == 0).collect()
}

/// Returns the overflows of a counter in the model.
fn overflows_of(machine: &SimMachine, processor: u32, counter: u8) -> u64 {
    let id = machine.counter(processor, counter);
    let model = machine.processor(processor).model();
    model.ledger().entries().filter(|entry| entry.counter == id).map(|entry| entry.overflows).sum()
}

impl LedgerSession {
    /// Creates the state of a new session. An overflow with a pending interrupt belongs to the session, because its
    /// sample follows.
    fn begun(machine: &SimMachine, engine: &mut Engine<&SimMachine>, client: Client, number: u64, source: u64) -> Self {
        let counts = sampled(client.read(engine, number));
        let hal = engine.sampler().hal();
        let counter = |count: &CountRecord| {
            let (processor, counter) = (count.processor, u8::try_from(count.counter).unwrap());
            let waits = !hal.is_asleep(ProcessorIndex::new(processor))
                && hal.check_overflow(machine.current(processor)).0.has(counter);
            (processor, counter, overflows_of(machine, processor, counter) - u64::from(waits))
        };
        let counters = counts.iter().map(counter).collect();
        Self { client, number, source, counters, running: true }
    }

    /// Returns the overflows of the session so far, by processor.
    fn raised(&self, machine: &SimMachine) -> Vec<u64> {
        let raised = |(processor, counter, before): &Counter| overflows_of(machine, *processor, *counter) - before;
        self.counters.iter().map(raised).collect()
    }

    /// Ends a session that was stopped or killed. `counts` are its final counts, if known.
    fn end(&mut self, told: &mut Told, raised: &[u64], counts: Option<&[CountRecord]>) -> Result<(), TestCaseError> {
        if !std::mem::take(&mut self.running) {
            return Ok(());
        }
        told.raised += raised.iter().sum::<u64>();
        let Some(counts) = counts else { return Ok(()) };
        prop_assert_eq!(counts.len(), raised.len());
        for (count, raised) in counts.iter().zip(raised) {
            prop_assert_eq!(count.samples + count.lost + count.throttled + count.unmet, *raised, "{:?}", count);
            told.raised -= count.unmet;
            let key = (count.processor, count.event.source);
            *told.samples.entry(key).or_default() += count.samples;
            *told.lost.entry(key).or_default() += count.lost;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Told {
    /// Overflows of all ended sessions. An overflow of a shared counter belongs to each of its sessions.
    raised: u64,
    /// Samples in the final counts.
    samples: Sums,
    lost: Sums,
    /// Samples that were fetched, and those that records reported lost.
    fetched: Sums,
    lost_records: Sums,
}

impl Told {
    /// Checks that all overflows are accounted for.
    fn is_all(&self, all: &InfoReply, name: &str, kills: bool) -> Result<(), TestCaseError> {
        if !kills {
            prop_assert_eq!(&self.fetched, &nonzero(&self.samples), "every sample was fetched");
            prop_assert_eq!(&self.lost_records, &nonzero(&self.lost), "every loss was told");
        }
        let accounted = all.delivered + all.lost + all.throttled + all.discarded;
        prop_assert_eq!(accounted, self.raised, "{}: {:?}", name, all);
        prop_assert_eq!(all.delivered, self.fetched.values().sum::<u64>());
        prop_assert!(kills || all.discarded == 0);
        Ok(())
    }

    /// Adds the records of a session, which has one event, of `source`.
    fn records(&mut self, source: u64, records: &[Record]) {
        for record in records {
            let key = (record.processor(), source);
            match record {
                Record::Sample(sample) => {
                    assert_eq!(sample.event, 0);
                    let processor = sample.processor;
                    assert_eq!((sample.ip, sample.process), (0x1000 + u64::from(processor), 100 + processor));
                    *self.fetched.entry(key).or_default() += 1;
                }
                Record::Lost(LostRecord { count, .. }) => *self.lost_records.entry(key).or_default() += count,
                _ => {}
            }
        }
    }
}

/// Runs a tick, which resumes a throttled processor, and two more, and delivers the pending interrupts after each. Then
/// no overflow is pending, and no counter is frozen or stopped by another program.
fn settle(machine: &SimMachine, engine: &Engine<&SimMachine>) -> Result<(), TestCaseError> {
    machine.set_pace(0);
    for processor in 0..PROCESSORS {
        for _ in 0..3 {
            if machine.ticking().contains(&processor) {
                machine.tick_sampling(engine, processor);
            }
            machine.deliver(engine, processor, &interrupted(processor));
        }
        let hal = engine.sampler().hal();
        if !hal.is_asleep(ProcessorIndex::new(processor)) {
            let waiting = hal.check_overflow(machine.current(processor)).0;
            prop_assert!(waiting.is_empty(), "{:?} of processor {}", waiting, processor);
            // Where nothing interrupts, ticks do not look at counters that only count.
            let sampling = hal.cpu_counters(ProcessorIndex::new(processor)).counters(CounterState::is_sampling);
            let disturbed = hal.compare(machine.current(processor), 0).and(sampling);
            prop_assert!(disturbed.is_empty(), "{:?} of processor {}", disturbed, processor);
        }
    }
    Ok(())
}

/// The behavior of interrupts at the LVT entry.
#[derive(Debug, Clone, Copy)]
struct Interrupts {
    mode: InterruptMode,
    /// AMD's entry masks itself, as under some hypervisors. Intel's always does.
    masked: bool,
}

impl Interrupts {
    fn machine(self, name: &str) -> SimMachine {
        let machine = machine(name, PROCESSORS, self.mode);
        if self.masked {
            machine.all().for_each(|cpu| cpu.model().set_masked_on_delivery());
        }
        machine
    }
}

fn interrupts() -> impl Strategy<Value = Interrupts> {
    (prop::sample::select(InterruptMode::ALL.to_vec()), any::<bool>())
        .prop_map(|(mode, masked)| Interrupts { mode, masked })
}

fn check(name: &str, interrupts: Interrupts, steps: Vec<Step>, kills: bool, wakes: bool) -> Result<(), TestCaseError> {
    let machine = interrupts.machine(name);
    let mut engine = engine(&machine);
    let observer = Client::open(&mut engine, 1, 1);
    let mut sessions: Vec<LedgerSession> = Vec::new();
    let mut told = Told::default();
    let mut handles = 1;
    for step in steps {
        let number = sessions.len();
        let chosen = |session: usize| session.checked_rem(number);
        match step {
            Step::Run { processor, events, access, late } => {
                machine.run(processor, Mode::User, &|_| events);
                machine.processor(processor).happen_before_access(access, late);
                machine.deliver(&engine, processor, &interrupted(processor));
                machine.processor(processor).happen_before_access(0, 0);
            }
            Step::RunUnserved { processor, events } => machine.run(processor, Mode::User, &|_| events),
            Step::Mask { processor } => machine.processor(processor).model().set_lvt(MASKED),
            Step::SetUp { processor, up: true } => machine.processor(processor).model().initialize_lvt(),
            Step::SetUp { processor, up: false } => machine.processor(processor).model().set_lvt(RESET),
            Step::Forget { processor, forgets } => {
                machine.processor(processor).model().set_lvt_forgotten(forgets);
            }
            Step::Foreign { processor, register, bits } => foreign::write(&machine, name, processor, register, bits),
            Step::Spurious { processor, count } => {
                for _ in 0..count {
                    let (current, clock) = (machine.current(processor), || (&machine).clock());
                    let _ = engine.sampler().interrupt(current, clock, &interrupted(processor));
                }
            }
            Step::Fetch { session, room } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get(index)) {
                    let answer = session.client.samples(&mut engine, session.number, None, room).unwrap();
                    told.records(session.source, &answer.try_samples().unwrap());
                }
            }
            Step::StopOne { session, source } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get_mut(index)) {
                    let (raised, source) = (session.raised(&machine), SOURCES[source % SOURCES.len()]);
                    let answer = session.client.stop(&mut engine, session.number, Some(source));
                    if source == session.source {
                        session.end(&mut told, &raised, Some(&sampled(answer.records())))?;
                    }
                }
            }
            Step::Stop { session } => {
                if let Some(session) = chosen(session).and_then(|index| sessions.get_mut(index)) {
                    let raised = session.raised(&machine);
                    // If its last samples were fetched before, the session no longer exists.
                    let answer = session.client.stop(&mut engine, session.number, None);
                    session.end(&mut told, &raised, Some(&sampled(answer.records())))?;
                }
            }
            Step::Start { source, interval, is_conditional, ring, processors } => {
                handles += 1;
                let client = Client::open(&mut engine, handles, 1);
                let [source, other] = [source % 3, (source % 3 + 1) % 3].map(|index| SOURCES[index]);
                let plain = event(source, INTERVALS[interval % INTERVALS.len()]);
                let below = EventRequest { flags: event_flags::BELOW, ratio: [1, 0], limit: [1, 1], ..plain };
                let events = if is_conditional { vec![below, event(other, 0)] } else { vec![plain] };
                let answer =
                    client.start_with(&mut engine, header(ring, chosen_processors(processors)), &events).header();
                let [number, _] = answer.detail;
                if answer.status == 0 {
                    sessions.push(LedgerSession::begun(&machine, &mut engine, client, number, source));
                }
            }
            Step::Slow { units } => machine.set_pace(units),
            Step::Tick => machine.ticking().into_iter().for_each(|processor| machine.tick_sampling(&engine, processor)),
            Step::Sleep => machine.fall_asleep(&engine),
            Step::Wake => machine.wake(&engine),
            Step::Kill { session } => {
                if let Some(index) = chosen(session) {
                    let mut session = sessions.swap_remove(index);
                    let raised = session.raised(&machine);
                    engine.close(session.client.0);
                    session.end(&mut told, &raised, None)?;
                }
            }
        }
    }
    if wakes {
        machine.wake(&engine);
    }
    settle(&machine, &engine)?;
    for session in &mut sessions {
        let raised = session.raised(&machine);
        let answer = session.client.stop(&mut engine, session.number, None);
        session.end(&mut told, &raised, Some(&sampled(answer.records())))?;
        let answer = session.client.samples(&mut engine, session.number, None, 100_000).unwrap();
        told.records(session.source, &answer.try_samples().unwrap());
    }
    for processor in 0..PROCESSORS {
        machine.deliver(&engine, processor, &interrupted(processor)); // late interrupts
    }
    told.is_all(&info(observer, &mut engine), name, kills)?;
    prop_assert!(is_left_clean(&machine));
    prop_assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0));
    prop_assert!(machine.all().all(|cpu| cpu.model().illegal_vectors() == 0));
    Ok(())
}

fn nonzero(sums: &Sums) -> Sums {
    sums.iter().filter(|(_, sum)| **sum > 0).map(|(key, sum)| (*key, *sum)).collect()
}

proptest! {
    #[test]
    fn every_overflow_is_accounted_for_each_session_and_processor(
        name in prop::sample::select(IDENTITIES.to_vec()),
        interrupts in interrupts(),
        steps in prop::collection::vec(step(false), 1..150),
        wakes in any::<bool>(),
    ) {
        check(name, interrupts, steps, false, wakes)?;
    }

    #[test]
    fn every_overflow_is_accounted_when_clients_are_killed(
        name in prop::sample::select(IDENTITIES.to_vec()),
        interrupts in interrupts(),
        steps in prop::collection::vec(step(true), 1..150),
        wakes in any::<bool>(),
    ) {
        check(name, interrupts, steps, true, wakes)?;
    }
}

#[test]
fn a_full_ring_loses_samples_and_reports_how_many() {
    for (name, machine) in machines(1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 1);
        let session = started(client, &mut engine, 64, on(&[0]), &[event(2, 5_000)]);
        for _ in 0..100 {
            run(&machine, &engine, 0, 5_000);
        }
        let (records, last) = fetched(client, &mut engine, session);
        let (samples, others): (Vec<Record>, Vec<Record>) = records.iter().copied().partition(is_sample);
        assert_eq!((samples.len(), others.len(), last), (64, 1, false), "{name}");
        assert!(matches!(others[0], Record::Lost(LostRecord { count: 36, .. })), "{name}: {:?}", others[0]);
        run(&machine, &engine, 0, 5_000);
        assert_eq!(
            fetched(client, &mut engine, session).0.len(),
            1,
            "{name}: the loss is reported once, and sampling continues"
        );
        let counts = stopped(client, &mut engine, session, None);
        assert_eq!((counts[0].samples, counts[0].lost, counts[0].count), (65, 36, 505_000), "{name}");
    }
}

#[test]
fn the_largest_budget_is_less_than_all_time() {
    const { assert!(MAX_BUDGET < 1_000) };
}
