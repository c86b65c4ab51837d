//! The HAL's profile sources, and the sessions whose context switches carry counters.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::any::Any;
use std::ffi::c_void;
use std::io;
use std::ptr::null_mut;

use raw_cpuid::CpuIdResult;
use raw_cpuid::native_cpuid::cpuid_count;
use windows_sys::Win32::Foundation::{
    ERROR_BAD_LENGTH, ERROR_INSUFFICIENT_BUFFER, ERROR_MORE_DATA, NTSTATUS, WIN32_ERROR,
};
use windows_sys::Win32::System::Diagnostics::Etw::{
    TRACE_QUERY_INFO_CLASS, TraceMaxPmcCounterQuery, TracePmcCounterOwners, TraceProfileSourceListInfo,
    TraceSampledProfileIntervalInfo,
};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

use super::convert::checked;
use super::profile_objects::Object;
use super::trace::EVERY_SESSION;
use super::{known_work, modules, trace};
use crate::hal::{HalCalls, HalPlan, ProfileObject, SwitchSession};
use crate::known_work::{Function, KnownWork};
use crate::trace::{TraceError, TraceSink};

/// SystemPerformanceTraceInformation (phnt, ntexapi.h), which windows-sys does not define.
const SYSTEM_PERFORMANCE_TRACE_INFORMATION: i32 = 31;

/// Size of the first list of sources in bytes, for about 200 of them.
const FIRST_BYTES: usize = 16 << 10;

/// Room for the owners of the counters of a CPU in bytes, for 84 of them.
const OWNERS_BYTES: usize = 1 << 10;

/// Number of requests for a list that grows between two requests.
const ATTEMPTS: usize = 4;

/// Iterations of the loop that a visited CPU executes.
const ITERATIONS: u64 = 10_000;

#[link(name = "sechost", kind = "raw-dylib")]
unsafe extern "system" {
    /// Documented, and in the library that documentation names; windows-sys takes it from another one.
    fn TraceQueryInformation(
        session: u64,
        class: TRACE_QUERY_INFO_CLASS,
        information: *mut c_void,
        length: u32,
        returned: *mut u32,
    ) -> WIN32_ERROR;
}

#[link(name = "ntdll", kind = "raw-dylib")]
unsafe extern "system" {
    /// phnt, ntexapi.h.
    fn NtSetSystemInformation(class: i32, information: *const c_void, length: u32) -> NTSTATUS;
}

/// The functions of this Windows.
pub struct Calls;

impl HalCalls for Calls {
    fn reserve(&self) -> io::Result<Box<dyn Any + Send>> {
        Ok(Box::new(trace::reserve()?))
    }

    fn set_profile_sources(&self, structure: &[u8]) -> io::Result<()> {
        let length = u32::try_from(structure.len()).map_err(io::Error::other)?;
        // SAFETY: the structure has the given size and outlives the call, which only reads it.
        modules::checked(unsafe {
            NtSetSystemInformation(SYSTEM_PERFORMANCE_TRACE_INFORMATION, structure.as_ptr().cast(), length)
        })
    }

    fn source_list(&self) -> io::Result<Vec<u8>> {
        const TOO_SHORT: [WIN32_ERROR; 3] = [ERROR_BAD_LENGTH, ERROR_INSUFFICIENT_BUFFER, ERROR_MORE_DATA];
        let mut room = FIRST_BYTES;
        for _ in 0..ATTEMPTS {
            let mut list = vec![0; room];
            let (code, needed) = query(TraceProfileSourceListInfo, &mut list);
            if !TOO_SHORT.contains(&code) {
                checked(code)?;
                list.truncate(needed);
                return Ok(list);
            }
            room = room.max(needed) + FIRST_BYTES;
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    fn interval(&self, source: u32) -> io::Result<u32> {
        let mut interval = [source.to_le_bytes(), [0; 4]].concat();
        checked(query(TraceSampledProfileIntervalInfo, &mut interval).0)?;
        word(interval.get(4..))
    }

    fn set_interval(&self, source: u32, interval: u32) -> io::Result<()> {
        trace::set_information(EVERY_SESSION, TraceSampledProfileIntervalInfo, &[source, interval])
    }

    fn maximum_counters(&self) -> io::Result<u32> {
        let mut maximum = [0; 4];
        checked(query(TraceMaxPmcCounterQuery, &mut maximum).0)?;
        word(Some(&maximum))
    }

    fn counter_owners(&self, processor: u32) -> io::Result<Vec<u8>> {
        let mut owners = [0; OWNERS_BYTES];
        owners.iter_mut().zip(processor.to_le_bytes()).for_each(|(to, from)| *to = from);
        checked(query(TracePmcCounterOwners, &mut owners).0)?;
        Ok(owners.into())
    }

    fn clock(&self) -> (u64, u64) {
        let (mut counter, mut frequency) = (0, 0);
        // SAFETY: the variable is writable.
        unsafe { QueryPerformanceCounter(&raw mut counter) };
        // SAFETY: the variable is writable.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        (counter.cast_unsigned(), frequency.cast_unsigned())
    }

    fn processors(&self) -> u32 {
        known_work::processors()
    }

    fn visit(&self, processor: u32) -> io::Result<()> {
        known_work::execute(processor, &[KnownWork { function: Function::First, iterations: ITERATIONS }])
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        cpuid_count(leaf, subleaf)
    }

    fn threads(&self) -> io::Result<Vec<(u32, u32)>> {
        modules::threads()
    }

    fn profile(&self, process: u32, source: u32, is_kernel: bool) -> io::Result<Box<dyn ProfileObject>> {
        Ok(Box::new(Object::start(process, source, is_kernel)?))
    }

    fn start(&self, plan: &HalPlan, sink: TraceSink) -> Result<Box<dyn SwitchSession>, TraceError> {
        trace::start_hal(plan, sink)
    }
}

/// Queries information that belongs to no session. Returns the error code, and the number of bytes that it has.
fn query(class: TRACE_QUERY_INFO_CLASS, information: &mut [u8]) -> (WIN32_ERROR, usize) {
    let length = u32::try_from(information.len()).unwrap_or(u32::MAX);
    let mut returned = 0;
    let pointer = if information.is_empty() { null_mut() } else { information.as_mut_ptr().cast() };
    // SAFETY: the information has the given length and is writable, and so is `returned`.
    let code = unsafe { TraceQueryInformation(0, class, pointer, length, &raw mut returned) };
    (code, returned as usize)
}

fn word(bytes: Option<&[u8]>) -> io::Result<u32> {
    let first = bytes.and_then(|bytes| bytes.first_chunk());
    Ok(u32::from_le_bytes(*first.ok_or(io::ErrorKind::UnexpectedEof)?))
}
