//! What `client.exe` and `halprof.sys` say to each other: request codes, sizes, layouts, causes.
//!
//! Every request goes through `DeviceIoControl`, with `METHOD_BUFFERED` but for samples ([`Method`]). A request that is not in
//! [`REQUESTS`], or whose buffers do not have the sizes told there, fails with an NTSTATUS and changes
//! nothing. Every other request is answered: the output begins with a [`ReplyHeader`] that carries the
//! NTSTATUS of the operation and its [`ErrorCode`], so that a refusal travels with its reason.
//!
//! All integers are little-endian; every layout is a multiple of 8 bytes and has no hidden padding.

#![no_std]
#![forbid(unsafe_code)]

mod error_code;
mod layout;
mod request;
mod sample;
pub mod status;

pub use error_code::{ErrorCode, MissingFeature, Support};
pub use layout::{
    AreaRecord, AreaRequest, BRANCH_BUFFER, CountRecord, DEFAULT_BUDGET, EventRequest, Hello, HelloReply, InfoReply,
    IntervalRequest, MAX_BATCH, MAX_BUDGET, MAX_FREQUENCY, NAME_LENGTH, PROCESSOR_WORDS, ProcessorSet, RING,
    ReplyHeader, Sample, SamplesRequest, SessionEvent, SessionRequest, SourceRecord, SourceRequest, StartHeader,
    StopRequest, area, flags, modes,
};
pub use request::{Access, Code, Method, REQUESTS, RequestSpec, Size, find};
pub use sample::SampleKind;

/// The version both sides exchange in [`Hello`]; it changes with any layout, code or meaning.
pub const PROTOCOL_VERSION: u32 = 6;

/// Name of the device object in the kernel's name space.
pub const DEVICE_NAME: &str = "\\Device\\halprof";

/// Symbolic link that gives the device its Win32 name.
pub const LINK_NAME: &str = "\\DosDevices\\halprof";

/// What `CreateFile` opens.
pub const WIN32_NAME: &str = "\\\\.\\halprof";

/// How many events one [`Code::Start`] request may carry.
pub const MAX_EVENTS: usize = 64;

/// In a [`StopRequest`]: every source of the session.
pub const ALL_SOURCES: u32 = u32::MAX;

/// In a [`CountRecord`]: a timer serves the source, not a counter.
pub const TIMER: u32 = u32::MAX;

/// As a source: every branch that a processor takes, by its Branch Trace Store. It takes no counter.
pub const BRANCHES: u32 = 0x7FFF_FFFF;

/// In a [`Sample`]: the process, or the thread, is not known.
pub const UNKNOWN: u32 = u32::MAX;

/// As a session number: all detached sessions.
pub const DETACHED: u64 = 0;
