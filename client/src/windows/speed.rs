//! The speed of the processors.

use windows_sys::Win32::System::Registry::RRF_RT_REG_DWORD;

use super::registry;

/// Returns the frequency of the time-stamp counter in hertz, which Windows measured at boot and stores in MHz; `None`
/// if it is unknown.
pub fn tsc_frequency() -> Option<f64> {
    let mut megahertz = [0_u32];
    registry::read("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", "~MHz", RRF_RT_REG_DWORD, &mut megahertz)?;
    let [megahertz] = megahertz;
    (megahertz > 0).then(|| f64::from(megahertz) * 1e6)
}
