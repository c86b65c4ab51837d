//! Interrupts of a processor's counters: how they are raised, and how its local APIC delivers them.

use super::Processor;
use crate::interrupt_mode::InterruptMode;

impl Processor {
    /// Sets the behavior of interrupts at the LVT entry.
    pub fn set_interrupt_mode(&mut self, mode: InterruptMode) {
        self.interrupt_mode = mode;
    }

    /// Makes delivery mask the LVT entry whatever the vendor, as some hypervisors do for AMD guests (Linux commit
    /// 49ff3b4aec51, "KVM: x86/pmu: Do not mask LVTPC when handling a PMI on AMD platforms").
    pub fn set_masked_on_delivery(&mut self) {
        self.masks_on_delivery = true;
    }

    /// Sets whether the HAL leaves the LVT performance entry as a reset leaves it when the processor
    /// [loses its power](Self::lose_power).
    pub fn set_lvt_forgotten(&mut self, forgotten: bool) {
        self.apic.forget_lvt(forgotten);
    }

    /// Sets up the LVT performance entry, as the HAL does at boot.
    pub fn initialize_lvt(&mut self) {
        let was_open = self.apic.delivers();
        self.apic.initialize_lvt();
        self.note_unmasked(was_open);
    }

    /// Returns how often the LVT performance entry was unmasked with a vector that no interrupt can have, which the
    /// APIC reports as an error.
    #[must_use]
    pub fn illegal_vectors(&self) -> u64 {
        self.apic.illegal_vectors()
    }

    /// Raises an interrupt unless one is pending. Returns whether the interrupt became pending.
    pub(super) fn raise(&mut self) -> bool {
        let is_lost = self.interrupt_mode == InterruptMode::LostWhileMasked && !self.apic.delivers();
        let raised = !self.pending && !is_lost;
        self.pending |= raised;
        raised
    }

    /// Raises another interrupt if the LVT entry was just unmasked and the interrupt mode is `RaisedOnUnmask`.
    pub(super) fn note_unmasked(&mut self, was_open: bool) {
        let is_unmasked = !was_open && self.apic.delivers();
        if is_unmasked && self.interrupt_mode == InterruptMode::RaisedOnUnmask {
            let records = self.debug_store.records();
            self.pending |= self.pmu.has_interrupting_status(records);
        }
    }

    /// Delivers the pending performance interrupt if there is one and the APIC does not block it. Delivery masks the
    /// LVT entry on Intel, but on AMD only [on request](Self::set_masked_on_delivery). Returns whether an interrupt was
    /// delivered.
    ///
    /// Stopping the counter or clearing its status does not cancel a pending interrupt. Its handling while the entry is
    /// masked depends on the [mode](InterruptMode).
    pub fn take_interrupt(&mut self) -> bool {
        let taken = self.interrupt_due();
        if taken {
            self.pending = false;
            self.enter_interrupt();
            if self.pmu.masks_lvt_on_delivery() || self.masks_on_delivery {
                self.apic.mask_lvt();
            }
        }
        taken
    }

    /// Returns whether a performance interrupt was raised and not yet delivered.
    #[must_use]
    pub fn interrupt_pending(&self) -> bool {
        self.pending
    }

    /// Returns whether [`take_interrupt`](Self::take_interrupt) would deliver an interrupt.
    #[must_use]
    pub fn interrupt_due(&self) -> bool {
        self.pending && self.apic.delivers()
    }

    /// Returns whether the registers of the APIC are MSRs instead of memory-mapped.
    #[must_use]
    pub fn is_x2apic(&self) -> bool {
        self.apic.is_x2apic()
    }

    /// Reads the memory-mapped LVT performance entry.
    #[must_use]
    pub fn lvt(&self) -> u32 {
        self.apic.lvt()
    }

    /// Reads a memory-mapped extended LVT entry of AMD; 0 if there is none.
    #[must_use]
    pub fn extended_lvt(&self, index: usize) -> u32 {
        self.apic.extended_lvt(index).unwrap_or_default()
    }

    /// Sets an extended LVT entry, as firmware or another driver does.
    pub fn set_extended_lvt(&mut self, index: usize, entry: u32) {
        self.apic.set_extended_lvt(index, entry);
    }

    /// Writes the memory-mapped LVT performance entry. Reserved and read-only bits are dropped.
    pub fn set_lvt(&mut self, value: u32) {
        let was_open = self.apic.delivers();
        self.apic.set_lvt(value);
        self.note_unmasked(was_open);
    }
}
