//! The behavior of performance interrupts at a masked LVT entry. The manuals do not define it, and real processors and
//! hypervisors differ, so software must work with every mode.

/// The handling of performance interrupts by the LVT entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InterruptMode {
    /// An overflow raises one interrupt. The interrupt stays pending while the entry is masked.
    #[default]
    Edge,
    /// Like [`Edge`](Self::Edge), but unmasking the entry raises another interrupt if the status bit of an interrupting
    /// counter is set. Linux documents this for Haswell and NetBurst (arch/x86/events/intel, `intel_pmu_handle_irq`;
    /// `p4_pmu_handle_irq`).
    RaisedOnUnmask,
    /// An interrupt raised while the entry is masked is lost.
    LostWhileMasked,
}

impl InterruptMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Edge, Self::RaisedOnUnmask, Self::LostWhileMasked];
}
