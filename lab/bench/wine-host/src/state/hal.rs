//! The state of the HAL.

use crate::{cpu::pmi_handler::RegisteredHandler, nt::NtStatus};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32},
    },
    time::{Duration, Instant},
};

/// The first token of HalAllocateHardwareCounters, which gives out one set of all counters.
const FIRST_TOKEN: usize = 0x8000_0000;

/// The size that Windows 10 itself passes.
pub const CURRENT_INFORMATION_SIZE: u32 = 24;

/// The handler of the profile interrupt, and the reservation of counters.
pub struct Hal {
    pub handler: Mutex<Option<RegisteredHandler>>,
    /// Set when a handler was unregistered, until a call on all processors has waited for it.
    pub handler_may_run: AtomicBool,
    pub refuses_handler: AtomicBool,
    /// Whether the HAL unmasks the LVT entry before it calls a registered handler.
    pub unmasks: AtomicBool,
    /// The size of the structure that a query for a source takes.
    pub information_size: AtomicU32,
    /// Whether the HAL passes null instead of a trap frame.
    pub hides_frames: AtomicBool,
    pub counters: Mutex<Reservation>,
}

impl Default for Hal {
    fn default() -> Self {
        Self {
            handler: Mutex::default(),
            handler_may_run: AtomicBool::new(false),
            refuses_handler: AtomicBool::new(false),
            unmasks: AtomicBool::new(true),
            information_size: AtomicU32::new(CURRENT_INFORMATION_SIZE),
            hides_frames: AtomicBool::new(false),
            counters: Mutex::new(Reservation {
                holder: None,
                next: FIRST_TOKEN,
                counts: BTreeMap::new(),
                refusal: None,
                busy: Busy::No,
            }),
        }
    }
}

/// The reservation of the hardware counters.
pub struct Reservation {
    /// The token of the set that is allocated.
    pub holder: Option<usize>,
    /// The token of the next allocation.
    pub next: usize,
    /// How often the counters of each processor are reserved, by the processor's number. A processor that was not
    /// active at the allocation is absent.
    pub counts: BTreeMap<u32, u32>,
    /// The status with which every allocation is refused.
    pub refusal: Option<NtStatus>,
    pub busy: Busy,
}

/// Whether another owner was asked to release the counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    No,
    /// The next allocation asks the owner, which takes this long.
    WhenAsked(Duration),
    /// The owner was asked, and releases the counters at the first time. The second is that of the last refusal.
    Until(Instant, Instant),
}
