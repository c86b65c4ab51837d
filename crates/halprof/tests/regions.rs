//! Measured regions of a thread that Windows preempts, moves and interrupts at random: every count is exactly what the
//! thread executed, or graded disturbed.
//!
//! The number of regions is 1,000, or `PROPTEST_CASES` times 16; `HALPROF_SOAK` makes it 200,000.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a wrong count must fail the test")]

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use crate::lab::{AMD, Encodings, INTEL, Lab, LabSystem};
use bench_protocol::{Accounting, MaskMeaning, Scheduling, UserRdpmc};
use halprof::verification::{self, ThreadReading, Verification};
use halprof::{Builder, Counts, Disturbance, Grade, Machine, Quality, ThreadGroup};
use scheduler::Ledger;

const NAMES: [&str; 3] = ["instructions", "cycles", "branches"];

/// Processors, and the encodings of the three events on them.
const PROCESSORS: [(&str, Encodings); 4] =
    [("haswell-4710mq", INTEL), ("cascade-lake-8269c", INTEL), ("zen4-7700x", AMD), ("alder-lake-12900k", INTEL)];

/// Regions of a machine before the next one.
const REGIONS_PER_MACHINE: u64 = 100;

/// Decisions from a seed: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[usize::try_from(self.below(N as u64)).unwrap()]
    }
}

/// The number of regions for each grade.
fn regions() -> u64 {
    if env::var_os("HALPROF_SOAK").is_some() {
        return 200_000;
    }
    let cases = env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    cases.map_or(1_000, |cases| cases * 16)
}

/// What the outcomes of all regions were.
#[derive(Debug, Default)]
struct Outcomes {
    exact: u64,
    disturbed: u64,
    /// Regions in which nothing but the scheduler disturbs, with few events; and those of them that are exact.
    plain: u64,
    plain_exact: u64,
    /// Exact regions with more than 2^32 events.
    long_exact: u64,
    /// Regions at an end of which the thread was switched whenever its counters were read.
    torn: u64,
    reasons: BTreeMap<String, u64>,
}

/// What happens in a region apart from the work.
#[derive(Debug, Default)]
struct Incidents {
    has_slept: bool,
    is_written: bool,
    is_long: bool,
}

impl Incidents {
    fn is_plain(&self) -> bool {
        !(self.has_slept || self.is_written || self.is_long)
    }
}

/// A machine on which regions are measured.
struct Trial {
    seed: u64,
    lab: Lab,
    machine: Machine,
    encodings: Encodings,
    kernel: bool,
    random: Random,
    /// Events in user mode before and after each call.
    overhead: u64,
    /// Another session, which comes and goes.
    other: Option<u64>,
}

fn scheduling(random: &mut Random, seed: u64, encodings: Encodings) -> Scheduling {
    Scheduling {
        seed,
        preempt: random.of([0, 0, 1, 5, 25, 60]),
        migrate: random.of([0, 30, 100]),
        interrupt: random.of([0, 10, 50]),
        delay: random.of([0, 5]),
        slices: random.of([1, 4]),
        others: random.of([1, 1_000, 1_000_000]),
        overhead: random.of([1, 20]),
        accounting: random.of(Accounting::ALL),
        mask: random.of(MaskMeaning::ALL),
        rdpmc: random.of(UserRdpmc::ALL),
        kinds: encodings.to_vec(),
        ..Scheduling::default()
    }
}

impl Trial {
    fn new(seed: u64, kernel: bool) -> Self {
        let mut random = Random(seed);
        let (identity, encodings) = random.of(PROCESSORS);
        let scheduling = scheduling(&mut random, seed, encodings);
        let (overhead, accounting, rdpmc) = (scheduling.overhead, scheduling.accounting, scheduling.rdpmc);
        let processors = random.of([1, 2, 4]);
        let lab = Lab::new(identity, processors, scheduling);
        let machine = lab.machine();
        let reading = match rdpmc {
            UserRdpmc::Faults => ThreadReading::Memory,
            UserRdpmc::WorksOnProcessor0 if processors > 1 => ThreadReading::Memory,
            _ => ThreadReading::Function,
        };
        // The record is true: a self-test that is wrong about Windows is no subject of these tests.
        if random.percent(30) || reading == ThreadReading::Memory {
            let record = Verification::new(machine.identity().unwrap(), reading, accounting == Accounting::Full);
            verification::write(&LabSystem(lab.clone()), &record).unwrap();
        }
        Self { seed, lab, machine, encodings, kernel, random, overhead, other: None }
    }

    fn group(&self, grade: Grade) -> ThreadGroup {
        let builder = NAMES.iter().try_fold(Builder::new(), |builder, name| builder.event(name)).unwrap();
        let builder = if self.kernel { builder.both() } else { builder.user() };
        self.lab.refuse_threads(grade != Grade::Virtualized);
        let group = builder.require(grade).build_for_thread_on(&self.machine);
        let group = group.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        assert_eq!(group.availability().grade(), grade, "seed {}", self.seed);
        group
    }

    /// Measures regions in one group after the other, and checks their counts.
    fn run(&mut self, grade: Grade, outcomes: &mut Outcomes) {
        let mut left = REGIONS_PER_MACHINE;
        while left > 0 {
            let mut group = self.group(grade);
            if self.random.percent(50) && !self.kernel {
                // A busy machine may have no empty region that is exact.
                let _ = group.calibrate();
            }
            if self.random.percent(10) {
                // The counters, of 48 bits, wrap soon. The driver reads them every ten seconds.
                for _ in 0..8 {
                    self.lab.run_user(&self.encodings.map(|event| (event, (1 << 45) - (1 << 34))));
                    self.lab.tick();
                }
            }
            while left > 0 {
                left -= 1;
                // What another program changed stays changed, until the counters are started again.
                if self.measure(&mut group, outcomes).is_written {
                    break;
                }
            }
            drop(group);
            if let Some(session) = self.other.take() {
                self.machine.driver().stop_all(session).unwrap();
            }
            assert!(self.lab.is_free(), "seed {}: something is held after the group", self.seed);
        }
    }

    /// Measures a region and checks its counts.
    fn measure(&mut self, group: &mut ThreadGroup, outcomes: &mut Outcomes) -> Incidents {
        let before = self.lab.ledger();
        let parts = self.random.of([1, 1, 1, 2, 4]);
        let mut incidents = Incidents::default();
        let mut executed = Executed { encodings: self.encodings, ..Executed::default() };
        let counts = if self.random.percent(50) {
            group.begin().unwrap();
            for part in 0..parts {
                if part > 0 {
                    group.checkpoint().unwrap();
                }
                self.work(&mut incidents, &mut executed);
            }
            group.end().unwrap()
        } else {
            group.measure(|| self.work(&mut incidents, &mut executed)).unwrap()
        };
        let parts = if executed.parts == 0 { 1 } else { executed.parts };
        let overhead = if group.overhead().is_some() { 0 } else { 2 * self.overhead * parts };
        let after = self.lab.ledger();
        let is_exact = counts.quality.is_exact();
        let reads_memory = group.availability().reading() == Some(ThreadReading::Memory);
        for (index, (name, count)) in counts.iter().enumerate() {
            let is_true = if self.kernel {
                // The kernel's part of a call is random, so there is a range.
                let event = self.encodings[index];
                (executed.all[index]..=all(&after, event) - all(&before, event)).contains(&count)
            } else {
                // A reading of the memory is repeated if the thread was switched meanwhile, which is a part of the
                // region like every other instruction of the library.
                let excess = count.checked_sub(executed.user[index] + overhead);
                excess.is_some_and(|excess| excess == 0 || reads_memory && excess % (2 * self.overhead) == 0)
            };
            assert!(
                is_true || !is_exact,
                "seed {}: {name} is {count}, {:?}; {executed:?}, overhead {overhead}, {incidents:?}, {:?}",
                self.seed,
                counts.quality,
                self.lab.state().scheduler.behavior(),
            );
        }
        outcomes.add(&counts, &incidents, executed.user.into_iter().max().unwrap());
        incidents
    }

    /// Executes work, with incidents.
    fn work(&mut self, incidents: &mut Incidents, executed: &mut Executed) {
        let before = self.lab.ledger();
        for _ in 0..self.random.of([0, 1, 1, 2, 5]) {
            let limit = self.random.of([2, 1_000, 100_000, 100_000, 1 << 31, 1 << 35]);
            let events = self.encodings.map(|event| (event, self.random.below(limit)));
            incidents.is_long |= limit > 100_000;
            self.lab.run_user(&events);
            match self.random.below(100) {
                0 => self.lab.wait(),
                1 => {
                    self.lab.sleep(Duration::from_millis(1 + self.random.below(10_000)));
                    incidents.has_slept = true;
                }
                2 => {
                    let processors = u64::from(self.lab.state().scheduler.processors());
                    self.lab.change_counters(u32::try_from(self.random.below(processors)).unwrap());
                    incidents.is_written = true;
                }
                3..=6 => self.toggle_other_session(),
                7 => self.lab.tick(),
                _ => {}
            }
        }
        executed.add(&before, &self.lab.ledger());
    }

    /// Starts or stops a session of another program.
    fn toggle_other_session(&mut self) {
        let driver = self.machine.driver();
        match self.other.take() {
            Some(session) => drop(driver.stop_all(session).unwrap()),
            None => self.other = crate::lab::start_session(driver, "cpu/event=0xC5,umask=0/"),
        }
    }
}

/// What the thread executed within a region.
#[derive(Debug, Default)]
struct Executed {
    encodings: Encodings,
    user: [u64; 3],
    all: [u64; 3],
    parts: u64,
}

impl Executed {
    fn add(&mut self, before: &Ledger, after: &Ledger) {
        for (index, event) in self.encodings.into_iter().enumerate() {
            self.user[index] += after.user(event.0, event.1) - before.user(event.0, event.1);
            self.all[index] += all(after, event) - all(before, event);
        }
        self.parts += 1;
    }
}

/// Returns what the counters count for a thread in both modes.
fn all(ledger: &Ledger, (event, umask): (u16, u16)) -> u64 {
    ledger.user(event, umask) + ledger.kernel(event, umask) + ledger.interrupts(event, umask)
}

impl Outcomes {
    fn add(&mut self, counts: &Counts, incidents: &Incidents, events: u64) {
        let is_exact = counts.quality.is_exact();
        if is_exact {
            self.exact += 1;
            self.long_exact += u64::from(events > u64::from(u32::MAX));
        } else {
            self.disturbed += 1;
        }
        let is_torn = counts.quality == Quality::Disturbed(Disturbance::SwitchedWhileRead);
        self.torn += u64::from(is_torn);
        if incidents.is_plain() && !is_torn {
            self.plain += 1;
            self.plain_exact += u64::from(is_exact);
        }
        if let Quality::Disturbed(reason) = &counts.quality {
            let text = format!("{reason:?}");
            let reason = text.split([' ', '{']).next().unwrap_or_default();
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
    }
}

fn measure_all(grade: Grade, kernel: bool, share: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let first = env::var("HALPROF_SEED").ok().and_then(|seed| seed.parse().ok());
    let machines = if first.is_some() { 1 } else { regions().div_ceil(REGIONS_PER_MACHINE * share) };
    for seed in (first.unwrap_or(1)..).take(usize::try_from(machines).unwrap()) {
        Trial::new(seed, kernel).run(grade, &mut outcomes);
    }
    println!("{grade}, kernel mode {kernel}: {outcomes:?}");
    outcomes
}

#[test]
fn virtualized_counts_are_exact_or_graded_disturbed() {
    let outcomes = measure_all(Grade::Virtualized, false, 1);
    assert_eq!(outcomes.plain_exact, outcomes.plain, "{outcomes:?}");
    assert!(outcomes.exact > outcomes.disturbed, "{outcomes:?}");
    assert!(outcomes.torn < outcomes.exact / 10, "{outcomes:?}");
    assert!(outcomes.long_exact > outcomes.exact / 50, "{outcomes:?}");
    for reason in ["MayHaveTruncated", "Slept", "CountersChanged"] {
        assert!(outcomes.reasons.contains_key(reason), "{outcomes:?}");
    }
}

#[test]
fn undisturbed_counts_are_exact_or_graded_disturbed() {
    let outcomes = measure_all(Grade::Undisturbed, false, 1);
    assert!(outcomes.exact > outcomes.disturbed / 4, "{outcomes:?}");
    assert!(outcomes.long_exact > outcomes.exact / 50, "{outcomes:?}");
    for reason in ["ContextSwitches", "Slept", "CountersChanged"] {
        assert!(outcomes.reasons.contains_key(reason), "{outcomes:?}");
    }
}

#[test]
fn virtualized_counts_of_both_modes_are_exact_or_graded_disturbed() {
    let outcomes = measure_all(Grade::Virtualized, true, 4);
    assert!(outcomes.exact > outcomes.disturbed, "{outcomes:?}");
}
