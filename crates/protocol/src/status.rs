//! NTSTATUS values (source: ntstatus.h), among them those of the replies, in
//! [`ReplyHeader::status`](crate::ReplyHeader).

use core::fmt;

/// An NTSTATUS: the result of a function of the kernel, of the HAL or of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NtStatus(u32);

impl NtStatus {
    /// Creates the status with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number, as in the layouts of replies.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The kernel's functions return an NTSTATUS as a signed number.
impl From<i32> for NtStatus {
    fn from(number: i32) -> Self {
        Self(number.cast_unsigned())
    }
}

impl From<NtStatus> for i32 {
    fn from(status: NtStatus) -> Self {
        status.0.cast_signed()
    }
}

/// As a detail of a refusal.
impl From<NtStatus> for u64 {
    fn from(status: NtStatus) -> Self {
        status.0.into()
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}", self.0)
    }
}

impl fmt::Debug for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The operation succeeded.
pub const STATUS_SUCCESS: NtStatus = NtStatus::new(0);
/// The resource is in use by another client or program.
pub const STATUS_DEVICE_BUSY: NtStatus = NtStatus::new(0x8000_0011);
/// A value in the request is out of range.
pub const STATUS_INVALID_PARAMETER: NtStatus = NtStatus::new(0xC000_000D);
/// The device has no request with this code.
pub const STATUS_INVALID_DEVICE_REQUEST: NtStatus = NtStatus::new(0xC000_0010);
/// The output buffer is shorter than the smallest reply.
pub const STATUS_BUFFER_TOO_SMALL: NtStatus = NtStatus::new(0xC000_0023);
/// Client and driver have different protocol versions.
pub const STATUS_REVISION_MISMATCH: NtStatus = NtStatus::new(0xC000_0059);
/// The caller lacks SeSystemProfilePrivilege.
pub const STATUS_PRIVILEGE_NOT_HELD: NtStatus = NtStatus::new(0xC000_0061);
/// No counter is free, or memory is low.
pub const STATUS_INSUFFICIENT_RESOURCES: NtStatus = NtStatus::new(0xC000_009A);
/// The source exists but is unsupported on this processor.
pub const STATUS_NOT_SUPPORTED: NtStatus = NtStatus::new(0xC000_00BB);
/// [`Code::Hello`](crate::Code::Hello) has not been received yet.
pub const STATUS_INVALID_DEVICE_STATE: NtStatus = NtStatus::new(0xC000_0184);
/// The input buffer does not have the size of this request.
pub const STATUS_INFO_LENGTH_MISMATCH: NtStatus = NtStatus::new(0xC000_0004);
/// No such source, session or processor.
pub const STATUS_NOT_FOUND: NtStatus = NtStatus::new(0xC000_0225);
/// The object to allocate already exists.
pub const STATUS_ADDRESS_ALREADY_EXISTS: NtStatus = NtStatus::new(0xC000_0018);
/// The object to free does not exist.
pub const STATUS_MEMORY_NOT_ALLOCATED: NtStatus = NtStatus::new(0xC000_00A0);
/// The object to free is still in use by another program.
pub const STATUS_RETRY: NtStatus = NtStatus::new(0xC000_022D);
/// The machine sleeps.
pub const STATUS_DEVICE_NOT_READY: NtStatus = NtStatus::new(0xC000_00A3);
/// The kernel does not know the information class.
pub const STATUS_INVALID_INFO_CLASS: NtStatus = NtStatus::new(0xC000_0003);
/// The kernel does not have the function.
pub const STATUS_NOT_IMPLEMENTED: NtStatus = NtStatus::new(0xC000_0002);
/// A driver has configured thread profiling already, or a thread profiles.
pub const STATUS_WMI_ALREADY_ENABLED: NtStatus = NtStatus::new(0xC000_0302);

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_status_keeps_its_bits_in_both_signs_and_shows_eight_digits() {
        for (status, signed, text) in [
            (STATUS_SUCCESS, 0, "0x00000000"),
            (STATUS_DEVICE_BUSY, -0x7FFF_FFEF, "0x80000011"),
            (NtStatus::new(0x103), 0x103, "0x00000103"),
            (NtStatus::new(u32::MAX), -1, "0xFFFFFFFF"),
        ] {
            assert_eq!((i32::from(status), NtStatus::from(signed)), (signed, status));
            assert_eq!((status.to_string().as_str(), u64::from(status)), (text, status.number().into()));
        }
    }
}
