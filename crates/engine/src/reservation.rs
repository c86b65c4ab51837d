//! The reservation of the counters with the HAL, from the first session that counts to the last.
//!
//! Public descriptions of the kernel since Windows 11 24H2 report that the HAL counts reservations for each processor:
//! reserving counts on every processor that is active, and freeing tests the current processor and then subtracts on
//! every processor that is active then. So nothing may be reserved while a processor becomes active.

use protocol::status::STATUS_DEVICE_BUSY;
use protocol::{ErrorCode, NtStatus};

use crate::platform::Platform;
use crate::reply::Refusal;
use crate::time::Duration100ns;

/// How long a reservation is repeated while the HAL answers STATUS_DEVICE_BUSY: it has asked another owner to release
/// the counters, which reportedly takes up to 200 ms.
pub const PATIENCE: Duration100ns = Duration100ns(2_500_000);

/// The pause before a reservation is repeated.
pub const PAUSE: Duration100ns = Duration100ns(100_000);

/// State of the reservation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// No session uses the counters.
    #[default]
    None,
    /// The counters are reserved.
    Held,
    /// A processor is being added. Sessions use the counters, which are reserved again when it runs.
    Interrupted,
    /// Sessions use the counters, but the HAL refused to reserve them again.
    Lost(NtStatus),
    /// No session uses the counters, but the HAL refused to free them, so that they are still reserved.
    Kept(NtStatus),
}

impl Reservation {
    /// Returns whether the counters are reserved for sessions.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Held)
    }

    /// Returns whether sessions may use the counters.
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Held | Self::Interrupted | Self::Lost(_))
    }

    /// Returns the state as in [`InfoReply`](protocol::InfoReply).
    pub const fn state(self) -> u32 {
        match self {
            Self::None | Self::Interrupted => 0,
            Self::Held => 1,
            Self::Lost(status) | Self::Kept(status) => status.number(),
        }
    }

    /// Reserves the counters, unless they are. While another owner is asked to release them, it waits.
    ///
    /// The caller holds the engine's lock meanwhile. Other requests wait then, for [`PATIENCE`] at most; counters and
    /// interrupts do not.
    ///
    /// # Errors
    /// [`ErrorCode::CountersTaken`].
    pub fn take(&mut self, platform: &impl Platform) -> Result<(), Refusal> {
        match self {
            Self::Held | Self::Interrupted => return Ok(()),
            Self::Kept(_) => {}
            Self::None | Self::Lost(_) => reserve(platform)
                .map_err(|status| Refusal::new(status, ErrorCode::CountersTaken).detail(status.into(), 0))?,
        }
        *self = Self::Held;
        Ok(())
    }

    /// Frees the counters after the last session. If the HAL refuses, they stay reserved.
    pub fn free(&mut self, platform: &impl Platform) {
        *self = match self {
            Self::Held | Self::Kept(_) => platform.free_counters().map_or_else(Self::Kept, |()| Self::None),
            Self::None | Self::Interrupted | Self::Lost(_) => Self::None,
        }
    }

    /// Frees the counters if the HAL refused that before.
    pub fn free_again(&mut self, platform: &impl Platform) {
        if matches!(self, Self::Kept(_)) {
            self.free(platform);
        }
    }

    /// Frees the counters before a processor becomes active, on which they would not be reserved.
    pub fn interrupt(&mut self, platform: &impl Platform) {
        match self {
            // If the HAL refuses, the counters stay reserved, and the new processor is not.
            Self::Held if platform.free_counters().is_ok() => *self = Self::Interrupted,
            Self::Kept(_) => self.free(platform),
            _ => {}
        }
    }

    /// Reserves the counters again when the processor is active, or was not added.
    pub fn resume(&mut self, platform: &impl Platform) {
        if *self == Self::Interrupted {
            *self = reserve(platform).map_or_else(Self::Lost, |()| Self::Held);
        }
    }
}

/// Reserves the counters. Repeats it while the HAL is busy, until [`PATIENCE`] has passed.
fn reserve(platform: &impl Platform) -> Result<(), NtStatus> {
    let begin = platform.now();
    loop {
        match platform.reserve_counters() {
            Err(STATUS_DEVICE_BUSY) if platform.now().0.saturating_sub(begin.0) < PATIENCE.0 => platform.pause(PAUSE),
            outcome => return outcome,
        }
    }
}
