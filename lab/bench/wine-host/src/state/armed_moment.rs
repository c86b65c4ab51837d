//! The moment at which the lab cancels the next request.

use bench_protocol::CancelMoment;
use std::sync::atomic::{AtomicU8, Ordering};

const MOMENTS: [CancelMoment; 4] =
    [CancelMoment::BeforeSet, CancelMoment::AfterSet, CancelMoment::BeforeTake, CancelMoment::AfterTake];
const NONE: u8 = u8::MAX;

/// The armed moment, as an index into [`MOMENTS`], or [`NONE`]. It is atomic because an exception handler reads it and
/// must not wait.
pub struct ArmedMoment(AtomicU8);

impl ArmedMoment {
    /// Arms a moment, or none.
    pub fn set(&self, moment: Option<CancelMoment>) {
        let index = MOMENTS.iter().position(|known| Some(*known) == moment);
        self.0.store(index.and_then(|index| u8::try_from(index).ok()).unwrap_or(NONE), Ordering::SeqCst);
    }

    /// Returns the armed moment.
    pub fn get(&self) -> Option<CancelMoment> {
        MOMENTS.get(usize::from(self.0.load(Ordering::SeqCst))).copied()
    }
}

impl Default for ArmedMoment {
    fn default() -> Self {
        Self(AtomicU8::new(NONE))
    }
}
