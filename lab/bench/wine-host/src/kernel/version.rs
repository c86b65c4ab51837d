//! The version of Windows.

#![expect(unsafe_code, reason = "writes what the driver points to")]

use crate::{
    kernel::irql,
    nt,
    nt::{NtStatus, PASSIVE_LEVEL},
    state::{machine::MACHINE, windows::DEFAULT_BUILD},
    violation::{self, catch_panic},
};
use std::sync::atomic::Ordering;

/// VER_PLATFORM_WIN32_NT.
const PLATFORM: u32 = 2;

/// RTL_OSVERSIONINFOW.
#[repr(C)]
pub struct Version {
    size: u32,
    major: u32,
    minor: u32,
    build: u32,
    platform: u32,
    service_pack: [u16; 128],
}

const VERSION_BYTES: u32 = 0x114;
const _: () = assert!(size_of::<Version>() == 0x114);

/// Returns the build number.
pub fn build() -> u32 {
    MACHINE.kernel.windows.build.load(Ordering::SeqCst)
}

pub fn set_build(build: u32) {
    MACHINE.kernel.windows.build.store(build, Ordering::SeqCst);
}

/// Resets the build number.
pub fn reset() {
    set_build(DEFAULT_BUILD);
}

/// Implements RtlGetVersion.
pub unsafe extern "system" fn get(version: *mut Version) -> NtStatus {
    catch_panic("RtlGetVersion", nt::UNSUCCESSFUL, || {
        irql::check("RtlGetVersion", PASSIVE_LEVEL);
        // SAFETY: the driver must pass a structure that starts with its size.
        let size = unsafe { version.cast::<u32>().read_unaligned() };
        if size != VERSION_BYTES {
            violation::other(format!("RtlGetVersion with a structure of {size:#x} bytes"));
            return nt::INVALID_PARAMETER;
        }
        let reported =
            Version { size, major: 10, minor: 0, build: build(), platform: PLATFORM, service_pack: [0; 128] };
        // SAFETY: the driver must pass a structure of the checked size.
        unsafe { version.write_unaligned(reported) };
        nt::SUCCESS
    })
}
