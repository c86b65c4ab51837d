//! Hardware performance counters of Windows, from the halprof driver.

mod device;

pub use self::device::Device;
