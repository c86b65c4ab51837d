//! Ops of a session that AMD's Instruction-Based Sampling samples: the event of cycles or of instructions that is
//! precise. A counter counts the event, and in its interrupts the unit of the processor is looked at.

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

/// The ops of a session.
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
    /// Plans the sampling of ops for these events, if one of them asks for it. `other` is the number of a session that
    /// samples ops.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn plan<M: Platform>(
        events: &[PlannedEvent],
        processors: &[ProcessorIndex],
        subscriber: Option<Subscriber>,
        other: Option<u64>,
        context: EngineContext<'_, M>,
    ) -> Result<Option<Self>, Refusal> {
        const CHOICE: u32 = event_flags::LOADS | event_flags::STORES;
        if let Some(event) = events.iter().find(|event| event.flags & CHOICE != 0 && !event.uses_ibs()) {
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
        let counted = select.and_then(Counted::of).ok_or_else(|| lacking(MissingFeature::OtherEvent))?;
        let unit = context.platform.on_boot_processor(ibs::examine).map_err(lacking)?;
        if !unit.counts(counted) {
            return Err(lacking(MissingFeature::NoOps));
        }
        context.access_first(processors, RegisterGroup::IbsOps, Phase::Read)?;
        Ok(Some(Self { event: index, counted, subscriber, unit, each: Parked::new() }))
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

    /// Checks that each processor has the unit, that no interrupt of it is delivered, and unless `force` that no other
    /// program uses them, and tries what the session will write.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn acquire<M: Platform>(&self, force: bool, context: EngineContext<'_, M>) -> Result<(), Refusal> {
        let processors = self.each.processors()?;
        let (lacking, found) = (FirstFailure::none(), FirstFailure::none());
        context.on_awake(&processors, |current| {
            if let Err(feature) = self.unit.check(current.cpu()) {
                lacking.set(current.index(), feature as u64, 0);
            } else if let Some((register, value)) = self.unit.in_use_elsewhere(current.cpu()).filter(|_| !force) {
                found.set(current.index(), register.into(), value);
            }
        })?;
        lacking.refuse(STATUS_NOT_SUPPORTED, ErrorCode::NoIbs)?;
        found.refuse(STATUS_DEVICE_BUSY, ErrorCode::IbsInUse)?;
        context.access_first(&processors, RegisterGroup::IbsOps, Phase::Write)?;
        for (processor, slot) in self.each.iter() {
            let tried = context.pinned_to(*processor, |cpu| context.hal.try_ibs(cpu))?;
            let control =
                tried.map_err(|fault| context.fault_refusal(ErrorCode::RegisterFault, fault).processor(*processor))?;
            slot.try_with(|unit| unit.set_found(control));
        }
        Ok(())
    }
}
