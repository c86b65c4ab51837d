//! The protocol between `client.exe` and `halprof.sys`: request codes, sizes, layouts, error codes.
//!
//! Every request goes through `DeviceIoControl`, with `METHOD_BUFFERED` except for samples ([`Method`]). A request that
//! is not in [`REQUESTS`], or that has buffers of other sizes than those listed there, fails with an NTSTATUS and
//! changes nothing. Every other request is answered: the output begins with a [`ReplyHeader`] with the NTSTATUS of the
//! operation and its [`ErrorCode`], which gives the reason of a refusal.
//!
//! All integers are little-endian; every layout is a multiple of 8 bytes and has no hidden padding.

#![no_std]
#![forbid(unsafe_code)]

mod bits;
mod driver_identity;
mod error_code;
mod layout;
mod processor_set;
mod read_by;
mod record;
mod request;
pub mod status;
pub mod trace;

pub use bits::{area, event_flags, flags, group_flags, group_state, last_branches, modes};
pub use driver_identity::{DriverIdentity, IDENTITY_SECTION};
pub use error_code::{ErrorCode, ExtraInUse, RegisterFault, RegisterInUse};
pub use layout::{
    AreaRecord, AreaRequest, BRANCH_BUFFER, CoreTypeRecord, CountRecord, DEFAULT_BUDGET, Event, EventRequest,
    GroupReply, GroupRequest, HalSourceRecord, Hello, HelloReply, InfoReply, IntervalRequest, MAX_BATCH, MAX_BUDGET,
    MAX_FREQUENCY, MAX_GROUP, MAX_RING_BYTES, NAME_LENGTH, PROCESSOR_WORDS, ProcessorSet, RING, ROUND, RegisterRecord,
    RegistersRequest, ReplyHeader, SamplesRequest, SessionEvent, SessionRequest, SourceRecord, SourceRequest,
    StartHeader, StopRequest,
};
pub use read_by::ReadBy;
pub use record::{
    AccessEncoding, AccessKind, AccessOperation, AccessRecord, AnySample, BranchKind, BranchRecord, BranchType,
    CounterKind, CounterSample, LostKind, LostRecord, Mode, OffCpuKind, OffCpuRecord, OffCpuState, PauseKind,
    PauseRecord, PreciseKind, PreciseSample, Prediction, Record, RecordError, RecordKind, SampleRecord, StopKind,
    StopRecord, Zero, is_kernel_address,
};
pub use request::{Access, Code, Method, REQUESTS, RequestSpec, Size, find};
pub use status::NtStatus;

/// The version that both sides exchange in [`Hello`]; it changes with any layout, code or meaning.
pub const PROTOCOL_VERSION: u32 = 21;

/// Name of the device object in the kernel's namespace.
pub const DEVICE_NAME: &str = "\\Device\\halprof";

/// Symbolic link that gives the device its Win32 name.
pub const LINK_NAME: &str = "\\DosDevices\\halprof";

/// Name that programs pass to `CreateFile`.
pub const WIN32_NAME: &str = "\\\\.\\halprof";

/// Maximum number of events in a [`Code::Start`] request.
pub const MAX_EVENTS: usize = 64;

/// In a [`StopRequest`]: every source of the session.
pub const ALL_SOURCES: u64 = u64::MAX;

/// As the index of the event in a record of a ring: every event that is sampled on the processor.
pub const ALL_EVENTS: u32 = u32::MAX;

/// In a [`CountRecord`]: a timer serves the source, not a counter.
pub const TIMER: u32 = u32::MAX;

/// In a [`CountRecord`]: the Branch Trace Store of the processor serves the event, not a counter.
pub const BRANCH_STORE: u32 = 0x7FFF_FFFF;

/// As a source: every branch that a processor takes, recorded by its Branch Trace Store. It uses no counter.
pub const BRANCHES: u64 = 0x7FFF_FFFF;

/// In an [`AnySample`]: the process or the thread is unknown.
pub const UNKNOWN: u32 = u32::MAX;

/// As a session number: all detached sessions.
pub const DETACHED: u64 = 0;
