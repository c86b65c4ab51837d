//! The core types of a hybrid machine.

use core::sync::atomic::{AtomicU32, Ordering};

use super::{Hal, HalError, SourceInformation};
use crate::core_type::{self, ArchitecturalEvents, CoreType};
use crate::cpu::Cpuid;
use crate::current_cpu::ProcessorIndex;
use crate::interface::Interface;
use crate::source::Source;
use crate::state::PerCpuPmu;

/// What the processors that were probed have in common, or not.
#[derive(Debug)]
pub(super) struct ProbedTypes {
    /// The numbers of the core types, which are single bits, and [`HYBRID`](Self::HYBRID).
    types: AtomicU32,
    /// Architectural events that each of the processors has.
    architectural: AtomicU32,
}

impl ProbedTypes {
    /// CPUID of a processor says that the machine is a hybrid.
    const HYBRID: u32 = 1;

    /// The core types.
    const BOTH: u32 = CoreType::Core.number() | CoreType::Atom.number();

    pub(super) const fn new() -> Self {
        Self { types: AtomicU32::new(0), architectural: AtomicU32::new(u32::MAX) }
    }

    fn add(&self, core_type: Option<CoreType>, cpu: &impl Cpuid) {
        let hybrid = if core_type::is_hybrid(cpu) { Self::HYBRID } else { 0 };
        self.types.fetch_or(core_type.map_or(0, CoreType::number) | hybrid, Ordering::Relaxed);
        self.architectural.fetch_and(ArchitecturalEvents::of(cpu).0, Ordering::Relaxed);
    }

    fn is_hybrid(&self) -> bool {
        let types = self.types.load(Ordering::Relaxed);
        types & Self::HYBRID != 0 || types & Self::BOTH == Self::BOTH
    }
}

impl<E> Hal<E> {
    /// Reads the core type of the current processor, and the architectural events that it has.
    pub(super) fn probe_core_type(&self, pmu: &PerCpuPmu, cpu: &impl Cpuid) {
        // Other interfaces have one kind of processors.
        if matches!(self.boot.interface, Interface::Emon(_)) {
            let core_type = CoreType::of(cpu);
            pmu.set_core_type(core_type);
            self.probed_types.add(core_type, cpu);
        }
    }

    /// Returns whether processors of two core types were [probed](Self::probe), or CPUID reports a hybrid.
    #[must_use]
    pub fn is_hybrid(&self) -> bool {
        self.probed_types.is_hybrid()
    }

    /// Returns the core type of a processor, if the machine is a hybrid. A processor that hides it is taken for a P
    /// core, like its [`Microarchitecture`](crate::interface::emon::Microarchitecture).
    #[must_use]
    pub fn core_type(&self, processor: ProcessorIndex) -> Option<CoreType> {
        let pmu = self.pmu(processor).filter(|_| self.is_hybrid())?;
        Some(pmu.core_type().unwrap_or(CoreType::Core))
    }

    /// Returns whether a source is the same event on every processor that was probed: it is in the table of the
    /// interface, or it is an architectural event that all of them have.
    #[must_use]
    pub fn is_same_everywhere(&self, source: Source) -> bool {
        let common = ArchitecturalEvents(self.probed_types.architectural.load(Ordering::Relaxed));
        !self.is_hybrid() || source.raw().is_none_or(|event| common.contains(event))
    }

    /// As [`source_information`](Self::source_information), as it is on a processor.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub fn source_information_on(
        &self,
        processor: ProcessorIndex,
        source: Source,
    ) -> Result<SourceInformation, HalError> {
        let (index, entry) = self.events.entry(source)?;
        let interface = self.pmu(processor).map_or(self.boot.interface, |pmu| self.whole_interface_with(pmu));
        Ok(self.information_by(&interface, self.support_by(&interface, &entry), index, entry))
    }
}
