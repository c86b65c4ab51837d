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

/// The reservation, which does not change while a processor is being added.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reservation {
    state: ReservationState,
    /// Whether a processor is being added.
    adding: bool,
}

/// State of the reservation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReservationState {
    /// No session uses the counters.
    #[default]
    None,
    /// The counters are reserved.
    Held,
    /// A processor is being added. Sessions use the counters, which are reserved when it runs.
    Interrupted,
    /// Sessions use the counters, but the HAL refused to reserve them again.
    Lost(NtStatus),
    /// No session uses the counters, but the HAL refused to free them, so that they are still reserved.
    Kept(NtStatus),
}

impl Reservation {
    /// Returns whether the counters are reserved for sessions.
    pub const fn is_held(self) -> bool {
        matches!(self.state, ReservationState::Held)
    }

    /// Returns whether sessions may use the counters.
    pub const fn is_taken(self) -> bool {
        matches!(self.state, ReservationState::Held | ReservationState::Interrupted | ReservationState::Lost(_))
    }

    /// Returns the state as in [`InfoReply`](protocol::InfoReply).
    pub const fn state(self) -> u32 {
        match self.state {
            ReservationState::None | ReservationState::Interrupted => 0,
            ReservationState::Held => 1,
            ReservationState::Lost(status) | ReservationState::Kept(status) => status.number(),
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
        self.state = match self.state {
            ReservationState::Held | ReservationState::Kept(_) => ReservationState::Held,
            ReservationState::Interrupted => ReservationState::Interrupted,
            ReservationState::None | ReservationState::Lost(_) if self.adding => ReservationState::Interrupted,
            ReservationState::None | ReservationState::Lost(_) => {
                let refused =
                    |status: NtStatus| Refusal::new(status, ErrorCode::CountersTaken).detail(status.into(), 0);
                reserve(platform).map(|()| ReservationState::Held).map_err(refused)?
            }
        };
        Ok(())
    }

    /// Frees the counters after the last session. If the HAL refuses, they stay reserved.
    pub fn free(&mut self, platform: &impl Platform) {
        self.state = match self.state {
            ReservationState::Held | ReservationState::Kept(_) => {
                platform.free_counters().map_or_else(ReservationState::Kept, |()| ReservationState::None)
            }
            ReservationState::None | ReservationState::Interrupted | ReservationState::Lost(_) => {
                ReservationState::None
            }
        }
    }

    /// Frees the counters if the HAL refused that before.
    pub fn free_again(&mut self, platform: &impl Platform) {
        if matches!(self.state, ReservationState::Kept(_)) {
            self.free(platform);
        }
    }

    /// Frees the counters before a processor becomes active, on which they would not be reserved. Until
    /// [`resume`](Self::resume) none are reserved.
    pub fn interrupt(&mut self, platform: &impl Platform) {
        self.adding = true;
        match self.state {
            // If the HAL refuses, the counters stay reserved, and the new processor is not.
            ReservationState::Held if platform.free_counters().is_ok() => self.state = ReservationState::Interrupted,
            ReservationState::Kept(_) => self.free(platform),
            _ => {}
        }
    }

    /// Reserves the counters for the sessions that use them when the processor is active, or was not added.
    pub fn resume(&mut self, platform: &impl Platform) {
        self.adding = false;
        if self.state == ReservationState::Interrupted {
            self.state = reserve(platform).map_or_else(ReservationState::Lost, |()| ReservationState::Held);
        }
    }
}

/// Reserves the counters. Repeats it while the HAL is busy, until [`PATIENCE`] has passed.
fn reserve(platform: &impl Platform) -> Result<(), NtStatus> {
    let begin = platform.now();
    loop {
        // Before the call: when its answer arrives, other programs may have had the processor for longer than that.
        let is_last = platform.now().0.saturating_sub(begin.0) >= PATIENCE.0;
        match platform.reserve_counters() {
            Err(STATUS_DEVICE_BUSY) if !is_last => platform.pause(PAUSE),
            outcome => return outcome,
        }
    }
}
