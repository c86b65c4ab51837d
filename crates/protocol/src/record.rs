//! Records of a ring: samples, and what happened to the sampling itself.
//!
//! A [`SampleRecord`] is a record as it is transferred and stored: 48 bytes of any content. [`SampleRecord::parse`]
//! makes a [`Record`] of it, which has the fields of its kind. The fields of each layout, by offset:
//!
//! | kind | 8 | 16 | 20 | 32 | 38 | 40 |
//! |---|---|---|---|---|---|---|
//! | 0 sample | `ip` | `process` | `thread` | `interval` | `mode` | `pebs_sequence`, and at 44 `cookie` |
//! | 5 precise, 6 precise next | `ip` | `process` | `thread` | `interval` | `mode` | `number` |
//! | 7 branch, 12 last branch | `from` | `process` | `thread` | `cycles`, `prediction`, `branch_type` | `mode` | `to` |
//! | 13 access | `address` | `process` | `thread` | `latency` | `number` | `source` |
//! | 1 lost | `count` | | | | | |
//! | 3 resumed, 4 slept, 10 reconnected | `duration` | | | | | |
//! | 2 throttled, 8 silenced, 9 disconnected | | | | | | |
//! | 11 off the CPU | `ip` | `process` | `thread` | `waker` | `state`, and at 39 `reason` | `duration` |
//!
//! All have `time` at 0, `processor` at 24, `event` at 28 and `kind` at 36. Fields that a kind does not have are zero.

mod layout;

pub use layout::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, BranchKind, BranchRecord, BranchType, CounterKind,
    CounterSample, LostKind, LostRecord, Mode, OffCpuKind, OffCpuRecord, OffCpuState, PauseKind, PauseRecord,
    PreciseKind, PreciseSample, Prediction, StopKind, StopRecord, Zero,
};

use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Kind of a [`SampleRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum RecordKind {
    /// A [`CounterSample`].
    Sample = 0,
    /// A [`LostRecord`].
    Lost = 1,
    /// A [`StopRecord`]: the interrupts of a processor used up their budget.
    Throttled = 2,
    /// A [`PauseRecord`]: sampling resumed after a processor was throttled.
    Resumed = 3,
    /// A [`PauseRecord`]: the machine slept.
    Slept = 4,
    /// A [`PreciseSample`] of the instruction that caused the event: no skid.
    Precise = 5,
    /// A [`PreciseSample`] of a processor that records the address of the next instruction.
    PreciseNext = 6,
    /// A [`BranchRecord`] of the Branch Trace Store.
    Branch = 7,
    /// A [`StopRecord`]: too many consecutive interrupts arrived without an overflowed counter.
    Silenced = 8,
    /// A [`StopRecord`]: the LVT entry through which the counters of a processor interrupt is not the HAL's any more.
    Disconnected = 9,
    /// A [`PauseRecord`]: the entry is the HAL's again.
    Reconnected = 10,
    /// An [`OffCpuRecord`]: only in recordings.
    OffCpu = 11,
    /// A [`BranchRecord`] of one of the last branches before a sample, which it follows: the newest first.
    LastBranch = 12,
    /// An [`AccessRecord`]: what the instruction of a precise sample, which it follows, did to memory.
    Access = 13,
}

impl RecordKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 14] = [
        Self::Sample,
        Self::Lost,
        Self::Throttled,
        Self::Resumed,
        Self::Slept,
        Self::Precise,
        Self::PreciseNext,
        Self::Branch,
        Self::Silenced,
        Self::Disconnected,
        Self::Reconnected,
        Self::OffCpu,
        Self::LastBranch,
        Self::Access,
    ];

    /// Returns whether the record is a sample of an event that the processor counts.
    #[must_use]
    pub const fn is_sample(self) -> bool {
        matches!(self, Self::Sample | Self::Precise | Self::PreciseNext | Self::Branch)
    }

    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

/// A record as it is transferred: an element of the ring, of the reply to [`Code::Samples`](crate::Code::Samples) and
/// of a recording.
///
/// Any 48 bytes are a value, because another program may have written them. The fields that every kind has are read
/// without a check; [`parse`](Self::parse) checks and returns the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SampleRecord {
    time: u64,
    // The types of the fields below are those of the largest layouts. A conversion then moves each field as a whole.
    by_kind: u64,
    by_kind_ids: [u32; 2],
    processor: u32,
    event: u32,
    by_kind_number: u32,
    kind: u16,
    by_kind_mode: u16,
    by_kind_last: u64,
}

impl SampleRecord {
    /// Returns the time, in units of the clock; [`Code::Start`](crate::Code::Start) returned its frequency.
    #[must_use]
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Returns the index of the event, or [`ALL_EVENTS`](crate::ALL_EVENTS) for all events sampled on the processor.
    #[must_use]
    pub const fn event(&self) -> u32 {
        self.event
    }

    /// Returns the record with another index of its event.
    #[must_use]
    #[inline]
    pub const fn with_event(self, event: u32) -> Self {
        Self { event, ..self }
    }

    /// Returns the kind, or `None` if this version of the protocol has no such kind.
    #[must_use]
    pub fn kind(&self) -> Option<RecordKind> {
        RecordKind::from_number(self.kind)
    }

    /// Returns the record by its kind.
    ///
    /// # Errors
    /// The kind is unknown, or a field has a value that the kind does not allow.
    pub fn parse(&self) -> Result<Record, RecordError> {
        let kind = self.kind().ok_or(RecordError::UnknownKind(self.kind))?;
        let record = match kind {
            RecordKind::Sample => self.read().map(Record::Sample),
            RecordKind::Precise | RecordKind::PreciseNext => self.read().map(Record::Precise),
            RecordKind::Branch => self.read().map(Record::Branch),
            RecordKind::LastBranch => self.read().map(Record::LastBranch),
            RecordKind::Access => self.read().map(Record::Access),
            RecordKind::Lost => self.read().map(Record::Lost),
            RecordKind::Throttled | RecordKind::Silenced | RecordKind::Disconnected => self.read().map(Record::Stop),
            RecordKind::Resumed | RecordKind::Slept | RecordKind::Reconnected => self.read().map(Record::Pause),
            RecordKind::OffCpu => self.read().map(Record::OffCpu),
        };
        record.ok_or(RecordError::Damaged(kind))
    }

    fn read<T: TryFromBytes>(&self) -> Option<T> {
        T::try_read_from_bytes(self.as_bytes()).ok()
    }
}

/// A record by its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// A sample of a counter that overflowed.
    Sample(CounterSample),
    /// A sample that the processor recorded by PEBS.
    Precise(PreciseSample),
    /// A branch that the processor recorded by BTS.
    Branch(BranchRecord),
    /// One of the last branches before the sample that precedes it.
    LastBranch(BranchRecord),
    /// The access of memory of the precise sample that precedes it.
    Access(AccessRecord),
    /// Samples were lost.
    Lost(LostRecord),
    /// Sampling stopped on a processor.
    Stop(StopRecord),
    /// Sampling goes on after a pause.
    Pause(PauseRecord),
    /// A thread did not run.
    OffCpu(OffCpuRecord),
}

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// This version of the protocol has no such kind.
    #[error("record kind {0} is unknown")]
    UnknownKind(u16),
    /// A field has a value that the kind does not allow.
    #[error("a field of a record of kind {0:?} has an invalid value")]
    Damaged(RecordKind),
}

/// What all kinds of samples have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnySample {
    /// Time, in units of the clock.
    pub time: u64,
    /// Instruction pointer; for a branch its source.
    pub ip: u64,
    /// Number of events that the sample represents.
    pub events: u64,
    /// Process, or [`UNKNOWN`](crate::UNKNOWN); 0 is the idle process.
    pub process: u32,
    /// Thread, or [`UNKNOWN`](crate::UNKNOWN).
    pub thread: u32,
    /// Processor.
    pub processor: u32,
    /// Index of the event in the request that started the session.
    pub event: u32,
    /// Mode of the instruction.
    pub mode: Mode,
}

/// Returns whether an address belongs to the kernel: it is in the upper half.
#[must_use]
pub const fn is_kernel_address(address: u64) -> bool {
    address >> (u64::BITS - 1) != 0
}

impl Record {
    /// Returns the sample, if the record is one.
    #[must_use]
    pub fn sample(&self) -> Option<AnySample> {
        match *self {
            Self::Sample(sample) => {
                let CounterSample { time, ip, process, thread, processor, event, interval, mode, .. } = sample;
                Some(AnySample { time, ip, events: interval.into(), process, thread, processor, event, mode })
            }
            Self::Precise(sample) => {
                let PreciseSample { time, ip, process, thread, processor, event, interval, mode, .. } = sample;
                Some(AnySample { time, ip, events: interval.into(), process, thread, processor, event, mode })
            }
            Self::Branch(branch) => {
                let BranchRecord { time, from, process, thread, processor, event, mode, .. } = branch;
                Some(AnySample { time, ip: from, events: 1, process, thread, processor, event, mode })
            }
            Self::OffCpu(record) => {
                let OffCpuRecord { time, ip, process, thread, processor, event, duration, .. } = record;
                let mode = if ip == 0 || is_kernel_address(ip) { Mode::Kernel } else { Mode::User };
                Some(AnySample { time, ip, events: duration, process, thread, processor, event, mode })
            }
            Self::LastBranch(_) | Self::Access(_) | Self::Lost(_) | Self::Stop(_) | Self::Pause(_) => None,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Sample(_) => RecordKind::Sample,
            Self::Precise(PreciseSample { kind: PreciseKind::Precise, .. }) => RecordKind::Precise,
            Self::Precise(PreciseSample { kind: PreciseKind::PreciseNext, .. }) => RecordKind::PreciseNext,
            Self::Branch(_) => RecordKind::Branch,
            Self::LastBranch(_) => RecordKind::LastBranch,
            Self::Access(_) => RecordKind::Access,
            Self::Lost(_) => RecordKind::Lost,
            Self::Stop(StopRecord { kind: StopKind::Throttled, .. }) => RecordKind::Throttled,
            Self::Stop(StopRecord { kind: StopKind::Silenced, .. }) => RecordKind::Silenced,
            Self::Stop(StopRecord { kind: StopKind::Disconnected, .. }) => RecordKind::Disconnected,
            Self::Pause(PauseRecord { kind: PauseKind::Resumed, .. }) => RecordKind::Resumed,
            Self::Pause(PauseRecord { kind: PauseKind::Slept, .. }) => RecordKind::Slept,
            Self::Pause(PauseRecord { kind: PauseKind::Reconnected, .. }) => RecordKind::Reconnected,
            Self::OffCpu(_) => RecordKind::OffCpu,
        }
    }

    /// Returns the time, in units of the clock.
    #[must_use]
    pub fn time(&self) -> u64 {
        SampleRecord::from(*self).time
    }

    /// Returns the processor.
    #[must_use]
    pub fn processor(&self) -> u32 {
        SampleRecord::from(*self).processor
    }

    /// Returns the index of the event, or [`ALL_EVENTS`](crate::ALL_EVENTS) for all events sampled on the processor.
    #[must_use]
    pub fn event(&self) -> u32 {
        SampleRecord::from(*self).event
    }
}

impl From<Record> for SampleRecord {
    fn from(record: Record) -> Self {
        match record {
            Record::Sample(sample) => sample.into(),
            Record::Precise(sample) => sample.into(),
            Record::Branch(branch) | Record::LastBranch(branch) => branch.into(),
            Record::Access(access) => access.into(),
            Record::Lost(lost) => lost.into(),
            Record::Stop(stop) => stop.into(),
            Record::Pause(pause) => pause.into(),
            Record::OffCpu(record) => record.into(),
        }
    }
}
