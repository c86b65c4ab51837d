//! Reservation of counters: which counter of a processor counts for which owner. The caller holds the planning lock.

use super::{Hal, HalError};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::{Interface, ProfileInterface, Support, emon};
use crate::placement::{self, Wanted};
use crate::recorder::Recorder;
use crate::source::Source;
use crate::state::{CounterSet, CounterState, PerCpuPmu, upper_of};

impl<E> Hal<E> {
    /// Returns the state of a counter for a source, with an interrupt after every interval in force or without. The
    /// caller adds the modes and the owner. A raw event takes a slot until
    /// [`keep_raw`](super::EventTable::keep_raw) frees it; `value` is that of its extra register, or 0 without one. The
    /// caller holds the planning lock.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoCounter`] for ProfileTime,
    /// [`HalError::NoInterrupt`] if the counters do not interrupt, [`HalError::TooManyRaw`].
    pub fn state_for(&self, source: Source, value: u64, interrupt: bool) -> Result<CounterState, HalError> {
        self.startable(source)?;
        self.startable_state(source, value, interrupt)
    }

    /// As [`state_for`](Self::state_for), for a source that is [startable](Self::startable).
    ///
    /// # Errors
    /// As that function.
    pub fn startable_state(&self, source: Source, value: u64, interrupt: bool) -> Result<CounterState, HalError> {
        if source == Source::TIME {
            return Err(HalError::NoCounter(source));
        }
        if interrupt && !self.boot.interface.interrupts() {
            return Err(HalError::NoInterrupt(source));
        }
        self.check_sampled(source, interrupt)?;
        let (index, entry) = self.events.entry(source)?;
        let index = if source.is_raw() { self.events.index_of_raw(&entry, value)? } else { index };
        let interval = if interrupt { self.events.interval(index) } else { 0 };
        Ok(CounterState::FREE.of(index).with_interval(interval).with_merged(self.boot.interface.merges(&entry)))
    }

    /// Refuses to sample slots and metrics: they begin from zero at each reading, so they cannot interrupt.
    fn check_sampled(&self, source: Source, interrupt: bool) -> Result<(), HalError> {
        match (self.boot.interface, source.raw()) {
            (Interface::Emon(_), Some(event)) if interrupt && emon::is_metric(event) => {
                Err(HalError::Unsupported(source, Support::CountedOnly))
            }
            _ => Ok(()),
        }
    }

    /// Reserves a free counter of `processor` for `state`, which must have an owner. Returns `None` if all are taken.
    /// The counter does not count before [`start`](Self::start).
    pub fn reserve(&self, processor: ProcessorIndex, state: CounterState) -> Option<u8> {
        let mut assigned = [0];
        self.assign(processor, &[self.narrowed(processor, state.into())], &mut assigned).ok()?;
        let [counter] = assigned;
        self.set_up(processor, counter, state);
        Some(counter)
    }

    /// Narrows the counters that an event may have to those of `processor` that count it.
    #[must_use]
    pub fn narrowed(&self, processor: ProcessorIndex, Wanted { state, within }: Wanted) -> Wanted {
        Wanted { state, within: within.and(self.counters_for(processor, state)) }
    }

    /// Assigns a free counter of `processor` to each of several [narrowed](Self::narrowed) events, because one choice
    /// can exclude another, and writes it to the same index of `assigned`. Reserves nothing.
    ///
    /// # Errors
    /// The index of the first event for which there is no counter beside those before it.
    pub fn assign(&self, processor: ProcessorIndex, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
        self.interface_of(processor).assign(self.cpu_counters(processor), wanted, assigned)
    }

    /// Returns the counter that [`assign`](Self::assign) gives to the last of several events whose others have their
    /// counters, of which `open` are left. The outer `None`: it depends on the others; the inner one: only if another
    /// event moves.
    #[must_use]
    pub fn assign_next(&self, processor: ProcessorIndex, open: CounterSet, wanted: &Wanted) -> Option<Option<u8>> {
        let preferred = self.interface_of(processor).preferred(wanted)?;
        Some(placement::choice(open.and(wanted.within), preferred))
    }

    /// Sets up a counter of `processor` that is free or of the same owner, and does not run. Its count begins at zero.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor, or any while no session runs on the counter.
    pub fn set_up(&self, processor: ProcessorIndex, counter: u8, state: CounterState) {
        let cpu_counters = self.cpu_counters(processor);
        cpu_counters.set(counter, state.with_active(false));
        if state.merged() {
            cpu_counters.set(upper_of(counter), CounterState::held_by(state.owner()).with_upper(true));
        }
        if let Some(total) = cpu_counters.total(counter) {
            total.clear();
        }
    }

    /// Returns `state` with an interval that `processor` counts correctly: the same, or a slightly shorter one.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn with_safe_interval(&self, processor: ProcessorIndex, state: CounterState) -> CounterState {
        self.interface_of(processor).with_safe_interval(self.cpu_counters(processor), state)
    }

    /// Sets the interval of a counter of `processor` from its next load on, or a slightly shorter one that it
    /// [counts correctly](Self::with_safe_interval).
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor, or any while the counter does not run.
    pub fn set_counter_interval(&self, processor: ProcessorIndex, counter: u8, interval: u32) {
        let cpu_counters = self.cpu_counters(processor);
        let state = self.with_safe_interval(processor, cpu_counters.get(counter).with_interval(interval));
        cpu_counters.set(counter, state);
        if let Some(started) = cpu_counters.pmu.started(counter) {
            started.set_state(state);
        }
    }

    /// Returns the counters of `processor` that can [reload each other](CounterState::reloaded): those that CPUID
    /// names, or from the [first accesses](Self::access_first) on, none if the register of one did not answer.
    #[must_use]
    pub fn reloadable(&self, processor: ProcessorIndex) -> CounterSet {
        self.pmu(processor).map_or(CounterSet::NONE, PerCpuPmu::reloadable)
    }

    /// Returns which part a reserved counter of `processor` has in the samples of its event.
    #[must_use]
    pub fn recorder(&self, processor: ProcessorIndex, counter: u8) -> Recorder {
        let state = self.cpu_counters(processor).get(counter);
        let reloaded = if state.reloaded() { Recorder::Reloaded } else { Recorder::None };
        if !state.precise() {
            return reloaded;
        }
        match self.interface_of(processor) {
            Interface::Emon(emon) => emon.recorder(counter),
            _ => reloaded,
        }
    }

    /// Gives a counter of the current processor to another owner.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn hand_over(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, owner: u16) {
        let cpu_counters = self.cpu_counters(current.index());
        let state = cpu_counters.get(counter).owned_by(owner);
        cpu_counters.set(counter, state);
        if state.merged() {
            cpu_counters.set(upper_of(counter), cpu_counters.get(upper_of(counter)).owned_by(owner));
        }
    }

    /// Frees `counters` of `processor`, which must have been stopped.
    pub fn free(&self, processor: ProcessorIndex, counters: CounterSet) {
        let cpu_counters = self.cpu_counters(processor);
        for counter in counters.iter() {
            if cpu_counters.get(counter).merged() {
                cpu_counters.set(upper_of(counter), CounterState::FREE);
            }
            cpu_counters.set(counter, CounterState::FREE);
        }
    }
}
