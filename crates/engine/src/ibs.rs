//! Ops or fetches of a session that AMD's Instruction-Based Sampling samples: the event of cycles or of instructions
//! that is precise. A counter counts the event, and in its interrupts the unit of the processor is looked at.

use pmu::ProcessorIndex;
use pmu::first_access::{Phase, RegisterGroup};
use pmu::ibs::{self, Counted, Ibs, MissingFeature};
use protocol::status::{STATUS_DEVICE_BUSY, STATUS_NOT_SUPPORTED};
use protocol::{ErrorCode, event_flags};

use crate::event::{PlannedEvent, Service};
use crate::first_failure::FirstFailure;
use crate::parked::Parked;
use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, invalid, no_ibs};
use crate::sampler::{IbsUnit, Subscriber};

/// The ops or fetches of a session.
#[derive(Debug)]
pub struct IbsRecording {
    /// Index of the event.
    event: usize,
    counted: Counted,
    subscriber: Subscriber,
    /// The unit of each processor: AMD's machines have processors of one kind.
    unit: Ibs,
    /// One for each processor of the session.
    pub each: Parked<IbsUnit>,
}

impl IbsRecording {
    /// Plans the sampling for these events, if one of them asks for it. `other` is the number of a session that has the
    /// units.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn plan<M: Platform>(
        events: &[PlannedEvent],
        subscriber: Option<Subscriber>,
        other: Option<u64>,
        context: EngineContext<'_, M>,
    ) -> Result<Option<Self>, Refusal> {
        const FETCHES: u32 = event_flags::FETCHES;
        let is_wrong = |event: &&PlannedEvent| {
            let chosen = event.flags & (FETCHES | event_flags::LOADS | event_flags::STORES);
            chosen != 0 && !event.uses_ibs() || chosen & FETCHES != 0 && chosen != FETCHES
        };
        if let Some(event) = events.iter().find(is_wrong) {
            return Err(invalid(ErrorCode::BadFlags, event.flags.into()).source(event.requested.source));
        }
        let mut own = events.iter().enumerate().filter(|(_, event)| event.uses_ibs());
        let (Some((index, event)), Some(subscriber)) = (own.next(), subscriber) else { return Ok(None) };
        let source = event.requested.source;
        if own.next().is_some() || other.is_some() {
            let refusal = Refusal::new(STATUS_DEVICE_BUSY, ErrorCode::IbsTaken).source(source);
            return Err(refusal.detail(other.unwrap_or(0), 0));
        }
        let select = match event.service {
            Service::Counter { state, .. } => context.hal.events.source_of(state).map(|source| source.select),
            _ => None,
        };
        let lacking = |feature| no_ibs(feature).source(source);
        let counted = select.and_then(|select| Counted::of(select, event.flags & FETCHES != 0));
        let counted = counted.ok_or_else(|| lacking(MissingFeature::OtherEvent))?;
        let unit = context.platform.on_boot_processor(ibs::examine).map_err(lacking)?;
        if !unit.counts(counted) {
            return Err(lacking(counted.lacking()));
        }
        Ok(Some(Self { event: index, counted, subscriber, unit, each: Parked::new() }))
    }

    const fn group(&self) -> RegisterGroup {
        match self.counted {
            Counted::Cycles | Counted::Ops => RegisterGroup::IbsOps,
            Counted::Fetches => RegisterGroup::IbsFetches,
        }
    }

    /// Returns the index of its event.
    pub const fn event(&self) -> usize {
        self.event
    }

    /// Adds a processor, whose counter counts the event.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn add(&mut self, processor: ProcessorIndex, event: &PlannedEvent, counter: u8) -> Result<(), Refusal> {
        let unit = IbsUnit::new(self.unit, self.counted, (event.modes, event.flags), counter, self.subscriber);
        self.each.add(processor, unit)
    }

    /// Checks that these of its processors have the unit, that no interrupt of it is delivered, and unless `force` that
    /// no other program uses them, and tries what the session will write. It does not run there yet.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn acquire<M: Platform>(
        &self,
        processors: &[ProcessorIndex],
        force: bool,
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        context.access_first(processors, self.group(), Phase::Read)?;
        let (lacking, found) = (FirstFailure::none(), FirstFailure::none());
        context.on_awake(processors, |current| {
            if let Err(feature) = self.unit.check(current.cpu()) {
                lacking.set(current.index(), feature as u64, 0);
            } else if let Some((register, value)) =
                self.unit.in_use_elsewhere(current.cpu(), self.counted).filter(|_| !force)
            {
                found.set(current.index(), register.into(), value);
            }
        })?;
        lacking.refuse(STATUS_NOT_SUPPORTED, ErrorCode::NoIbs)?;
        found.refuse(STATUS_DEVICE_BUSY, ErrorCode::IbsInUse)?;
        context.access_first(processors, self.group(), Phase::Write)?;
        for processor in processors {
            let tried = context.pinned_to(*processor, |cpu| context.hal.try_ibs(self.counted, cpu))?;
            let control =
                tried.map_err(|fault| context.fault_refusal(ErrorCode::RegisterFault, fault).processor(*processor))?;
            self.each.of(*processor).map(|slot| slot.try_with(|unit| unit.set_found(control)));
        }
        Ok(())
    }
}
