//! Profile sources: their support, their counters and their intervals.

use super::{Hal, HalError, SourceInformation};
use crate::current_cpu::ProcessorIndex;
use crate::interface::{Interface, ProfileInterface, Support};
use crate::interval::IntervalRange;
use crate::source::{ProfileSource, Source};
use crate::state::{CounterSet, CounterState};

impl<E> Hal<E> {
    /// HalQueryProfileSourceList: returns every source of the interface, in ascending order.
    pub fn source_list(&self) -> impl Iterator<Item = SourceInformation> {
        (0_u16..).zip(self.events.sources.iter()).map(|(index, source)| self.information(index, source))
    }

    /// HalProfileSourceInformation: returns what is known about a source, including raw events that are not in use.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub fn source_information(&self, source: Source) -> Result<SourceInformation, HalError> {
        self.events.entry(source).map(|(index, entry)| self.information(index, entry))
    }

    pub(super) fn information(&self, index: u16, source: ProfileSource) -> SourceInformation {
        self.information_by(&self.boot.interface, self.support(&source), index, source)
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
        let is_refused = source.source.is_raw() && support != Support::Supported;
        let counters = if source.source == Source::TIME || is_refused {
            CounterSet::NONE
        } else {
            interface.counters_for(&source)
        };
        let (listing, precise) = (interface.listing(&source), interface.recorded(&source).and(counters));
        SourceInformation { source, support, interval: self.events.interval(index), range, counters, listing, precise }
    }

    /// Returns the support on some processor, or that of the boot processor if no processor supports the source.
    pub(super) fn support(&self, source: &ProfileSource) -> Support {
        let support = self.support_by(&self.boot.interface, source);
        let is_supported = |interface| self.support_by(&interface, source) == Support::Supported;
        let elsewhere = || self.cpus.iter().any(|per_cpu| is_supported(self.whole_interface_with(&per_cpu.pmu)));
        if support != Support::Supported && elsewhere() { Support::Supported } else { support }
    }

    pub(super) fn support_by(&self, interface: &Interface, source: &ProfileSource) -> Support {
        match source.source.raw() {
            None if !self.cpus.is_stateless() => interface.support(source),
            _ => self.counted_by(interface, source).err().unwrap_or(Support::Supported),
        }
    }

    /// Returns the counters of `interface` that can count a source.
    ///
    /// # Errors
    /// Why it does not support the source.
    fn counted_by(&self, interface: &Interface, source: &ProfileSource) -> Result<CounterSet, Support> {
        match source.source.raw() {
            _ if self.cpus.is_stateless() => Err(Support::NoMemory),
            Some(event) if event.any() && !matches!(interface, Interface::Emon(_)) => Err(Support::NoAnyThread),
            Some(event) => interface.raw_counters(source, event),
            None => match interface.support(source) {
                Support::Supported => Ok(interface.counters_for(source)),
                support => Err(support),
            },
        }
    }

    /// Checks whether a source can be started on some processor.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn startable(&self, source: Source) -> Result<(), HalError> {
        let (_, entry) = self.events.entry(source)?;
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
        if source.is_raw() {
            return Err(HalError::NoInterval(source));
        }
        let interval = IntervalRange::of(source).clamp(wanted);
        let (index, _) = self.events.entry(source)?;
        Ok((self.events.set_interval(index, interval), interval))
    }

    /// Returns the source that a counter in this state counts.
    #[must_use]
    pub fn source(&self, state: CounterState) -> Source {
        self.events.source_of(state).map_or(Source::TIME, |source| source.source)
    }

    /// Returns the counters of `processor` that can count what `state` states.
    #[must_use]
    pub fn counters_for(&self, processor: ProcessorIndex, state: CounterState) -> CounterSet {
        let Some(source) = self.events.source_of(state) else { return CounterSet::NONE };
        let interface = self.interface_of(processor);
        interface.counters_in_state(&source, state, interface.counters_for(&source))
    }

    /// Returns the kind of a processor: [`check_on`](Self::check_on) returns the same on all processors of a kind.
    #[must_use]
    pub fn kind(&self, processor: ProcessorIndex) -> u64 {
        self.pmu(processor).map_or(0, |pmu| pmu.snapshot.capabilities())
    }

    /// Returns the [counters](Self::counters_for) of `processor` that can count what `state` states.
    ///
    /// # Errors
    /// [`HalError::Unsupported`].
    pub fn check_on(&self, processor: ProcessorIndex, state: CounterState) -> Result<CounterSet, HalError> {
        let interface = self.pmu(processor).map_or(self.boot.interface, |pmu| self.whole_interface_with(pmu));
        let Some(source) = self.events.source_of(state) else { return Ok(CounterSet::NONE) };
        let refusal = |support| HalError::Unsupported(source.source, support);
        let all = self.counted_by(&interface, &source).map_err(refusal)?;
        match Self::extra_support(&interface, &source, self.events.extra_of(state)) {
            Support::Supported => Ok(interface.counters_in_state(&source, state, all)),
            support => Err(refusal(support)),
        }
    }
}
