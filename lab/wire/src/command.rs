//! What a test asks of the lab.

use serde::{Deserialize, Serialize};

/// Events that happen: event select, unit mask, how many. Counters that ask for more than these two (a counter mask, an
/// edge) are given the same number.
pub type Happened = (u16, u8, u64);

/// What makes events happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Time {
    /// The time-stamp counter: at every access and at least every 10 ms a processor does the work of the time since,
    /// at a fixed rate for each event.
    Live,
    /// Only [`Command::Run`].
    Script,
}

/// A line from the test to the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Names of the identities there are.
    Identities,
    /// Makes every processor anew, as the identity of this name. Refused while a driver is loaded.
    SetIdentity(String),
    /// Chooses what makes events happen.
    SetTime(Time),
    /// Events happen on a processor, those in user mode first; answered when the handler has run for the interrupt that
    /// this raised. Refused unless the time is [`Time::Script`].
    Run {
        /// Which processor.
        processor: u32,
        /// In user mode.
        user: Vec<Happened>,
        /// In kernel mode.
        kernel: Vec<Happened>,
    },
    /// What each counter of each processor was given.
    Ledger,
    /// Begins the ledgers anew.
    ClearLedger,
    /// The counters that count now.
    Enabled,
    /// How often the registers of each processor were accessed since the identity was set.
    Accesses,
    /// What the driver did that real Windows or real hardware punishes. Each is told once.
    Violations,
    /// What the driver has allocated and not freed.
    Pool,
    /// Whether `SeSinglePrivilegeCheck` says no to user mode.
    DenyPrivilege(bool),
    /// The n-th allocation from now fails, 1 being the next; none does with `None`.
    FailAllocation(Option<u64>),
    /// Whether `HalAllocateHardwareCounters` says that the counters are taken.
    RefuseCounters(bool),
    /// Who has the profile interrupt.
    Handler,
    /// What was last given to `ZwSetSecurityObject`.
    Descriptor,
    /// Names of the drivers that are loaded.
    Images,
}
