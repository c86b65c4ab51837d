//! The table of requests. The driver checks each request against it before dispatch; the client takes its codes from
//! it.

use crate::MAX_EVENTS;
use crate::layout::{
    AreaRequest, EventRequest, GroupReply, GroupRequest, Hello, HelloReply, InfoReply, IntervalRequest,
    RegistersRequest, ReplyHeader, SamplesRequest, SessionRequest, SourceRecord, SourceRequest, StartHeader,
    StopRequest,
};
use crate::record::SampleRecord;

/// Device type of the codes: vendors use 0x8000 and above (WDK, "Specifying Device Types").
const DEVICE_TYPE: u32 = 0x8A9F;

/// First function number for vendors (WDK, "Defining I/O Control Codes").
const FIRST_FUNCTION: u32 = 0x800;

/// The access that a handle must have been opened with. The I/O manager checks it before it calls the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// `FILE_READ_DATA`: the request only reads state.
    Read,
    /// `FILE_READ_DATA | FILE_WRITE_DATA`: the request changes state.
    ReadWrite,
}

/// How the I/O manager passes buffers to the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Method {
    /// `METHOD_BUFFERED`: one system buffer for input and output.
    Buffered = 0,
    /// `METHOD_OUT_DIRECT`: a system buffer for the input, the client's locked pages for the output.
    OutDirect = 2,
}

/// Returns `CTL_CODE(DEVICE_TYPE, FIRST_FUNCTION + function, METHOD_BUFFERED, access)` of the WDK.
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
    /// [`Hello`] in, [`HelloReply`] out. Must be the first request of a handle: others are served only after the
    /// versions agree. Another one with a version that does not agree is refused, and changes nothing.
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
    /// `detail[0]` of the reply is the number of the session, `detail[1]` the frequency of
    /// [`SampleRecord::time`] in units per second. On [`crate::ErrorCode::NoFreeCounter`] the records
    /// are the [`crate::SessionEvent`]s that use the counters.
    Start = control_code(5, Access::ReadWrite),
    /// [`StopRequest`] in, [`ReplyHeader`] and the final [`crate::CountRecord`]s out: HalStopProfileInterrupt. Of a
    /// session that has yielded, they are those of the moment when it did.
    Stop = control_code(6, Access::ReadWrite),
    /// [`SessionRequest`] in, [`ReplyHeader`] and [`crate::CountRecord`]s out. `detail[0]` is 1 if the session has
    /// [yielded](crate::flags::YIELDS): the counts are final, and it remains to be stopped.
    Read = control_code(7, Access::Read),
    /// Nothing in, [`ReplyHeader`] and [`crate::SessionEvent`]s out: the sessions and the counters that they use.
    ListSessions = control_code(8, Access::Read),
    /// [`SamplesRequest`] in, [`ReplyHeader`] and [`SampleRecord`]s out. May wait, and can be cancelled
    /// meanwhile. `detail[0]` is 1 if the session has been stopped and these are its last samples.
    Samples = code_with(Method::OutDirect, 9, Access::Read),
    /// [`AreaRequest`] in, [`ReplyHeader`] and [`AreaRecord`](crate::AreaRecord)s out:
    /// SystemProcessorProfileControlArea, on one processor or on several, all or none.
    /// [`ControlArea`](crate::ErrorCode::ControlArea) reports the first processor that failed.
    ControlArea = control_code(10, Access::ReadWrite),
    /// Nothing in, [`ReplyHeader`] and [`crate::CoreTypeRecord`]s out: the core types of a hybrid, none on other
    /// machines.
    ListCoreTypes = control_code(11, Access::Read),
    /// [`RegistersRequest`] in, [`ReplyHeader`] and [`RegisterRecord`](crate::RegisterRecord)s out: every register of a
    /// processor that a session can touch, each once, as it is. None is written.
    ReadRegisters = control_code(12, Access::Read),
    /// Nothing in, [`ReplyHeader`] and [`HalSourceRecord`](crate::HalSourceRecord)s out: HalProfileSourceInformation of
    /// the HAL of Windows, for each source of the driver.
    ListHalSources = control_code(13, Access::Read),
    /// [`GroupRequest`] in, [`GroupReply`] out: the counts of a session on the processor on which the request arrives.
    /// It interrupts no other processor, and takes no lock that other requests take.
    ReadGroup = control_code(14, Access::Read),
}

/// Valid lengths of a buffer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Exactly this length.
    Exactly(usize),
    /// A fixed head, then between 1 and `most` whole entries.
    Entries {
        /// Size of the head.
        head: usize,
        /// Size of an entry.
        entry: usize,
        /// Maximum number of entries.
        most: usize,
    },
    /// At least this length; the excess is left unchanged.
    AtLeast(usize),
}

impl Size {
    /// Returns whether a buffer of `length` bytes is valid.
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

/// An entry of [`REQUESTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSpec {
    /// The request.
    pub code: Code,
    /// Its name, for messages.
    pub name: &'static str,
    /// Access required of the handle; the code contains it too.
    pub access: Access,
    /// How the buffers are passed; the code contains it too.
    pub method: Method,
    /// Lengths of the input.
    pub input: Size,
    /// Lengths of the output.
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
const ONE_SAMPLE: Size = Size::AtLeast(size_of::<ReplyHeader>() + size_of::<SampleRecord>());
const EVENTS: Size =
    Size::Entries { head: size_of::<StartHeader>(), entry: size_of::<EventRequest>(), most: MAX_EVENTS };

/// All requests.
pub const REQUESTS: [RequestSpec; 15] = [
    request(Code::Hello, "Hello", Access::Read, of::<Hello>(), at_least::<HelloReply>()),
    request(Code::Info, "Info", Access::Read, NOTHING, at_least::<InfoReply>()),
    request(Code::ListSources, "ListSources", Access::Read, NOTHING, HEADER),
    request(Code::QuerySource, "QuerySource", Access::Read, of::<SourceRequest>(), ONE_SOURCE),
    request(Code::SetInterval, "SetInterval", Access::ReadWrite, of::<IntervalRequest>(), ONE_SOURCE),
    request(Code::Start, "Start", Access::ReadWrite, EVENTS, HEADER),
    request(Code::Stop, "Stop", Access::ReadWrite, of::<StopRequest>(), HEADER),
    request(Code::Read, "Read", Access::Read, of::<SessionRequest>(), HEADER),
    request(Code::ListSessions, "ListSessions", Access::Read, NOTHING, HEADER),
    request(Code::Samples, "Samples", Access::Read, of::<SamplesRequest>(), ONE_SAMPLE),
    request(Code::ControlArea, "ControlArea", Access::ReadWrite, of::<AreaRequest>(), HEADER),
    request(Code::ListCoreTypes, "ListCoreTypes", Access::Read, NOTHING, HEADER),
    request(Code::ReadRegisters, "ReadRegisters", Access::Read, of::<RegistersRequest>(), HEADER),
    request(Code::ListHalSources, "ListHalSources", Access::Read, NOTHING, HEADER),
    request(Code::ReadGroup, "ReadGroup", Access::Read, of::<GroupRequest>(), at_least::<GroupReply>()),
];

const fn of<T>() -> Size {
    Size::Exactly(size_of::<T>())
}

const fn at_least<T>() -> Size {
    Size::AtLeast(size_of::<T>())
}

/// Returns the table entry of a control code, or `None` if the driver has no such request.
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

    /// Lower numbers belong to Microsoft's own devices and drivers.
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
