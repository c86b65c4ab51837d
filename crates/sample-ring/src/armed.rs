//! Whether a consumer waits to be woken.

use core::sync::atomic::Ordering;

use crate::sync::AtomicBool;

/// A flag that says whether a consumer waits, so that a producer wakes it only then.
///
/// The consumer [arms](Self::arm) it, and then looks at its rings once more with
/// [`Consumer::is_half_full`](crate::Consumer::is_half_full). The producer looks at it after a push that reported
/// `watermark_hit`. That push and the consumer's look each execute a full fence between their store and their load, so
/// that at least one of them sees what the other stored: the consumer finds half of the ring in use, or it is woken.
#[derive(Debug)]
pub struct Armed(AtomicBool);

impl Armed {
    /// Makes a flag for a consumer that does not wait.
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "not const")]
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Makes a flag for a consumer that does not wait.
    #[cfg(loom)]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Notes whether the consumer waits. If it does, it must look at its rings afterwards.
    pub fn arm(&self, waits: bool) {
        // The fence of `is_half_full` follows.
        self.0.store(waits, Ordering::Relaxed);
    }

    /// Returns whether the consumer must be woken, after a push that reported `watermark_hit`.
    ///
    /// # IRQL
    /// Any.
    #[inline]
    #[must_use]
    pub fn is_armed(&self) -> bool {
        // The fence of `push` came before.
        self.0.load(Ordering::Relaxed)
    }
}
