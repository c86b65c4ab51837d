//! Counters whose precise records have an access of memory: those that count the [loads](Microarchitecture::load_event)
//! or the [stores](Microarchitecture::store_event) of their microarchitecture.

use x86_defs::intel::perfmon::PerfEvtSel;

use super::{Emon, Microarchitecture, SOURCES};
use crate::source::Sources;
use crate::state::{CounterSet, CpuCounters};

/// What the accesses in the records of an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedOperation {
    /// They loaded.
    Load,
    /// They stored.
    Store,
}

/// Counters whose precise records have an access of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccessCounters {
    /// Those that measure load latency.
    pub loads: CounterSet,
    /// Those that record stores.
    pub stores: CounterSet,
}

impl AccessCounters {
    /// Returns what the access in a record of a counter did, if the record has one.
    #[must_use]
    pub const fn operation(self, counter: u8) -> Option<RecordedOperation> {
        if self.loads.has(counter) {
            Some(RecordedOperation::Load)
        } else if self.stores.has(counter) {
            Some(RecordedOperation::Store)
        } else {
            None
        }
    }

    /// Returns these counters and `others`, which alone say what `counters` record.
    #[must_use]
    pub const fn replaced(self, counters: CounterSet, others: Self) -> Self {
        Self {
            loads: self.loads.without(counters).or(others.loads),
            stores: self.stores.without(counters).or(others.stores),
        }
    }

    fn add(&mut self, counter: u8, operation: RecordedOperation) {
        match operation {
            RecordedOperation::Load => self.loads = self.loads.with(counter),
            RecordedOperation::Store => self.stores = self.stores.with(counter),
        }
    }
}

impl Microarchitecture {
    /// Returns what the accesses did that precise records of an event have, if they have some. `select` selects the
    /// event.
    // Never inlined: it would cost the deepest path of the handler more stack.
    #[inline(never)]
    #[must_use]
    pub fn recorded_operation(self, select: u64) -> Option<RecordedOperation> {
        let select = PerfEvtSel::from_bits(select);
        let encoding = Some((select.event_select(), select.umask())).filter(|_| select.umask2() == 0)?;
        if self.load_event() == Some(encoding) {
            return Some(RecordedOperation::Load);
        }
        (self.store_event() == Some(encoding)).then_some(RecordedOperation::Store)
    }

    /// Returns whether IA32_PEBS_ENABLE has bits for load latency: Nehalem to Cascade Lake, before record format 4
    /// (Linux, arch/x86/events/intel/ds.c, `intel_pmu_pebs_enable`).
    pub(crate) const fn has_latency_bits(self) -> bool {
        matches!(
            self,
            Self::Nehalem
                | Self::Westmere
                | Self::SandyBridge
                | Self::IvyBridge
                | Self::Haswell
                | Self::Broadwell
                | Self::Skylake
        )
    }

    /// Returns whether IA32_PEBS_ENABLE has the bit for precise stores (same function).
    pub(crate) const fn has_store_bit(self) -> bool {
        matches!(self, Self::SandyBridge | Self::IvyBridge)
    }

    /// Returns whether a select register decides whether records have optional groups, if the processor has
    /// PEBS_BASELINE. Later cores have architectural PEBS.
    const fn is_adaptive(self) -> bool {
        matches!(
            self,
            Self::IceLake
                | Self::GoldenCove
                | Self::RedwoodCove
                | Self::LionCove
                | Self::Tremont
                | Self::Gracemont
                | Self::Crestmont
                | Self::Skymont
        )
    }
}

impl Emon {
    /// Returns the select register of a precise event, which asks for its access of memory if it has one.
    pub(super) fn with_access(self, select: u64) -> u64 {
        let microarchitecture = self.capabilities.microarchitecture();
        // Fixed counter 0 records exactly where PEBS_BASELINE is set, beside architectural PEBS.
        let has_groups = microarchitecture.is_adaptive() && self.capabilities.recorders().fixed;
        if has_groups && microarchitecture.recorded_operation(select).is_some() {
            PerfEvtSel::from_bits(select).with_adaptive_record(true).into_bits()
        } else {
            select
        }
    }

    /// Returns the counters among `precise` whose records have an access of memory.
    #[must_use]
    pub fn accesses(self, cpu_counters: CpuCounters<'_>, precise: CounterSet) -> AccessCounters {
        let mut found = AccessCounters::default();
        for counter in precise.iter() {
            let select = cpu_counters.select_of(Sources::new(&SOURCES), cpu_counters.get(counter));
            if let Some(operation) = self.capabilities.microarchitecture().recorded_operation(select) {
                found.add(counter, operation);
            }
        }
        found
    }
}
