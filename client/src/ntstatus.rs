//! Names of the NTSTATUS values that the kernel or the driver returns for a control area (source: ntstatus.h).

use protocol::NtStatus;
use protocol::status::{
    STATUS_ADDRESS_ALREADY_EXISTS, STATUS_DEVICE_BUSY, STATUS_INVALID_INFO_CLASS, STATUS_MEMORY_NOT_ALLOCATED,
    STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED, STATUS_RETRY, STATUS_SUCCESS, STATUS_WMI_ALREADY_ENABLED,
};

/// Returns the name of a status, or its number if it has no name here.
pub fn name(status: NtStatus) -> String {
    match status {
        STATUS_SUCCESS => "STATUS_SUCCESS".to_owned(),
        STATUS_DEVICE_BUSY => "STATUS_DEVICE_BUSY".to_owned(),
        STATUS_NOT_IMPLEMENTED => "STATUS_NOT_IMPLEMENTED".to_owned(),
        STATUS_NOT_SUPPORTED => "STATUS_NOT_SUPPORTED".to_owned(),
        STATUS_ADDRESS_ALREADY_EXISTS => "STATUS_ADDRESS_ALREADY_EXISTS".to_owned(),
        STATUS_MEMORY_NOT_ALLOCATED => "STATUS_MEMORY_NOT_ALLOCATED".to_owned(),
        STATUS_INVALID_INFO_CLASS => "STATUS_INVALID_INFO_CLASS".to_owned(),
        STATUS_RETRY => "STATUS_RETRY".to_owned(),
        STATUS_WMI_ALREADY_ENABLED => "STATUS_WMI_ALREADY_ENABLED".to_owned(),
        status => status.to_string(),
    }
}

/// Returns the status in a detail of a refusal.
pub fn of_detail(detail: u64) -> NtStatus {
    NtStatus::new(u32::try_from(detail).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_name_or_its_number() {
        for (status, wanted) in [
            (0, "STATUS_SUCCESS"),
            (0x8000_0011, "STATUS_DEVICE_BUSY"),
            (0xC000_0002, "STATUS_NOT_IMPLEMENTED"),
            (0xC000_0018, "STATUS_ADDRESS_ALREADY_EXISTS"),
            (0xC000_00A0, "STATUS_MEMORY_NOT_ALLOCATED"),
            (0xC000_00BB, "STATUS_NOT_SUPPORTED"),
            (0xC000_0003, "STATUS_INVALID_INFO_CLASS"),
            (0xC000_022D, "STATUS_RETRY"),
            (0xC000_009A, "0xC000009A"),
            (0x103, "0x00000103"),
        ] {
            assert_eq!(name(NtStatus::new(status)), wanted);
        }
    }
}
