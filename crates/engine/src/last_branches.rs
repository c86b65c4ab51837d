//! Last branches of a session: the records of each of its processors that samples by counters.

use alloc::vec::Vec;

use pmu::first_access::{Phase, RegisterGroup};
use pmu::last_branches::{self, Filter, LastBranches, MissingFeature};
use pmu::{CoreType, ProcessorIndex};
use protocol::status::STATUS_DEVICE_BUSY;
use protocol::{ErrorCode, StartHeader, modes};
use sample_ring::Slot;

use crate::event::{PlannedEvent, Service};
use crate::first_failure::FirstFailure;
use crate::parked::Parked;
use crate::platform::{EngineContext, Platform};
use crate::reply::{Refusal, invalid, no_last_branches};
use crate::sampler::{BranchStack, Subscriber};
use crate::try_vec::{TryPush, try_collect};

/// The last branches of a session.
#[derive(Debug)]
pub struct LastBranchRecording {
    filter: Filter,
    subscriber: Subscriber,
    /// What was examined, in ascending order of the processors.
    examined: Vec<(ProcessorIndex, LastBranches)>,
    /// One for each processor of the session that records, in its order.
    pub each: Parked<BranchStack>,
}

/// Returns whether samples of an event have last branches: those of a counter, which its interrupt takes.
fn has_branches(event: &PlannedEvent) -> bool {
    let is_counted = matches!(event.service, Service::Counter { .. });
    event.sampled && is_counted && event.modes & modes::PRECISE == 0
}

impl LastBranchRecording {
    /// Plans the recording that a request asks for, if it does.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn plan<M: Platform>(
        header: &StartHeader,
        events: &[PlannedEvent],
        processors: &[ProcessorIndex],
        subscriber: Option<Subscriber>,
        context: EngineContext<'_, M>,
    ) -> Result<Option<Self>, Refusal> {
        if header.last_branches == 0 {
            return Ok(None);
        }
        let filter = filter(header)?;
        // Branches go either into registers or to memory.
        let is_traced = |event: &PlannedEvent| matches!(event.service, Service::Branches { .. });
        let subscriber = subscriber.filter(|_| events.iter().any(has_branches) && !events.iter().any(is_traced));
        let subscriber = subscriber.ok_or_else(|| bad(header))?;
        let records = |processor: &&ProcessorIndex| is_on(events, context.hal.core_type(**processor));
        let processors = try_collect(processors.iter().filter(records).copied(), processors.len())?;
        context.access_first(&processors, RegisterGroup::LastBranches, Phase::Read)?;
        let slots = try_collect(processors.iter().map(|_| Slot::empty()), processors.len())?;
        context.on_awake(&processors, |current| {
            if let Some(slot) = processors.binary_search(&current.index()).ok().and_then(|index| slots.get(index)) {
                // The slot is new, so it is empty.
                let _ = slot.try_put(last_branches::examine(current.cpu()));
            }
        })?;
        let mut recording = Self { filter, subscriber, examined: Vec::new(), each: Parked::new() };
        for (processor, slot) in processors.iter().zip(slots) {
            let lacking = |feature| no_last_branches(feature).processor(*processor);
            let records = slot.try_take().unwrap_or(Err(MissingFeature::NoRecords)).map_err(lacking)?;
            records.check(filter).map_err(lacking)?;
            recording.examined.try_push((*processor, records))?;
        }
        Ok(Some(recording))
    }

    /// Adds a processor of this core type, if it samples an event by a counter.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn add(
        &mut self,
        processor: ProcessorIndex,
        events: &[PlannedEvent],
        core_type: Option<CoreType>,
    ) -> Result<(), Refusal> {
        let found = self.examined.binary_search_by_key(&processor, |(number, _)| *number).ok();
        let Some((_, records)) = found.and_then(|index| self.examined.get(index)) else { return Ok(()) };
        if !is_on(events, core_type) {
            return Ok(());
        }
        self.each.add(processor, BranchStack::new(*records, self.filter, self.subscriber))
    }

    /// Checks that no other program has branches recorded, unless `force`, and tries what the session will write.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn acquire<M: Platform>(&self, force: bool, context: EngineContext<'_, M>) -> Result<(), Refusal> {
        let processors = self.each.processors()?;
        let found = FirstFailure::none();
        if !force {
            context.on_awake(&processors, |current| {
                let records = self.each.of(current.index()).and_then(|slot| slot.try_with(|stack| stack.records()));
                if let Some((register, value)) = records.and_then(|records| records.in_use_elsewhere(current.cpu())) {
                    found.set(current.index(), register.into(), value);
                }
            })?;
        }
        found.refuse(STATUS_DEVICE_BUSY, ErrorCode::LastBranchesInUse)?;
        context.access_first(&processors, RegisterGroup::LastBranches, Phase::Write)?;
        for (processor, slot) in self.each.iter() {
            let tried = context.pinned_to(*processor, |cpu| context.hal.try_last_branches(self.filter, cpu))?;
            let controls =
                tried.map_err(|fault| context.fault_refusal(ErrorCode::RegisterFault, fault).processor(*processor))?;
            slot.try_with(|stack| stack.set_found(controls));
        }
        Ok(())
    }
}

/// Returns whether a processor of a core type samples one of the events by a counter.
fn is_on(events: &[PlannedEvent], core_type: Option<CoreType>) -> bool {
    events.iter().any(|event| has_branches(event) && event.is_on(core_type))
}

/// Returns the branches that a request asks for.
fn filter(header: &StartHeader) -> Result<Filter, Refusal> {
    let filter = u16::try_from(header.last_branches).map(Filter::from_bits).ok().filter(|filter| filter.is_sound());
    filter.ok_or_else(|| bad(header))
}

fn bad(header: &StartHeader) -> Refusal {
    invalid(ErrorCode::BadFlags, header.last_branches.into())
}
