//! Control areas of processors, PROCESSOR_PROFILE_CONTROL_AREA (HAL control area), and the state of kernel VA
//! shadowing.

use core::ffi::c_void;
use core::mem::ManuallyDrop;
use core::sync::atomic::AtomicU64;

use alloc::boxed::Box;

use debug_store::Layout;
use engine::{AreaAllocator, AreaRefused, ControlArea};
use pmu::debug_store::MOST_SAVE_AREA_WORDS;
use pmu::debug_store::architectural::BUFFER_PAGE;
use pmu::{ProcessorIndex, try_vec};
use processor::control_area::{AreaOwner, area_of};
use wdk_sys::ntddk::RtlGetVersion;
use wdk_sys::{NTSTATUS, RTL_OSVERSIONINFOW, STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS, ULONG};

use super::contiguous;
use super::irp::check;
use super::processors::Pinned;
use super::routine;
use super::system_process::Worker;
use super::text::Text;

/// SystemProcessorProfileControlArea of SYSTEM_INFORMATION_CLASS (HAL control area, section 2).
const PROCESSOR_PROFILE_CONTROL_AREA: ULONG = 0x81;

/// SystemKernelVaShadowInformation of SYSTEM_INFORMATION_CLASS (winternl.h).
const KERNEL_VA_SHADOW: ULONG = 196;

/// KvaShadowEnabled of SYSTEM_KERNEL_VA_SHADOW_INFORMATION (winternl.h).
const SHADOW_ENABLED: ULONG = 1;

/// STATUS_NOT_IMPLEMENTED (ntstatus.h).
const STATUS_NOT_IMPLEMENTED: NTSTATUS = 0xC000_0002_u32.cast_signed();

/// STATUS_NOT_SUPPORTED (ntstatus.h).
const STATUS_NOT_SUPPORTED: NTSTATUS = 0xC000_00BB_u32.cast_signed();

/// STATUS_INVALID_PARAMETER (ntstatus.h).
const STATUS_INVALID_PARAMETER: NTSTATUS = 0xC000_000D_u32.cast_signed();

static SET_NAME: Text<22> = Text::new("ZwSetSystemInformation");
static QUERY_NAME: Text<24> = Text::new("ZwQuerySystemInformation");

type Set = unsafe extern "system" fn(class: ULONG, buffer: *mut c_void, length: ULONG) -> NTSTATUS;
type Query = unsafe extern "system" fn(class: ULONG, buffer: *mut c_void, length: ULONG, used: *mut ULONG) -> NTSTATUS;

/// SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA.
#[repr(C)]
struct Request {
    /// Output.
    area: *mut AtomicU64,
    /// Input, a BOOLEAN.
    allocate: u8,
}

const _: () = assert!(size_of::<Request>() == 0x10 && core::mem::offset_of!(Request, allocate) == 8);

/// Number of words of an area of the driver, which no processor exceeds.
const OWN_WORDS: usize = MOST_SAVE_AREA_WORDS as usize;

const _: () = assert!(OWN_WORDS * 8 >= Layout::V1903.size());

/// Allocates the zeroed area of a processor.
///
/// # Errors
/// The NTSTATUS, and the address of an existing area if the kernel reports one.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn allocate(processor: ProcessorIndex, by: AreaAllocator) -> Result<ControlArea, AreaRefused> {
    let refused = |status: NTSTATUS| AreaRefused { status: status.into(), address: 0 };
    let place = area_of(processor).ok_or_else(|| refused(STATUS_INVALID_PARAMETER))?;
    let worker = Worker::new().ok_or_else(|| refused(STATUS_INSUFFICIENT_RESOURCES))?;
    let mut made = Err(refused(STATUS_INSUFFICIENT_RESOURCES));
    worker.run(&mut || {
        let Some(layout) = Layout::of_build(build()) else {
            made = Err(refused(STATUS_NOT_SUPPORTED));
            return;
        };
        let short = || refused(STATUS_INSUFFICIENT_RESOURCES);
        let found = match by {
            AreaAllocator::Kernel => {
                ask_kernel(processor, true).map(|words| (words, layout.size(), AreaOwner::Kernel, None))
            }
            AreaAllocator::Driver => {
                zeros().map(|words| (words, OWN_WORDS * 8, AreaOwner::Pool, None)).ok_or_else(short)
            }
            AreaAllocator::Contiguous(pages) => {
                contiguous::allocate(pages).ok_or_else(short).map(|(words, physical)| {
                    (words, usize::from(pages) * BUFFER_PAGE as usize, AreaOwner::Contiguous, Some(physical))
                })
            }
        };
        made = found.map(|(words, size, owner, physical)| {
            #[expect(clippy::cast_possible_truncation, reason = "at most 65,535 pages")]
            let size = size as u32;
            // SAFETY: the area has this size; `free` frees it only after it has taken it
            unsafe { place.give(words, size / 8, owner) };
            ControlArea { address: words.expose_provenance() as u64, size, physical }
        });
    });
    made
}

/// Frees the area of a processor. No processor may write to it any more.
///
/// # Errors
/// The kernel's NTSTATUS.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn free(processor: ProcessorIndex) -> Result<(), NTSTATUS> {
    let place = area_of(processor).ok_or(STATUS_INVALID_PARAMETER)?;
    // Allocated first: if this fails, the area remains and can be freed later.
    let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
    let (words, length) = place.take();
    if words.is_null() {
        return Err(STATUS_INVALID_PARAMETER);
    }
    match place.owner() {
        AreaOwner::Kernel => {}
        AreaOwner::Pool => {
            let words = core::ptr::slice_from_raw_parts_mut(words, OWN_WORDS);
            // SAFETY: `zeros` allocated exactly these words, and they are freed once
            drop(unsafe { Box::from_raw(words) });
            return Ok(());
        }
        AreaOwner::Contiguous => {
            // SAFETY: allocated as contiguous memory, and taken, so that it is freed once; by this function's contract
            // no processor writes to it
            unsafe { contiguous::free(words) };
            return Ok(());
        }
    }
    let mut freed = Err(STATUS_INSUFFICIENT_RESOURCES);
    worker.run(&mut || {
        freed = ask_kernel(processor, false).map(|_| ()).map_err(|refused| refused.status.into());
    });
    if freed.is_err() {
        // SAFETY: taken above, and the kernel has not freed it
        unsafe { place.give(words, length, AreaOwner::Kernel) };
    }
    freed
}

/// Returns whether kernel VA shadowing is on: user code then runs with separate page tables.
///
/// # Errors
/// The NTSTATUS of the query.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn is_shadowed() -> Result<bool, NTSTATUS> {
    let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
    let mut told = Err(STATUS_NOT_IMPLEMENTED);
    worker.run(&mut || {
        let Some(query) = routine::find(&QUERY_NAME) else { return };
        // SAFETY: this routine has this signature in every version of Windows
        let query = unsafe { core::mem::transmute::<*mut c_void, Query>(query) };
        let mut flags: ULONG = 0;
        // SAFETY: the class writes four bytes; a worker runs at PASSIVE_LEVEL
        let status = unsafe { query(KERNEL_VA_SHADOW, (&raw mut flags).cast(), 4, core::ptr::null_mut()) };
        told = check(status).map(|()| flags & SHADOW_ENABLED != 0);
    });
    told
}

/// Asks the kernel to allocate or free the area of a processor; returns its address.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn ask_kernel(processor: ProcessorIndex, allocate: bool) -> Result<*mut AtomicU64, AreaRefused> {
    let refused = |status: NTSTATUS| AreaRefused { status: status.into(), address: 0 };
    let set = routine::find(&SET_NAME).ok_or_else(|| refused(STATUS_NOT_IMPLEMENTED))?;
    // SAFETY: this routine has this signature in every version of Windows
    let set = unsafe { core::mem::transmute::<*mut c_void, Set>(set) };
    let _stay = Pinned::to(processor).map_err(refused)?;
    let mut request = Request { area: core::ptr::null_mut(), allocate: allocate.into() };
    // SAFETY: the class reads and fills a structure of this length
    let status = unsafe { set(PROCESSOR_PROFILE_CONTROL_AREA, (&raw mut request).cast(), 0x10) };
    match status {
        STATUS_SUCCESS if !allocate || !request.area.is_null() => Ok(request.area),
        STATUS_SUCCESS => Err(refused(STATUS_NOT_SUPPORTED)),
        status => {
            let address = request.area.expose_provenance() as u64;
            Err(AreaRefused { status: status.into(), address })
        }
    }
}

/// Allocates a zeroed area from the pool, or returns `None` if memory is low.
fn zeros() -> Option<*mut AtomicU64> {
    let words = try_vec(OWN_WORDS, |_| AtomicU64::new(0)).filter(|words| words.capacity() == OWN_WORDS)?;
    Some(ManuallyDrop::new(words).as_mut_ptr())
}

/// Returns the build number of Windows.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn build() -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "284 bytes")]
    let mut version =
        RTL_OSVERSIONINFOW { dwOSVersionInfoSize: size_of::<RTL_OSVERSIONINFOW>() as u32, ..Default::default() };
    // SAFETY: the structure contains its size
    let status = unsafe { RtlGetVersion(&raw mut version) };
    if status == STATUS_SUCCESS { version.dwBuildNumber } else { 0 }
}
