//! Foreign writes at random: each count equals the events that happened, or is marked.

use std::collections::{BTreeMap, BTreeSet};

use model::Mode;
use proptest::prelude::*;
use protocol::{CountRecord, EventRequest, modes};
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, SOURCES, control_registers, deliver, engine, event, run, started, stopped};

const PROCESSORS: u32 = 2;

/// Sessions of a plain test. `PROPTEST_CASES` asks for more.
const SESSIONS: u32 = 1_000;

/// Status register for setting bits, of Intel and of AMD, and the bit that freezes counters.
const STATUS_SET: [u32; 2] = [0x391, 0xC000_0303];
const CTR_FRZ: u64 = 1 << 59;

/// The CCCRs of NetBurst, and their overflow flag.
const CCCRS: std::ops::Range<u32> = 0x360..0x372;
const CCCR_OVF: u64 = 1 << 31;

/// More than any processor has.
const MAX_COUNTERS: u32 = 18;

/// Events between the accesses of the driver, by processor and counter.
type Between = BTreeMap<(u32, u32), u64>;

/// A step of a session. Numbers are taken modulo the number of choices.
#[derive(Debug, Clone)]
enum Step {
    /// Executes events, and serves interrupts.
    Run {
        processor: u32,
        user: bool,
        events: u64,
    },
    /// The same, with an interrupt that waits for the next run.
    RunUnserved {
        processor: u32,
        user: bool,
        events: u64,
    },
    /// Another program writes a register.
    Write {
        processor: u32,
        register: usize,
        value: Value,
    },
    /// The processor loses its registers in deep idle.
    Idle {
        processor: u32,
    },
    /// The tick of sampling sessions.
    Tick,
    /// The thread that follows the counts.
    Follow,
    Read,
}

/// What another program writes.
#[derive(Debug, Clone)]
enum Value {
    Zero,
    /// What is there, with one bit changed.
    Flip(u32),
    /// All counters of a control register, as programs set them that read fixed counters alone.
    AllFixed,
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        2 => Just(Value::Zero),
        4 => (0..36_u32).prop_map(Value::Flip),
        1 => Just(Value::AllFixed),
    ];
    let processor = 0..PROCESSORS;
    prop_oneof![
        8 => (processor.clone(), any::<bool>(), 0..20_000_u64)
            .prop_map(|(processor, user, events)| Step::Run { processor, user, events }),
        2 => (processor.clone(), any::<bool>(), 0..20_000_u64)
            .prop_map(|(processor, user, events)| Step::RunUnserved { processor, user, events }),
        3 => (processor.clone(), any::<usize>(), value)
            .prop_map(|(processor, register, value)| Step::Write { processor, register, value }),
        1 => processor.prop_map(|processor| Step::Idle { processor }),
        2 => Just(Step::Tick),
        1 => Just(Step::Follow),
        1 => Just(Step::Read),
    ]
}

/// Writes of other programs to the registers of one processor.
#[derive(Default)]
struct Foreign {
    /// Registers written since they were last compared. A program that writes a bit back before that leaves no trace,
    /// so that none is written twice.
    written: BTreeSet<u32>,
    /// Whether it ever wrote something else.
    wrote: bool,
}

impl Foreign {
    fn write(&mut self, machine: &SimMachine, processor: u32, msr: u32, value: &Value) {
        let cpu = machine.processor(processor);
        let Ok(found) = cpu.model().uncounted(|model| model.rdmsr(msr)) else { return };
        let value = match value {
            _ if STATUS_SET.contains(&msr) => CTR_FRZ,
            Value::Zero => 0,
            Value::Flip(bit) => found ^ 1 << bit,
            Value::AllFixed if msr == 0x38D => 0x333,
            Value::AllFixed => 0x7_0000_000F,
        };
        // A program that sets or clears an overflow flag leaves no trace.
        let value = if CCCRS.contains(&msr) { value & !CCCR_OVF | found & CCCR_OVF } else { value };
        if !self.written.contains(&msr) && value != found && cpu.write_foreign(msr, value) {
            self.written.insert(msr);
            self.wrote = true;
        }
    }
}

fn check(name: &str, of_events: &[u32], sampled: bool, steps: &[Step]) -> Result<(), TestCaseError> {
    let machine = SimMachine::named(name, PROCESSORS);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let most = engine.sampler().hal().interface_of(pmu::ProcessorIndex::BOOT);
    // The third of the sources needs a counter of the second one on a thread of NetBurst.
    let most = if name == "netburst-irwindale" { 2 } else { usize::from(pmu::ProfileInterface::counters(&most)) };
    let interval = if sampled && name != "pentium-p55c" { 5_000 } else { 0 };
    // Trying an event of the Pentium lets its counter count, so that the model's ledger has more than the session.
    let allowed = |modes: u32| if name == "pentium-p55c" { modes::USER } else { modes };
    let events: Vec<_> = of_events
        .iter()
        .take(most)
        .zip(SOURCES)
        .map(|(of_event, source)| EventRequest { modes: allowed(*of_event), ..event(source, interval) })
        .collect();
    let session = started(client, &mut engine, &events);
    let mut happened: BTreeMap<(u32, bool), u64> = BTreeMap::new();
    let mut foreign: [Foreign; PROCESSORS as usize] = Default::default();
    // The first thread of a core has every other pair of counters.
    let number = |counter: u32| {
        if name == "netburst-irwindale" { [0, 1, 4, 5, 8, 9, 12, 13, 16][counter as usize] } else { counter }
    };
    // What occurred between the accesses of the driver, by the model.
    let between = || {
        let counters = (0..PROCESSORS).flat_map(|processor| (0..MAX_COUNTERS).map(move |counter| (processor, counter)));
        counters.map(|(processor, counter)| ((processor, counter), machine.between(processor, counter)))
    };
    // What occurs before the counter of an event is read, `from` until some time in `until`, is in its count.
    let right = |count: &CountRecord, happened: &BTreeMap<(u32, bool), u64>, [from, until]: [&Between; 2]| {
        let of = |user, mode| {
            if count.modes & mode == 0 { 0 } else { *happened.get(&(count.processor, user)).unwrap_or(&0) }
        };
        let (happened, key) =
            (of(true, modes::USER) + of(false, modes::KERNEL), (count.processor, number(count.counter)));
        (happened + from[&key]..=happened + until[&key]).contains(&count.count)
    };
    let compared = |foreign: &mut [Foreign]| foreign.iter_mut().for_each(|one| one.written.clear());
    for step in steps {
        match step {
            Step::Run { processor, user, events } => {
                *happened.entry((*processor, *user)).or_default() += events;
                run(&machine, &engine, *processor, mode(*user), *events);
            }
            Step::RunUnserved { processor, user, events } => {
                *happened.entry((*processor, *user)).or_default() += events;
                machine.run(*processor, mode(*user), &|_| *events);
            }
            Step::Write { processor, register, value } => {
                let all = control_registers(name);
                foreign[*processor as usize].write(&machine, *processor, all[register % all.len()], value);
            }
            Step::Idle { processor } => {
                machine.processor(*processor).model().lose_power();
                foreign[*processor as usize].wrote = true;
            }
            Step::Tick => {
                machine.ticking().into_iter().for_each(|processor| machine.tick_sampling(&engine, processor));
                if interval > 0 {
                    compared(&mut foreign);
                }
            }
            Step::Follow => {
                engine.accumulate_counts();
                compared(&mut foreign);
            }
            Step::Read => {
                let before: Between = between().collect();
                let counts = client.read(&mut engine, session);
                let after: Between = between().collect();
                for count in counts {
                    let is_right = right(&count, &happened, [&before, &after]);
                    prop_assert!(is_right || count.disturbed_register != 0, "{count:?} {happened:?}");
                }
                compared(&mut foreign);
            }
        }
    }
    if interval == 0 {
        (0..PROCESSORS).for_each(|processor| deliver(&machine, &engine, processor));
    }
    let overflows = |count: &CountRecord| {
        let counter = machine.counter(count.processor, u8::try_from(number(count.counter)).unwrap());
        let model = machine.processor(count.processor).model();
        model.ledger().entries().filter(|entry| entry.counter == counter).map(|entry| entry.overflows).sum::<u64>()
    };
    let counts = stopped(client, &mut engine, session);
    // A counter stands still when it is read for the last time.
    let after: Between = between().collect();
    for count in counts {
        let is_marked = count.disturbed_register != 0;
        let is_accounted = count.samples + count.lost + count.throttled == overflows(&count) || interval == 0;
        prop_assert!(is_marked || right(&count, &happened, [&after, &after]), "{count:?} {happened:?}");
        prop_assert!(is_marked || is_accounted, "{count:?}: {} overflows", overflows(&count));
        prop_assert!(
            !is_marked || foreign[count.processor as usize].wrote,
            "marked, but nothing was written: {count:?}"
        );
        prop_assert!(!is_marked || count.disturbed_found != count.disturbed_expected, "{count:?}");
    }
    prop_assert!(machine.all().all(|cpu| cpu.model().accesses().faulted == 0));
    Ok(())
}

const fn mode(user: bool) -> Mode {
    if user { Mode::User } else { Mode::Kernel }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(SESSIONS), ..ProptestConfig::default() })]

    #[test]
    fn each_count_beside_foreign_writes_equals_what_happened_or_is_marked(
        name in prop::sample::select(IDENTITIES.to_vec()),
        modes in prop::collection::vec(modes::USER..=modes::BOTH, 1..=SOURCES.len()),
        sampled in any::<bool>(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        check(name, &modes, sampled, &steps)?;
    }
}
