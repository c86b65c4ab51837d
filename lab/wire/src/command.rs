//! What a test asks of the lab.

use serde::{Deserialize, Serialize};

/// Events that happen: event select, unit mask, how many. Counters that ask for more than these two (a counter mask, an
/// edge) are given the same number.
pub type Happened = (u16, u8, u64);

/// Where a processor can be when it is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Instruction pointer.
    pub ip: u64,
    /// Whether that is code of user mode.
    pub user: bool,
    /// Process that runs; 0 is the idle one.
    pub process: u32,
    /// Thread that runs.
    pub thread: u32,
    /// How often the processor is here, in relation to the other places.
    pub weight: u32,
}

/// What makes events happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Time {
    /// The time-stamp counter: a processor does the work of the time that goes by, at a fixed rate for each event, at
    /// every access, at every overflow that interrupts, and at least every 10 ms. It goes no further than to such an
    /// overflow before the handler has returned, in which no time passes: so each has an interrupt of its own, and
    /// counters that are loaded there count from then on. But see [`Command::Skipped`]. Timers expire when they are due.
    Live,
    /// Only [`Command::Run`] and, for timers, [`Command::Tick`].
    Script,
}

/// A line from the test to the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Names of the identities there are.
    Identities,
    /// Makes every processor anew, as the identity of this name. Refused while a driver is loaded.
    SetIdentity(String),
    /// Chooses what makes events happen and timers expire. Timers that are set begin again; answered when every DPC has
    /// run that was queued before.
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
    /// Timers expire. Each time, every timer is taken that is set and belongs to the processor, whatever it was set
    /// for; its DPC is queued and runs to its end, and what that queues there as well, before the next time. Answered
    /// when all have run. A timer belongs to the processor of its DPC, or, without one, to that on which it was set.
    ///
    /// A timer without a period expires the first time only: then it is not set any more, unless the DPC's routine sets
    /// it again, for the next time. A timer that is cancelled in between expires no more. Times for which nothing is
    /// set go by.
    ///
    /// Refused unless the time is [`Time::Script`]; and when it takes more than 10 s, because a thread keeps the
    /// processor at DISPATCH_LEVEL or the routines take so long: the times that are left then do not come.
    Tick {
        /// Which processor.
        processor: u32,
        /// How often.
        times: u64,
    },
    /// How often timers made DPCs run, and how many are set.
    Ticks,
    /// How long, of live time, each processor stood still because interrupts came faster than the handler can be called
    /// on this machine: it then falls behind the time-stamp counter by 100 ms at most, and what is more is left out.
    Skipped,
    /// Where a processor is interrupted from now on; identities begin with kernel code of the idle process. After as many
    /// interrupts as the weights have together, each place came just as often as its weight, and at no time more than
    /// one interrupt too often. Refused when no place has a weight, and where there is no such processor.
    SetScene {
        /// Which processor.
        processor: u32,
        /// Its places.
        places: Vec<Place>,
    },
    /// How often the handler was called at each place of the scene.
    Scene,
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
    /// Whether the profile interrupt is another's, who has registered a handler before: nobody else can then.
    RefuseHandler(bool),
    /// Who has the profile interrupt.
    Handler,
    /// What was last given to `ZwSetSecurityObject`.
    Descriptor,
    /// Names of the drivers that are loaded.
    Images,
}
