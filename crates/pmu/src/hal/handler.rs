//! The handler of performance monitor interrupts: one slot, and its owner.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU64, Ordering};

use super::HalError;

/// The handler of performance monitor interrupts that is registered.
#[derive(Debug, Default)]
pub struct InterruptHandler {
    /// Its address, or 0.
    address: AtomicU64,
    /// Owner that registered it, or 0.
    owner: AtomicU64,
}

impl InterruptHandler {
    /// Returns the registered handler.
    #[must_use]
    pub fn get(&self) -> Option<NonZeroU64> {
        NonZeroU64::new(self.address.load(Ordering::Acquire))
    }

    /// Implements HalProfileSourceInterruptHandler: sets the single handler slot to an address, or removes the handler.
    /// `owner` identifies the calling process and must not be zero. The owner may replace its handler, and must remove
    /// it itself.
    ///
    /// # Errors
    /// [`HalError::HandlerTaken`].
    pub fn set(&self, handler: Option<NonZeroU64>, owner: u64) -> Result<(), HalError> {
        let taken = self.owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err_and(|other| other != owner) {
            return Err(HalError::HandlerTaken);
        }
        self.address.store(handler.map_or(0, NonZeroU64::get), Ordering::Release);
        if handler.is_none() {
            self.owner.store(0, Ordering::Release);
        }
        Ok(())
    }
}
