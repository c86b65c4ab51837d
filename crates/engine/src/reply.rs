//! Replies: a header, then as many whole records as fit into the client's buffer.

use pmu::debug_store::MissingFeature;
use pmu::hal::MAX_RAW;
use pmu::ibs::MissingFeature as MissingIbs;
use pmu::last_branches::MissingFeature as MissingLastBranches;
use pmu::{HalError, ProcessorIndex};
use protocol::status::{
    STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED, STATUS_SUCCESS,
};
use protocol::{ErrorCode, NtStatus, ReplyHeader};
use zerocopy::{FromZeros, Immutable, IntoBytes};

/// A refusal of a request, with the details for the header of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// NTSTATUS.
    pub status: NtStatus,
    cause: ErrorCode,
    source: u64,
    processor: u32,
    detail: [u64; 2],
}

impl Refusal {
    pub const fn new(status: NtStatus, cause: ErrorCode) -> Self {
        Self { status, cause, source: 0, processor: 0, detail: [0; 2] }
    }

    pub const fn source(self, source: u64) -> Self {
        Self { source, ..self }
    }

    pub const fn processor(self, processor: ProcessorIndex) -> Self {
        Self { processor: processor.number(), ..self }
    }

    pub const fn detail(self, first: u64, second: u64) -> Self {
        Self { detail: [first, second], ..self }
    }

    /// Returns whether the session would not be refused if others had not taken what it needs.
    pub const fn is_for_want(&self) -> bool {
        matches!(
            self.cause,
            ErrorCode::NoFreeCounter
                | ErrorCode::OtherThread
                | ErrorCode::ExtraRegisterTaken
                | ErrorCode::DebugStoreTaken
                | ErrorCode::LastBranchesTaken
                | ErrorCode::IbsTaken
                | ErrorCode::TooManyRawEvents
                | ErrorCode::TooManySessions
                | ErrorCode::RingsTooLarge
                | ErrorCode::NoCommonCounter
                | ErrorCode::ThreadsConflict
        )
    }

    /// Marks the refusal as specific to this processor: others support the request.
    pub const fn on_processor_alone(self, processor: ProcessorIndex) -> Self {
        let [first, _] = self.detail;
        Self { processor: processor.number(), detail: [first, 1], ..self }
    }

    pub fn header(self) -> ReplyHeader {
        let Self { status, cause, source, processor, detail } = self;
        ReplyHeader {
            status: status.number(),
            cause: cause as u32,
            source,
            processor,
            detail,
            ..ReplyHeader::new_zeroed()
        }
    }
}

/// Returns the refusal for a value that is out of range.
pub const fn invalid(cause: ErrorCode, detail: u64) -> Refusal {
    Refusal::new(STATUS_INVALID_PARAMETER, cause).detail(detail, 0)
}

/// Returns the refusal for a Debug Store feature that a processor lacks.
pub fn lacks(missing_feature: MissingFeature, cause: ErrorCode) -> Refusal {
    let (number, more) = missing_feature.numbers();
    Refusal::new(STATUS_NOT_SUPPORTED, cause).detail(number.into(), more.into())
}

/// Returns the refusal for last branches that a processor does not record.
pub fn no_last_branches(missing_feature: MissingLastBranches) -> Refusal {
    Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NoLastBranches).detail(missing_feature as u64, 0)
}

/// Returns the refusal for ops that a processor does not sample.
pub fn no_ibs(missing_feature: MissingIbs) -> Refusal {
    Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NoIbs).detail(missing_feature as u64, 0)
}

impl From<HalError> for Refusal {
    fn from(error: HalError) -> Self {
        match error {
            HalError::UnknownSource(source) => Self::new(STATUS_NOT_FOUND, ErrorCode::UnknownSource).source(source.0),
            HalError::Unsupported(source, support) => {
                Self::new(STATUS_NOT_SUPPORTED, ErrorCode::UnsupportedSource).source(source.0).detail(support as u64, 0)
            }
            HalError::NoInterrupt(source) => {
                Self::new(STATUS_NOT_SUPPORTED, ErrorCode::NotSampled).source(source.0).detail(1, 0)
            }
            HalError::NoInterval(source) => Self::new(STATUS_NOT_SUPPORTED, ErrorCode::NoInterval).source(source.0),
            HalError::TooManyRaw(source) => Self::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::TooManyRawEvents)
                .source(source.0)
                .detail(MAX_RAW.into(), 0),
            HalError::NoMemory => Self::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoMemory),
            // The engine makes no call that fails with these errors.
            HalError::NoCounter(_)
            | HalError::HandlerTaken
            | HalError::InvalidClass(_)
            | HalError::LengthMismatch { .. } => Self::new(STATUS_NOT_SUPPORTED, ErrorCode::None),
        }
    }
}

/// A reply under construction: records first, the header last.
#[derive(Debug)]
pub struct Reply<'a> {
    output: &'a mut [u8],
    used: usize,
    count: u32,
    total: u32,
    detail: [u64; 2],
}

impl<'a> Reply<'a> {
    /// Creates a reply in the output buffer, which must have room for a header.
    pub fn over(output: &'a mut [u8]) -> Self {
        Self { output, used: size_of::<ReplyHeader>(), count: 0, total: 0, detail: [0; 2] }
    }

    /// Returns how many more records fit.
    pub fn room<T>(&self) -> usize {
        self.output.len().saturating_sub(self.used) / size_of::<T>().max(1)
    }

    /// Appends a record. If it does not fit, it is only counted.
    pub fn push(&mut self, record: &(impl IntoBytes + Immutable)) {
        self.total += 1;
        let bytes = record.as_bytes();
        let end = self.used + bytes.len();
        // All records of a reply have the same size: if one does not fit, no later one does.
        if let Some(room) = self.output.get_mut(self.used..end) {
            room.copy_from_slice(bytes);
            self.used = end;
            self.count += 1;
        }
    }

    /// Removes all records.
    pub const fn clear(&mut self) {
        (self.used, self.count, self.total) = (size_of::<ReplyHeader>(), 0, 0);
    }

    pub const fn set_detail(&mut self, first: u64, second: u64) {
        self.detail = [first, second];
    }

    /// Writes the header; returns the length of the reply in bytes.
    pub fn finish(&mut self, outcome: Result<(), Refusal>) -> usize {
        let header = match outcome {
            Ok(()) => ReplyHeader { status: STATUS_SUCCESS.number(), detail: self.detail, ..ReplyHeader::new_zeroed() },
            Err(refusal) => refusal.header(),
        };
        let header = ReplyHeader { count: self.count, total: self.total, ..header };
        write(self.output, &header, self.used)
    }
}

/// Writes a reply of fixed layout; returns `used`, or 0 if it does not fit.
pub fn write(output: &mut [u8], answer: &(impl IntoBytes + Immutable), used: usize) -> usize {
    match answer.write_to_prefix(output) {
        Ok(()) => used,
        Err(_) => 0,
    }
}
