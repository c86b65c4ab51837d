//! Reasons for which requests are refused.

/// Reason of a refusal. Each variant names the further fields of [`ReplyHeader`](crate::ReplyHeader) that it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// The request succeeded.
    None = 0,
    /// The versions differ; `detail` = the client's version, the driver's version.
    VersionMismatch = 1,
    /// No source has the number in `source`.
    UnknownSource = 2,
    /// `source` is unsupported; `detail[0]` is the reason, a number of `pmu::Support`. If `detail[1]` is 1, only
    /// `processor` does not support it.
    UnsupportedSource = 3,
    /// No counter on `processor` is free for `source`; `detail` = number of counters there that can count it, number of
    /// requested events that only these counters can count. Records: the [`SessionEvent`](crate::SessionEvent)s that
    /// use these counters.
    NoFreeCounter = 4,
    /// Out of memory; `detail[0]` = bytes requested, if known.
    NoMemory = 5,
    /// The session `detail[0]` does not exist or belongs to another client.
    NoSuchSession = 6,
    /// `source` does not run in the session `detail[0]`.
    NotStarted = 7,
    /// The set contains no active processor; `detail[0]` = number of active processors.
    NoProcessor = 8,
    /// `processor` is not active; `detail[0]` = number of active processors.
    NoSuchProcessor = 9,
    /// An event requests neither user nor kernel mode, an undefined mode, or, if a timer serves it, a single mode;
    /// `detail[0]` = the bits.
    BadModes = 10,
    /// `source` already runs in a detached session; `detail[0]` = the session.
    AlreadyStarted = 11,
    /// Undefined flags, or fields that must be zero, are not zero; `detail[0]` = the bits.
    BadFlags = 12,
    /// Too many sessions; `detail[0]` = the maximum.
    TooManySessions = 13,
    /// The counters of `processor` do not keep values written to them: a hypervisor only pretends to have them. If one
    /// register shows it, `detail` = a [`RegisterFault`], the value that was written.
    CountersDoNotWork = 14,
    /// A hypervisor is present, and CPUID does not enumerate the counters of the profile interface. An access to a
    /// missing counter would crash the machine.
    CountersNotEnumerated = 15,
    /// The interval of `source` is out of range, `detail` = minimum, maximum; or the event is not sampled.
    BadInterval = 16,
    /// The ring size is not a power of two in the range `detail` = minimum, maximum; or no event is sampled.
    BadRing = 17,
    /// The frequency or the budget exceeds `detail[0]`, or no event is sampled.
    BadFrequency = 18,
    /// `source` cannot be sampled. A timer serves it; or, with `detail[0]` = 1, the counters of the processor do not
    /// interrupt.
    NotSampled = 19,
    /// The HAL refused to register the interrupt handler; `detail[0]` = its NTSTATUS, `detail[1]` = the kind of
    /// hypervisor as in [`InfoReply`](crate::InfoReply).
    HandlerRefused = 20,
    /// The session `detail[0]` samples no event.
    NothingSampled = 21,
    /// HalAllocateHardwareCounters failed; `detail[0]` = its NTSTATUS.
    CountersTaken = 22,
    /// A counter of `processor` is in use by another program; `detail` = a [`RegisterInUse`], the value of that
    /// register.
    ForeignUse = 23,
    /// The LVT entry for performance counters on `processor` is not as the Windows HAL sets it up; `detail[0]` = the
    /// entry, `detail[1]` = the kind of hypervisor as in [`InfoReply`](crate::InfoReply).
    InterruptNotEnabled = 24,
    /// The local APIC cannot be accessed; `detail[0]` = the NTSTATUS.
    ApicNotReached = 25,
    /// `source` is a raw event, which has no stored interval: each start passes its own.
    NoInterval = 26,
    /// Too many raw events for `source` to be added; `detail[0]` = maximum number of different raw events at a time.
    TooManyRawEvents = 27,
    /// `processor` lacks a requested Debug Store feature; `detail` = the numbers of a
    /// `pmu::debug_store::MissingFeature`.
    NoDebugStore = 28,
    /// Another program uses the Debug Store of `processor`; `detail` = IA32_DEBUGCTL, IA32_PEBS_ENABLE.
    DebugStoreInUse = 29,
    /// The session `detail[0]` uses the Debug Store; only one session at a time can.
    DebugStoreTaken = 30,
    /// Kernel VA shadowing is on, so the Debug Store buffers would not be mapped while user code runs; or, with
    /// `detail[0]` = an NTSTATUS, Windows does not report whether it is on.
    Shadowed = 31,
    /// `source` cannot be sampled precisely; `detail` = the numbers of a
    /// `pmu::debug_store::MissingFeature` of the event, not of the processor.
    NotPrecise = 32,
    /// An operation on the control area of `processor` failed; `detail` = the kernel's NTSTATUS, the address that it
    /// reported. STATUS_DEVICE_BUSY: a session uses the area. STATUS_RETRY: IA32_DS_AREA holds its address.
    ControlArea = 33,
    /// The size of the branch buffer, or the number of precise records before an interrupt, is out of range, `detail` =
    /// minimum, maximum; or the feature is not requested.
    BadBuffer = 34,
    /// The machine sleeps, falls asleep or wakes up: the driver must not access registers.
    Asleep = 35,
    /// An access of a register of `processor` under a guard faulted, or the register does not keep what is written,
    /// although CPUID enumerates the register; `detail` = a [`RegisterFault`], the value that was written, or 0. If
    /// `source` is an event, only that event needs the value.
    RegisterFault = 36,
    /// `source` can be counted on none of the counters that the client allows on `processor`; `detail` = masks of the
    /// counters that can count it, of those allowed.
    BadCounters = 37,
    /// A counter on `processor` is free for `source`, but not beside the counters of `detail[0]`, the other thread of
    /// the core: an erratum lets the two disturb each other.
    OtherThread = 38,
    /// The processors of the session are of two core types, on which `source` is not the same event, and the request
    /// names no core type; `detail[0]` = the core types, which are single bits.
    CoreTypeNeeded = 39,
    /// No processor of the session has the core type that the request names for `source`; `detail` = that core type,
    /// the core types of the session's processors, or 0 if the machine is not a hybrid.
    NoSuchCoreType = 40,
    /// The extra registers for `source` on `processor` have other values, which counters in use need; `detail` = an
    /// [`ExtraInUse`], the value of that register. Records: the [`SessionEvent`](crate::SessionEvent)s there.
    ExtraRegisterTaken = 41,
    /// `source` is measured by precise records only, and the request does not ask for them.
    PreciseOnly = 42,
    /// Fields of an event contradict each other or are undefined; `detail[0]` = the bits of the event.
    BadEvent = 43,
    /// The events of the group of `source` cannot be counted at the same time on `processor`; `detail` = the number of
    /// events of the group, and of its largest part that can be: bit n of a mask is the event n of the group.
    GroupTooLarge = 44,
    /// The rings of all sessions would take too much memory; `detail` = bytes with those of the request, maximum.
    RingsTooLarge = 45,
    /// Windows refused to configure its thread profiling, or to end it; `detail[0]` = its NTSTATUS.
    /// STATUS_WMI_ALREADY_ENABLED: another driver has configured it, or a thread still profiles.
    ThreadProfilingTaken = 46,
    /// A session for thread profiling cannot run beside another one, nor beside a session that samples by counters.
    /// Records: the [`SessionEvent`](crate::SessionEvent)s of that session.
    ThreadsConflict = 47,
    /// No general counter has an index on which every processor counts `source`, as thread profiling needs.
    NoCommonCounter = 48,
    /// [`ReadGroup`](crate::Code::ReadGroup) cannot read the session `detail[0]` on `processor`: it is not on that
    /// processor, it samples, its events take turns or were stopped, one is measured time, slots or a metric, or there
    /// are more than [`MAX_GROUP`](crate::MAX_GROUP).
    NotReadable = 49,
    /// No counter of `processor` counts a known loop, nor one of another processor of the session: a hypervisor keeps
    /// the values of the counters only.
    NoCounterCounts = 50,
    /// The condition of `source` cannot be decided: the event is not sampled by an interrupt of a counter, or may take
    /// turns; or, with `detail[0]` = 1, an event of the ratio has no counter on `processor` that an interrupt can read,
    /// or was to be stopped alone; or, with 2, four other events of the session have a condition there.
    BadCondition = 51,
    /// `processor` does not keep the last branches as requested; `detail[0]` = a number of
    /// `pmu::last_branches::MissingFeature`.
    NoLastBranches = 52,
    /// Another program uses the last branch records of `processor`; `detail` = the address of the register that shows
    /// it, its value.
    LastBranchesInUse = 53,
    /// The session `detail[0]` records last branches; only one session at a time can.
    LastBranchesTaken = 54,
    /// `processor` does not sample the ops of `source`; `detail[0]` = a number of `pmu::ibs::MissingFeature`.
    NoIbs = 55,
    /// Another program uses the Instruction-Based Sampling of `processor`; `detail` = the address of the register that
    /// shows it, its value.
    IbsInUse = 56,
    /// The session `detail[0]` samples ops, or with zero another event of this request; only one event at a time can.
    IbsTaken = 57,
}

impl ErrorCode {
    /// All error codes, in the order of their numbers.
    pub const ALL: [Self; 58] = [
        Self::None,
        Self::VersionMismatch,
        Self::UnknownSource,
        Self::UnsupportedSource,
        Self::NoFreeCounter,
        Self::NoMemory,
        Self::NoSuchSession,
        Self::NotStarted,
        Self::NoProcessor,
        Self::NoSuchProcessor,
        Self::BadModes,
        Self::AlreadyStarted,
        Self::BadFlags,
        Self::TooManySessions,
        Self::CountersDoNotWork,
        Self::CountersNotEnumerated,
        Self::BadInterval,
        Self::BadRing,
        Self::BadFrequency,
        Self::NotSampled,
        Self::HandlerRefused,
        Self::NothingSampled,
        Self::CountersTaken,
        Self::ForeignUse,
        Self::InterruptNotEnabled,
        Self::ApicNotReached,
        Self::NoInterval,
        Self::TooManyRawEvents,
        Self::NoDebugStore,
        Self::DebugStoreInUse,
        Self::DebugStoreTaken,
        Self::Shadowed,
        Self::NotPrecise,
        Self::ControlArea,
        Self::BadBuffer,
        Self::Asleep,
        Self::RegisterFault,
        Self::BadCounters,
        Self::OtherThread,
        Self::CoreTypeNeeded,
        Self::NoSuchCoreType,
        Self::ExtraRegisterTaken,
        Self::PreciseOnly,
        Self::BadEvent,
        Self::GroupTooLarge,
        Self::RingsTooLarge,
        Self::ThreadProfilingTaken,
        Self::ThreadsConflict,
        Self::NoCommonCounter,
        Self::NotReadable,
        Self::NoCounterCounts,
        Self::BadCondition,
        Self::NoLastBranches,
        Self::LastBranchesInUse,
        Self::LastBranchesTaken,
        Self::NoIbs,
        Self::IbsInUse,
        Self::IbsTaken,
    ];

    /// Returns the error code with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| *cause as u32 == number)
    }
}

/// The access that faulted, for [`ErrorCode::RegisterFault`] and [`ErrorCode::CountersDoNotWork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterFault {
    /// ECX: the address of the register, or the index of the counter.
    pub number: u32,
    /// The instruction: 0 RDMSR, 1 WRMSR, 2 RDPMC, 3 an RDMSR that did not return what was written before it.
    pub access: u8,
    /// The profile interface, as in [`InfoReply`](crate::InfoReply): the same number names different registers.
    pub interface: u8,
    /// The kind of hypervisor, as in [`InfoReply`](crate::InfoReply).
    pub hypervisor: u8,
}

impl RegisterFault {
    /// Returns the fault as the first word of the detail: the number in bits 31:0, the access in bits 39:32, the
    /// interface in bits 47:40, the hypervisor in bits 55:48.
    #[must_use]
    pub const fn to_detail(self) -> u64 {
        self.number as u64 | (self.access as u64) << 32 | (self.interface as u64) << 40 | (self.hypervisor as u64) << 48
    }

    /// Returns the fault in the first word of the detail.
    #[must_use]
    pub const fn from_detail(detail: u64) -> Self {
        let [n0, n1, n2, n3, access, interface, hypervisor, _] = detail.to_le_bytes();
        Self { number: u32::from_le_bytes([n0, n1, n2, n3]), access, interface, hypervisor }
    }
}

/// The register that enables a counter of another program, for [`ErrorCode::ForeignUse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterInUse {
    /// Address of the register.
    pub number: u32,
    /// Index of the counter.
    pub counter: u8,
    /// The profile interface, as in [`InfoReply`](crate::InfoReply): the same number names different registers.
    pub interface: u8,
}

impl RegisterInUse {
    /// Returns the register as the first word of the detail: the number in bits 31:0, the counter in bits 39:32, the
    /// interface in bits 47:40.
    #[must_use]
    pub const fn to_detail(self) -> u64 {
        self.number as u64 | (self.counter as u64) << 32 | (self.interface as u64) << 40
    }

    /// Returns the register in the first word of the detail.
    #[must_use]
    pub const fn from_detail(detail: u64) -> Self {
        let [n0, n1, n2, n3, counter, interface, ..] = detail.to_le_bytes();
        Self { number: u32::from_le_bytes([n0, n1, n2, n3]), counter, interface }
    }
}

/// The extra register that has another value, for [`ErrorCode::ExtraRegisterTaken`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraInUse {
    /// Address of the register.
    pub register: u32,
    /// The processor whose counters need the value: that of the refusal, or the other thread of its core.
    pub holder: u32,
}

impl ExtraInUse {
    /// Returns the register as the first word of the detail: the address in bits 31:0, the processor in bits 63:32.
    #[must_use]
    pub const fn to_detail(self) -> u64 {
        self.register as u64 | (self.holder as u64) << 32
    }

    /// Returns the register in the first word of the detail.
    #[must_use]
    pub const fn from_detail(detail: u64) -> Self {
        let [r0, r1, r2, r3, h0, h1, h2, h3] = detail.to_le_bytes();
        Self { register: u32::from_le_bytes([r0, r1, r2, r3]), holder: u32::from_le_bytes([h0, h1, h2, h3]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_values_are_one_to_one() {
        for (number, cause) in (0_u32..).zip(ErrorCode::ALL) {
            assert_eq!(cause as u32, number);
            assert_eq!(ErrorCode::from_number(number), Some(cause));
        }
        assert_eq!(ErrorCode::from_number(58), None);
    }

    #[test]
    fn a_fault_fits_into_one_word() {
        let fault = RegisterFault { number: 0xC000_0302, access: 1, interface: 2, hypervisor: 4 };
        assert_eq!(fault.to_detail(), 0x04_0201_C000_0302);
        assert_eq!(RegisterFault::from_detail(fault.to_detail()), fault);
        let in_use = RegisterInUse { number: 0xC001_020A, counter: 5, interface: 2 };
        assert_eq!(in_use.to_detail(), 0x0205_C001_020A);
        assert_eq!(RegisterInUse::from_detail(in_use.to_detail()), in_use);
        let extra = ExtraInUse { register: 0x1A7, holder: 2_047 };
        assert_eq!(extra.to_detail(), 0x07FF_0000_01A7);
        assert_eq!(ExtraInUse::from_detail(extra.to_detail()), extra);
    }
}
