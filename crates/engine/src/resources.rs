//! Resources of the machine that sessions share: counters, timers, the interrupt, control areas. Acquired for the first
//! session that needs them, released after the last.

use alloc::borrow::Cow;
use core::sync::atomic::{AtomicU32, Ordering};

use pmu::extra::Selector;
use pmu::first_access::{Phase, RegisterGroup};
use pmu::hal::TriedRecording;
use pmu::state::CounterSet;
use pmu::{Cpu, ProcessorIndex, debug_store, lvt_pmi};
use protocol::status::{STATUS_DEVICE_BUSY, STATUS_NOT_SUPPORTED};
use protocol::{BRANCHES, ErrorCode, NtStatus, ProcessorSet, RegisterInUse};

use crate::areas::Areas;
use crate::first_failure::FirstFailure;
use crate::hardware_recording::HardwareRecording;
use crate::perf_metrics::take_metrics;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::{insert_all, set_of, set_of_all};
use crate::reply::Refusal;
use crate::reservation::Reservation;
use crate::session::{Needed, Session};
use crate::try_vec::NO_MEMORY;

/// Process in which the interrupt handler is registered: the number of the System process.
const SYSTEM: u64 = 4;

/// The acquired resources.
#[derive(Debug, Default)]
pub struct Resources {
    reservation: Reservation,
    /// Interval of the timers and the processors where they run, while there are any.
    timers: Option<(u32, ProcessorSet)>,
    interrupt: Interrupt,
    /// Processors that tick, while there are any.
    ticking: Option<ProcessorSet>,
    areas: Areas,
}

/// What became of the resources that a session needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// They are acquired.
    All,
    /// Some of its counters do not work, as the first accesses have shown. The session is planned again without them.
    CountersGone,
}

/// State of the performance monitor interrupt.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Interrupt {
    #[default]
    Free,
    /// The local APIC is open.
    Reached,
    /// The handler is registered.
    Ours,
}

impl Resources {
    /// Returns the reservation of the counters.
    pub const fn reservation(&mut self) -> &mut Reservation {
        &mut self.reservation
    }

    /// Returns the state of the reservation as in [`InfoReply`](protocol::InfoReply).
    pub const fn reservation_state(&self) -> u32 {
        self.reservation.state()
    }

    /// Acquires the resources that a session needs. After a refusal, or if counters of the session turn out not to
    /// work, the caller must release what is unused. With `force`, counters that another program has enabled are used
    /// too.
    #[inline(never)]
    pub fn take<M: Platform>(
        &mut self,
        session: &Session,
        force: bool,
        context: EngineContext<'_, M>,
    ) -> Result<Taken, Refusal> {
        let counted = session.processors_with(Needed::Counter)?;
        // A session without samples needs no look at its events.
        let (mut sampled, mut recorded) = (Cow::default(), Cow::default());
        if session.rings.is_some() {
            sampled = session.processors_with(Needed::Interrupt)?;
            recorded = session.processors_with(Needed::DebugStore)?;
        }
        let are_initialized = counted.iter().all(|processor| context.hal.is_initialized(*processor));
        let needs = Needs {
            counters: if are_initialized { &[] } else { &counted },
            local_apic: &sampled,
            debug_store: &recorded,
        };
        // Before the registers are touched: the HAL then refuses them to other drivers.
        if !needs.counters.is_empty() || session.uses_debug_store() {
            self.reservation.take(context.platform)?;
        }
        access_first(needs, force, context)?;
        let lost = |processor: &ProcessorIndex| {
            !session.own_counters(*processor).without(context.hal.present_counters(*processor)).is_empty()
        };
        if counted.iter().any(lost) {
            return Ok(Taken::CountersGone);
        }
        let needs_extra = session.events.iter().any(|event| event.selector().is_some());
        if needs_extra {
            access_extra(session, &counted, context)?;
        }
        if !needs.counters.is_empty() {
            initialize(needs.counters, context)?;
        }
        take_metrics(session, &counted, force, context)?;
        if needs_extra {
            context.on_awake(&session.processors, |current| session.save_extra(current, context.hal))?;
        }
        if !self.take_timers(session, context.platform) {
            return Err(NO_MEMORY);
        }
        if session.uses_interrupt() {
            self.take_interrupt(&sampled, context)?;
        }
        if let Some(recording) = &session.hardware_recording {
            self.take_areas(recording, &recorded, context)?;
        }
        for processor in &session.processors {
            try_events(session, *processor, context)?;
        }
        // The last: what it tries is written beside what the others have left.
        session.last_branches.as_ref().map_or(Ok(()), |recording| recording.acquire(force, context))?;
        if let Some(recording) = &session.ibs_recording {
            recording.acquire(&recording.each.processors()?, force, context)?;
        }
        Ok(Taken::All)
    }

    /// Lets the timers run at least as often as the session needs, on its processors as well. Returns false if that is
    /// impossible, and nothing has changed.
    pub fn take_timers(&mut self, session: &Session, platform: &impl Platform) -> bool {
        if session.timer_interval().is_none() {
            return true;
        }
        let mut timers = self.timers;
        add_timers(&mut timers, session);
        self.set_timers(timers.as_ref(), platform)
    }

    /// Starts the timers with this interval on these processors, changes either, or stops them. Returns false if that
    /// is impossible, and nothing has changed.
    fn set_timers(&mut self, timers: Option<&(u32, ProcessorSet)>, platform: &impl Platform) -> bool {
        if timers == self.timers.as_ref() {
            return true;
        }
        match timers {
            Some((interval, processors)) if !platform.start_timers(processors, *interval) => return false,
            Some(_) => {}
            None => platform.stop_timers(),
        }
        self.timers = timers.copied();
        true
    }

    /// Lets these processors tick, while the interrupt is the driver's. Returns false if that is impossible, and
    /// nothing has changed.
    fn set_ticks(&mut self, processors: ProcessorSet, platform: &impl Platform) -> bool {
        if self.ticking == Some(processors) {
            return true;
        }
        let ticks = platform.run_ticks(&processors);
        if ticks {
            self.ticking = Some(processors);
        }
        ticks
    }

    /// Lets timers and ticks run exactly where these sessions need them. The timers of their processors exist, so that
    /// it cannot fail.
    pub fn settle_timers(&mut self, sessions: &[Session], platform: &impl Platform) {
        let mut timers = None;
        for session in sessions {
            add_timers(&mut timers, session);
        }
        let _ = self.set_timers(timers.as_ref(), platform);
        if self.interrupt == Interrupt::Ours {
            let _ = self.set_ticks(set_of(sessions.iter().flat_map(Session::interrupted_processors)), platform);
        }
    }

    /// Acquires the control areas. Those that earlier sessions have left can be too small.
    fn take_areas<M: Platform>(
        &mut self,
        recording: &HardwareRecording,
        processors: &[ProcessorIndex],
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        self.areas.drop_unneeded(context);
        for processor in processors {
            let area = self.areas.take(*processor, recording.area_use(*processor), context.platform)?;
            recording.set_area(*processor, area);
        }
        Ok(())
    }

    /// Returns the control areas.
    pub const fn areas(&mut self) -> &mut Areas {
        &mut self.areas
    }

    /// Enables the LVT entry on each processor, then registers the handler with the HAL.
    fn take_interrupt<M: Platform>(
        &mut self,
        processors: &[ProcessorIndex],
        context: EngineContext<'_, M>,
    ) -> Result<(), Refusal> {
        let EngineContext { platform, hal, .. } = context;
        context.check_awake()?;
        if self.interrupt == Interrupt::Free {
            open_local_apic(context)?;
            self.interrupt = Interrupt::Reached;
        }
        let hypervisor = hal.boot.hypervisor as u64;
        let shut = FirstFailure::none();
        context.on_awake(processors, |current| {
            if let Err(entry) = lvt_pmi::enable(current.cpu()) {
                shut.set(current.index(), u64::from(entry.into_bits()), hypervisor);
            }
        })?;
        shut.refuse(STATUS_NOT_SUPPORTED, ErrorCode::InterruptNotEnabled)?;
        if self.interrupt != Interrupt::Ours {
            let handler = platform
                .begin_sampling()
                .map_err(|status| Refusal::new(status, ErrorCode::HandlerRefused).detail(status.into(), hypervisor))?;
            self.interrupt = Interrupt::Ours;
            hal.handler.set(Some(handler), SYSTEM)?;
        }
        let mut ticking = self.ticking.unwrap_or(ProcessorSet::EMPTY);
        insert_all(&mut ticking, processors.iter().copied());
        if self.set_ticks(ticking, platform) { Ok(()) } else { Err(NO_MEMORY) }
    }

    /// Returns the LVT entry of a processor, whose local APIC is in memory. Opens it, unless it is open.
    ///
    /// # Errors
    /// [`ErrorCode::ApicNotReached`]; [`ASLEEP`](crate::suspend_time::ASLEEP).
    pub fn lvt_entry<M: Platform>(
        &self,
        processor: ProcessorIndex,
        context: EngineContext<'_, M>,
    ) -> Result<u32, Refusal> {
        let is_closed = self.interrupt == Interrupt::Free;
        if is_closed {
            open_local_apic(context)?;
        }
        let entry = AtomicU32::new(0);
        let outcome = context.on_awake(&[processor], |current| {
            entry.store(current.cpu().lvt_pmi(), Ordering::Relaxed);
        });
        if is_closed {
            context.platform.close_local_apic();
        }
        outcome.map(|()| entry.into_inner())
    }

    /// Acquires on an added processor the resources that are in use on the others. Returns whether sessions can count
    /// there, and whether they can sample there.
    pub fn take_processor<M: Platform>(
        &mut self,
        processor: ProcessorIndex,
        context: EngineContext<'_, M>,
    ) -> (bool, bool) {
        let processors = [processor];
        let accessed = |needs| access_first(needs, false, context).is_ok();
        let counts = self.reservation.is_held()
            && accessed(Needs { counters: &processors, ..Needs::default() })
            && initialize(&processors, context).is_ok();
        let samples = self.interrupt == Interrupt::Ours
            && accessed(Needs { local_apic: &processors, ..Needs::default() })
            && self.take_interrupt(&processors, context).is_ok();
        (counts, samples)
    }

    /// Releases the resources that none of these sessions uses: the registers first, then the interrupt, which no
    /// counter raises by then, and the reservation last.
    pub fn release<M: Platform>(&mut self, sessions: &[Session], context: EngineContext<'_, M>) {
        let EngineContext { platform, sampler, hal } = context;
        let counters_used = sessions.iter().any(Session::uses_counters);
        if !sessions.iter().any(Session::uses_debug_store) {
            self.areas.release(context);
        }
        if self.reservation.is_taken() && !counters_used {
            let initialized = ProcessorIndex::first(platform.processors()).filter(|one| hal.is_initialized(*one));
            platform.on_processors(&set_of(initialized), &|current| hal.release(current));
        }
        if self.interrupt != Interrupt::Free && !sessions.iter().any(Session::uses_interrupt) {
            if self.interrupt == Interrupt::Ours {
                // Cannot fail: the driver has the slot.
                let _ = hal.handler.set(None, SYSTEM);
                platform.end_sampling();
                self.ticking = None;
            }
            // The entry was not masked when the interrupt was acquired.
            platform.on_processors(&set_of(sampler.silenced()), &|current| _ = sampler.end_silence(current));
            platform.close_local_apic();
            self.interrupt = Interrupt::Free;
        }
        self.settle_timers(sessions, platform);
        if !counters_used && !sessions.iter().any(Session::uses_debug_store) {
            self.reservation.free(platform);
        }
    }
}

fn open_local_apic<M: Platform>(context: EngineContext<'_, M>) -> Result<(), Refusal> {
    let _access = context.sampler.sleeps().access()?;
    let refusal = |status: NtStatus| Refusal::new(status, ErrorCode::ApicNotReached).detail(status.into(), 0);
    context.platform.open_local_apic().map_err(refusal)
}

/// Adds the timers that a session needs.
fn add_timers(timers: &mut Option<(u32, ProcessorSet)>, session: &Session) {
    let Some(needed) = session.timer_interval() else { return };
    let (interval, processors) = timers.get_or_insert((needed, ProcessorSet::EMPTY));
    *interval = needed.min(*interval);
    insert_all(processors, session.timed_processors());
}

/// The processors on which a session needs each kind of registers, in ascending order.
#[derive(Debug, Clone, Copy, Default)]
struct Needs<'a> {
    counters: &'a [ProcessorIndex],
    local_apic: &'a [ProcessorIndex],
    debug_store: &'a [ProcessorIndex],
}

/// Accesses the registers for the first time, and checks that no other program uses them. All of them are read before
/// one is written, and none is accessed in another way before all have answered: after a refusal there is nothing to
/// undo.
fn access_first<M: Platform>(needs: Needs<'_>, force: bool, context: EngineContext<'_, M>) -> Result<(), Refusal> {
    let access = |phase| {
        context.access_first(needs.counters, RegisterGroup::Counters, phase)?;
        context.access_first(needs.local_apic, RegisterGroup::LocalApic, phase)?;
        context.access_first(needs.debug_store, RegisterGroup::DebugStore, phase)
    };
    access(Phase::Read)?;
    if !needs.counters.is_empty() && !force {
        check_counters(needs.counters, context)?;
    }
    if !needs.debug_store.is_empty() {
        check_debug_store(needs.debug_store, context)?;
    }
    access(Phase::Write)?;
    needs.counters.iter().try_for_each(|processor| try_found(*processor, context))
}

/// Tries what the control registers of a processor contain by now: the first accesses may have been made long ago.
fn try_found<M: Platform>(processor: ProcessorIndex, context: EngineContext<'_, M>) -> Result<(), Refusal> {
    let tried = context.pinned_to(processor, |cpu| context.hal.try_found(processor, cpu))?;
    tried.map_err(|fault| context.fault_refusal(ErrorCode::RegisterFault, fault).processor(processor))
}

/// Accesses the extra registers that a session needs for the first time, on these of its processors.
pub fn access_extra<M: Platform>(
    session: &Session,
    processors: &[ProcessorIndex],
    context: EngineContext<'_, M>,
) -> Result<(), Refusal> {
    let is_used = |selector: &Selector| session.events.iter().any(|event| event.selector() == Some(*selector));
    for phase in [Phase::Read, Phase::Write] {
        for selector in Selector::ALL.into_iter().filter(is_used) {
            context.access_first(processors, selector.group(), phase)?;
        }
    }
    Ok(())
}

/// Tries under a guard, on a processor that is initialized, what the start of a session will write there: a hypervisor
/// may fault for values that it does not support, or drop some of their bits. Its own counters stand still.
pub fn try_events<M: Platform>(
    session: &Session,
    processor: ProcessorIndex,
    context: EngineContext<'_, M>,
) -> Result<(), Refusal> {
    let hal = context.hal;
    let (recording, has_events) = (session.hardware_recording.as_ref(), !session.own_counters(processor).is_empty());
    let place = recording.and_then(|recording| recording.place(processor));
    if !has_events && place.is_none() {
        return Ok(());
    }
    let tried = context.pinned_to(processor, |cpu| {
        let mut precise = (CounterSet::NONE, NO_EVENT);
        session.each_own(processor, hal, |source, counter, state| {
            if state.precise() {
                precise = (precise.0.with(counter), source);
            }
            hal.try_event(processor, counter, state, cpu).map_err(|fault| (source, fault))
        })?;
        let branches = recording.and_then(|recording| recording.branch_modes(processor)).map(TriedRecording::Branches);
        let numbering = recording.and_then(|recording| recording.numbering(processor));
        let (counters, precise) = (Some(precise.0).filter(|counters| !counters.is_empty()), precise.1);
        let recorded = [
            (NO_EVENT, place.map(TriedRecording::Place)),
            (BRANCHES, branches),
            (
                precise,
                numbering.zip(counters).map(|(numbering, counters)| TriedRecording::Precise(numbering, counters)),
            ),
        ];
        let mut recorded = recorded.into_iter().filter_map(|(source, recorded)| Some((source, recorded?)));
        recorded.try_for_each(|(source, recorded)| {
            hal.try_recording(processor, recorded, cpu).map_err(|fault| (source, fault))
        })
    })?;
    tried.map_err(|(source, fault)| {
        context.fault_refusal(ErrorCode::RegisterFault, fault).processor(processor).source(source)
    })
}

/// Source of a refusal that concerns no event: measured time touches no register.
const NO_EVENT: u64 = 0;

/// Refuses if another program has enabled a counter of a processor that is not initialized yet.
fn check_counters<M: Platform>(
    processors: &[ProcessorIndex],
    EngineContext { platform, hal, .. }: EngineContext<'_, M>,
) -> Result<(), Refusal> {
    let found = FirstFailure::none();
    platform.on_processors(&set_of_all(processors), &|current| {
        if let Some(enabled) = hal.in_use_elsewhere(current) {
            let (number, interface) = (enabled.register.address(), hal.interface().kind() as u8);
            let in_use = RegisterInUse { number, counter: enabled.counter, interface };
            found.set(current.index(), in_use.to_detail(), enabled.value);
        }
    });
    found.refuse(STATUS_DEVICE_BUSY, ErrorCode::ForeignUse)
}

/// Refuses if another program uses the Debug Store.
fn check_debug_store<M: Platform>(processors: &[ProcessorIndex], context: EngineContext<'_, M>) -> Result<(), Refusal> {
    let found = FirstFailure::none();
    context.on_awake(processors, |current| {
        if let Ok(facilities) = debug_store::examine(current.cpu())
            && let Some(in_use_elsewhere) = debug_store::in_use_elsewhere(current.cpu(), &facilities)
        {
            found.set(current.index(), in_use_elsewhere.control, in_use_elsewhere.records);
        }
    })?;
    found.refuse(STATUS_DEVICE_BUSY, ErrorCode::DebugStoreInUse)
}

/// Initializes the counters of processors that are not initialized yet.
fn initialize<M: Platform>(
    processors: &[ProcessorIndex],
    EngineContext { platform, hal, .. }: EngineContext<'_, M>,
) -> Result<(), Refusal> {
    let idle = FirstFailure::none();
    let new = set_of(processors.iter().copied().filter(|processor| !hal.is_initialized(*processor)));
    platform.on_processors(&new, &|current| {
        if !hal.initialize(current) {
            idle.set(current.index(), 0, 0);
        }
    });
    idle.refuse(STATUS_NOT_SUPPORTED, ErrorCode::CountersDoNotWork)
}
