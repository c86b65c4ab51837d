//! The current thread: its profile, its CPU, and the clocks.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::CStr;
use std::io;
use std::mem::transmute;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, HANDLE, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Performance::HardwareCounterProfiling::PERFORMANCE_DATA;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentProcessorNumberEx, GetCurrentThread,
    SetThreadGroupAffinity,
};
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;
use windows_sys::core::w;

use super::{WindowsVolume, folders, memory, version};
use crate::protected;
use crate::system::{
    Affinity, CounterValues, PROFILING_FUNCTIONS, ProfilingData, ProfilingHandle, System, THREAD_MEMORY_SIZE,
    ThreadMemoryBytes,
};

/// THREAD_PROFILING_FLAG_DISPATCH (winbase.h): count context switches.
const FLAG_DISPATCH: u32 = 1;

/// READ_THREAD_PROFILING_FLAG_DISPATCHING (winbase.h).
const READ_DISPATCHING: u32 = 1;

/// READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS (winbase.h).
const READ_HARDWARE_COUNTERS: u32 = 2;

/// PERFORMANCE_DATA_VERSION (winnt.h).
const DATA_VERSION: u8 = 1;

/// Size of PERFORMANCE_DATA, which Windows checks.
const DATA_SIZE: u16 = 288;

const _: () = assert!(size_of::<PERFORMANCE_DATA>() == DATA_SIZE as usize);

/// Number of attempts to read two clocks within one of their ticks. They are read in nanoseconds and tick every
/// half millisecond at most.
const CLOCK_ATTEMPTS: u32 = 16;

/// Nanoseconds of a unit of the interrupt time.
const UNIT: u64 = 100;

type Enable = unsafe extern "system" fn(HANDLE, u32, u64, *mut HANDLE) -> u32;
type Read = unsafe extern "system" fn(HANDLE, u32, *mut PERFORMANCE_DATA) -> u32;
type Query = unsafe extern "system" fn(HANDLE, *mut u8) -> u32;
type Disable = unsafe extern "system" fn(HANDLE) -> u32;
type InterruptTime = unsafe extern "system" fn(*mut u64);

/// The functions for thread profiling. Some Windows lack them, so they are looked up when the program runs.
#[derive(Clone, Copy)]
struct Functions {
    enable: Enable,
    read: Read,
    query: Query,
    disable: Disable,
}

/// Windows and the current thread.
pub struct WindowsSystem {
    functions: Result<Functions, &'static str>,
    interrupt_time: Option<InterruptTime>,
    origin: Instant,
}

impl Default for WindowsSystem {
    fn default() -> Self {
        Self { functions: Functions::find(), interrupt_time: find_interrupt_time(), origin: Instant::now() }
    }
}

impl WindowsSystem {
    /// Looks up the functions that not every Windows has.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the part of the profile that the flags name.
    fn read(&self, handle: &ProfilingHandle, flags: u32) -> io::Result<PERFORMANCE_DATA> {
        let Functions { read, .. } = self.functions()?;
        let mut data = PERFORMANCE_DATA { Size: DATA_SIZE, Version: DATA_VERSION, ..PERFORMANCE_DATA::default() };
        let raw: HANDLE = std::ptr::with_exposed_provenance_mut(handle.handle);
        // SAFETY: the handle is from `enable_profiling` on this thread and is not disabled yet, because disabling takes
        // it, and the structure has the size and the version that it says.
        done(unsafe { read(raw, flags, &raw mut data) })?;
        Ok(data)
    }

    fn functions(&self) -> io::Result<Functions> {
        self.functions.map_err(|_| io::ErrorKind::Unsupported.into())
    }
}

type Address = unsafe extern "system" fn() -> isize;

impl Functions {
    /// Returns the functions, or the name of the first one that Windows lacks.
    fn find() -> Result<Self, &'static str> {
        let [enable, read, query, disable] = PROFILING_FUNCTIONS;
        // SAFETY: the name is a constant with a terminating zero. Every process has this module all the time.
        let module = unsafe { GetModuleHandleW(w!("kernel32.dll")) };
        let find = |name: &'static str| address(module, name).ok_or(name);
        let (enable, read, query, disable) = (find(enable)?, find(read)?, find(query)?, find(disable)?);
        Ok(Self {
            // SAFETY: Microsoft documents this signature for the function of this name.
            enable: unsafe { transmute::<Address, Enable>(enable) },
            // SAFETY: as above.
            read: unsafe { transmute::<Address, Read>(read) },
            // SAFETY: as above; BOOLEAN is a byte.
            query: unsafe { transmute::<Address, Query>(query) },
            // SAFETY: as above.
            disable: unsafe { transmute::<Address, Disable>(disable) },
        })
    }
}

/// Returns QueryInterruptTime, which an import would make every program require.
fn find_interrupt_time() -> Option<InterruptTime> {
    // SAFETY: the name is a constant with a terminating zero. Every process has this module all the time.
    let module = unsafe { GetModuleHandleW(w!("kernelbase.dll")) };
    let found = address(module, "QueryInterruptTime")?;
    // SAFETY: Microsoft documents this signature for the function of this name.
    Some(unsafe { transmute::<Address, InterruptTime>(found) })
}

/// Returns a function of a module by its name.
fn address(module: HMODULE, name: &str) -> Option<Address> {
    let name = [name.as_bytes(), &[0]].concat();
    let name = CStr::from_bytes_with_nul(&name).ok()?;
    // SAFETY: the name has a terminating zero. A null module is the program itself, which lacks the functions.
    unsafe { GetProcAddress(module, name.as_ptr().cast()) }
}

/// Converts the result of a function for thread profiling.
fn done(error: u32) -> io::Result<()> {
    if error == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(error.cast_signed())) }
}

fn current_thread() -> HANDLE {
    // SAFETY: takes nothing, and the pseudo-handle needs no closing.
    unsafe { GetCurrentThread() }
}

impl System for WindowsSystem {
    fn find_profiling(&self) -> Result<(), &'static str> {
        self.functions.map(drop)
    }

    fn is_profiled(&self) -> io::Result<bool> {
        let Functions { query, .. } = self.functions()?;
        let mut enabled = 0;
        // SAFETY: the pseudo-handle is always valid, and the function writes one byte.
        done(unsafe { query(current_thread(), &raw mut enabled) })?;
        Ok(enabled != 0)
    }

    fn enable_profiling(&self, counters: u64) -> io::Result<ProfilingHandle> {
        let Functions { enable, .. } = self.functions()?;
        let mut handle: HANDLE = null_mut();
        // SAFETY: the pseudo-handle is always valid, and the function writes one handle.
        done(unsafe { enable(current_thread(), FLAG_DISPATCH, counters, &raw mut handle) })?;
        Ok(ProfilingHandle { handle: handle.expose_provenance() })
    }

    fn read_profiling(&self, handle: &ProfilingHandle) -> io::Result<ProfilingData> {
        let data = self.read(handle, READ_DISPATCHING)?;
        Ok(ProfilingData { context_switches: data.ContextSwitchCount, cycle_time: data.CycleTime })
    }

    fn read_counters(&self, handle: &ProfilingHandle) -> io::Result<CounterValues> {
        let data = self.read(handle, READ_HARDWARE_COUNTERS)?;
        Ok(CounterValues { count: data.HwCountersCount, values: data.HwCounters.map(|counter| counter.Value) })
    }

    fn read_memory(&self, handle: &ProfilingHandle) -> io::Result<ThreadMemoryBytes> {
        let begin: *const u64 = std::ptr::with_exposed_provenance(handle.handle);
        if !begin.is_aligned() || !memory::is_readable(handle.handle, THREAD_MEMORY_SIZE) {
            return Err(io::Error::other("the handle of EnableThreadProfiling does not point to memory"));
        }
        let mut bytes = [0; THREAD_MEMORY_SIZE];
        for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            // SAFETY: all the bytes were committed and readable right before. By public disassembly of ntdll they are a
            // block that belongs to the profile until it is disabled, which takes the handle. Windows changes them
            // meanwhile, so each aligned word is read once.
            *word = unsafe { begin.wrapping_add(index).read_volatile() }.to_ne_bytes();
        }
        Ok(bytes)
    }

    fn disable_profiling(&self, handle: ProfilingHandle) -> io::Result<()> {
        let Functions { disable, .. } = self.functions()?;
        let raw: HANDLE = std::ptr::with_exposed_provenance_mut(handle.handle);
        // SAFETY: the handle is from `enable_profiling` on this thread, and is not used again.
        done(unsafe { disable(raw) })
    }

    fn pin(&self, cpu: u32) -> io::Result<Affinity> {
        let mut number = cpu;
        for group in 0..group_count() {
            let count = processor_count(group);
            if number < count {
                let mask = 1_u64.checked_shl(number).unwrap_or(0);
                return set_affinity(&Affinity { group, mask });
            }
            number -= count;
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("CPU {cpu} is not active")))
    }

    fn unpin(&self, affinity: &Affinity) -> io::Result<()> {
        set_affinity(affinity).map(drop)
    }

    fn current_cpu(&self) -> u32 {
        let mut number = windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER::default();
        // SAFETY: the function writes the structure.
        unsafe { GetCurrentProcessorNumberEx(&raw mut number) };
        // Windows numbers the processors group by group.
        (0..number.Group).map(processor_count).sum::<u32>() + u32::from(number.Number)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn time_asleep(&self) -> Duration {
        // Every Windows that the driver supports has the function.
        let Some(interrupt_time) = self.interrupt_time else { return Duration::ZERO };
        let mut asleep = 0;
        for _ in 0..CLOCK_ATTEMPTS {
            let (before, awake, after) = (read_clock(interrupt_time), time_awake(), read_clock(interrupt_time));
            asleep = before.saturating_sub(awake);
            if before == after {
                break;
            }
        }
        Duration::from_nanos(asleep.saturating_mul(UNIT))
    }

    fn windows_build(&self) -> Option<String> {
        version::build()
    }

    fn verification_file(&self) -> Option<PathBuf> {
        Some(folders::program_data()?.join("threads.json"))
    }

    fn read_protected(&self, file: &Path, most: u64) -> io::Result<Vec<u8>> {
        protected::read(&WindowsVolume::new(), file, most)
    }

    fn write_protected(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        protected::write(&WindowsVolume::new(), file, content)
    }

    fn remove_protected(&self, file: &Path) -> io::Result<()> {
        protected::remove(&WindowsVolume::new(), file)
    }
}

fn read_clock(clock: InterruptTime) -> u64 {
    let mut time = 0;
    // SAFETY: the function writes the integer.
    unsafe { clock(&raw mut time) };
    time
}

/// Returns the interrupt time without sleep. It ticks together with the one that includes sleep.
fn time_awake() -> u64 {
    let mut time = 0;
    // SAFETY: the function writes the integer. It fails only without one.
    let _ = unsafe { QueryUnbiasedInterruptTime(&raw mut time) };
    time
}

fn group_count() -> u16 {
    // SAFETY: has no preconditions.
    unsafe { GetActiveProcessorGroupCount() }
}

fn processor_count(group: u16) -> u32 {
    // SAFETY: has no preconditions.
    unsafe { GetActiveProcessorCount(group) }
}

/// Moves the thread to the processors of an affinity. Returns the previous one.
fn set_affinity(affinity: &Affinity) -> io::Result<Affinity> {
    let mask = usize::try_from(affinity.mask).map_err(io::Error::other)?;
    let wanted = GROUP_AFFINITY { Mask: mask, Group: affinity.group, Reserved: [0; 3] };
    let mut before = GROUP_AFFINITY::default();
    // SAFETY: the pseudo-handle is always valid, and both pointers are to structures of the right type.
    let result = unsafe { SetThreadGroupAffinity(current_thread(), &raw const wanted, &raw mut before) };
    if result == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Affinity { group: before.Group, mask: before.Mask as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_and_returns() {
        let system = WindowsSystem::new();
        let before = system.pin(0).unwrap();
        assert_eq!(system.current_cpu(), 0);
        system.unpin(&before).unwrap();
        assert_eq!(system.pin(0).unwrap(), before);
        system.unpin(&before).unwrap();
        assert_eq!(system.pin(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn clocks_do_not_go_back_and_the_machine_does_not_sleep_in_between() {
        let system = WindowsSystem::new();
        let (time, asleep) = (system.now(), system.time_asleep());
        for _ in 0..1_000 {
            assert_eq!(system.time_asleep(), asleep);
        }
        assert!(system.now() >= time);
        assert!(system.windows_build().is_some());
    }

    /// Wine lacks the functions.
    #[test]
    fn functions_that_windows_lacks_are_an_error_and_those_that_it_has_work() {
        let system = WindowsSystem::new();
        if let Err(name) = system.find_profiling() {
            assert!(PROFILING_FUNCTIONS.contains(&name));
            assert_eq!(system.enable_profiling(0).unwrap_err().kind(), io::ErrorKind::Unsupported);
            return;
        }
        assert!(!system.is_profiled().unwrap());
        let handle = system.enable_profiling(0).unwrap();
        assert!(system.is_profiled().unwrap());
        assert!(system.read_profiling(&handle).unwrap().cycle_time > 0);
        system.disable_profiling(handle).unwrap();
        assert!(!system.is_profiled().unwrap());
    }
}
