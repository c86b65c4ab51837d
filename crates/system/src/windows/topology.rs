//! Cores and packages of the processors.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;

use windows_sys::Win32::Foundation::ERROR_INSUFFICIENT_BUFFER;
use windows_sys::Win32::System::SystemInformation::{GetLogicalProcessorInformationEx, RelationAll};

use crate::topology::{Topology, relations};

/// Returns the core and the package of every processor.
pub fn query() -> io::Result<Topology> {
    let mut length = 0;
    // SAFETY: without a buffer, the function writes only the length that it needs.
    unsafe { GetLogicalProcessorInformationEx(RelationAll, std::ptr::null_mut(), &raw mut length) };
    let error = io::Error::last_os_error();
    if error.raw_os_error().map(i32::cast_unsigned) != Some(ERROR_INSUFFICIENT_BUFFER) {
        return Err(error);
    }
    // The structures are aligned to 8 bytes.
    let mut buffer = vec![0_u64; (length as usize).div_ceil(8)];
    // SAFETY: the buffer has at least `length` bytes, aligned as the structures are, and outlives the call.
    if unsafe { GetLogicalProcessorInformationEx(RelationAll, buffer.as_mut_ptr().cast(), &raw mut length) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).take(length as usize).collect();
    let cause = || io::Error::new(io::ErrorKind::InvalidData, "the structures contradict their lengths");
    relations::parse(&bytes).ok_or_else(cause)
}
