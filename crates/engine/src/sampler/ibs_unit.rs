//! Instruction-Based Sampling on a processor, beside the counter in whose interrupts it is looked at.

use pmu::ibs::{Armed, Counted, Ibs, Look, MemoryOp, Op};
use pmu::{Cpu, Disturbance};
use protocol::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, CounterSample, Mode, PreciseKind, PreciseSample,
    UNKNOWN, event_flags, is_kernel_address, modes,
};
use x86_defs::cpuid::AmdProcessor;

use super::subscriptions::Subscriber;

/// The sampling of ops or fetches on a processor for a session.
#[derive(Debug)]
pub struct IbsUnit {
    unit: Ibs,
    /// What it counts between two samples.
    paced_by: Counted,
    /// [`modes`] of the event.
    modes: u32,
    /// [`event_flags`] of the event.
    flags: u32,
    /// The counter of the event.
    counter: u8,
    /// The session.
    subscriber: Subscriber,
    /// What the trial of the control register found.
    found: u64,
    /// While the counter counts and no other program uses the unit.
    armed: Option<Armed>,
    /// Process and thread that ran when the period began.
    task: (u32, u32),
    /// Number of ops or fetches that were sampled.
    number: u64,
}

impl IbsUnit {
    /// Makes one that samples nothing yet.
    pub const fn new(
        unit: Ibs,
        paced_by: Counted,
        (modes, flags): (u32, u32),
        counter: u8,
        subscriber: Subscriber,
    ) -> Self {
        let task = (UNKNOWN, UNKNOWN);
        Self { unit, paced_by, modes, flags, counter, subscriber, found: 0, armed: None, task, number: 0 }
    }

    /// Sets what the trial of the control register found.
    pub const fn set_found(&mut self, found: u64) {
        self.found = found;
    }

    /// Returns the counter in whose interrupts it is looked at.
    pub(super) const fn counter(&self) -> u8 {
        self.counter
    }

    /// Returns the session.
    pub(super) const fn subscriber(&self) -> Subscriber {
        self.subscriber
    }

    /// Begins to sample if it does not yet, unless the control register contains something else than what was tried.
    /// The counter has this interval.
    pub(super) fn start(&mut self, cpu: &impl Cpu, interval: u32) {
        if self.armed.is_none() {
            self.armed = self.unit.start(cpu, self.paced_by, interval, self.found);
            self.task = (UNKNOWN, UNKNOWN);
        }
    }

    /// Ends the sampling, with the control register as it was found.
    pub(super) fn stop(&mut self, cpu: &impl Cpu) {
        if let Some(armed) = self.armed.take() {
            self.unit.stop(cpu, armed);
        }
    }

    /// Compares the control register with what was written. The unit belongs to whoever changed it.
    pub(super) fn compare(&mut self, cpu: &impl Cpu) -> Option<Disturbance> {
        let disturbance = self.unit.compare(cpu, self.armed?)?;
        self.armed = None;
        Some(disturbance)
    }

    /// Returns the op that was sampled before an overflow of its counter, whose next interval this is.
    pub(super) fn look(&mut self, cpu: &impl Cpu, interval: u32) -> Option<Op> {
        match self.unit.look(cpu, self.armed.as_mut()?, interval) {
            Look::Op(op) => Some(op),
            Look::Nothing | Look::Taken => None,
        }
    }

    /// Returns the records of an op, and of what it did to memory. `None` if the event does not ask for it. `sample` is
    /// that of the overflow.
    #[inline(never)] // it is generic over nothing, so that it is compiled for size
    pub(super) fn record(
        &mut self,
        op: Option<Op>,
        sample: &CounterSample,
    ) -> Option<(PreciseSample, Option<AccessRecord>)> {
        // The thread is known if it ran at both ends of the period.
        let now = (sample.process, sample.thread);
        let (process, thread) = if self.task == now { now } else { (UNKNOWN, UNKNOWN) };
        self.task = now;
        let op = op.filter(|op| self.is_wanted(op))?;
        let number = self.number;
        self.number += 1;
        let precise = PreciseSample {
            time: sample.time,
            ip: op.ip,
            process,
            thread,
            processor: sample.processor,
            event: sample.event,
            interval: sample.interval,
            kind: PreciseKind::Precise,
            mode: if is_kernel_address(op.ip) { Mode::Kernel } else { Mode::User },
            number,
        };
        Some((precise, op.memory.map(|memory| self.access(&precise, op.latency, memory))))
    }

    /// Returns whether the event asks for an op: the unit has no filter that every processor knows.
    fn is_wanted(&self, op: &Op) -> bool {
        let wanted = |memory: &MemoryOp| {
            memory.loads && self.flags & event_flags::LOADS != 0
                || memory.stores && self.flags & event_flags::STORES != 0
        };
        let is_chosen =
            self.flags & (event_flags::LOADS | event_flags::STORES) == 0 || op.memory.as_ref().is_some_and(wanted);
        is_chosen && self.includes(op.ip)
    }

    /// Returns whether the event includes the half of the address space with an address.
    fn includes(&self, address: u64) -> bool {
        self.modes & if is_kernel_address(address) { modes::KERNEL } else { modes::USER } != 0
    }

    fn access(&self, sample: &PreciseSample, latency: u16, memory: MemoryOp) -> AccessRecord {
        let PreciseSample { time, process, thread, processor, event, number, .. } = *sample;
        AccessRecord {
            time,
            // Who may not see the kernel's code may not see its data.
            address: if self.includes(memory.address) { memory.address } else { 0 },
            process,
            thread,
            processor,
            event,
            latency: memory.latency.into(),
            kind: AccessKind::Access,
            number: (number & 0xFFFF) as u16,
            source: memory.source,
            instruction_latency: latency,
            encoding: self.encoding(),
            operation: match (memory.loads, memory.stores) {
                (true, false) => AccessOperation::Load,
                (false, true) => AccessOperation::Store,
                (true, true) => AccessOperation::LoadStore,
                (false, false) => AccessOperation::Fetch,
            },
        }
    }

    fn encoding(&self) -> AccessEncoding {
        let (of_op, of_fetch) = match self.unit.processor() {
            _ if self.unit.has_zen4_extensions() => (AccessEncoding::IbsZen4, AccessEncoding::IbsFetchZen4),
            Some(AmdProcessor::Milan) => (AccessEncoding::IbsZen3, AccessEncoding::IbsFetchZen3),
            Some(AmdProcessor::Zen3) => (AccessEncoding::IbsZen3Client, AccessEncoding::IbsFetchZen),
            Some(AmdProcessor::Zen) => (AccessEncoding::Ibs, AccessEncoding::IbsFetchZen),
            _ => (AccessEncoding::Ibs, AccessEncoding::IbsFetch),
        };
        if self.paced_by == Counted::Fetches { of_fetch } else { of_op }
    }
}
