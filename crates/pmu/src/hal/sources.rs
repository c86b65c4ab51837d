//! Profile sources, their intervals and the raw events in use. The caller of the functions that change them holds the
//! planning lock.

use core::sync::atomic::Ordering;

use super::{Hal, HalError, SourceInformation};
use crate::current_cpu::ProcessorIndex;
use crate::interface::{Interface, ProfileInterface, Support};
use crate::interval::IntervalRange;
use crate::source::{ProfileSource, RawEvent, Source};
use crate::state::{CounterSet, CounterState, RawSlot};

impl<E> Hal<E> {
    /// HalQueryProfileSourceList: returns every source of the interface, in ascending order.
    pub fn source_list(&self) -> impl Iterator<Item = SourceInformation> {
        (0_u16..).zip(self.interface.sources().iter()).map(|(index, source)| self.information(index, source))
    }

    /// HalProfileSourceInformation: returns what is known about a source, including raw events that are not in use.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub fn source_information(&self, source: Source) -> Result<SourceInformation, HalError> {
        if let Some(event) = source.raw() {
            return Ok(self.information(u16::MAX, ProfileSource::of_raw(event)));
        }
        let (index, entry) = self.interface.find(source).ok_or(HalError::UnknownSource(source))?;
        Ok(self.information(index, entry))
    }

    /// Returns the table entry of a source, or one for a raw event.
    pub(super) fn information_of(&self, source: Source) -> Option<ProfileSource> {
        let raw = source.raw().map(ProfileSource::of_raw);
        raw.or_else(|| self.interface.find(source).map(|(_, entry)| entry))
    }

    pub(super) fn information(&self, index: u16, source: ProfileSource) -> SourceInformation {
        self.information_by(&self.interface, self.support(&source), index, source)
    }

    /// Returns what is known about a source with this support, with the counters of `interface`.
    pub(super) fn information_by(
        &self,
        interface: &Interface,
        support: Support,
        index: u16,
        source: ProfileSource,
    ) -> SourceInformation {
        let range = IntervalRange::of(source.source);
        let is_refused = source.source.raw().is_some() && support != Support::Supported;
        let counters = if source.source == Source::TIME || is_refused {
            CounterSet::NONE
        } else {
            interface.counters_for(&source)
        };
        let (listing, precise) = (interface.listing(&source), interface.recorded(&source).and(counters));
        SourceInformation { source, support, interval: self.interval(index), range, counters, listing, precise }
    }

    /// Returns the support on some processor, or that of the boot processor if no processor supports the source.
    pub(super) fn support(&self, source: &ProfileSource) -> Support {
        let support = self.support_by(&self.interface, source);
        let is_supported = |interface| self.support_by(&interface, source) == Support::Supported;
        let elsewhere = || self.per_cpu.iter().any(|per_cpu| is_supported(self.whole_interface_with(&per_cpu.pmu)));
        if support != Support::Supported && elsewhere() { Support::Supported } else { support }
    }

    pub(super) fn support_by(&self, interface: &Interface, source: &ProfileSource) -> Support {
        match source.source.raw() {
            _ if self.is_stateless => Support::NoMemory,
            Some(event) if event.any() && !matches!(interface, Interface::Emon(_)) => Support::NoAnyThread,
            Some(event) => interface.raw_support(event),
            None => interface.support(source),
        }
    }

    /// Checks whether a source can be started on some processor.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn startable(&self, source: Source) -> Result<(), HalError> {
        let entry = self.information_of(source).ok_or(HalError::UnknownSource(source))?;
        match self.support(&entry) {
            Support::Supported => Ok(()),
            support => Err(HalError::Unsupported(source, support)),
        }
    }

    /// HalProfileSourceInterval: sets the interval from the next start on, clamped to the range of the source. Returns
    /// the previous interval and the one in force.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoInterval`] for a raw event.
    pub fn set_interval(&self, source: Source, wanted: u32) -> Result<(u32, u32), HalError> {
        self.startable(source)?;
        if source.raw().is_some() {
            return Err(HalError::NoInterval(source));
        }
        let index = self.index_of(source, 0)?;
        let interval = IntervalRange::of(source).clamp(wanted);
        let previous =
            self.intervals.get(usize::from(index)).map_or(interval, |cell| cell.swap(interval, Ordering::Relaxed));
        Ok((previous, interval))
    }

    pub(super) fn interval(&self, event: u16) -> u32 {
        let usual = IntervalRange::COUNTER.default;
        self.intervals.get(usize::from(event)).map_or(usual, |cell| cell.load(Ordering::Relaxed))
    }

    /// Frees the raw-event slots for which `is_used` returns false. Its argument is the [index](CounterState::event) of
    /// the slot. No counter may count an event that is freed. The caller holds the planning lock.
    ///
    /// # IRQL
    /// Any.
    pub fn keep_raw(&self, is_used: impl Fn(u16) -> bool) {
        for (index, slot) in self.raw_slots() {
            if slot.event().is_some() && !is_used(index) {
                slot.free();
            }
        }
    }

    /// Returns the first slots of raw events, each with the index that the state of a counter has for it.
    fn first_raw_slots(&self, number: u16) -> impl Iterator<Item = (u16, &RawSlot)> {
        let first = u16::try_from(self.interface.sources().len()).unwrap_or(u16::MAX);
        (first..).zip(self.raw.iter().take(number.into()))
    }

    /// Returns the slots of raw events that were ever taken.
    fn raw_slots(&self) -> impl Iterator<Item = (u16, &RawSlot)> {
        self.first_raw_slots(self.raw_taken.load(Ordering::Relaxed))
    }

    /// Returns the index of a source: of its entry, or of the slot of a raw event with the value of its extra register,
    /// which is taken if the event has none yet.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::TooManyRaw`].
    pub(super) fn index_of(&self, source: Source, value: u64) -> Result<u16, HalError> {
        match source.raw() {
            Some(event) => self.index_of_raw(event, value),
            None => self.interface.find(source).map(|(index, _)| index).ok_or(HalError::UnknownSource(source)),
        }
    }

    /// Returns the index of a raw event with the value of its extra register, or 0: that of its slot, which is taken if
    /// the event has none yet.
    ///
    /// # Errors
    /// [`HalError::TooManyRaw`].
    fn index_of_raw(&self, event: RawEvent, value: u64) -> Result<u16, HalError> {
        let is_it = |(_, slot): &(u16, &RawSlot)| slot.is(event, value);
        if let Some((index, _)) = self.raw_slots().find(is_it) {
            return Ok(index);
        }
        let more = self.raw_taken.load(Ordering::Relaxed).saturating_add(1);
        let mut slots = (0_u16..).zip(self.first_raw_slots(more));
        let free = slots.find(|(_, (_, slot))| slot.event().is_none());
        let (number, (index, slot)) = free.ok_or_else(|| HalError::TooManyRaw(event.source()))?;
        slot.set(event, value);
        self.raw_taken.fetch_max(number + 1, Ordering::Relaxed);
        Ok(index)
    }

    /// Returns what a counter in this state counts.
    #[must_use]
    pub fn profile_source(&self, state: CounterState) -> Option<ProfileSource> {
        self.cpu_counters(ProcessorIndex::BOOT).source_of(self.interface.sources(), state)
    }

    /// Returns the source that a counter in this state counts.
    #[must_use]
    pub fn source(&self, state: CounterState) -> Source {
        self.profile_source(state).map_or(Source::TIME, |source| source.source)
    }

    /// Returns the counters of `processor` that can count what `state` states.
    #[must_use]
    pub fn counters_for(&self, processor: ProcessorIndex, state: CounterState) -> CounterSet {
        let Some(source) = self.profile_source(state) else { return CounterSet::NONE };
        self.interface_of(processor).counters_in_state(&source, state)
    }

    /// Checks whether `processor` can count what `state` states.
    ///
    /// # Errors
    /// [`HalError::Unsupported`].
    pub fn check_on(&self, processor: ProcessorIndex, state: CounterState) -> Result<(), HalError> {
        let interface = self.pmu(processor).map_or(self.interface, |pmu| self.whole_interface_with(pmu));
        let source = self.cpu_counters(processor).source_of(self.interface.sources(), state);
        let Some(source) = source else { return Ok(()) };
        match self.support_by(&interface, &source) {
            Support::Supported => match self.extra_support(processor, &source, self.extra_of(state)) {
                Support::Supported => Ok(()),
                support => Err(HalError::Unsupported(source.source, support)),
            },
            support => Err(HalError::Unsupported(source.source, support)),
        }
    }
}
