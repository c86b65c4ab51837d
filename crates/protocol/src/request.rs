//! The one table of requests. The driver checks it before it dispatches; the client takes its codes from it.

use crate::MAX_EVENTS;
use crate::layout::{
    AreaRequest, EventRequest, Hello, HelloReply, InfoReply, IntervalRequest, ReplyHeader, Sample, SamplesRequest,
    SessionRequest, SourceRecord, SourceRequest, StartHeader, StopRequest,
};

/// Device type of the codes: 0x8000 and above are left to vendors (WDK, "Specifying Device Types").
const DEVICE_TYPE: u32 = 0x8A9F;

/// Function numbers of vendors begin here (WDK, "Defining I/O Control Codes").
const FIRST_FUNCTION: u32 = 0x800;

/// The access a handle must have been opened with; the I/O manager checks it before the driver is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `FILE_READ_DATA`: the request only asks.
    Read,
    /// `FILE_READ_DATA | FILE_WRITE_DATA`: the request changes something.
    ReadWrite,
}

/// How buffers travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Method {
    /// `METHOD_BUFFERED`: through one system buffer.
    Buffered = 0,
    /// `METHOD_OUT_DIRECT`: the input through a system buffer, the output straight into the client's pages.
    OutDirect = 2,
}

/// `CTL_CODE(DEVICE_TYPE, FIRST_FUNCTION + function, METHOD_BUFFERED, access)` of the WDK.
const fn control_code(function: u32, access: Access) -> u32 {
    code_with(Method::Buffered, function, access)
}

const fn code_with(method: Method, function: u32, access: Access) -> u32 {
    let access = match access {
        Access::Read => 1,
        Access::ReadWrite => 3,
    };
    DEVICE_TYPE << 16 | access << 14 | (FIRST_FUNCTION + function) << 2 | method as u32
}

/// I/O control codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// [`Hello`] in, [`HelloReply`] out. Comes first; nothing else is served before the versions agree.
    Hello = control_code(0, Access::Read),
    /// Nothing in, [`InfoReply`] out.
    Info = control_code(1, Access::Read),
    /// Nothing in, [`ReplyHeader`] and [`SourceRecord`]s out: HalQueryProfileSourceList.
    ListSources = control_code(2, Access::Read),
    /// [`SourceRequest`] in, [`ReplyHeader`] and one [`SourceRecord`] out: HalProfileSourceInformation.
    QuerySource = control_code(3, Access::Read),
    /// [`IntervalRequest`] in, [`ReplyHeader`] and one [`SourceRecord`] out: HalProfileSourceInterval.
    SetInterval = control_code(4, Access::ReadWrite),
    /// [`StartHeader`] and [`EventRequest`]s in, [`ReplyHeader`] out: HalStartProfileInterrupt, all or nothing.
    /// The answer carries the session's number in `detail[0]` and the units per second of
    /// [`Sample::time`](crate::Sample::time) in `detail[1]`, or on [`crate::ErrorCode::NoFreeCounter`] the
    /// [`crate::SessionEvent`]s of the counters as records.
    Start = control_code(5, Access::ReadWrite),
    /// [`StopRequest`] in, [`ReplyHeader`] and the final [`crate::CountRecord`]s out: HalStopProfileInterrupt.
    Stop = control_code(6, Access::ReadWrite),
    /// [`SessionRequest`] in, [`ReplyHeader`] and [`crate::CountRecord`]s out.
    Read = control_code(7, Access::Read),
    /// Nothing in, [`ReplyHeader`] and [`crate::SessionEvent`]s out: who holds which counters.
    ListSessions = control_code(8, Access::Read),
    /// [`SamplesRequest`] in, [`ReplyHeader`] and [`Sample`](crate::Sample)s out; can wait, and then be cancelled.
    /// `detail[0]` is 1 when the session has been stopped and these are its last.
    Samples = code_with(Method::OutDirect, 9, Access::Read),
    /// [`AreaRequest`] in, [`ReplyHeader`] and [`AreaRecord`](crate::AreaRecord)s out: SystemProcessorProfileControlArea, on
    /// one processor or on several, all or none; refused with [`ControlArea`](crate::ErrorCode::ControlArea) it tells of the
    /// first that refused.
    ControlArea = control_code(10, Access::ReadWrite),
}

/// How long a buffer must be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// No less and no more.
    Exactly(usize),
    /// A fixed head, then whole entries: at least one, at most `most`.
    Entries {
        /// Bytes before the first entry.
        head: usize,
        /// Bytes of an entry.
        entry: usize,
        /// The largest number of entries.
        most: usize,
    },
    /// At least this; what is longer is left as it was.
    AtLeast(usize),
}

impl Size {
    /// Whether a buffer of `length` bytes will do.
    #[must_use]
    pub const fn admits(self, length: usize) -> bool {
        match self {
            Self::Exactly(size) => length == size,
            Self::AtLeast(size) => length >= size,
            Self::Entries { head, entry, most } => {
                length > head && (length - head).is_multiple_of(entry) && (length - head) / entry <= most
            }
        }
    }
}

/// A row of [`REQUESTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSpec {
    /// The request.
    pub code: Code,
    /// Its name, for messages.
    pub name: &'static str,
    /// What it wants of the handle; stands in the code as well.
    pub access: Access,
    /// How its buffers travel; stands in the code as well.
    pub method: Method,
    /// Input.
    pub input: Size,
    /// Output.
    pub output: Size,
    /// Whether it is served before [`Code::Hello`] has agreed on the version.
    pub before_hello: bool,
}

const fn request(code: Code, name: &'static str, access: Access, input: Size, output: Size) -> RequestSpec {
    let method = if matches!(code, Code::Samples) { Method::OutDirect } else { Method::Buffered };
    RequestSpec { code, name, access, method, input, output, before_hello: matches!(code, Code::Hello) }
}

const NOTHING: Size = Size::Exactly(0);
const HEADER: Size = Size::AtLeast(size_of::<ReplyHeader>());
const ONE_SOURCE: Size = Size::AtLeast(size_of::<ReplyHeader>() + size_of::<SourceRecord>());
const ONE_SAMPLE: Size = Size::AtLeast(size_of::<ReplyHeader>() + size_of::<Sample>());
const EVENTS: Size =
    Size::Entries { head: size_of::<StartHeader>(), entry: size_of::<EventRequest>(), most: MAX_EVENTS };

/// Every request there is.
pub const REQUESTS: [RequestSpec; 11] = [
    request(Code::Hello, "Hello", Access::Read, of::<Hello>(), at_least::<HelloReply>()),
    request(Code::Info, "Info", Access::Read, NOTHING, at_least::<InfoReply>()),
    request(Code::ListSources, "ListSources", Access::Read, NOTHING, HEADER),
    request(Code::QuerySource, "QuerySource", Access::Read, of::<SourceRequest>(), ONE_SOURCE),
    request(Code::SetInterval, "SetInterval", Access::ReadWrite, of::<IntervalRequest>(), ONE_SOURCE),
    request(Code::Start, "Start", Access::ReadWrite, EVENTS, HEADER),
    request(Code::Stop, "Stop", Access::ReadWrite, of::<StopRequest>(), HEADER),
    request(Code::Read, "Read", Access::Read, of::<SessionRequest>(), HEADER),
    request(Code::ListSessions, "Holders", Access::Read, NOTHING, HEADER),
    request(Code::Samples, "Samples", Access::Read, of::<SamplesRequest>(), ONE_SAMPLE),
    request(Code::ControlArea, "ControlArea", Access::ReadWrite, of::<AreaRequest>(), HEADER),
];

const fn of<T>() -> Size {
    Size::Exactly(size_of::<T>())
}

const fn at_least<T>() -> Size {
    Size::AtLeast(size_of::<T>())
}

/// The row of a control code; `None` for one that is no request of ours.
#[must_use]
pub fn find(control_code: u32) -> Option<&'static RequestSpec> {
    REQUESTS.iter().find(|spec| spec.code as u32 == control_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_access_and_the_method_in_a_code_are_those_in_its_row() {
        for spec in REQUESTS {
            let bits = spec.code as u32 >> 14 & 3;
            let wanted = if spec.access == Access::Read { 1 } else { 3 };
            assert_eq!(bits, wanted, "{}", spec.name);
            assert_eq!(spec.code as u32 & 3, spec.method as u32, "{}", spec.name);
        }
    }

    /// Below are the types of Microsoft's own devices, and the functions of their drivers.
    #[test]
    fn every_code_is_of_a_type_and_a_function_that_are_left_to_vendors() {
        for spec in REQUESTS {
            let (device_type, function) = (spec.code as u32 >> 16, spec.code as u32 >> 2 & 0xFFF);
            assert!(device_type >= 0x8000 && function >= 0x800, "{}: {device_type:#x}, {function:#x}", spec.name);
        }
    }

    #[test]
    fn every_code_leads_to_its_own_row_and_no_other_code_to_any() {
        for spec in REQUESTS {
            assert_eq!(find(spec.code as u32).map(|row| row.code), Some(spec.code));
        }
        let rows = (0..=0xFFFF_u32).filter(|low| find(DEVICE_TYPE << 16 | low).is_some()).count();
        assert_eq!(rows, REQUESTS.len());
        assert_eq!(find(0), None);
    }

    #[test]
    fn entries_are_whole_and_bounded() {
        let size = Size::Entries { head: 10, entry: 4, most: 3 };
        let admitted: [usize; 3] = [14, 18, 22];
        for length in 0..40 {
            assert_eq!(size.admits(length), admitted.contains(&length), "{length}");
        }
    }
}
