//! A machine on which one call into the driver is repeated, and the comparison with the ledger.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use bench_protocol::{StepEntry, StepPlan, StepReport, Violation};
use protocol::{Code, CountRecord, Event, EventRequest, modes};

use super::scenario::Scenario;
use crate::lab::Lab;
use crate::requests::Client;

/// Events between two samples. Real handlers and requests are shorter.
const INTERVAL: u32 = 10_000;

/// Samples for which the ring of a processor has room. A full ring would be counted exactly as well.
const RING: u32 = 1 << 12;

/// After this number of calls the client opens another handle: its rings are full of samples then, and a session that
/// has ended keeps its ring until the handle is closed.
const CALLS_PER_HANDLE: u32 = 500;

/// The share of the handler that never exceeds its budget, and one that it exceeds soon, in thousandths.
const MUCH: u32 = 900;
const LITTLE: u32 = 1;

/// A source, and its event and unit mask.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    source: u64,
    modes: u32,
    event: (u16, u16),
}

/// TotalIssues.
const INSTRUCTIONS: Sampled = Sampled { source: 0x02, modes: modes::BOTH, event: (0xC0, 0x00) };

/// BranchInstructions of Intel and of AMD.
const BRANCHES: [Sampled; 2] = [
    Sampled { source: 0x06, modes: modes::BOTH, event: (0xC4, 0x00) },
    Sampled { source: 0x06, modes: modes::BOTH, event: (0xC2, 0x00) },
];

/// InstructionRetired, precise: INST_RETIRED.PREC_DIST from Sandy Bridge to Cascade Lake.
const PRECISE: Sampled = Sampled { source: 0x1A, modes: modes::BOTH | modes::PRECISE, event: (0xC0, 0x01) };

/// Records in the PEBS buffer at which it interrupts.
const BATCH: u32 = 4;

/// A machine with the driver and a client.
pub struct Stage<'a> {
    lab: &'a mut Lab,
    client: Client,
    scenario: Scenario,
    other: Sampled,
    /// The session that samples all the time, if there is one.
    session: Option<u64>,
    calls: u32,
    /// The totals of the ledger before the call.
    before: Totals,
}

/// Number of events, of those between accesses, and of overflows, by processor, and event and unit mask.
type Totals = BTreeMap<(u32, (u16, u16)), [u64; 3]>;

impl<'a> Stage<'a> {
    /// Prepares the machine for a scenario. The driver is installed.
    ///
    /// # Errors
    /// The driver refuses a request, or the connection to the lab is lost.
    pub fn new(lab: &'a mut Lab, scenario: Scenario, is_intel: bool) -> Result<Self> {
        // Time that the handler takes would exceed its budget at any moment.
        lab.wire.hold_clocks(true)?;
        let client = Client::connect(lab)?;
        let [intel, amd] = BRANCHES;
        let other = if is_intel { intel } else { amd };
        let mut stage = Self { lab, client, scenario, other, session: None, calls: 0, before: Totals::new() };
        stage.restart()?;
        Ok(stage)
    }

    /// Returns the machine.
    pub const fn lab(&mut self) -> &mut Lab {
        self.lab
    }

    /// Ends the client and its sessions. Returns what they left.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn finish(mut self) -> Result<Vec<String>> {
        // A close does not wait for the driver, which serves the request of the new handle afterwards.
        self.client.reopen()?;
        self.lab.wire.hold_clocks(false)?;
        self.session = None;
        let mut wrong: Vec<String> = self.lab.wire.violations()?.iter().map(Violation::to_string).collect();
        self.check_registers(&mut wrong)?;
        Ok(wrong)
    }

    /// Ends all sessions, and begins with a new ledger, as after a failure.
    ///
    /// # Errors
    /// The driver refuses a request, or the connection to the lab is lost.
    pub fn restart(&mut self) -> Result<()> {
        self.client.reopen()?;
        self.lab.wire.violations()?;
        self.lab.wire.clear_ledger()?;
        self.before.clear();
        self.session = match self.scenario {
            Scenario::FirstStart | Scenario::LastStop => None,
            Scenario::Throttle | Scenario::Resume => Some(self.start(INSTRUCTIONS, LITTLE)?),
            Scenario::Drain | Scenario::DrainByTick => Some(self.start(PRECISE, MUCH)?),
            _ => Some(self.start(INSTRUCTIONS, MUCH)?),
        };
        if self.scenario == Scenario::Throttle || self.scenario == Scenario::Resume {
            self.exhaust()?;
        }
        Ok(())
    }

    fn start(&mut self, sampled: Sampled, budget: u32) -> Result<u64> {
        let Sampled { source, modes, .. } = sampled;
        let event = EventRequest { event: Event::of(source), modes, interval: INTERVAL, ..EventRequest::EMPTY };
        let batch = if modes & modes::PRECISE == 0 { 0 } else { BATCH };
        self.client.start(RING, budget, batch, &[event])
    }

    /// Makes the handler exceed its budget once, and resumes.
    fn exhaust(&mut self) -> Result<()> {
        const MOST: usize = 100;
        for _ in 0..MOST {
            self.overflow(0)?;
            if self.lab.wire.enabled_counters()?.first().is_none_or(Vec::is_empty) {
                return Ok(self.lab.wire.tick(0, 1)?);
            }
        }
        bail!("the handler did not exceed its budget")
    }

    /// Lets both processors tick, which resumes those that are throttled.
    fn resume(&mut self) -> Result<()> {
        (0..2).try_for_each(|processor| Ok(self.lab.wire.tick(processor, 1)?))
    }

    /// Makes the counter of the session overflow on a processor, and delivers the interrupt.
    fn overflow(&mut self, processor: u32) -> Result<()> {
        let events = [INSTRUCTIONS.event, PRECISE.event].map(|(event, umask)| (event, umask, INTERVAL.into()));
        Ok(self.lab.wire.run(processor, &events, &[])?)
    }

    fn session(&self) -> Result<u64> {
        self.session.context("there is no session")
    }

    /// Steps through the call once. Before these instructions counters of the stepped processor overflow, or
    /// `elsewhere` those of the other one.
    ///
    /// # Errors
    /// The driver or the lab refuses a request. What the driver did is [checked](Self::check) later.
    pub fn step(
        &mut self,
        overflow_at: &[u64],
        elsewhere: bool,
        by_breakpoints: bool,
    ) -> Result<(StepReport, Vec<CountRecord>)> {
        self.calls += 1;
        let processor = self.scenario.processor();
        let target = if elsewhere { 1 - processor } else { processor };
        let plan = |entry| StepPlan { entry, processor, overflow_at: overflow_at.to_vec(), target, by_breakpoints };
        let request = |code: Code| plan(StepEntry::Request { code: code as u32 });
        let power = if processor == 0 { StepEntry::Power } else { StepEntry::Ipi };
        let mut counts = Vec::new();
        let mut report = StepReport::default();
        match self.scenario {
            Scenario::Start | Scenario::FirstStart => {
                self.lab.wire.step(request(Code::Start))?;
                let sampled = if self.scenario == Scenario::Start { self.other } else { INSTRUCTIONS };
                let started = self.start(sampled, MUCH)?;
                report = self.lab.wire.steps()?;
                self.flush()?;
                counts = self.client.stop(started)?;
            }
            Scenario::Stop | Scenario::LastStop => {
                let sampled = if self.scenario == Scenario::Stop { self.other } else { INSTRUCTIONS };
                let started = self.start(sampled, MUCH)?;
                self.lab.wire.step(request(Code::Stop))?;
                counts = self.client.stop(started)?;
            }
            Scenario::Read => {
                self.lab.wire.step(request(Code::Read))?;
                self.client.read(self.session()?)?;
            }
            Scenario::Fetch => {
                (0..2).try_for_each(|processor| self.overflow(processor))?;
                self.lab.wire.step(request(Code::Samples))?;
                self.client.fetch(self.session()?, 16)?;
            }
            Scenario::Handler | Scenario::Throttle => {
                self.lab.wire.step(plan(StepEntry::Interrupt))?;
                self.overflow(0)?;
                report = self.lab.wire.steps()?;
                self.flush()?;
            }
            Scenario::Drain => {
                self.lab.wire.step(plan(StepEntry::Interrupt))?;
                (0..=BATCH).try_for_each(|_| self.overflow(0))?;
            }
            Scenario::Tick | Scenario::Resume => {
                if self.scenario == Scenario::Resume {
                    self.overflow(0)?;
                }
                self.lab.wire.step(plan(StepEntry::Timer))?;
                self.resume()?;
            }
            Scenario::DrainByTick => {
                (0..2).try_for_each(|_| self.overflow(0))?;
                self.lab.wire.step(plan(StepEntry::Timer))?;
                self.lab.wire.tick(0, 1)?;
            }
            Scenario::Sleep | Scenario::SleepElsewhere => {
                self.lab.wire.step(plan(power))?;
                self.lab.wire.sleep()?;
                report = self.lab.wire.steps()?;
                self.lab.wire.wake(10)?;
            }
            Scenario::Wake | Scenario::WakeElsewhere => {
                self.lab.wire.sleep()?;
                self.lab.wire.step(plan(power))?;
                self.lab.wire.wake(10)?;
            }
        }
        if !report.entered {
            report = self.lab.wire.steps()?;
        }
        if self.scenario.needs_pebs() {
            // What is in the buffer becomes samples.
            (0..2).try_for_each(|processor| self.lab.wire.tick(processor, 1))?;
        }
        self.flush()?;
        if matches!(self.scenario, Scenario::Throttle | Scenario::Resume) {
            // The interrupt may have exceeded the budget again.
            self.resume()?;
        }
        ensure!(report.entered, "the call did not take place");
        Ok((report, counts))
    }

    /// Delivers what is pending.
    fn flush(&mut self) -> Result<()> {
        (0..2).try_for_each(|processor| Ok(self.lab.wire.run(processor, &[], &[])?))
    }

    /// Compares the driver's account with the ledger of the model. Returns what differs.
    ///
    /// # Errors
    /// The driver refuses a request, or the connection to the lab is lost.
    pub fn check(&mut self, of_other: &[CountRecord]) -> Result<Vec<String>> {
        let violations = self.lab.wire.violations()?;
        let mut wrong: Vec<String> = violations.iter().map(Violation::to_string).collect();
        // Before the ledger, which has what occurs between the accesses of the reading too.
        let counts = self.session.map(|session| self.client.read(session)).transpose()?;
        let totals = self.totals()?;
        match counts {
            Some(counts) => {
                if self.scenario.needs_pebs() {
                    self.compare_records(&counts, &mut wrong)?;
                } else {
                    self.compare(INSTRUCTIONS.event, &counts, &totals, &mut wrong);
                }
                self.compare(self.other.event, of_other, &totals, &mut wrong);
            }
            None => self.compare(INSTRUCTIONS.event, of_other, &totals, &mut wrong),
        }
        self.check_registers(&mut wrong)?;
        // What the sessions that have ended have counted. The other one goes on from the beginning of the ledger.
        self.before = totals;
        self.before.retain(|(_, event), _| self.session.is_none() || *event != INSTRUCTIONS.event);
        // A storm is counted between two ticks, of which a machine has a hundred in a second. A call may end with an
        // interrupt that its counters no longer explain.
        self.resume()?;
        if self.calls.is_multiple_of(CALLS_PER_HANDLE) {
            self.restart()?;
        }
        Ok(wrong)
    }

    fn compare(&self, event: (u16, u16), counts: &[CountRecord], totals: &Totals, wrong: &mut Vec<String>) {
        for count in counts {
            let key = (count.processor, event);
            let [counted, between, overflows] = totals.get(&key).copied().unwrap_or_default();
            let before = self.before.get(&key).copied().unwrap_or_default();
            let (counted, between, overflows) = (counted - before[0], between - before[1], overflows - before[2]);
            let CountRecord { processor, samples, lost, throttled, count, .. } = *count;
            if samples + lost + throttled != overflows {
                wrong.push(format!(
                    "CPU {processor}, event {event:x?}: {overflows} overflows, but {samples} samples, {lost} lost, \
                     {throttled} throttled"
                ));
            }
            if !(counted - between..=counted).contains(&count) {
                wrong.push(format!(
                    "CPU {processor}, event {event:x?}: {counted} events, {between} of them between accesses, but a \
                     count of {count}"
                ));
            }
        }
    }

    /// Compares samples with the PEBS records that the processors have written.
    fn compare_records(&mut self, counts: &[CountRecord], wrong: &mut Vec<String>) -> Result<()> {
        for (processor, stored) in (0..).zip(self.lab.wire.ds_writes()?) {
            let written: u64 = stored.records.iter().map(|(_, records)| records).sum();
            let written = written + stored.records_dropped;
            for CountRecord { samples, lost, throttled, .. } in
                counts.iter().filter(|count| count.processor == processor)
            {
                if samples + lost + throttled != written {
                    wrong.push(format!(
                        "CPU {processor}: {written} PEBS records, but {samples} samples, {lost} lost, {throttled} throttled"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the totals of the ledger.
    fn totals(&mut self) -> Result<Totals> {
        let mut totals = Totals::new();
        for (processor, entries) in (0..).zip(self.lab.wire.ledger()?) {
            for entry in entries {
                let [counted, between, overflows] = totals.entry((processor, (entry.event, entry.umask))).or_default();
                *counted += entry.counted;
                *between += entry.between;
                *overflows += entry.overflows;
            }
        }
        Ok(totals)
    }

    /// Checks that only the counters of the remaining session are enabled, and PEBS only for that.
    fn check_registers(&mut self, wrong: &mut Vec<String>) -> Result<()> {
        let expected = usize::from(self.session.is_some());
        let enabled = self.lab.wire.enabled_counters()?;
        if enabled.iter().any(|counters| counters.len() != expected) {
            wrong.push(format!("{expected} counters should be enabled on each CPU: {enabled:?}"));
        }
        let has_pebs = self.session.is_some() && self.scenario.needs_pebs();
        let stores = self.lab.wire.debug_store()?;
        if stores.iter().any(|store| (store.pebs_enable != 0) != has_pebs) {
            wrong.push(format!("IA32_PEBS_ENABLE should {}be set: {stores:x?}", if has_pebs { "" } else { "not " }));
        }
        Ok(())
    }
}
