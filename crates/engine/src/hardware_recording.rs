//! Events of a session that processors record themselves: precise events, and branches.

use alloc::vec::Vec;

use pmu::debug_store::{Facilities, MissingFeature, Modes, Numbering, Place, save_area_words};
use pmu::{CoreType, Kind, ProcessorIndex, ProfileSource};
use protocol::{BRANCH_BUFFER, BRANCHES, ErrorCode, EventRequest, modes};

use crate::areas::{AreaUse, Examined};
use crate::event::{PlannedEvent, Service};
use crate::parked::Parked;
use crate::platform::{ControlArea, EngineContext, Platform};
use crate::reply::{Refusal, invalid, lacks};
use crate::sampler::{DsBuffers, Subscriber, buffer_pages_log2, most_before};
use crate::try_vec::{NO_MEMORY, TryPush, try_collect};

/// Recording of a session by its processors.
#[derive(Debug)]
pub struct HardwareRecording {
    branches: Option<Branches>,
    /// Precise records before an interrupt.
    precise: Option<u32>,
    /// How the records of each processor that was examined are read.
    numberings: Vec<(ProcessorIndex, Numbering)>,
    /// The Debug Store of each processor of the session that records.
    pub each: Parked<DsBuffers>,
}

#[derive(Debug, Clone, Copy)]
struct Branches {
    modes: Modes,
    before: u32,
    subscriber: Subscriber,
}

/// What a processor of a core type records of some events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Recorded {
    branches: bool,
    precise: bool,
}

impl Recorded {
    fn of(events: &[PlannedEvent], core_type: Option<CoreType>) -> Self {
        events.iter().filter(|event| event.is_on(core_type)).fold(Self::default(), |recorded, event| Self {
            branches: recorded.branches || matches!(event.service, Service::Branches { .. }),
            precise: recorded.precise || matches!(event.service, Service::Counter { state, .. } if state.precise()),
        })
    }
}

/// Returns how branches are served, or a refusal.
pub fn branches(event: &EventRequest) -> Result<Service, Refusal> {
    let (least, most) = (u64::from(*BRANCH_BUFFER.start()), u64::from(*BRANCH_BUFFER.end()));
    if !BRANCH_BUFFER.contains(&event.interval) {
        return Err(invalid(ErrorCode::BadBuffer, least).detail(least, most).source(BRANCHES));
    }
    if event.frequency != 0 {
        return Err(invalid(ErrorCode::BadFrequency, 0).source(BRANCHES));
    }
    Ok(Service::Branches { before: event.interval })
}

impl HardwareRecording {
    /// Plans the recording for these events, if processors record any of them. `subscriber` is the session.
    pub fn plan(events: &[PlannedEvent], batch: u32, subscriber: Option<Subscriber>) -> Result<Option<Self>, Refusal> {
        let mut branches = None;
        for event in events {
            let (Service::Branches { before }, Some(subscriber)) = (event.service, subscriber) else { continue };
            let modes = Modes { user: event.modes & modes::USER != 0, kernel: event.modes & modes::KERNEL != 0 };
            if branches.replace(Branches { modes, before, subscriber }).is_some() {
                return Err(invalid(ErrorCode::BadModes, event.modes.into()).source(event.requested.source));
            }
        }
        let is_precise =
            |event: &PlannedEvent| matches!(event.service, Service::Counter { state, .. } if state.precise());
        let precise = events.iter().any(is_precise).then_some(batch.max(1));
        let recording = Self { branches, precise, numberings: Vec::new(), each: Parked::new() };
        Ok((branches.is_some() || precise.is_some()).then_some(recording))
    }

    /// Returns whether a processor that was examined writes through the Debug Store.
    pub fn uses_store(&self) -> bool {
        self.branches.is_some() || self.numberings.iter().any(|(_, numbering)| !numbering.format.is_architectural())
    }

    /// Returns how the precise records of a processor are read, if it makes some.
    pub fn numbering(&self, processor: ProcessorIndex) -> Option<Numbering> {
        let of_processor = |(number, _): &&(ProcessorIndex, Numbering)| *number == processor;
        self.numberings.iter().find(of_processor).map(|(_, numbering)| *numbering)
    }

    /// Returns the purpose of the control area of a processor.
    pub fn area_use(&self, processor: ProcessorIndex) -> AreaUse {
        let numbering = self.numbering(processor);
        let pages = match (self.precise, numbering) {
            (Some(before), Some(numbering)) if numbering.format.is_architectural() => {
                1 << buffer_pages_log2(before, numbering)
            }
            _ => 0,
        };
        let words = numbering.map_or(0, |numbering| save_area_words(numbering.format));
        AreaUse::Used { precise: self.precise.is_some(), words, pages }
    }

    /// Checks whether each of the processors can record the events that it is to record. From then on the HAL functions
    /// know which counters can.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn check<M: Platform>(
        &mut self,
        events: &[PlannedEvent],
        processors: &[ProcessorIndex],
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        let records = |processor: &&ProcessorIndex| {
            Recorded::of(events, context.hal.core_type(**processor)) != Recorded::default()
        };
        let processors = try_collect(processors.iter().filter(records).copied(), processors.len())?;
        let found = Examined::of(&processors, context)?;
        for (processor, facilities) in processors.iter().zip(found.iter()) {
            self.check_on(*processor, facilities, events, context).map_err(|refusal| refusal.processor(*processor))?;
        }
        Ok(())
    }

    fn check_on<M: Platform>(
        &mut self,
        processor: ProcessorIndex,
        facilities: Result<Facilities, MissingFeature>,
        events: &[PlannedEvent],
        EngineContext { hal, .. }: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        let lacking = |missing_feature| lacks(missing_feature, ErrorCode::NoDebugStore);
        let facilities = facilities.map_err(lacking)?;
        if hal.interface().kind() != Kind::Emon {
            return Err(lacking(MissingFeature::NotInInterface));
        }
        let core_type = hal.core_type(processor);
        let recorded = Recorded::of(events, core_type);
        if let Some(Branches { modes, .. }) = self.branches.filter(|_| recorded.branches) {
            facilities.branches.map_err(lacking)?;
            if modes.user != modes.kernel && !facilities.modes {
                return Err(lacking(MissingFeature::NoModes));
            }
        }
        let Some(before) = self.precise.filter(|_| recorded.precise) else { return Ok(()) };
        let format = facilities.precise.map_err(lacking)?;
        if before > most_before(format) {
            return Err(invalid(ErrorCode::BadBuffer, 1).detail(1, most_before(format).into()));
        }
        let first_fixed = hal.probe_precise(processor, facilities);
        let by_fixed = |source: &ProfileSource| {
            facilities.recorders.fixed && hal.interface_of(processor).recorded(source).has(first_fixed)
        };
        let records = |source: &ProfileSource| facilities.microarchitecture.records(source, format) || by_fixed(source);
        let mut accesses = None;
        for event in events.iter().filter(|event| event.is_on(core_type)) {
            if let Service::Counter { state, .. } = event.service
                && state.precise()
            {
                let Some(source) = hal.events.source_of(state).filter(&records) else {
                    return Err(lacks(MissingFeature::NotPrecise, ErrorCode::NotPrecise).source(event.requested.source));
                };
                if facilities.microarchitecture.recorded_operation(source.select).is_some() {
                    accesses = Some(facilities.microarchitecture);
                }
            }
        }
        // Without PEBS_BASELINE there are no groups to ask for.
        let accesses = accesses.filter(|_| !format.is_adaptive() || facilities.recorders.fixed);
        self.numberings.try_push((processor, Numbering { format, first_fixed, accesses }))
    }

    /// Adds a processor of this core type, if it records any of the events.
    #[inline(never)] // its stack is not in use in the rest of a start
    pub fn add(
        &mut self,
        processor: ProcessorIndex,
        events: &[PlannedEvent],
        core_type: Option<CoreType>,
    ) -> Result<(), Refusal> {
        let recorded = Recorded::of(events, core_type);
        if recorded == Recorded::default() {
            return Ok(());
        }
        let mut ds_buffers = DsBuffers::new();
        if let Some(Branches { modes, before, subscriber }) = self.branches.filter(|_| recorded.branches) {
            ds_buffers = ds_buffers.with_branches(modes, before, subscriber).ok_or(NO_MEMORY)?;
        }
        if let (Some(batch), Some(numbering)) = (self.precise.filter(|_| recorded.precise), self.numbering(processor)) {
            ds_buffers = ds_buffers.with_precise(batch, numbering).ok_or(NO_MEMORY)?;
        }
        self.each.add(processor, ds_buffers)
    }

    /// Sets the control area of a processor.
    pub fn set_area(&self, processor: ProcessorIndex, area: ControlArea) {
        if let Some(slot) = self.each.of(processor) {
            slot.try_with(|buffers| buffers.set_area(area));
        }
    }

    /// Returns where a processor that records will write.
    pub fn place(&self, processor: ProcessorIndex) -> Option<Place> {
        self.each.of(processor)?.try_with(|buffers| buffers.place())
    }

    /// Returns the modes of the branches, if a processor records them.
    pub fn branch_modes(&self, processor: ProcessorIndex) -> Option<Modes> {
        let records = self.each.of(processor)?.try_with(|buffers| buffers.traced_for().is_some())?;
        self.branches.filter(|_| records).map(|branches| branches.modes)
    }
}
