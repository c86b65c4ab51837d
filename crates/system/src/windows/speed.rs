//! The speed of the processors, and the time for which this process used them.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::os::windows::io::AsRawHandle;
use std::process::Child;
use std::time::Duration;

use halprof::windows::registry;
use windows_sys::Win32::Foundation::{FILETIME, HANDLE};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

use super::convert::succeeded;

/// Returns the frequency of the time-stamp counter in hertz, which Windows measured at boot and stores in MHz; `None`
/// if it is unknown.
pub fn tsc_frequency() -> Option<u64> {
    let megahertz = registry::number("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "~MHz")?;
    (megahertz > 0).then(|| u64::from(megahertz) * 1_000_000)
}

/// Returns the time in user mode and in kernel mode of all threads of this process.
pub fn processor_time() -> Option<Duration> {
    // SAFETY: takes nothing, and the pseudo-handle needs no closing.
    let (user, kernel) = times_of(unsafe { GetCurrentProcess() })?;
    Some(user + kernel)
}

/// Returns the time of a child process in user mode and in kernel mode.
#[must_use]
pub fn times_of_child(child: &Child) -> Option<(Duration, Duration)> {
    times_of(child.as_raw_handle())
}

/// Returns the time of a process, whose handle is open, in user mode and in kernel mode.
fn times_of(process: HANDLE) -> Option<(Duration, Duration)> {
    let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: a handle that is not open is refused, and each pointer is to a FILETIME that nothing else uses.
    succeeded(unsafe { GetProcessTimes(process, created, exited, kernel, user) }).ok()?;
    let time = |time: &FILETIME| {
        let units = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Duration::from_nanos(units.saturating_mul(100))
    };
    let [_, _, kernel, user] = &times;
    Some((time(user), time(kernel)))
}
