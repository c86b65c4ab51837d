//! A machine whose time passes as on a real one: ticks of the clock interrupt, events at the rate of a processor that
//! works, and now and then what happens in a day. Nothing is skipped: every interrupt, tick and timer of the whole time
//! is served, so that counters, the time-stamp counter and sums of 100 ns units go through all their values.

use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use cpuid_dumps::CpuIdentity;
use model::{InterruptMode, Mode};
use protocol::{Code, Event, EventRequest, StartHeader, modes};
use simulation::SimMachine;
use zerocopy::IntoBytes;

use crate::choices::{Choices, random_bytes};
use crate::episode::{Episode, HANDLES, LONGEST, Sleep};
use crate::identities::Catalog;
use crate::run::{Failure, message};
use crate::stats::Stats;
use crate::traits::{Areas, Traits};
use crate::world::interrupted;

/// Runs of code on each processor between two ticks, each with the interrupts that it raises.
const PARTS: u64 = 4;

/// Time of a part, in units of 100 ns: a quarter of the 15.6 ms between two clock interrupts of Windows.
const PART: u64 = 39_062;

/// Ticks per second and per hour.
const SECOND: u64 = 64;
const HOUR: u64 = 3_600 * SECOND;

/// Time-stamp counts per unit of 100 ns, at 3 GHz.
const TIME_STAMPS: u64 = 300;

/// Most events per part, which happen up to three times as often: on average up to 9 billion per second. Counters of 40
/// bits wrap every few minutes, those of 48 bits within a day.
const EVENTS: u64 = 24_000_000;

/// Time since the machine was switched on: 400 days.
const UPTIME: u64 = 400 * 24 * 3_600 * 10_000_000;

/// Longest sleep, in units of 100 ns: half an hour.
const LONGEST_SLEEP: u64 = 1_800 * 10_000_000;

/// Processors for which a day is worth its time: counters of 40 and of 48 bits, two core types, precise records, global
/// registers or none.
pub const DAYS: [&str; 4] = ["netburst-cedarmill", "haswell-4710mq", "alder-lake-12900k", "zen4-7700x"];

impl Traits {
    /// Returns what happens in a day. Nothing that hides other things is among it.
    fn of_day(identity: &'static CpuIdentity, catalog: &Catalog, foreign: bool) -> Self {
        Self {
            identity,
            processors: (4, 2),
            interrupt_mode: InterruptMode::default(),
            masks_on_delivery: false,
            sleeps: true,
            foreign,
            spurious: true,
            late: true,
            refusals: false,
            slow: true,
            profiling_threads: false,
            areas: Areas::Allocated,
            corrupted: 0,
            has_debug_store: catalog.has_debug_store(identity),
            leaks: identity.has_disturbing_threads(),
            uniform: false,
            scarcity: None,
            stops_at_end: true,
            closes_at_end: true,
        }
    }
}

impl Episode<'_> {
    /// Starts a session that counts the whole day, with a handle of its own, which is never closed.
    fn count_all_day(&mut self) {
        while !self.handle(HANDLES).is_greeted {
            self.open(HANDLES);
        }
        let event = |source| EventRequest { event: Event::of(source), modes: modes::BOTH, ..EventRequest::EMPTY };
        let header = StartHeader::EMPTY;
        self.input.clear();
        self.input.extend_from_slice(header.as_bytes());
        self.input.extend_from_slice([event(2), event(6)].as_bytes());
        let reply = self.serve(HANDLES, Code::Start as u32, LONGEST);
        assert!(reply.accepted().is_some(), "the session of the day: {reply:?}");
        self.follow(HANDLES, Code::Start as u32, &reply);
    }

    /// Lets the time of one tick pass.
    fn pass_tick(&mut self) {
        self.step += 1;
        for _ in 0..PARTS {
            for processor in 0..self.machine.active() {
                let mode = if self.one_in(4) { Mode::Kernel } else { Mode::User };
                let events = self.choices.up_to(EVENTS);
                self.execute_on(processor, mode, events);
                if !self.is_asleep(processor) && !self.one_in(8) {
                    self.deliver(processor);
                }
            }
            self.pass_units(PART);
        }
        self.tick();
        for processor in self.machine.timed() {
            self.machine.expire(&self.engine, processor, &interrupted(processor));
        }
        if self.step.is_multiple_of(10 * SECOND) {
            self.accumulate();
        }
        self.live();
    }

    fn pass_units(&self, units: u64) {
        self.machine.pass(units);
        self.machine.all().for_each(|cpu| cpu.pass_time_stamps(units * TIME_STAMPS));
    }

    /// Does what clients and users do now and then.
    fn live(&mut self) {
        if self.one_in(SECOND / 4) {
            self.request();
        }
        if self.sleep != Sleep::Awake && self.one_in(4) {
            if (0..self.machine.active()).all(|processor| self.is_asleep(processor))
                && self.sleep == Sleep::FallingAsleep
            {
                let slept = self.choices.up_to(LONGEST_SLEEP);
                self.pass_units(slept);
            }
            self.sleep();
        } else if self.sleep == Sleep::Awake && self.one_in(HOUR) {
            self.sleep();
        }
        // For some seconds, the interrupt takes so long that the budget is exhausted.
        if self.pace > 0 && self.one_in(5 * SECOND) {
            self.set_pace(0);
        } else if self.one_in(HOUR / 2) {
            let pace = self.choices.up_to(5_000);
            self.set_pace(pace);
        }
        if self.one_in(HOUR) && self.traits.foreign {
            self.write_foreign();
        } else if self.one_in(30 * SECOND) && self.foreign.iter().any(crate::registers::Foreign::is_there) {
            self.undo_foreign();
        }
        if self.one_in(HOUR / 4) {
            self.kill();
        }
        if self.one_in(HOUR / 4) {
            self.disturb_interrupts();
        }
        if self.one_in(10 * SECOND) {
            let all: Vec<u32> = (0..self.machine.active()).collect();
            let current = self.choices.pick(&all).copied().unwrap_or_default();
            self.machine.set_current(current);
        }
    }
}

/// Lets `span` pass on a machine of an identity. The time-stamp counter wraps in the middle of it; one processor is
/// added after a quarter and one after the half. With an even seed, other programs write registers. With an odd one,
/// the count of the whole day is exact.
///
/// # Errors
/// What was found, with the simulated time.
pub fn day(seed: u64, span: Duration, identity: &'static CpuIdentity, catalog: &Catalog) -> Result<Stats, Failure> {
    let traits = Traits::of_day(identity, catalog, seed.is_multiple_of(2));
    let (most, active) = traits.processors;
    let machine = SimMachine::new(identity, most).with_active(active).without_time_between_accesses();
    let units = u64::try_from(span.as_nanos() / 100).unwrap_or(u64::MAX);
    machine.pass(UPTIME);
    machine.all().for_each(|cpu| cpu.pass_time_stamps((units / 2 * TIME_STAMPS).wrapping_neg()));
    let time = || machine.now_ticks().0.saturating_sub(UPTIME);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let mut bytes = random_bytes(seed, 1);
        let choices = Choices::new(&mut bytes);
        let mut episode = Episode::new(&machine, &traits, catalog.sources(identity), choices, None);
        episode.count_all_day();
        while time() < units {
            episode.pass_tick();
            let wanted = if time() < units / 4 { 2 } else { 3 + u32::from(time() >= units / 2) };
            if machine.active() < wanted {
                episode.add_processor();
            }
        }
        episode.finish();
        let mut stats = episode.stats;
        stats.steps = episode.step;
        stats.count_episode(identity.expected.interface, stats.requests);
        stats.time = time();
        stats
    }));
    outcome.map_err(|payload| {
        let text = format!("{}\nseed {seed}, {traits}, after {} units of 100 ns", message(&*payload), time());
        Failure { seed, text, before: (0, 0) }
    })
}
