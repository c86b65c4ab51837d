//! Why a request was refused, and why a source can not be had.

/// Why; the fields of [`ReplyHeader`](crate::ReplyHeader) that say more are named with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// Nothing was refused.
    None = 0,
    /// `detail` = the client's version, the driver's version.
    VersionMismatch = 1,
    /// No source has the number in `source`.
    UnknownSource = 2,
    /// `source` exists; `detail[0]` says why not here, as a [`Support`]; with `detail[1]` = 1 it is `processor` that has it
    /// not, and others have it.
    UnsupportedSource = 3,
    /// `source` found no counter on `processor`; `detail` = counters there that can count it, counters wanted that have to
    /// be among these. Records: holders.
    NoFreeCounter = 4,
    /// Memory is short; `detail[0]` = bytes wanted, if known.
    NoMemory = 5,
    /// `detail[0]` = the session, which does not exist or is another client's.
    NoSuchSession = 6,
    /// `source` does not run in the session `detail[0]`.
    NotStarted = 7,
    /// The set of processors has none that is active; `detail[0]` = how many are.
    NoProcessor = 8,
    /// `processor` is not active; `detail[0]` = how many are.
    NoSuchProcessor = 9,
    /// An event asks for neither user nor kernel mode, for a mode that does not exist, or, served by a timer, for
    /// one mode alone; `detail[0]` = the bits.
    BadModes = 10,
    /// `source` already runs detached; `detail[0]` = its session.
    AlreadyStarted = 11,
    /// Flags that do not exist, or fields that mean nothing, were not zero; `detail[0]` = the bits.
    BadFlags = 12,
    /// Too many sessions; `detail[0]` = how many there can be.
    TooManySessions = 13,
    /// The counters of `processor` do not keep what is written to them: a hypervisor pretends to have them.
    CountersDoNotWork = 14,
    /// A hypervisor is present, and CPUID does not promise the counters of the profile interface: an access to one that
    /// does not exist would stop the machine.
    CountersNotEnumerated = 15,
    /// The interval of `source` is not in its range, `detail` = from, to; or it goes with what is not sampled.
    BadInterval = 16,
    /// The size of the rings is no power of two in the range of `detail` = from, to; or nothing is sampled.
    BadRing = 17,
    /// The frequency or the budget is beyond `detail[0]`, or goes with what is not sampled.
    BadFrequency = 18,
    /// `source` can not be sampled: it is served by a timer, which is not this driver's interrupt; or, with `detail[0]` = 1,
    /// by a counter of a processor whose counters do not interrupt.
    NotSampled = 19,
    /// The HAL did not register the handler of the interrupt; `detail[0]` = its NTSTATUS.
    HandlerRefused = 20,
    /// The session `detail[0]` samples nothing.
    NothingSampled = 21,
    /// HalAllocateHardwareCounters did not give the counters; `detail[0]` = its NTSTATUS.
    CountersTaken = 22,
    /// Counter `detail[0]` of `processor` counts for somebody else; `detail[1]` = its select register.
    ForeignUse = 23,
    /// The local APIC's entry for counters on `processor` is not as Windows' HAL sets it up; `detail[0]` = the entry.
    InterruptNotEnabled = 24,
    /// The local APIC can not be reached; `detail[0]` = the NTSTATUS.
    ApicNotReached = 25,
    /// `source` is a raw event, of which no interval is kept: each start says its own.
    NoInterval = 26,
    /// `source` is a raw event too many; `detail[0]` = how many different ones there can be at a time.
    TooManyRawEvents = 27,
    /// `processor` has not what of the Debug Store is asked for; `detail` = a [`MissingFeature`], and its number where there is one.
    NoDebugStore = 28,
    /// Another program uses the Debug Store of `processor`: `detail` = IA32_DEBUGCTL, IA32_PEBS_ENABLE.
    DebugStoreInUse = 29,
    /// The session `detail[0]` has the Debug Store; one at a time can.
    DebugStoreTaken = 30,
    /// The buffers of the Debug Store would not be mapped while user code runs: kernel VA shadowing is on; or, with
    /// `detail[0]` = an NTSTATUS, Windows does not tell whether it is.
    Shadowed = 31,
    /// `source` can not be sampled precisely; `detail[0]` = a [`MissingFeature`] of the event, not of the processor.
    NotPrecise = 32,
    /// The control area of `processor`: `detail` = the kernel's NTSTATUS, the address that it told. With the NTSTATUS
    /// STATUS_DEVICE_BUSY a session uses the area; with STATUS_RETRY IA32_DS_AREA holds its address.
    ControlArea = 33,
    /// The size of the branch buffer, or the number of precise records before an interrupt, is not in its range, `detail` =
    /// from, to; or it goes with what is not asked for.
    BadBuffer = 34,
    /// The machine sleeps, or is falling asleep or waking up: a register that has to be looked at must not be touched.
    Asleep = 35,
}

impl ErrorCode {
    /// Every cause, for tables and tests.
    pub const ALL: [Self; 36] = [
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
    ];

    /// The cause with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| *cause as u32 == number)
    }
}

/// Whether a source can be had on this machine, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Support {
    /// It can.
    Supported = 0,
    /// The profile interface chosen for the boot processor has no such source.
    NotInInterface = 1,
    /// CPUID leaf 0xA says fewer events than the one this source needs (EAX\[31:24\]).
    EventNotEnumerated = 2,
    /// CPUID leaf 0xA says that the event is not available (its bit in EBX is set).
    EventNotAvailable = 3,
    /// The memory for the counters' state could not be had when the driver started.
    NoMemory = 4,
    /// The processor's family has no such event, or does not count it in the core.
    NotOnThisFamily = 5,
    /// A raw event; the registers of the profile interface do not take an event and a unit mask.
    NoRawEvents = 6,
    /// A raw event; the processor's events have numbers of fewer bits.
    NoSuchEvent = 7,
}

impl Support {
    /// Every answer, for tables and tests.
    pub const ALL: [Self; 8] = [
        Self::Supported,
        Self::NotInInterface,
        Self::EventNotEnumerated,
        Self::EventNotAvailable,
        Self::NoMemory,
        Self::NotOnThisFamily,
        Self::NoRawEvents,
        Self::NoSuchEvent,
    ];

    /// The answer with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|support| *support as u32 == number)
    }
}

/// What of the Debug Store is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum MissingFeature {
    /// The processor is not Intel's.
    NotIntel = 0,
    /// CPUID.1:EDX\[21\] (DS) is clear.
    NoDebugStore = 1,
    /// CPUID.1:ECX\[2\] (DTES64) is clear: the area would not have its 64-bit form.
    NotWide = 2,
    /// IA32_MISC_ENABLE\[7\] is clear: performance monitoring is not available.
    NoMonitoring = 3,
    /// IA32_MISC_ENABLE\[11\] is set: the Branch Trace Store is unavailable.
    BranchesUnavailable = 4,
    /// IA32_MISC_ENABLE\[12\] is set: PEBS is unavailable.
    PebsUnavailable = 5,
    /// CPUID.1:ECX\[4\] (DS-CPL) is clear: branches of one mode alone can not be had.
    NoModes = 6,
    /// Records have a format that is not known here; its number goes with it.
    UnknownFormat = 7,
    /// Of an event: its overflows are not recorded by PEBS.
    NotPrecise = 8,
    /// The profile interface has no precise events.
    NotInInterface = 9,
}

impl MissingFeature {
    /// Every one, in the order of its number.
    pub const ALL: [Self; 10] = [
        Self::NotIntel,
        Self::NoDebugStore,
        Self::NotWide,
        Self::NoMonitoring,
        Self::BranchesUnavailable,
        Self::PebsUnavailable,
        Self::NoModes,
        Self::UnknownFormat,
        Self::NotPrecise,
        Self::NotInInterface,
    ];

    /// The one with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|missing_feature| *missing_feature as u32 == number)
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
        for (number, support) in (0_u32..).zip(Support::ALL) {
            assert_eq!(support as u32, number);
            assert_eq!(Support::from_number(number), Some(support));
        }
        for (number, missing_feature) in (0_u32..).zip(MissingFeature::ALL) {
            assert_eq!(missing_feature as u32, number);
            assert_eq!(MissingFeature::from_number(number), Some(missing_feature));
        }
        assert_eq!(MissingFeature::from_number(10), None);
        assert_eq!(ErrorCode::from_number(36), None);
        assert_eq!(Support::from_number(8), None);
    }
}
