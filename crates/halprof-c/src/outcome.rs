//! The constants and structures that C programs see.

use std::ffi::c_int;

/// Version of the functions and structures of this header. Pass it to halprof_open().
pub const HALPROF_ABI_VERSION: u32 = 1;

/// HALPROF_OK or the reason of a failure.
pub type Status = c_int;

/// The call succeeded.
pub const HALPROF_OK: Status = 0;
/// An argument is NULL or invalid: an index too large, an unknown flag, a string that is not UTF-8,
/// a structure whose size is not set.
pub const HALPROF_BAD_ARGUMENT: Status = 1;
/// The library does not support the version that was passed to halprof_open().
pub const HALPROF_BAD_VERSION: Status = 2;
/// The handle is not open: it was never opened, or it is closed.
pub const HALPROF_BAD_HANDLE: Status = 3;
/// The group belongs to another thread. Nothing was changed.
pub const HALPROF_WRONG_THREAD: Status = 4;
/// The calls came in the wrong order: begin twice, end without begin, count before the first end.
pub const HALPROF_BAD_ORDER: Status = 5;
/// The driver cannot be reached: not installed, not started, access denied, or another version.
pub const HALPROF_NO_DRIVER: Status = 6;
/// No event has this name on this machine, or the machine does not support it.
pub const HALPROF_BAD_EVENT: Status = 7;
/// The driver or Windows refused: no free counter, a session of another program, no such CPU.
pub const HALPROF_REFUSED: Status = 8;
/// Windows or the driver failed otherwise.
pub const HALPROF_FAILED: Status = 9;
/// A defect of the library. The group can only be closed.
pub const HALPROF_DEFECT: Status = 10;

/// Count in user mode. This is the default.
pub const HALPROF_USER: u32 = 1;
/// Count in kernel mode.
pub const HALPROF_KERNEL: u32 = 2;

/// The CPU of halprof_open_cpu() that stands for all CPUs.
pub const HALPROF_ALL_CPUS: u32 = 0xFFFF_FFFF;

/// Windows switched the counters with the thread. The counts are the thread's own. See
/// HALPROF_VERIFIED.
pub const HALPROF_VIRTUALIZED: u32 = 1;
/// Nothing else ran on the CPU between begin and end. The counts are the thread's own.
pub const HALPROF_UNDISTURBED: u32 = 2;
/// The counts are not exact. halprof_reason() says why.
pub const HALPROF_DISTURBED: u32 = 3;

/// Flag of a result: `.\client selftest` has proved virtualized counts on this machine.
pub const HALPROF_VERIFIED: u32 = 1;

/// A group of events: a number that is not zero. It is valid in this process until it is closed.
pub type GroupHandle = u64;

/// The result of one region, from halprof_begin() to halprof_end().
///
/// Set `size` to sizeof(halprof_result) before the call. The library writes at most `size` bytes.
/// Later versions of the library append fields and keep these.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// In: sizeof(halprof_result). Out: the number of bytes that were written.
    pub size: u32,
    /// HALPROF_VIRTUALIZED, HALPROF_UNDISTURBED or HALPROF_DISTURBED.
    pub quality: u32,
    /// HALPROF_VERIFIED or 0.
    pub flags: u32,
    /// Number of events of the group.
    pub events: u32,
    /// Time between begin and end, in nanoseconds.
    pub time_enabled: u64,
    /// The part of it in which the counters counted for the group, in nanoseconds.
    pub time_running: u64,
}
