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
    /// counters that are loaded there count from then on. But see [`Command::Skipped`]. While branches are stored, a
    /// processor takes about 20,000 a second, from one place of its scene to the next. Timers expire when they are due.
    Live,
    /// Only [`Command::Run`], [`Command::Branch`] and, for timers, [`Command::Tick`].
    Script,
}

/// What becomes of a performance interrupt at the LVT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterruptMode {
    /// An overflow raises one interrupt, which waits behind a masked entry.
    Edge,
    /// The same, and unmasking the entry raises another one while the status of an interrupting counter is set.
    RaisedOnUnmask,
    /// An interrupt that is raised while the entry is masked is lost.
    LostWhileMasked,
}

impl InterruptMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Edge, Self::RaisedOnUnmask, Self::LostWhileMasked];
}

/// Whether Windows unmaps the kernel while user code runs: `SystemKernelVaShadowInformation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shadow {
    /// It does not.
    Off,
    /// It does.
    On,
    /// It does not tell: the query is answered with this NTSTATUS.
    Untold(u32),
}

/// How the kernel serves `PROCESSOR_PROFILE_CONTROL_AREA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Areas {
    /// By `SystemProcessorProfileControlArea`, on processors that have PEBS.
    Served,
    /// There is no such class: `STATUS_INVALID_INFO_CLASS`.
    Missing,
    /// As on an ordinary Intel PC since Windows 10 2004, by reports: Windows has made the area of every processor that has
    /// PEBS at boot, and its address is in `IA32_DS_AREA` from then on, and again after each sleep. To allocate one is
    /// answered with `STATUS_ADDRESS_ALREADY_EXISTS`; to free one succeeds and frees nothing.
    OfWindows,
    /// As `Served`, but to free one is refused with this NTSTATUS.
    NotFreed(u32),
}

/// A moment in what a driver does with the cancel routine of a request under a spin lock (IoSetCancelRoutine).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelMoment {
    /// It is about to set one.
    BeforeSet,
    /// It has set one.
    AfterSet,
    /// It is about to take it back.
    BeforeTake,
    /// It has taken it back.
    AfterTake,
}

/// A line from the test to the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Names of the identities there are.
    Identities,
    /// Another machine: every processor anew, as the identity of this name; as many of them as Wine has; in xAPIC mode;
    /// with a HAL of today (see [`Command::HalUnmasks`]) that hands over trap frames; awake; and with Windows 10 22H2, which
    /// does not shadow the kernel, serves control areas, and has given none. Refused while a driver is loaded.
    SetIdentity(String),
    /// How many processors there are, and how many there can be. The lists in the answers are as long as the former.
    /// Refused while a driver is loaded, and for numbers that no machine of the lab has.
    SetProcessors {
        /// Those that run.
        active: u32,
        /// Those, and those that [`Command::AddProcessor`] can add.
        maximum: u32,
    },
    /// One more processor is to run: drivers that asked for it are called with KeProcessorAddStartNotify, and then, when
    /// the processor runs, with KeProcessorAddCompleteNotify; or, if one did not want it, with
    /// KeProcessorAddFailureNotify. Refused when there are as many as there can be.
    AddProcessor,
    /// Makes every processor anew, with its APIC in x2APIC or in xAPIC mode. Refused while a driver is loaded.
    SetApic {
        /// Whether the APIC's registers are MSRs.
        x2apic: bool,
    },
    /// Changes the LVT performance entry of a processor, as if the HAL had left it so.
    SetLvt {
        /// Which processor.
        processor: u32,
        /// The entry.
        value: u32,
    },
    /// The LVT performance entry of a processor.
    Lvt {
        /// Which processor.
        processor: u32,
    },
    /// Whether the HAL unmasks the LVT performance entry before it calls a registered handler, as since Windows 10 1803;
    /// else it leaves that to the handler. Its own handling of the interrupt unmasks it in any case.
    HalUnmasks(bool),
    /// What becomes of performance interrupts at the LVT entry of every processor, until the processors are made anew; they
    /// begin with [`InterruptMode::Edge`].
    SetInterruptMode(InterruptMode),
    /// Somebody else than the driver writes a register of a processor. Refused when that faults.
    WriteMsr {
        /// Which processor.
        processor: u32,
        /// ECX.
        register: u32,
        /// What is written.
        value: u64,
    },
    /// Somebody else than the driver reads a register of a processor. Refused when that faults.
    ReadMsr {
        /// Which processor.
        processor: u32,
        /// ECX.
        register: u32,
    },
    /// The build number that `RtlGetVersion` tells, of version 10.0. Before 18362 control areas have 0x60 bytes, from there
    /// on 0xA0.
    SetWindows {
        /// The number.
        build: u32,
    },
    /// What `ZwQuerySystemInformation` tells of KVA shadowing.
    SetShadow(Shadow),
    /// How `ZwSetSystemInformation` gives control areas.
    SetControlAreas(Areas),
    /// Somebody else than the driver allocates the control area of a processor. Refused when it has one.
    OccupyControlArea {
        /// Which processor.
        processor: u32,
    },
    /// The control area of each processor, whoever allocated it.
    ControlAreas,
    /// Registers of the Debug Store as somebody else than the driver left them. Refused when that faults; a register that
    /// the processor has not takes only 0.
    SetDebugStore {
        /// Which processor.
        processor: u32,
        /// `IA32_DS_AREA`.
        area: u64,
        /// `IA32_DEBUGCTL`.
        debugctl: u64,
        /// Bits 7, 11 and 12 of `IA32_MISC_ENABLE`, if they are to be others.
        misc_enable: Option<u64>,
    },
    /// The registers of the Debug Store of each processor.
    DebugStore,
    /// Branches are taken on a processor: number i, the first being 0, from `from + i * step` to 8 bytes behind that, those
    /// with an even number predicted. Interrupts that they raise are delivered at once, between two branches; answered when
    /// the handler has run for the last. Refused unless the time is [`Time::Script`].
    Branch {
        /// Which processor.
        processor: u32,
        /// Whether in user mode.
        user: bool,
        /// The first address.
        from: u64,
        /// From one address to the next.
        step: u64,
        /// How many branches.
        count: u64,
    },
    /// What each processor wrote to memory by itself since the identity was set or [`Command::ClearLedger`].
    Stored,
    /// The machine leaves S0: the callbacks of `\Callback\PowerState` are called for that, then the processors lose what
    /// is in their registers of performance monitoring. Until [`Command::Wake`] no time goes by for events and timers,
    /// and the driver must not touch such a register. Refused when the machine sleeps already.
    Sleep,
    /// The machine is back in S0, and the callbacks are called for that. Refused when it does not sleep.
    Wake {
        /// How long it slept: the performance counter and the interrupt time are ahead by so much.
        milliseconds: u64,
    },
    /// Sets the clocks ahead, without a sleep: the performance counter, the interrupt time, and that of drivers' waits, which
    /// notice it within 20 ms. Events and timers do not.
    Advance {
        /// By how much.
        milliseconds: u64,
    },
    /// Stops the performance counter, or lets it go on. While it is stopped, a handler takes no time, however busy the
    /// machine is that runs the bench.
    HoldCounter(bool),
    /// Calls the callbacks of `\Callback\PowerState` for something else.
    NotifyPower {
        /// Argument1: which of the PO_CB_ constants.
        first: u64,
        /// Argument2.
        second: u64,
    },
    /// Chooses what makes events happen and timers expire. Timers that are set begin again; answered when every DPC has
    /// run that was queued before.
    SetTime(Time),
    /// Events happen on a processor, those in user mode first; answered when the handler has run for the interrupt that
    /// this raised. Records that the processor writes for them are of the place at which the next interrupt comes. Refused
    /// unless the time is [`Time::Script`].
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
    /// one interrupt too often. An interrupt for a buffer of precise records comes three bytes behind its place, at which
    /// the records are. Refused when no place has a weight, and where there is no such processor.
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
    /// Begins the ledgers anew, and the accounts of [`Command::Stored`].
    ClearLedger,
    /// The counters that count now.
    Enabled,
    /// How often the registers of each processor were accessed since the identity was set.
    Accesses,
    /// What the driver did that real Windows or real hardware punishes. Each is told once.
    Violations,
    /// What the driver has allocated and not freed.
    Pool,
    /// Whether `SeSinglePrivilegeCheck` says no to user mode that asks for SeSystemProfilePrivilege.
    DenyPrivilege(bool),
    /// The n-th allocation from now fails, 1 being the next; none does with `None`.
    FailAllocation(Option<u64>),
    /// The n-th call from now that can fail does so, 1 being the next, as its documentation says; none does with `None`.
    /// Calls count that drivers make of functions which give out something: of the pool, the I/O manager, the object
    /// manager, the HAL, and for callbacks.
    FailCall(Option<u64>),
    /// Which function failed for the last [`Command::FailCall`].
    FailedCall,
    /// The NTSTATUS with which `HalAllocateHardwareCounters` says that the counters are taken; with `None` they are free.
    RefuseCounters(Option<u32>),
    /// Whether a driver has the counters, by `HalAllocateHardwareCounters`.
    Reserved,
    /// How many requests wait in drivers: told to be pending, and not complete.
    Waiting,
    /// How many threads that drivers made have not ended.
    Threads,
    /// The next request with which a driver comes to this moment is cancelled then, on another processor, up to where the
    /// cancel routine waits for a spin lock; none is with `None`. Refused where there is one processor.
    CancelAt(Option<CancelMoment>),
    /// Whether the HAL calls the registered handler with null instead of a trap frame.
    HideFrames(bool),
    /// Whether the profile interrupt is another's, who has registered a handler before: nobody else can then.
    RefuseHandler(bool),
    /// Who has the profile interrupt.
    Handler,
    /// What was last given to `ZwSetSecurityObject`.
    Descriptor,
    /// Names of the drivers that are loaded.
    Images,
}
