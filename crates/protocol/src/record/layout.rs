//! Layouts of the kinds of records: one structure each, all of 48 bytes.
//!
//! Time, processor, event and kind are at the same offsets in each. A field can only have values that its kind allows:
//! numbers with few values are enumerations, and bytes that a kind does not use are [`Zero`].

use core::mem::offset_of;

use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes, transmute};

use super::{RecordKind, SampleRecord};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident: $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:expr,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(TryFromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr($type)]
        pub enum $name { $($(#[$variant_doc])* $variant = $value,)* }
    )*};
}

numbers! {
    /// A byte that a kind does not use.
    Zero: u8 {
        /// Zero.
        Zero = 0,
    }

    /// Mode of the sampled instruction, by the numbers of [`modes`](crate::modes).
    Mode: u16 {
        /// User mode.
        User = 1,
        /// Kernel mode.
        Kernel = 2,
    }

    /// Whether the processor reports that it predicted a branch.
    Prediction: u8 {
        /// It does not; many processors never do.
        NotReported = 0,
        /// It predicted the branch.
        Predicted = 1,
        /// It did not.
        Mispredicted = 2,
    }

    /// Type of a branch, as far as the processor reports it. The numbers are one more than those of IA32_LBR_x_INFO.
    BranchType: u8 {
        /// It does not.
        NotReported = 0,
        /// A conditional branch.
        Conditional = 1,
        /// A near indirect jump.
        IndirectJump = 2,
        /// A near relative jump.
        DirectJump = 3,
        /// A near indirect call.
        IndirectCall = 4,
        /// A near relative call.
        DirectCall = 5,
        /// A near return.
        Return = 6,
        /// Another one: a far branch, an interrupt or an exception.
        Other = 7,
    }

    /// How a processor encodes where data came from (SDM Vol. 3B, "Data Source Encoding for Load Latency Record";
    /// Linux, arch/x86/events/intel/ds.c; PPR, IBS_OP_DATA2 and IBS_OP_DATA3). The cores of one machine can differ.
    AccessEncoding: u8 {
        /// Intel's loads, Nehalem and Westmere.
        Nehalem = 0,
        /// Intel's loads, Sandy Bridge to Broadwell.
        SandyBridge = 1,
        /// Intel's loads of P cores, Skylake to Redwood Cove, and stores from Golden Cove on.
        Skylake = 2,
        /// Intel's loads and stores of E cores, Gracemont.
        Gracemont = 3,
        /// Intel's loads and stores of E cores, from Crestmont on.
        Crestmont = 4,
        /// Intel's loads and stores of P cores, from Lion Cove on.
        LionCove = 5,
        /// Intel's stores, Sandy Bridge to Tiger Lake.
        Store = 6,
        /// IBS before family 19H. The source has bits 21:0 of IBS_OP_DATA3; from bit 22 on bits 7:6 and 2:0 of
        /// IBS_OP_DATA2 in five bits, then its bits 4, 5, 8 and 9; and bit 31 says that IBS_OP_DATA2 means something.
        Ibs = 7,
        /// IBS of family 19H, models 0 to FH: the state of a hit is invalid, as are other bits by erratum 1293.
        IbsZen3 = 8,
        /// IBS of family 19H, models 20H to 5FH: the state of a hit is invalid.
        IbsZen3Client = 9,
        /// IBS from Zen 4 on.
        IbsZen4 = 10,
        /// Fetches of IBS before family 17H. The source has bits 63:48 of IBS_FETCH_CTL: nothing of the L2 cache.
        IbsFetch = 11,
        /// Those of families 17H and 18H, and of family 19H, models 20H to 5FH: with misses of the L2 cache.
        IbsFetchZen = 12,
        /// Those of family 19H, models 0 to FH: misses of the instruction cache are invalid (erratum 1238).
        IbsFetchZen3 = 13,
        /// Those from Zen 4 on: with misses of the op cache and of the L3 cache.
        IbsFetchZen4 = 14,
    }

    /// What an instruction did to memory.
    AccessOperation: u8 {
        /// It accessed none.
        None = 0,
        /// It loaded.
        Load = 1,
        /// It stored.
        Store = 2,
        /// It loaded and stored.
        LoadStore = 3,
        /// It is the fetch of instructions.
        Fetch = 4,
    }

    /// Kind of a [`CounterSample`].
    CounterKind: u16 {
        /// The only one.
        Sample = RecordKind::Sample as u16,
    }

    /// Kind of a [`PreciseSample`].
    PreciseKind: u16 {
        /// The address is that of the instruction that caused the event: no skid.
        Precise = RecordKind::Precise as u16,
        /// The address is that of the next instruction.
        PreciseNext = RecordKind::PreciseNext as u16,
    }

    /// Kind of a [`BranchRecord`].
    BranchKind: u16 {
        /// The Branch Trace Store has recorded it.
        Branch = RecordKind::Branch as u16,
        /// It is one of the last branches before a sample.
        LastBranch = RecordKind::LastBranch as u16,
    }

    /// Kind of an [`AccessRecord`].
    AccessKind: u16 {
        /// The only one.
        Access = RecordKind::Access as u16,
    }

    /// Kind of a [`LostRecord`].
    LostKind: u16 {
        /// The only one.
        Lost = RecordKind::Lost as u16,
    }

    /// Kind of a [`StopRecord`].
    StopKind: u16 {
        /// The interrupts of the processor used up their budget. Sampling stops there until a record of a pause.
        Throttled = RecordKind::Throttled as u16,
        /// Too many consecutive interrupts arrived without an overflowed counter. Nothing is sampled there until a
        /// session starts to sample there again.
        Silenced = RecordKind::Silenced as u16,
        /// The entry of the local vector table through which the counters of the processor interrupt is not the HAL's
        /// any more. The counters count on; their overflows are lost until the entry is the HAL's again, which the
        /// driver looks for at each tick.
        Disconnected = RecordKind::Disconnected as u16,
    }

    /// Kind of a [`PauseRecord`].
    PauseKind: u16 {
        /// The processor was throttled.
        Resumed = RecordKind::Resumed as u16,
        /// The machine slept.
        Slept = RecordKind::Slept as u16,
        /// The entry of the local vector table was not the HAL's.
        Reconnected = RecordKind::Reconnected as u16,
    }

    /// Kind of an [`OffCpuRecord`].
    OffCpuKind: u16 {
        /// The only one.
        OffCpu = RecordKind::OffCpu as u16,
    }

    /// Why a thread did not run.
    OffCpuState: u8 {
        /// It waited until it was made ready. A record in the state [`Ready`](Self::Ready) follows.
        Waiting = 1,
        /// It waited, and ran. When it was made ready is unknown.
        WaitingOrReady = 2,
        /// It could run, and another thread did. Then it ran.
        Ready = 3,
    }
}

macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl From<$name> for SampleRecord {
            #[inline]
            fn from(record: $name) -> Self {
                transmute!(record)
            }
        }

        const _: () = assert!(size_of::<$name>() == 48 && align_of::<$name>() == align_of::<SampleRecord>());
        const _: () = assert!(
            offset_of!($name, time) == 0
                && offset_of!($name, processor) == 24
                && offset_of!($name, event) == 28
                && offset_of!($name, kind) == 36
        );
    )*};
}

const _: () = assert!(size_of::<SampleRecord>() == 48);

layout! {
    /// A counter overflowed and interrupted the instruction at `ip`.
    CounterSample {
        /// Time, in units of the clock.
        time: u64,
        /// Instruction pointer.
        ip: u64,
        /// Interrupted process; 0 is the idle process.
        process: u32,
        /// Interrupted thread.
        thread: u32,
        /// Processor.
        processor: u32,
        /// Index of the event in the request that started the session.
        event: u32,
        /// Number of events that the sample represents.
        interval: u32,
        /// Kind.
        kind: CounterKind,
        /// Interrupted mode.
        mode: Mode,
        /// Low half of the number of precise records that the processor had written by then (PebsIndex), which orders
        /// the sample among them.
        pebs_sequence: u32,
        /// Number of the interrupt on its processor, by which the sample and its event for Event Tracing for Windows
        /// ([`trace::Sample`](crate::trace::Sample)) belong together; 0 if no event is written.
        cookie: u32,
    }

    /// A PEBS record.
    PreciseSample {
        /// Time at which the record was fetched, in units of the clock.
        time: u64,
        /// Instruction pointer; the kind says of which instruction.
        ip: u64,
        /// Process, or [`UNKNOWN`](crate::UNKNOWN).
        process: u32,
        /// Thread, or [`UNKNOWN`](crate::UNKNOWN).
        thread: u32,
        /// Processor.
        processor: u32,
        /// Index of the event in the request that started the session.
        event: u32,
        /// Number of events that the record represents.
        interval: u32,
        /// Kind.
        kind: PreciseKind,
        /// Mode, by the half of the address space in which `ip` is.
        mode: Mode,
        /// Number of the record on its processor, from 0.
        number: u64,
    }

    /// A branch. A last branch has the time, the process, the thread, the processor and the event of its sample.
    BranchRecord {
        /// Time at which the record was fetched, in units of the clock.
        time: u64,
        /// Address of the branch instruction.
        from: u64,
        /// Process, or [`UNKNOWN`](crate::UNKNOWN).
        process: u32,
        /// Thread, or [`UNKNOWN`](crate::UNKNOWN).
        thread: u32,
        /// Processor.
        processor: u32,
        /// Index of the event in the request that started the session.
        event: u32,
        /// Core clock cycles since the branch before it, at most 65,535; 0 if the processor does not report them.
        cycles: u16,
        /// Whether the processor predicted it.
        prediction: Prediction,
        /// Its type.
        branch_type: BranchType,
        /// Kind.
        kind: BranchKind,
        /// Mode, by the half of the address space in which `from` is.
        mode: Mode,
        /// Address of the target.
        to: u64,
    }

    /// What the instruction of a precise sample did to memory. It has the time, the process, the thread, the processor
    /// and the event of the sample.
    AccessRecord {
        /// Time at which the record was fetched, in units of the clock.
        time: u64,
        /// Linear address of the data.
        address: u64,
        /// Process, or [`UNKNOWN`](crate::UNKNOWN).
        process: u32,
        /// Thread, or [`UNKNOWN`](crate::UNKNOWN).
        thread: u32,
        /// Processor.
        processor: u32,
        /// Index of the event in the request that started the session.
        event: u32,
        /// Core clock cycles from the dispatch of the access until it had its data; 0 if the processor does not say.
        latency: u32,
        /// Kind.
        kind: AccessKind,
        /// Low bits of the number of the sample: the access belongs to no other one, even if its sample was lost.
        number: u16,
        /// Where the data came from, as the processor encodes it.
        source: u32,
        /// Core clock cycles from the dispatch of the instruction until it retired; 65,535 also for more, 0 if the
        /// processor does not say.
        instruction_latency: u16,
        /// How `source` is encoded.
        encoding: AccessEncoding,
        /// What the instruction did.
        operation: AccessOperation,
    }

    /// Samples were lost before this record.
    LostRecord {
        /// Time of the report, in units of the clock.
        time: u64,
        /// Number of lost samples.
        count: u64,
        /// Unused.
        reserved: [Zero; 8],
        /// Processor.
        processor: u32,
        /// Index of the event of the lost samples.
        event: u32,
        /// Unused.
        reserved2: [Zero; 4],
        /// Kind.
        kind: LostKind,
        /// Unused.
        reserved3: [Zero; 10],
    }

    /// Sampling stopped on a processor; the kind says why, and until when.
    StopRecord {
        /// Time, in units of the clock.
        time: u64,
        /// Unused.
        reserved: [Zero; 16],
        /// Processor.
        processor: u32,
        /// [`ALL_EVENTS`](crate::ALL_EVENTS).
        event: u32,
        /// Unused.
        reserved2: [Zero; 4],
        /// Kind.
        kind: StopKind,
        /// Unused.
        reserved3: [Zero; 10],
    }

    /// Sampling goes on after a pause on a processor.
    PauseRecord {
        /// Time of the end of the pause, in units of the clock.
        time: u64,
        /// Duration of the pause, in units of the clock.
        duration: u64,
        /// Unused.
        reserved: [Zero; 8],
        /// Processor.
        processor: u32,
        /// [`ALL_EVENTS`](crate::ALL_EVENTS).
        event: u32,
        /// Unused.
        reserved2: [Zero; 4],
        /// Kind.
        kind: PauseKind,
        /// Unused.
        reserved3: [Zero; 10],
    }

    /// A thread did not run: a record in a recording, from context switches. The driver writes none.
    OffCpuRecord {
        /// When the state ended, in units of the clock.
        time: u64,
        /// Where the thread ran on: the innermost frame of its stack; 0 if that is unknown.
        ip: u64,
        /// Its process, or [`UNKNOWN`](crate::UNKNOWN).
        process: u32,
        /// The thread.
        thread: u32,
        /// The processor on which it ran on; of a thread that waited and was made ready, the one that it left.
        processor: u32,
        /// Index of the event among those of the recording.
        event: u32,
        /// The thread that made it ready; 0 if none did, or it is unknown.
        waker: u32,
        /// Kind.
        kind: OffCpuKind,
        /// Why it did not run.
        state: OffCpuState,
        /// What it waited for: a number of KWAIT_REASON.
        reason: u8,
        /// How long it was in the state, in nanoseconds.
        duration: u64,
    }
}

impl LostRecord {
    /// Creates the record.
    #[must_use]
    pub const fn new(time: u64, processor: u32, event: u32, count: u64) -> Self {
        let (reserved, reserved2, reserved3) = ([Zero::Zero; 8], [Zero::Zero; 4], [Zero::Zero; 10]);
        Self { time, count, reserved, processor, event, reserved2, kind: LostKind::Lost, reserved3 }
    }
}

impl StopRecord {
    /// Creates the record for all events that are sampled on the processor.
    #[must_use]
    pub const fn new(kind: StopKind, time: u64, processor: u32) -> Self {
        let (reserved, reserved2, reserved3) = ([Zero::Zero; 16], [Zero::Zero; 4], [Zero::Zero; 10]);
        Self { time, reserved, processor, event: crate::ALL_EVENTS, reserved2, kind, reserved3 }
    }
}

impl PauseRecord {
    /// Creates the record for all events that are sampled on the processor.
    #[must_use]
    pub const fn new(kind: PauseKind, time: u64, processor: u32, duration: u64) -> Self {
        let (reserved, reserved2, reserved3) = ([Zero::Zero; 8], [Zero::Zero; 4], [Zero::Zero; 10]);
        Self { time, duration, reserved, processor, event: crate::ALL_EVENTS, reserved2, kind, reserved3 }
    }
}
