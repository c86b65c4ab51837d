//! How performance interrupts behave at a masked entry of the local vector table. The manuals leave it open, and real
//! processors and hypervisors differ, so software has to work with all of these.

/// What becomes of a performance interrupt at the LVT entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InterruptMode {
    /// An overflow raises one interrupt. Behind a masked entry the interrupt waits.
    #[default]
    Edge,
    /// As [`Edge`](Self::Edge); and whenever the entry is unmasked while the status of an interrupting counter is set, another
    /// interrupt is raised. Linux reports this of Haswell and of NetBurst (arch/x86/events/intel, `intel_pmu_handle_irq`;
    /// `p4_pmu_handle_irq`).
    RaisedOnUnmask,
    /// An interrupt that is raised while the entry is masked is lost.
    LostWhileMasked,
}

impl InterruptMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Edge, Self::RaisedOnUnmask, Self::LostWhileMasked];
}
