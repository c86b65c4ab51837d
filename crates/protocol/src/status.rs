//! NTSTATUS values of the replies (source: ntstatus.h), in [`ReplyHeader::status`](crate::ReplyHeader).

/// The operation succeeded.
pub const STATUS_SUCCESS: u32 = 0;
/// The resource is in use by another client or program.
pub const STATUS_DEVICE_BUSY: u32 = 0x8000_0011;
/// A value in the request is out of range.
pub const STATUS_INVALID_PARAMETER: u32 = 0xC000_000D;
/// The device has no request with this code.
pub const STATUS_INVALID_DEVICE_REQUEST: u32 = 0xC000_0010;
/// The output buffer is shorter than the smallest reply.
pub const STATUS_BUFFER_TOO_SMALL: u32 = 0xC000_0023;
/// Client and driver have different protocol versions.
pub const STATUS_REVISION_MISMATCH: u32 = 0xC000_0059;
/// The caller lacks SeSystemProfilePrivilege.
pub const STATUS_PRIVILEGE_NOT_HELD: u32 = 0xC000_0061;
/// No counter is free, or memory is low.
pub const STATUS_INSUFFICIENT_RESOURCES: u32 = 0xC000_009A;
/// The source exists but is unsupported on this processor.
pub const STATUS_NOT_SUPPORTED: u32 = 0xC000_00BB;
/// [`Code::Hello`](crate::Code::Hello) has not been received yet.
pub const STATUS_INVALID_DEVICE_STATE: u32 = 0xC000_0184;
/// The input buffer does not have the size of this request.
pub const STATUS_INFO_LENGTH_MISMATCH: u32 = 0xC000_0004;
/// No such source, session or processor.
pub const STATUS_NOT_FOUND: u32 = 0xC000_0225;
/// The object to allocate already exists.
pub const STATUS_ADDRESS_ALREADY_EXISTS: u32 = 0xC000_0018;
/// The object to free does not exist.
pub const STATUS_MEMORY_NOT_ALLOCATED: u32 = 0xC000_00A0;
/// The object to free is still in use by another program.
pub const STATUS_RETRY: u32 = 0xC000_022D;
/// The machine sleeps.
pub const STATUS_DEVICE_NOT_READY: u32 = 0xC000_00A3;
/// The kernel does not know the information class.
pub const STATUS_INVALID_INFO_CLASS: u32 = 0xC000_0003;
/// The kernel does not have the function.
pub const STATUS_NOT_IMPLEMENTED: u32 = 0xC000_0002;
