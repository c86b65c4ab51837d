//! The functions, as a program finds them.

#![expect(unsafe_code, reason = "foreign functions")]

use std::{
    ffi::CStr,
    mem::{self, ManuallyDrop},
    ptr,
};
use windows_sys::Win32::{
    Foundation::HANDLE,
    System::{
        LibraryLoader::{GetModuleHandleA, GetProcAddress},
        Threading::GetCurrentThread,
        WindowsProgramming::QueryUnbiasedInterruptTime,
    },
};

type Function = unsafe extern "system" fn() -> isize;
type Enable = unsafe extern "system" fn(HANDLE, u32, u64, *mut HANDLE) -> u32;
type Disable = unsafe extern "system" fn(HANDLE) -> u32;
type Query = unsafe extern "system" fn(HANDLE, *mut u8) -> u32;
type Read = unsafe extern "system" fn(HANDLE, u32, *mut PerformanceData) -> u32;
type Execute = unsafe extern "system" fn(u32, u32, u64, u64) -> u32;
type Ledger = unsafe extern "system" fn(u32, u32, u32) -> u64;
type InterruptTime = unsafe extern "system" fn(*mut u64);

/// THREAD_PROFILING_FLAG_DISPATCH; READ_THREAD_PROFILING_FLAG_DISPATCHING and
/// READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS.
const DISPATCH: u32 = 1;
const READ_ALL: u32 = 3;

/// Size of THREAD_PERFORMANCE_DATA (public symbols of ntdll).
const MEMORY_SIZE: usize = 0x1C0;

/// PERFORMANCE_DATA.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PerformanceData {
    size: u16,
    version: u8,
    pub counter_count: u8,
    pub context_switches: u32,
    wait_reasons: u64,
    pub cycles: u64,
    retries: u32,
    reserved: u32,
    /// Type and value of each counter.
    pub counters: [[u64; 2]; 16],
}

/// The functions of thread profiling, and those by which a program tells the bench what it executes.
#[derive(Clone, Copy)]
pub struct Functions {
    enable: Enable,
    disable: Disable,
    query: Query,
    read: Read,
    execute: Execute,
    ledger: Ledger,
    interrupt_time: InterruptTime,
}

/// An enabled profile of the current thread.
pub struct Profile {
    functions: Functions,
    handle: HANDLE,
}

impl Functions {
    /// Finds the functions. Returns the names of those that are missing, or fails without the bench.
    pub fn find() -> Result<Result<Self, Vec<String>>, String> {
        // SAFETY: the names are zero-terminated.
        let kernel = unsafe { GetModuleHandleA(c"kernel32.dll".as_ptr().cast()) };
        // SAFETY: as above.
        let base = unsafe { GetModuleHandleA(c"kernelbase.dll".as_ptr().cast()) };
        // SAFETY: as above.
        let bench = unsafe { GetModuleHandleA(c"thread-profiling.dll".as_ptr().cast()) };
        let mut missing = Vec::new();
        let mut find = |module, name: &CStr| {
            // SAFETY: the module is loaded or null, and the name is zero-terminated.
            let function = unsafe { GetProcAddress(module, name.as_ptr().cast()) };
            if function.is_none() {
                missing.push(name.to_string_lossy().into_owned());
            }
            function
        };
        let [enable, disable, query, read] =
            [c"EnableThreadProfiling", c"DisableThreadProfiling", c"QueryThreadProfiling", c"ReadThreadProfilingData"]
                .map(|name| find(kernel, name));
        let (Some(enable), Some(disable), Some(query), Some(read)) = (enable, disable, query, read) else {
            return Ok(Err(missing));
        };
        let own =
            (find(bench, c"bench_execute_event"), find(bench, c"bench_ledger"), find(base, c"QueryInterruptTime"));
        let (Some(execute), Some(ledger), Some(interrupt_time)) = own else {
            return Err("this is not the bench".to_owned());
        };
        // SAFETY: the functions have these types.
        let (enable, disable) = unsafe { mem::transmute::<(Function, Function), (Enable, Disable)>((enable, disable)) };
        // SAFETY: as above.
        let (query, read) = unsafe { mem::transmute::<(Function, Function), (Query, Read)>((query, read)) };
        // SAFETY: as above.
        let (execute, ledger) = unsafe { mem::transmute::<(Function, Function), (Execute, Ledger)>((execute, ledger)) };
        // SAFETY: as above.
        let interrupt_time = unsafe { mem::transmute::<Function, InterruptTime>(interrupt_time) };
        Ok(Ok(Self { enable, disable, query, read, execute, ledger, interrupt_time }))
    }

    /// Profiles the counters of a mask for the current thread.
    pub fn enable(self, mask: u64) -> Result<Profile, u32> {
        let mut handle = ptr::null_mut();
        // SAFETY: the function has no preconditions.
        let thread = unsafe { GetCurrentThread() };
        // SAFETY: the handle is writable.
        match unsafe { (self.enable)(thread, DISPATCH, mask, &raw mut handle) } {
            0 => Ok(Profile { functions: self, handle }),
            error => Err(error),
        }
    }

    /// Returns whether the current thread profiles.
    pub fn query(self) -> Result<bool, u32> {
        let mut enabled = 0;
        // SAFETY: the function has no preconditions.
        let thread = unsafe { GetCurrentThread() };
        // SAFETY: the variable is writable.
        match unsafe { (self.query)(thread, &raw mut enabled) } {
            0 => Ok(enabled != 0),
            error => Err(error),
        }
    }

    /// Executes events of one kind, without a unit mask.
    pub fn execute(self, event: u32, user: u64, kernel: u64) -> Result<(), u32> {
        // SAFETY: the function has no preconditions.
        match unsafe { (self.execute)(event, 0, user, kernel) } {
            0 => Ok(()),
            error => Err(error),
        }
    }

    /// Returns the milliseconds during which the machine slept.
    pub fn asleep(self) -> u64 {
        const UNITS: u64 = 10_000;
        let (mut all, mut awake) = (0, 0);
        // SAFETY: the variable is writable.
        unsafe { (self.interrupt_time)(&raw mut all) };
        // SAFETY: the variable is writable.
        unsafe { QueryUnbiasedInterruptTime(&raw mut awake) };
        all.saturating_sub(awake) / UNITS
    }

    /// Returns the number of events in user mode that the current thread has executed.
    pub fn ledger(self, event: u32) -> u64 {
        // SAFETY: the function has no preconditions.
        unsafe { (self.ledger)(event, 0, 0) }
    }
}

impl Profile {
    /// Reads all values.
    pub fn read(&self) -> Result<PerformanceData, u32> {
        let mut data = PerformanceData {
            size: u16::try_from(size_of::<PerformanceData>()).unwrap_or_default(),
            version: 1,
            counter_count: 0,
            context_switches: 0,
            wait_reasons: 0,
            cycles: 0,
            retries: 0,
            reserved: 0,
            counters: [[0; 2]; 16],
        };
        // SAFETY: the structure is writable.
        match unsafe { (self.functions.read)(self.handle, READ_ALL, &raw mut data) } {
            0 => Ok(data),
            error => Err(error),
        }
    }

    /// Returns the memory to which the handle points, where the stand-in has it.
    pub fn memory(&self) -> Vec<u8> {
        let words = self.handle.cast::<u64>();
        // SAFETY: the handle points to so many bytes, which the stand-in writes.
        (0..MEMORY_SIZE / size_of::<u64>())
            .flat_map(|index| unsafe { words.wrapping_add(index).read_volatile() }.to_le_bytes())
            .collect()
    }

    /// Ends the profile.
    pub fn disable(self) -> Result<(), u32> {
        let profile = ManuallyDrop::new(self);
        // SAFETY: the function rejects an invalid handle.
        match unsafe { (profile.functions.disable)(profile.handle) } {
            0 => Ok(()),
            error => Err(error),
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // SAFETY: the function rejects an invalid handle.
        unsafe { (self.functions.disable)(self.handle) };
    }
}
