//! Commands from a test to the lab.

use crate::{
    EventCount,
    stepping::StepPlan,
    threads::ThreadCommand,
    tracing::{ProviderId, SiteStack},
};
use serde::{Deserialize, Serialize};

/// What happens when a driver completes a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptedRequest {
    /// Control code of the request.
    pub code: u32,
    /// Events in user mode. Each set occurs after the handler has run for the interrupt of the one before.
    pub events: Vec<Vec<EventCount>>,
}

/// A counter of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Counter {
    /// A general-purpose counter.
    General(u8),
    /// A fixed-function counter.
    Fixed(u8),
    /// A metric of fixed counter 3.
    Metric(u8),
}

/// Kind of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BranchKind {
    /// A conditional branch.
    Conditional,
    /// A near relative jump.
    DirectJump,
    /// A near indirect jump.
    IndirectJump,
    /// A near relative call.
    DirectCall,
    /// A near indirect call.
    IndirectCall,
    /// A near return.
    Return,
    /// A far branch, an interrupt, an exception or a return from one.
    Far,
}

/// A branch that code takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBranch {
    /// Address of the branch.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
    /// Its kind.
    pub kind: BranchKind,
    /// Whether the processor had predicted it otherwise.
    pub mispredicted: bool,
    /// Cycles since the branch before.
    pub cycles: u16,
}

/// A location at which a processor can be interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptSite {
    /// Instruction pointer.
    pub ip: u64,
    /// Whether the code runs in user mode.
    pub user: bool,
    /// The current process; 0 is the idle process.
    pub process: u32,
    /// The current thread.
    pub thread: u32,
    /// Frequency of this site relative to the other sites.
    pub weight: u32,
}

/// The source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Time {
    /// Real time: events occur at a fixed rate each, by the time-stamp counter, or at two ([`Command::SetPhase`]). A
    /// processor catches up at every access, at every overflow that interrupts, and at least every 10 ms. At such an
    /// overflow it stops until the handler has returned, and the handler takes no model time. So each overflow has its
    /// own interrupt, and counters that the handler loads count from there on. For the limit of this, see
    /// [`Command::Skipped`]. While branches are stored, a processor takes about 20,000 per second, from one of its
    /// interrupt sites to the next, and while last branches
    /// are recorded 40 in each step of time. Timers expire when they are due.
    Real,
    /// Only [`Command::Run`], [`Command::Branch`], [`Command::TakeBranches`] and, for timers, [`Command::Tick`] make
    /// anything happen.
    Script,
}

/// The handling of performance interrupts by the LVT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InterruptMode {
    /// An overflow raises one interrupt. The interrupt stays pending while the entry is masked.
    Edge,
    /// Like `Edge`, but unmasking the entry raises another interrupt if the status bit of an interrupting counter is
    /// set.
    RaisedOnUnmask,
    /// An interrupt raised while the entry is masked is lost.
    LostWhileMasked,
}

impl InterruptMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Edge, Self::RaisedOnUnmask, Self::LostWhileMasked];
}

/// What a hypervisor makes of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegisterQuirk {
    /// WRMSR raises #GP if the value has one of these bits.
    Faults {
        /// ECX.
        register: u32,
        /// The bits.
        bits: u64,
    },
    /// WRMSR writes these bits as zero.
    Drops {
        /// ECX.
        register: u32,
        /// The bits.
        bits: u64,
    },
    /// The register reads as zero and ignores writes.
    Ignores {
        /// ECX.
        register: u32,
    },
}

/// How timers expire in real time. Drivers request the resolution of the clock with `ExSetTimerResolution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimerMode {
    /// When they are due.
    Exact,
    /// At the clock interrupts, which come at the requested resolution, and 64 times per second without a request.
    Clock,
    /// At the clock interrupts, which come 64 times per second whatever is requested.
    Coarse,
    /// Like `Clock`, but every fourth expiry is 25 ms late.
    Late,
    /// Like `Clock`, but at every third expiry the DPC is still queued, so that it runs once for two expiries.
    Merged,
}

impl TimerMode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Clock, Self::Coarse, Self::Late, Self::Merged];
}

/// Whether Windows unmaps the kernel while user code runs: `SystemKernelVaShadowInformation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KvaShadow {
    /// The kernel stays mapped.
    Off,
    /// The kernel is unmapped.
    On,
    /// The query fails with this NTSTATUS.
    QueryFails(u32),
}

/// How the kernel handles requests for `PROCESSOR_PROFILE_CONTROL_AREA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlAreaMode {
    /// `SystemProcessorProfileControlArea` allocates areas on processors with PEBS.
    Supported,
    /// The information class does not exist: `STATUS_INVALID_INFO_CLASS`.
    Missing,
    /// Reported behavior of ordinary Intel PCs since Windows 10 2004: Windows allocates the area of every processor
    /// with PEBS at boot and writes its address to `IA32_DS_AREA` then and after each sleep. Allocating fails with
    /// `STATUS_ADDRESS_ALREADY_EXISTS`; freeing succeeds without effect.
    OwnedByWindows,
    /// Like `Supported`, but freeing an area fails with this NTSTATUS.
    FreeFails(u32),
}

/// A point at which a driver sets or clears a cancel routine under a spin lock (IoSetCancelRoutine).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelMoment {
    /// Before it sets a cancel routine.
    BeforeSet,
    /// After it set a cancel routine.
    AfterSet,
    /// Before it clears the cancel routine.
    BeforeTake,
    /// After it cleared the cancel routine.
    AfterTake,
}

/// A line from the test to the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Returns the names of all identities.
    Identities,
    /// Replaces the machine. All processors are new, have the named identity, and are in xAPIC mode; there are as many
    /// as Wine has. The HAL is current (see [`Command::HalUnmasks`] and [`Command::HalInformationSize`]) and passes
    /// trap frames. The machine is awake and runs Windows 10 22H2 without KVA shadowing; control areas are supported,
    /// and none is allocated. Refused while a driver is loaded.
    SetIdentity(String),
    /// Sets the number of processors and its maximum. Lists in answers have one entry for each active processor.
    /// Refused while a driver is loaded, and for numbers that the lab does not support.
    SetProcessors {
        /// Number of active processors.
        active: u32,
        /// Number of processors including those that [`Command::AddProcessor`] can add.
        maximum: u32,
    },
    /// Adds a processor. Registered callbacks are called with KeProcessorAddStartNotify, and then with
    /// KeProcessorAddCompleteNotify when the processor runs, or with KeProcessorAddFailureNotify if a callback rejected
    /// it. Refused if the maximum number is active.
    AddProcessor,
    /// Resets every processor, with its APIC in x2APIC or xAPIC mode. Refused while a driver is loaded.
    SetApic {
        /// Whether the APIC is in x2APIC mode.
        x2apic: bool,
    },
    /// Sets the LVT performance entry of a processor, as the HAL does.
    SetLvt {
        /// Which processor.
        processor: u32,
        /// The entry.
        value: u32,
    },
    /// Reads the LVT performance entry of a processor.
    Lvt {
        /// Which processor.
        processor: u32,
    },
    /// Sets whether the HAL unmasks the LVT performance entry before it calls a registered handler, as since Windows 10
    /// 1803, or leaves that to the handler. Without a registered handler, the HAL always unmasks it.
    HalUnmasks(bool),
    /// Sets the size of the structure that HalQuerySystemInformation takes for a source: 24 bytes as current Windows,
    /// or 12 bytes as in the headers of the WDK. Any other size is refused with STATUS_INFO_LENGTH_MISMATCH.
    HalInformationSize(u32),
    /// Sets the interrupt mode of every processor until the processors are replaced or reset. New processors have
    /// [`InterruptMode::Edge`].
    SetInterruptMode(InterruptMode),
    /// Makes RDMSR and WRMSR of exactly these registers fault on every processor, whatever CPUID enumerates, until the
    /// processors are replaced or reset. An instruction whose fault the driver handles itself raises an exception in
    /// the driver; any other fault is a violation.
    SetFaulting {
        /// Values of ECX.
        registers: Vec<u32>,
    },
    /// Lets a hypervisor treat registers of every processor in exactly these ways, until the processors are replaced or
    /// reset.
    SetQuirks {
        /// What it does.
        quirks: Vec<RegisterQuirk>,
    },
    /// Sets how many of 1,000 of its events these counters of a processor count, until the processors are replaced or
    /// reset. The ledger has all events.
    SetMovement {
        /// Which processor.
        processor: u32,
        /// The counters, each with its share.
        shares: Vec<(Counter, u16)>,
    },
    /// Lets every event in real time occur `factor` times as often on a processor while one of its counters has this
    /// event selected: a program whose phases are in step with the turns of its events. Until the processors are
    /// replaced or reset.
    SetPhase {
        /// Event select and unit mask.
        counted: (u16, u16),
        /// Factor of the rates, at least 1.
        factor: u32,
    },
    /// Writes a register of a processor, on behalf of other software than the driver. Refused if the write faults.
    WriteMsr {
        /// Which processor.
        processor: u32,
        /// ECX.
        register: u32,
        /// The value to write.
        value: u64,
    },
    /// Reads a register of a processor, on behalf of other software than the driver. Refused if the read faults.
    ReadMsr {
        /// Which processor.
        processor: u32,
        /// ECX.
        register: u32,
    },
    /// Sets the build number of version 10.0 that `RtlGetVersion` returns. Control areas have 0x60 bytes before build
    /// 18362, and 0xA0 bytes from that build on.
    SetWindows {
        /// The build number.
        build: u32,
    },
    /// Sets the state of KVA shadowing that `ZwQuerySystemInformation` returns.
    SetKvaShadow(KvaShadow),
    /// Sets how `ZwSetSystemInformation` handles control areas.
    SetControlAreas(ControlAreaMode),
    /// Allocates the control area of a processor for other software than the driver. Refused if the area is allocated.
    OccupyControlArea {
        /// Which processor.
        processor: u32,
    },
    /// Returns the control area of each processor, regardless of its owner.
    ControlAreas,
    /// Sets the Debug Store registers, on behalf of other software than the driver. Refused if a write faults; the
    /// value of an absent register must be 0.
    SetDebugStore {
        /// Which processor.
        processor: u32,
        /// `IA32_DS_AREA`.
        area: u64,
        /// `IA32_DEBUGCTL`.
        debugctl: u64,
        /// New values of bits 7, 11 and 12 of `IA32_MISC_ENABLE`, if any.
        misc_enable: Option<u64>,
    },
    /// Returns the Debug Store registers of each processor.
    DebugStore,
    /// Takes branches on a processor. Branch i (from 0) goes from `from + i * step` to 8 bytes after that, and is
    /// predicted if i is even. Interrupts are delivered immediately, between two branches. Answered when the handler
    /// has run for the last interrupt. Refused unless the time is [`Time::Script`].
    Branch {
        /// Which processor.
        processor: u32,
        /// Whether the branches are in user mode.
        user: bool,
        /// Address of the first branch.
        from: u64,
        /// Distance between the addresses.
        step: u64,
        /// Number of branches.
        count: u64,
    },
    /// Takes branches on a processor, which its last branch records keep. Refused unless the time is [`Time::Script`].
    TakeBranches {
        /// Which processor.
        processor: u32,
        /// The branches in their order.
        branches: Vec<TakenBranch>,
    },
    /// Sets the loads and the stores that counters of a processor record, each in turn: address, data source encoding,
    /// latency, and latency of the instruction. An AMD processor executes the loads instead, for the sampling of ops;
    /// the source is an index of `model::DataSource::ALL` then, and the last number is 1 if the cache had modified the
    /// line.
    SetAccesses {
        /// Which processor.
        processor: u32,
        /// The loads. Those below the threshold of a counter are skipped.
        loads: Vec<[u64; 4]>,
        /// The stores.
        stores: Vec<[u64; 4]>,
    },
    /// Empties the last branch records of a processor, as a deep sleep of its core does.
    LoseLastBranches {
        /// Which processor.
        processor: u32,
    },
    /// Returns the totals of each processor's Debug Store since the identity was set or since [`Command::ClearLedger`].
    DsWrites,
    /// Puts the machine to sleep. Calls the callbacks of `\Callback\PowerState`, then resets the performance monitoring
    /// registers of all processors. Until [`Command::Wake`], time stands still for events and timers, and the driver
    /// must not access those registers. Refused if the machine sleeps already.
    Sleep,
    /// Returns the machine to S0 and calls the callbacks of `\Callback\PowerState`. Refused if the machine does not
    /// sleep.
    Wake {
        /// Duration of the sleep, by which the performance counter and the interrupt time advance.
        milliseconds: u64,
    },
    /// Advances the performance counter, the interrupt time and the timeouts of drivers' waits without a sleep. Waits
    /// notice it within 20 ms. Events and timers are not affected.
    Advance {
        /// Time to advance by.
        milliseconds: u64,
    },
    /// Stops or restarts the performance counter, the interrupt time and the timeouts of drivers' waits. While they are
    /// stopped, a handler takes no time and no wait ends by itself, no matter how busy the machine is that runs the
    /// bench. [`Command::Advance`] still advances them.
    HoldClocks(bool),
    /// Calls the callbacks of `\Callback\PowerState` with arbitrary arguments.
    NotifyPower {
        /// Argument1: one of the PO_CB_ constants.
        first: u64,
        /// Argument2.
        second: u64,
    },
    /// Chooses what makes events occur and timers expire. Timers that are set restart. Answered when every DPC queued
    /// before has run.
    SetTime(Time),
    /// Sets how timers expire in real time, until the machine is replaced. At first they are [`TimerMode::Exact`].
    SetTimers(TimerMode),
    /// Makes events occur on a processor, those in user mode first. Answered when the handler has run for the interrupt
    /// that they raised. PEBS records are written with the site of the next interrupt. Refused unless the time is
    /// [`Time::Script`].
    Run {
        /// Which processor.
        processor: u32,
        /// Events in user mode.
        user: Vec<EventCount>,
        /// Events in kernel mode.
        kernel: Vec<EventCount>,
    },
    /// Makes events occur on a processor when a driver completes requests, before the caller goes on: what the caller
    /// executes then. A request with the control code of the first entry consumes it. Replaces what is left of an
    /// earlier script. Refused unless the time is [`Time::Script`].
    ScriptRequests {
        /// Which processor.
        processor: u32,
        /// The requests in their order.
        script: Vec<ScriptedRequest>,
    },
    /// Returns the number of entries of [`Command::ScriptRequests`] that are left.
    ScriptedRequests,
    /// Makes timers expire. Each round expires every timer that is set on the processor, regardless of its due time.
    /// Its DPC runs to completion, including DPCs that it queues there, before the next round. Answered when all rounds
    /// are over. A timer belongs to the target processor of its DPC, or to the processor that set it.
    ///
    /// A one-shot timer expires in the first round only, unless its DPC routine sets it again. A cancelled timer does
    /// not expire. A round without timers has no effect.
    ///
    /// Refused unless the time is [`Time::Script`]. Also refused after 10 s, if a thread keeps the processor at
    /// DISPATCH_LEVEL or the routines take too long; the remaining rounds are then dropped.
    Tick {
        /// Which processor.
        processor: u32,
        /// Number of rounds.
        times: u64,
    },
    /// Returns the number of DPCs that ran for timers, and the number of timers that are set.
    Ticks,
    /// Returns how often each active processor was interrupted for calls of drivers, since the lab started.
    Interruptions,
    /// Returns the real time that each processor skipped because interrupts came faster than this machine can call the
    /// handler. A processor falls behind the time-stamp counter by at most 100 ms and skips the rest.
    Skipped,
    /// Sets the sites at which a processor is interrupted. Initially this is kernel code of the idle process. Over as
    /// many interrupts as the sum of the weights, each site occurs exactly as often as its weight, and is never ahead
    /// by more than one interrupt. An interrupt for a PEBS buffer occurs three bytes after the site of its records.
    /// Clock interrupts, which expire timers, take turns of their own at the same sites; on the stack of a timer's DPC
    /// is the machine frame of its clock interrupt, unless the site is of process 0, the idle process.
    /// Refused if all weights are zero or the processor does not exist.
    SetInterruptSites {
        /// Which processor.
        processor: u32,
        /// The sites.
        sites: Vec<InterruptSite>,
    },
    /// Returns the number of handler calls at each interrupt site.
    InterruptSites,
    /// Returns the ledger of each processor.
    Ledger,
    /// Clears the ledgers and the totals of [`Command::DsWrites`].
    ClearLedger,
    /// Returns the enabled counters of each processor.
    EnabledCounters,
    /// Returns the register accesses on each processor since the identity was set.
    Accesses,
    /// Returns the violations that the driver committed. Each is reported once.
    Violations,
    /// Returns the pool allocations of drivers.
    Pool,
    /// Sets whether `SeSinglePrivilegeCheck` denies SeSystemProfilePrivilege to user mode.
    DenyPrivilege(bool),
    /// Makes the n-th allocation from now fail (1 is the next), or none with `None`.
    FailAllocation(Option<u64>),
    /// Makes the n-th call from now that can fail do so as documented (1 is the next), or none with `None`. Counts
    /// calls by drivers to functions that return a resource: of the pool, the I/O manager, the object manager, the HAL,
    /// and for callbacks.
    FailCall(Option<u64>),
    /// Makes the next call fail that [`Command::FailCall`] counts and whose stack no such call has failed yet, or none.
    /// A stack is the function and the return addresses in drivers. All stacks are new when the identity was set.
    FailNewStack(bool),
    /// Returns the function that failed because of the last [`Command::FailCall`] or [`Command::FailNewStack`].
    FailedCall,
    /// Makes `HalAllocateHardwareCounters` fail with this NTSTATUS, as if the counters were in use. With `None` they
    /// are free.
    RefuseCounters(Option<u32>),
    /// Makes `HalAllocateHardwareCounters` answer STATUS_DEVICE_BUSY as reported for Windows 11 24H2, where the HAL
    /// asks another owner to release the counters: from the next call on for this time. Calls that follow one another
    /// without a wait are a violation. Ends when the driver is unloaded.
    BusyCounters {
        /// The time in milliseconds.
        milliseconds: u64,
    },
    /// Returns whether a driver holds the counters of a processor by `HalAllocateHardwareCounters`. As reported for
    /// Windows 11 24H2, the reservation is counted for each processor: `HalFreeHardwareCounters` fails unless the
    /// current processor has one, and then subtracts one on every active processor.
    CountersReserved,
    /// A command about the threads of programs.
    Threads(ThreadCommand),
    /// Stops the driver as Windows does, where Wine would not wait for open handles.
    StopDriver,
    /// Returns the state of that stop.
    StopState,
    /// Returns the number of requests that drivers marked pending and did not complete.
    PendingRequests,
    /// Returns the number of running threads that drivers created.
    SystemThreads,
    /// Cancels the next request with which a driver reaches this point, on another processor, up to the point where the
    /// cancel routine waits for a spin lock. `None` cancels no request. Refused if there is only one processor.
    CancelAt(Option<CancelMoment>),
    /// Sets whether the HAL passes null instead of a trap frame to the registered handler.
    HideFrames(bool),
    /// Sets whether the HAL refuses to register a handler of the profile interrupt, as if another driver had one, and
    /// to unregister the one that is registered.
    RefuseHandler(bool),
    /// Returns the registration of the profile interrupt and the handler calls.
    Handler,
    /// Returns the last security descriptor passed to `ZwSetSecurityObject`.
    Descriptor,
    /// Returns the names of the loaded drivers.
    Images,
    /// Sets the call stacks of interrupt sites, instead of all earlier ones. The stack of any other site is the site
    /// alone.
    SetStacks(Vec<SiteStack>),
    /// Enables a provider of Event Tracing for Windows for a trace session, or disables it, and calls the enable
    /// callbacks of the drivers that have registered it. A driver that registers it later is called then.
    EnableProvider {
        /// GUID of the provider.
        provider: ProviderId,
        /// Highest level of the events.
        level: u8,
        /// Keywords of which an event has at least one; 0 for every event.
        keywords: u64,
        /// Whether it is enabled.
        enabled: bool,
    },
    /// Executes the next call of a kind into a driver one instruction at a time, and lets counters overflow at chosen
    /// instructions. An interrupt of the stepped processor is delivered before the first instruction whose IRQL allows
    /// it, on the same thread; calls from the driver into the kernel and the handler run at full speed. An interrupt of
    /// another processor is delivered there before the call continues. At the end of the plan, the call continues at
    /// full speed; a plan without instructions only counts them. Replaces a plan that waits for its call. Refused
    /// unless the time is [`Time::Script`].
    Step(StepPlan),
    /// Returns what happened in the call of the last [`Command::Step`], after its end. Ends a plan that waits for its
    /// call.
    Steps,
    /// Returns the providers that drivers have registered.
    Providers,
    /// Returns the events that drivers have written since the last such command.
    TakeEvents,
}
