//! SystemProcessorProfileControlArea: of each processor the one PROCESSOR_PROFILE_CONTROL_AREA, which is the kernel's
//! memory.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::{
        affinity,
        processor::{self, State},
    },
    fault_injection,
    kernel::version,
    lock::lock,
    nt::{self, NtStatus, Pointer},
    violation,
};
use bench_protocol::Areas;
use std::{
    collections::BTreeMap,
    ptr,
    sync::{Mutex, atomic::AtomicU64},
};

/// SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA.
#[repr(C)]
struct Request {
    area: Pointer,
    allocate: u8,
}

const _: () = assert!(size_of::<Request>() == 0x10);

/// The build of version 1903, since which areas have room for the values of more counters.
const LARGER_SINCE: u32 = 18_362;
const WORDS_BEFORE: usize = 0x60 / 8;
const WORDS: usize = 0xA0 / 8;

/// IA32_MISC_ENABLE: performance monitoring is available, PEBS is not (SDM Vol. 4, "Architectural MSRs").
const MISC_ENABLE: u32 = 0x1A0;
const MONITORING_AVAILABLE: u64 = 1 << 7;
const PEBS_UNAVAILABLE: u64 = 1 << 12;

/// `IA32_DS_AREA` (same table).
const DS_AREA: u32 = 0x600;

struct Area(Box<[AtomicU64]>);

impl Area {
    fn new() -> Self {
        let words = if version::build() < LARGER_SINCE { WORDS_BEFORE } else { WORDS };
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    fn holds(&self, address: u64) -> bool {
        let offset = usize::try_from(address).ok().and_then(|address| address.checked_sub(self.address()));
        offset.is_some_and(|offset| offset < size_of_val(&*self.0))
    }
}

/// By the number of the processor.
static AREAS: Mutex<BTreeMap<u32, Area>> = Mutex::new(BTreeMap::new());
static MODE: Mutex<Areas> = Mutex::new(Areas::Served);

/// How the class is served from now on.
pub fn set_mode(areas: Areas) {
    *lock(&MODE) = areas;
    write_addresses();
}

fn mode() -> Areas {
    *lock(&MODE)
}

/// Where Windows keeps areas, it makes those that are missing, and writes the addresses of all to their registers: at boot,
/// and after a sleep.
pub fn write_addresses() {
    if mode() != Areas::OfWindows {
        return;
    }
    let thread = nt::current_thread();
    for core in processor::active().iter().filter(|core| core.with(has_pebs)) {
        let (Ok(address) | Err(address)) = allocate(core.number);
        let Ok(address) = u64::try_from(address) else { continue };
        core.high_level.acquire(thread);
        let written = core.with(|state| state.processor.uncounted(|processor| processor.wrmsr(DS_AREA, address)));
        core.high_level.release(thread);
        if written.is_err() {
            violation::other(format!("processor {} has no IA32_DS_AREA", core.number));
        }
    }
}

/// As on a machine that has just started.
pub fn reset() {
    set_mode(Areas::Served);
    lock(&AREAS).clear();
}

/// Somebody else than a driver allocates the area of a processor; false if it has one.
pub fn allocate_foreign(processor: u32) -> bool {
    allocate(processor).is_ok()
}

/// The area of each processor.
pub fn addresses() -> Vec<Option<u64>> {
    let areas = lock(&AREAS);
    let address = |number: u32| u64::try_from(areas.get(&number)?.address()).ok();
    processor::active().iter().map(|core| address(core.number)).collect()
}

/// Keeps the areas as they are, if the address is in one of them.
pub fn pin(address: u64) -> Option<impl Sized> {
    let areas = lock(&AREAS);
    let is_there = areas.values().any(|area| area.holds(address));
    is_there.then_some(areas)
}

/// A new area, or the one that there is.
fn allocate(processor: u32) -> Result<usize, usize> {
    let mut areas = lock(&AREAS);
    if let Some(area) = areas.get(&processor) {
        return Err(area.address());
    }
    Ok(areas.entry(processor).or_insert_with(Area::new).address())
}

/// ZwSetSystemInformation of this class, for the processor on which the thread is.
///
/// # Safety
/// The buffer has so many bytes, which may be read and written.
pub unsafe fn set(buffer: Pointer, length: u32) -> NtStatus {
    let mode = mode();
    if mode == Areas::Missing {
        return nt::INVALID_INFO_CLASS;
    }
    if usize::try_from(length) != Ok(size_of::<Request>()) {
        return nt::INFO_LENGTH_MISMATCH;
    }
    if affinity::bound_processor().is_none() {
        violation::other("SystemProcessorProfileControlArea on a thread that can be on several processors");
    }
    let request: *mut Request = buffer.cast();
    // SAFETY: the caller promises a buffer of the length that was checked.
    let wants_one = unsafe { request.read_unaligned() }.allocate != 0;
    let Some(core) = processor::find(affinity::current_processor()) else { return nt::NOT_SUPPORTED };
    if !core.with(has_pebs) {
        return nt::NOT_SUPPORTED;
    }
    if !wants_one {
        match mode {
            Areas::OfWindows => return nt::SUCCESS,
            Areas::NotFreed(status) => return nt::status(status),
            Areas::Served | Areas::Missing => {}
        }
        let freed = lock(&AREAS).remove(&core.number);
        return if freed.is_some() { nt::SUCCESS } else { nt::MEMORY_NOT_ALLOCATED };
    }
    if fault_injection::fails("ZwSetSystemInformation") {
        return nt::INSUFFICIENT_RESOURCES;
    }
    let (status, address) = match allocate(core.number) {
        Ok(address) => (nt::SUCCESS, address),
        Err(address) => (nt::ADDRESS_ALREADY_EXISTS, address),
    };
    let answer = Request { area: ptr::with_exposed_provenance_mut(address), allocate: 1 };
    // SAFETY: the caller promises a buffer of the length that was checked.
    unsafe { request.write_unaligned(answer) };
    status
}

/// Only Intel's processors have the register.
fn has_pebs(state: &mut State) -> bool {
    let register = state.processor.uncounted(|processor| processor.rdmsr(MISC_ENABLE));
    register.is_ok_and(|value| value & (MONITORING_AVAILABLE | PEBS_UNAVAILABLE) == MONITORING_AVAILABLE)
}
