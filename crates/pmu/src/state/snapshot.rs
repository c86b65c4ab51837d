//! Values of the registers of one processor: as the driver found them, and as it last wrote them.

use core::sync::atomic::{AtomicU64, Ordering};

/// Values of control registers that [`release`](crate::ProfileInterface::release) restores on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SavedMsrs {
    /// Value of the global control register.
    pub global: u64,
    /// Value of the control register of the fixed counters.
    pub fixed: u64,
    /// Bits of the debug control register that were changed, because they stop counters.
    pub freeze: u64,
}

/// Values that the control registers contained at the last [guarded accesses](crate::first_access), and took again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoundMsrs {
    /// Value of the global control register.
    pub global: u64,
    /// Value of the control register of the fixed counters.
    pub fixed: u64,
    /// Value of the debug control register.
    pub debug: u64,
}

/// Known values of a processor, in shared memory.
#[derive(Debug, Default)]
pub struct PmuSnapshot {
    // What was found in the control registers is what is restored.
    global: AtomicU64,
    fixed: AtomicU64,
    debug: AtomicU64,
    freeze: AtomicU64,
    capabilities: AtomicU64,
    control: AtomicU64,
    fixed_control: AtomicU64,
}

impl PmuSnapshot {
    /// Creates the snapshot of a processor without [`Interface::capabilities`](crate::Interface::capabilities).
    #[must_use]
    pub const fn new() -> Self {
        Self {
            global: AtomicU64::new(0),
            fixed: AtomicU64::new(0),
            debug: AtomicU64::new(0),
            freeze: AtomicU64::new(0),
            capabilities: AtomicU64::new(0),
            control: AtomicU64::new(0),
            fixed_control: AtomicU64::new(0),
        }
    }

    /// Returns the saved values of its control registers.
    #[must_use]
    pub fn saved(&self) -> SavedMsrs {
        SavedMsrs {
            global: self.global.load(Ordering::Relaxed),
            fixed: self.fixed.load(Ordering::Relaxed),
            freeze: self.freeze.load(Ordering::Relaxed),
        }
    }

    /// Returns the current value of the global control register while some of the driver's counters count, which saves
    /// reading it. Bits outside the interface are as they were last read.
    #[must_use]
    pub fn control(&self) -> u64 {
        self.control.load(Ordering::Relaxed)
    }

    /// Sets the current value of the global control register.
    pub fn set_control(&self, control: u64) {
        self.control.store(control, Ordering::Relaxed);
    }

    /// Returns the control register of the fixed counters as it was last read: bits outside the interface are valid.
    #[must_use]
    pub fn fixed_control(&self) -> u64 {
        self.fixed_control.load(Ordering::Relaxed)
    }

    /// Sets the control register of the fixed counters as it was read.
    pub fn set_fixed_control(&self, control: u64) {
        self.fixed_control.store(control, Ordering::Relaxed);
    }

    /// Sets the saved values.
    pub fn set_saved(&self, saved: SavedMsrs) {
        self.set_control(saved.global);
        self.set_fixed_control(saved.fixed);
        self.global.store(saved.global, Ordering::Relaxed);
        self.fixed.store(saved.fixed, Ordering::Relaxed);
        self.freeze.store(saved.freeze, Ordering::Relaxed);
    }

    /// Returns the values that the last guarded accesses have found and tried.
    #[must_use]
    pub fn found(&self) -> FoundMsrs {
        FoundMsrs {
            global: self.global.load(Ordering::Relaxed),
            fixed: self.fixed.load(Ordering::Relaxed),
            debug: self.debug.load(Ordering::Relaxed),
        }
    }

    /// Sets the values that guarded accesses have found and tried.
    pub fn set_found(&self, found: FoundMsrs) {
        self.global.store(found.global, Ordering::Relaxed);
        self.fixed.store(found.fixed, Ordering::Relaxed);
        self.debug.store(found.debug, Ordering::Relaxed);
    }

    /// Returns the [`Interface::capabilities`](crate::Interface::capabilities) of the processor.
    #[must_use]
    pub fn capabilities(&self) -> u64 {
        self.capabilities.load(Ordering::Relaxed)
    }

    /// Sets the capabilities.
    pub fn set_capabilities(&self, capabilities: u64) {
        self.capabilities.store(capabilities, Ordering::Relaxed);
    }
}
