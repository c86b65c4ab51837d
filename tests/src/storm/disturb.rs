//! What happens to the machine during a storm: events, timers, sleep, new processors, and other programs.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{CancelMoment, EnabledCounter, Error, EventCount, Random};
use protocol::trace::{LEVEL, PROVIDER_ID};

use crate::lab::Lab;

/// Event-select and counter registers of the interfaces: the first address, the distance to the next, and how many.
const REGISTERS: [(u32, u32, u32); 6] = [
    (0x186, 1, 8),       // IA32_PERFEVTSELx
    (0xC1, 1, 8),        // IA32_PMCx
    (0xC001_0000, 1, 4), // PerfEvtSel0-3
    (0xC001_0004, 1, 4), // PerfCtr0-3
    (0xC001_0200, 2, 6), // PERF_CTL
    (0xC001_0201, 2, 6), // PERF_CTR
];

/// Values of another program: counters off, on for both modes, and on with an interrupt; as a count, small numbers.
const VALUES: [u64; 4] = [0, 0x43_00C0, 0x53_003C, 0xFFFF];

/// Most events of a run.
const MAX_EVENTS: u64 = 60_000;

/// Longest reported sleep, in milliseconds.
const MAX_ASLEEP: u64 = 5_000;

/// PO_CB_SYSTEM_STATE_LOCK, the subject of the announcements of sleep and wake; state 0 is sleep.
const SYSTEM_STATE_LOCK: u64 = 3;

/// What may happen.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// Events occur on command, not by themselves.
    pub by_script: bool,
    /// Other programs write registers of the counters.
    pub foreign_writes: bool,
}

/// What happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Happened {
    /// Number of times that events occurred on command.
    pub runs: u64,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Number of added processors.
    pub added: u64,
    /// Number of registers that another program wrote.
    pub foreign_writes: u64,
}

/// Disturbs a machine as a function of a seed and of the state that it finds.
pub struct Disturber {
    random: Random,
    allowed: Allowed,
    asleep: bool,
    /// Whether a sleep is announced, which may not follow.
    announced: bool,
    /// Number of processors that were added while a sleep was announced. Sessions that run then stay away from them.
    pub added_asleep: usize,
    /// Last value of another program, by processor and register.
    foreign: BTreeMap<(u32, u32), u64>,
    /// Number of events by processor, event and unit mask.
    pub events: BTreeMap<(u32, u16, u16), u64>,
    pub happened: Happened,
}

impl Disturber {
    pub const fn new(seed: u64, allowed: Allowed) -> Self {
        /// Threads of the storm have small numbers.
        const SUBJECT: u64 = 1 << 32;
        let happened = Happened { runs: 0, sleeps: 0, added: 0, foreign_writes: 0 };
        let random = Random::new(seed, SUBJECT);
        Self {
            random,
            allowed,
            asleep: false,
            announced: false,
            added_asleep: 0,
            foreign: BTreeMap::new(),
            events: BTreeMap::new(),
            happened,
        }
    }

    /// Lets something happen.
    pub fn disturb(&mut self, lab: &mut Lab) -> Result<()> {
        if self.asleep {
            thread::sleep(Duration::from_millis(self.random.up_to(20)));
            return self.wake(lab);
        }
        let processors = lab.processors()?;
        let processor = u32::try_from(self.random.up_to(u64::from(processors) - 1))?;
        match self.random.up_to(99) {
            0 => self.sleep(lab),
            1 => {
                if lab.wire.add_processor().is_ok() {
                    self.happened.added += 1;
                    self.added_asleep += usize::from(self.announced);
                }
                Ok(())
            }
            2 => Ok(lab.wire.advance(self.random.up_to(20_000))?),
            3 => {
                let (subject, state) = (self.random.up_to(5), self.random.up_to(1));
                if subject == SYSTEM_STATE_LOCK {
                    self.announced = state == 0;
                }
                Ok(lab.wire.notify_power(subject, state)?)
            }
            4 => Ok(lab.wire.enable_provider(PROVIDER_ID, LEVEL, 0)?),
            5 => {
                lab.wire.take_events()?;
                Ok(lab.wire.disable_provider(PROVIDER_ID)?)
            }
            6 => {
                const MOMENTS: [Option<CancelMoment>; 5] = [
                    None,
                    Some(CancelMoment::BeforeSet),
                    Some(CancelMoment::AfterSet),
                    Some(CancelMoment::BeforeTake),
                    Some(CancelMoment::AfterTake),
                ];
                let moment = MOMENTS.get(usize::try_from(self.random.up_to(4))?).copied().flatten();
                if_possible(lab.wire.cancel_at(moment))
            }
            7..=10 if self.allowed.foreign_writes => self.write_foreign(lab, processor),
            11..=25 if self.allowed.by_script => Ok(lab.wire.tick(processor, 1 + self.random.up_to(2))?),
            26..=30 if self.allowed.by_script => {
                let (user, count) = (self.random.percent(50), self.random.up_to(300));
                Ok(lab.wire.branch(processor, user, 0x40_0000, 16, count)?)
            }
            _ if self.allowed.by_script => self.run(lab, processor),
            _ => {
                thread::sleep(Duration::from_millis(self.random.up_to(5)));
                Ok(())
            }
        }
    }

    /// Wakes the machine, if it sleeps.
    pub fn wake(&mut self, lab: &mut Lab) -> Result<()> {
        if self.asleep {
            lab.wire.wake(self.random.up_to(MAX_ASLEEP))?;
            self.asleep = false;
            self.announced = false;
        }
        Ok(())
    }

    /// Undoes the writes of other programs in the registers that still have their values.
    pub fn undo_foreign_writes(&mut self, lab: &mut Lab) -> Result<()> {
        for ((processor, register), value) in std::mem::take(&mut self.foreign) {
            if lab.wire.read_msr(processor, register)? == value {
                lab.wire.write_msr(processor, register, 0)?;
            }
        }
        Ok(())
    }

    fn sleep(&mut self, lab: &mut Lab) -> Result<()> {
        lab.wire.sleep()?;
        self.asleep = true;
        self.happened.sleeps += 1;
        // The processors lose their registers.
        self.foreign.clear();
        Ok(())
    }

    /// Lets events of enabled counters occur, and instructions.
    fn run(&mut self, lab: &mut Lab, processor: u32) -> Result<()> {
        let enabled = lab.wire.enabled_counters()?;
        let enabled = enabled.get(usize::try_from(processor)?).map(Vec::as_slice).unwrap_or_default();
        let mut sets: [Vec<EventCount>; 2] = [Vec::new(), Vec::new()];
        for set in &mut sets {
            for _ in 0..=self.random.up_to(2) {
                let place = self.random.up_to(enabled.len().saturating_sub(1) as u64);
                let Some(EnabledCounter { event, umask, .. }) = enabled.get(usize::try_from(place)?) else { continue };
                if set.iter().any(|(other, of_other, _)| (other, of_other) == (event, umask)) {
                    continue;
                }
                let most = MAX_EVENTS >> self.random.up_to(12);
                set.push((*event, *umask, self.random.up_to(most)));
            }
        }
        let [user, kernel] = sets;
        lab.wire.run(processor, &user, &kernel)?;
        self.happened.runs += 1;
        for (event, umask, count) in user.into_iter().chain(kernel) {
            *self.events.entry((processor, event, umask)).or_default() += count;
        }
        Ok(())
    }

    /// Writes a register of a counter, as a program does that does not reserve it.
    fn write_foreign(&mut self, lab: &mut Lab, processor: u32) -> Result<()> {
        let Some((first, distance, count)) = self.pick(&REGISTERS) else { return Ok(()) };
        let register = first + distance * u32::try_from(self.random.up_to(u64::from(count) - 1))?;
        let value = self.pick(&VALUES).unwrap_or(0);
        // The processor may lack the register.
        if lab.wire.write_msr(processor, register, value).is_ok() {
            self.happened.foreign_writes += 1;
            let value = lab.wire.read_msr(processor, register)?;
            self.foreign.insert((processor, register), value);
        }
        Ok(())
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> Option<T> {
        let place = self.random.up_to(values.len().saturating_sub(1) as u64);
        values.get(usize::try_from(place).ok()?).copied()
    }
}

/// A refusal is no error.
fn if_possible(result: Result<(), Error>) -> Result<()> {
    match result {
        Err(Error::Refused(_)) => Ok(()),
        other => Ok(other?),
    }
}
