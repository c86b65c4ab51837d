//! Laws of the scheduler, with the model of the PMU as its processors.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use bench_protocol::{Accounting, EventCount, HandleTarget, MaskMeaning, Scheduling, UserRdpmc, Work};
use model::Processor;
use proptest::prelude::*;
use scheduler::{
    ALREADY_ENABLED, ConfigureError, ENABLE_DISPATCH, INVALID_HANDLE, INVALID_PARAMETER, Mode, PRIVILEGED_INSTRUCTION,
    PerformanceData, Processors, READ_COUNTERS, READ_DISPATCH, Scheduler, ThreadId,
};

const INSTRUCTIONS: u16 = 0xC0;
const CYCLES: u16 = 0x76;

/// AMD's PerfEvtSel0 and PerfCtr0; enabled, user mode and both modes.
const SELECT: u32 = 0xC001_0000;
const COUNTER: u32 = 0xC001_0004;
const USER: u64 = 0x41 << 16;
const BOTH: u64 = 0x43 << 16;

/// The counters: instructions and cycles in user mode, and instructions in both modes.
const SELECTED: [u64; 3] = [USER | INSTRUCTIONS as u64, USER | CYCLES as u64, BOTH | INSTRUCTIONS as u64];

/// Processors with free-running counters.
struct Machine(Vec<Processor>);

impl Machine {
    fn new(count: u32) -> Self {
        let processor = |number: u32| {
            let mut processor = Processor::new(Box::new(|leaf, _| match leaf {
                0 => [1, u32::from_le_bytes(*b"Auth"), u32::from_le_bytes(*b"cAMD"), u32::from_le_bytes(*b"enti")],
                _ => [0; 4],
            }));
            for (counter, selected) in (0..).zip(SELECTED) {
                processor.wrmsr(COUNTER + counter, u64::from(number) * 1_000_003).unwrap();
                processor.wrmsr(SELECT + counter, selected).unwrap();
            }
            processor
        };
        Self((0..count).map(processor).collect())
    }
}

impl Processors for Machine {
    fn execute(&mut self, processor: u32, mode: Mode, events: &[EventCount]) {
        let mode = match mode {
            Mode::User => model::Mode::User,
            Mode::Kernel => model::Mode::Kernel,
        };
        self.0[processor as usize].run(mode, &|selected| {
            let same = events.iter().filter(|(event, umask, _)| (*event, *umask) == (selected.event, selected.umask));
            same.map(|(.., count)| count).sum()
        });
    }

    fn read_counter(&mut self, processor: u32, index: u64) -> u64 {
        self.0[processor as usize].rdpmc(u32::try_from(index).unwrap()).unwrap()
    }
}

/// A scheduler with the counters 0 to 2, and its machine.
fn start(behavior: Scheduling, processors: u32) -> (Scheduler, Machine) {
    let mut scheduler = Scheduler::new(behavior, processors);
    scheduler.configure(&[0, 1, 2]).unwrap();
    (scheduler, Machine::new(processors))
}

fn work(user: u64, kernel: u64) -> Work {
    let events = |count| vec![(INSTRUCTIONS, 0, count), (CYCLES, 0, count / 2)];
    Work { user: events(user), kernel: events(kernel) }
}

fn behaviors() -> impl Strategy<Value = Scheduling> {
    let shares = (0..60_u32, 0..=100_u32, 0..40_u32, 0..40_u32);
    let numbers = (any::<u64>(), 1..6_u32, 0..5_000_u64, 0..500_u64, 0..50_u64);
    (shares, numbers, any::<bool>()).prop_map(
        |((preempt, migrate, interrupt, delay), (seed, slices, others, kernel, overhead), in_profiled)| Scheduling {
            seed,
            preempt,
            migrate,
            interrupt,
            delay,
            slices,
            others,
            kernel,
            overhead,
            rdpmc: if in_profiled { UserRdpmc::WorksInProfiledThreads } else { UserRdpmc::Works },
            ..Scheduling::default()
        },
    )
}

/// Thread, events in user mode, events in kernel mode.
fn works() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    proptest::collection::vec((1..4_u64, 0..100_000_u64, 0..10_000_u64), 1..30)
}

proptest! {
    #[test]
    fn a_profile_in_user_mode_is_exactly_what_the_thread_executed(
        behavior in behaviors(),
        works in works(),
        processors in 1..5_u32,
    ) {
        let (mut scheduler, mut machine) = start(behavior, processors);
        let mut begun = Vec::new();
        for thread in (1..4).map(ThreadId) {
            let handle = scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 0b11).unwrap();
            let first = scheduler.read(&mut machine, thread, handle, READ_COUNTERS | READ_DISPATCH).unwrap();
            // What the thread executes after the values were read belongs to the region.
            begun.push((thread, handle, first));
        }
        let ledgers: Vec<_> = begun.iter().map(|(thread, ..)| scheduler.ledger(*thread)).collect();
        let mut executed = [[0_u64; 2]; 4];
        for (thread, user, kernel) in works {
            scheduler.run(&mut machine, ThreadId(thread), &work(user, kernel));
            executed[usize::try_from(thread).unwrap()][0] += user;
            executed[usize::try_from(thread).unwrap()][1] += user / 2;
        }
        for ((thread, handle, first), before) in begun.into_iter().zip(ledgers) {
            let last = scheduler.read(&mut machine, thread, handle, READ_COUNTERS | READ_DISPATCH).unwrap();
            let after = scheduler.ledger(thread);
            // The parts in user mode of the calls are as long before a value is read as after it.
            for (bit, event) in [INSTRUCTIONS, CYCLES].into_iter().enumerate() {
                let counted = last.counters[bit] - first.counters[bit];
                prop_assert_eq!(counted, after.user(event, 0) - before.user(event, 0));
                prop_assert_eq!(
                    counted,
                    executed[usize::try_from(thread.0).unwrap()][bit] + 2 * scheduler.behavior().overhead
                );
            }
            prop_assert_eq!(last.counter_count, 3);
            prop_assert!(u64::from(last.context_switches) <= after.switches);
            prop_assert!(last.cycles <= after.cycles && last.cycles >= first.cycles);
        }
    }

    #[test]
    fn equal_numbers_of_switches_prove_that_a_pinned_thread_was_alone(
        behavior in behaviors(),
        works in works(),
    ) {
        let (mut scheduler, mut machine) = start(behavior, 2);
        let thread = ThreadId(1);
        scheduler.set_affinity(&mut machine, thread, thread, 0b10).unwrap();
        let handle = scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 0).unwrap();
        for (other, user, kernel) in works {
            let before = scheduler.read(&mut machine, thread, handle, READ_DISPATCH).unwrap();
            let (processor, first) = scheduler.request(&mut machine, thread, |machine, processor| {
                (processor, machine.read_counter(processor, 0))
            });
            let ledger = scheduler.ledger(thread);
            scheduler.run(&mut machine, thread, &work(user, kernel));
            if other == 2 {
                scheduler.run(&mut machine, ThreadId(2), &work(7, 7));
            }
            let (last_processor, last) = scheduler.request(&mut machine, thread, |machine, processor| {
                (processor, machine.read_counter(processor, 0))
            });
            let executed = scheduler.ledger(thread).user(INSTRUCTIONS, 0) - ledger.user(INSTRUCTIONS, 0);
            let after = scheduler.read(&mut machine, thread, handle, READ_DISPATCH).unwrap();
            prop_assert_eq!((processor, last_processor), (1, 1));
            if after.context_switches == before.context_switches {
                prop_assert_eq!(last - first, executed);
            } else {
                prop_assert!(last - first >= executed);
            }
        }
    }

    #[test]
    fn kernel_mode_is_counted_with_the_interrupts(behavior in behaviors(), works in works()) {
        let behavior = Scheduling { preempt: 0, interrupt: 0, ..behavior };
        let interrupted = Scheduling { interrupt: 50, preempt: 50, ..behavior.clone() };
        let (mut scheduler, mut machine) = start(behavior.clone(), 2);
        let thread = ThreadId(1);
        let handle = scheduler.enable(&mut machine, thread, thread, 0, 0b100).unwrap();
        let first = scheduler.read(&mut machine, thread, handle, READ_COUNTERS).unwrap();
        let before = scheduler.ledger(thread);
        scheduler.set_behavior(interrupted);
        for (_, user, kernel) in works {
            scheduler.run(&mut machine, thread, &work(user, kernel));
        }
        scheduler.set_behavior(behavior);
        let last = scheduler.read(&mut machine, thread, handle, READ_COUNTERS).unwrap();
        let after = scheduler.ledger(thread);
        let all = |ledger: &scheduler::Ledger| {
            ledger.user(INSTRUCTIONS, 0) + ledger.kernel(INSTRUCTIONS, 0) + ledger.interrupts(INSTRUCTIONS, 0)
        };
        prop_assert_eq!(last.counters[2] - first.counters[2], all(&after) - all(&before));
    }

    #[test]
    fn equal_seeds_make_equal_histories(behavior in behaviors(), works in works()) {
        let run = || {
            let (mut scheduler, mut machine) = start(behavior.clone(), 3);
            for (thread, user, kernel) in &works {
                scheduler.run(&mut machine, ThreadId(*thread), &work(*user, *kernel));
            }
            let ledgers: Vec<_> = scheduler.threads().map(|thread| scheduler.ledger(thread)).collect();
            (ledgers, scheduler.time())
        };
        prop_assert_eq!(run(), run());
    }
}

/// Returns a field of the memory of a profile.
fn field(memory: &PerformanceData, at: usize) -> u64 {
    u64::from_le_bytes(memory[at..at + 8].try_into().unwrap())
}

proptest! {
    /// What a thread can compute without RDPMC in user mode: a driver reads the counter in a request, and the memory
    /// is the same before and after it.
    #[test]
    fn total_and_the_difference_of_a_driver_are_exact_while_the_memory_does_not_change(
        behavior in behaviors(),
        works in works(),
        processors in 1..5_u32,
    ) {
        let behavior = Scheduling { rdpmc: UserRdpmc::Faults, ..behavior };
        let (mut scheduler, mut machine) = start(behavior, processors);
        let thread = ThreadId(1);
        scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 0b10).unwrap();
        let value = |scheduler: &mut Scheduler, machine: &mut Machine| loop {
            let before = scheduler.read_memory(machine, thread).unwrap();
            let (raw, executed) = {
                let processor = scheduler.begin_request(machine, thread);
                let read = (machine.read_counter(processor, 1), scheduler.ledger(thread).user(CYCLES, 0));
                scheduler.end_request(machine, thread);
                read
            };
            let after = scheduler.read_memory(machine, thread).unwrap();
            if before == after {
                return (field(&after, 0x40 + 0x18 + 0x10) + raw - field(&after, 0x40 + 0x18 + 8), executed);
            }
        };
        for (_, user, kernel) in works {
            let (first, before) = value(&mut scheduler, &mut machine);
            scheduler.run(&mut machine, thread, &work(user, kernel));
            let (last, after) = value(&mut scheduler, &mut machine);
            prop_assert_eq!(last - first, after - before);
        }
    }
}

#[test]
fn rdpmc_in_user_mode_faults_by_default() {
    for (rdpmc, without, with) in [
        (UserRdpmc::Faults, [false; 2], [false; 2]),
        (UserRdpmc::Works, [true; 2], [true; 2]),
        (UserRdpmc::WorksOnProcessor0, [true, false], [true, false]),
        (UserRdpmc::WorksInProfiledThreads, [false; 2], [false, true]),
    ] {
        let (mut scheduler, mut machine) = start(Scheduling { rdpmc, ..Scheduling::default() }, 2);
        let thread = ThreadId(1);
        scheduler.set_affinity(&mut machine, thread, thread, 0b10).unwrap();
        let works = |scheduler: &Scheduler| [0, 1].map(|processor| scheduler.rdpmc_works_on(processor));
        assert_eq!(works(&scheduler), without, "{rdpmc:?}");
        let handle = scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 1).unwrap();
        assert_eq!(works(&scheduler), with, "{rdpmc:?}");
        let read = scheduler.read(&mut machine, thread, handle, READ_COUNTERS | READ_DISPATCH);
        assert_eq!(read.err(), (!with[1]).then_some(PRIVILEGED_INSTRUCTION), "{rdpmc:?}");
        assert!(scheduler.read(&mut machine, thread, handle, READ_DISPATCH).is_ok(), "the account needs none");
    }
    assert_eq!(Scheduling::default().rdpmc, UserRdpmc::Faults);
}

#[test]
fn the_memory_of_a_profile_has_the_public_layout_or_another() {
    let memory = |handle| {
        let (mut scheduler, mut machine) = start(Scheduling { handle, ..Scheduling::default() }, 2);
        let thread = ThreadId(1);
        assert!(scheduler.performance_data(thread).is_none());
        scheduler.set_affinity(&mut machine, thread, thread, 0b10).unwrap();
        scheduler.run(&mut machine, thread, &work(1_000, 0));
        scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 0b101).unwrap();
        scheduler.run(&mut machine, thread, &work(70, 0));
        scheduler.preempt(&mut machine, thread);
        scheduler.read_memory(&mut machine, thread)
    };
    let real = memory(HandleTarget::PerformanceData).unwrap();
    assert_eq!(field(&real, 0), 0x1C0 | 1 << 16 | 1 << 48, "size, version, processor 1");
    assert_eq!(field(&real, 8), 1 | 3 << 32, "one switch, three configured counters");
    assert_eq!((field(&real, 0x10), field(&real, 0x20)), (3, 0b101), "in, out and in again; the mask");
    assert_eq!([field(&real, 0x40), field(&real, 0x58), field(&real, 0x70)], [0, 0, 2 << 32], "types and indexes");
    assert!(field(&real, 0x48) >= 1_070 && field(&real, 0x50) >= 70, "start and total");
    let exchanged = memory(HandleTarget::Exchanged).unwrap();
    assert_eq!((field(&exchanged, 0x48), field(&exchanged, 0x50)), (field(&real, 0x50), field(&real, 0x48)));
    assert_eq!(field(&memory(HandleTarget::Frozen).unwrap(), 0x10), 1);
    assert_eq!(field(&memory(HandleTarget::OtherVersion).unwrap(), 0), 0x1C0 | 2 << 16 | 1 << 48);
    assert_eq!(field(&memory(HandleTarget::OtherCounters).unwrap(), 0x70), 0);
    assert!([HandleTarget::Nothing, HandleTarget::Unreadable].map(memory).iter().all(Option::is_none));
    assert_ne!(field(&memory(HandleTarget::Garbage).unwrap(), 0) & 0xFFFF, 0x1C0);
}

#[test]
fn truncated_accounting_loses_what_a_slice_has_above_32_bits() {
    const MANY: u64 = 5_000_000_000;
    for (slices, lost) in [(1, 1), (2, 0)] {
        for accounting in Accounting::ALL {
            // A switch after each slice.
            let behavior =
                Scheduling { accounting, slices, overhead: 0, rdpmc: UserRdpmc::Works, ..Scheduling::default() };
            let (mut scheduler, mut machine) = start(behavior.clone(), 1);
            let thread = ThreadId(1);
            let handle = scheduler.enable(&mut machine, thread, thread, ENABLE_DISPATCH, 1).unwrap();
            scheduler.set_behavior(Scheduling { preempt: 100, ..behavior.clone() });
            scheduler.run(&mut machine, thread, &work(MANY, 0));
            scheduler.set_behavior(behavior);
            let data = scheduler.read(&mut machine, thread, handle, READ_COUNTERS | READ_DISPATCH).unwrap();
            let wrong = if accounting == Accounting::Truncated { lost << 32 } else { 0 };
            assert_eq!(data.counters[0], MANY - wrong, "{accounting:?}, {slices} slices");
            assert_eq!(data.context_switches, slices);
            assert!(data.cycles >= MANY, "cycles are never truncated");
        }
    }
}

#[test]
fn the_running_slice_is_truncated_as_well() {
    let behavior =
        Scheduling { accounting: Accounting::Truncated, overhead: 0, rdpmc: UserRdpmc::Works, ..Scheduling::default() };
    let (mut scheduler, mut machine) = start(behavior, 1);
    let thread = ThreadId(1);
    let handle = scheduler.enable(&mut machine, thread, thread, 0, 1).unwrap();
    scheduler.run(&mut machine, thread, &work(1 << 32 | 5, 0));
    assert_eq!(scheduler.read(&mut machine, thread, handle, READ_COUNTERS).unwrap().counters[0], 5);
}

#[test]
fn the_mask_means_positions_or_indexes() {
    for (mask, positions, indexes) in
        [(0b001, [7, 0, 0], [0; 3]), (0b010, [0; 3], [0, 7, 0]), (0b111, [7, 0, 0], [0, 7, 0])]
    {
        for meaning in MaskMeaning::ALL {
            let behavior = Scheduling { mask: meaning, overhead: 0, rdpmc: UserRdpmc::Works, ..Scheduling::default() };
            let mut scheduler = Scheduler::new(behavior, 1);
            let mut machine = Machine::new(1);
            // Counter 1 counts cycles. It is the only one that is configured.
            scheduler.configure(&[1]).unwrap();
            let thread = ThreadId(1);
            let handle = scheduler.enable(&mut machine, thread, thread, 0, mask).unwrap();
            scheduler.run(&mut machine, thread, &work(14, 0));
            let data = scheduler.read(&mut machine, thread, handle, READ_COUNTERS).unwrap();
            let expected = if meaning == MaskMeaning::Position { positions } else { indexes };
            assert_eq!(data.counters[..3], expected, "{mask:#b} {meaning:?}");
            assert_eq!(data.counter_count, 1);
        }
    }
}

#[test]
fn the_functions_refuse_what_windows_refuses() {
    let (mut scheduler, mut machine) = start(Scheduling::default(), 2);
    let (thread, other) = (ThreadId(1), ThreadId(2));
    let scheduler = &mut scheduler;
    let machine = &mut machine;
    assert_eq!(scheduler.enable(machine, thread, other, 0, 1), Err(INVALID_PARAMETER), "not the current thread");
    assert_eq!(scheduler.enable(machine, thread, thread, 2, 1), Err(INVALID_PARAMETER));
    assert_eq!(scheduler.enable(machine, thread, thread, 0, 1 << 16), Err(INVALID_PARAMETER));
    assert_eq!(scheduler.query(machine, thread, thread), Ok(false));
    assert_eq!(scheduler.query(machine, thread, other), Err(INVALID_PARAMETER));
    let handle = scheduler.enable(machine, thread, thread, 0, 1).unwrap();
    assert_eq!(scheduler.query(machine, thread, thread), Ok(true));
    assert_eq!(scheduler.enable(machine, thread, thread, 0, 1), Err(ALREADY_ENABLED));
    assert_eq!(scheduler.configure(&[]), Err(ConfigureError::AlreadyEnabled));
    assert_eq!(scheduler.read(machine, thread, handle, 4), Err(INVALID_PARAMETER));
    assert_eq!(scheduler.read(machine, other, handle, READ_COUNTERS), Err(INVALID_HANDLE));
    let data = scheduler.read(machine, thread, handle, READ_DISPATCH).unwrap();
    assert_eq!((data.context_switches, data.cycles), (0, 0), "it was not asked for");
    assert_eq!(scheduler.disable(machine, other, handle), Err(INVALID_HANDLE));
    assert_eq!(scheduler.disable(machine, thread, handle), Ok(()));
    assert_eq!(scheduler.disable(machine, thread, handle), Err(INVALID_HANDLE));
    assert_eq!(scheduler.set_affinity(machine, thread, thread, 0b100), Err(INVALID_PARAMETER));
    assert_eq!(scheduler.set_affinity(machine, thread, thread, 0b10), Ok(0b11));
    assert_eq!(scheduler.current_processor(machine, thread), 1);
    scheduler.configure(&[]).unwrap();
    let handle = scheduler.enable(machine, thread, thread, 0, 1).unwrap();
    scheduler.run(machine, thread, &work(100, 0));
    assert_eq!(scheduler.read(machine, thread, handle, READ_COUNTERS).unwrap().counters[0], 0, "nothing configured");
    scheduler.end(machine, thread);
    assert_eq!((scheduler.profiling(), scheduler.is_alive(thread)), (0, false), "the end of a thread disables it");
    assert_eq!(scheduler.configure(&[0]), Ok(()));
}

#[test]
fn a_thread_that_needs_a_busy_processor_displaces_the_other() {
    let (mut scheduler, mut machine) = start(Scheduling::default(), 1);
    for thread in [1, 2, 1].map(ThreadId) {
        scheduler.run(&mut machine, thread, &work(10, 0));
        assert_eq!(scheduler.running_on(thread), Some(0));
    }
    assert_eq!([1, 2].map(|thread| scheduler.ledger(ThreadId(thread)).switches), [1, 1]);
}

#[test]
fn removed_processors_and_ended_threads_leave_nothing_behind() {
    let (mut scheduler, mut machine) = start(Scheduling::default(), 2);
    for thread in [1, 2].map(ThreadId) {
        scheduler.run(&mut machine, thread, &work(10, 0));
    }
    scheduler.set_processors(&mut machine, 1);
    let running = [1, 2].map(|thread| scheduler.running_on(ThreadId(thread)));
    assert!(running.contains(&Some(0)) && running.contains(&None), "{running:?}");
    scheduler.end(&mut machine, ThreadId(1));
    assert!(scheduler.take_ended(|_| false).is_empty());
    let ended = scheduler.take_ended(|_| true);
    assert_eq!(
        ended.iter().map(|(thread, ledger)| (*thread, ledger.user(CYCLES, 0))).collect::<Vec<_>>(),
        [(ThreadId(1), 5)]
    );
    assert_eq!(scheduler.threads().collect::<Vec<_>>(), [ThreadId(2)]);
    assert!(scheduler.take_ended(|_| true).is_empty());
}

#[test]
fn every_kind_of_disturbance_occurs() {
    let behavior = Scheduling { preempt: 20, migrate: 50, interrupt: 20, delay: 20, ..Scheduling::default() };
    let (mut scheduler, mut machine) = start(behavior, 4);
    let thread = ThreadId(1);
    for _ in 0..200 {
        scheduler.run(&mut machine, thread, &work(1_000, 10));
    }
    let ledger = scheduler.ledger(thread);
    assert!((100..250).contains(&ledger.switches), "{ledger:?}");
    assert!((50..150).contains(&ledger.migrations), "{ledger:?}");
    assert!(ledger.interrupts(INSTRUCTIONS, 0) > 0 && scheduler.time() > 10 * ledger.cycles, "{ledger:?}");
    assert_eq!(ledger.user(INSTRUCTIONS, 0), 200_000);
}
