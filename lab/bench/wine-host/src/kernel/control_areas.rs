//! SystemProcessorProfileControlArea: the PROCESSOR_PROFILE_CONTROL_AREA of each processor, in memory of the kernel.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::{affinity, processor::State, processors},
    kernel::{call_stack, version},
    lock::lock,
    nt::{self, NtStatus, Pointer},
    state::{control_areas::ControlArea, machine::MACHINE},
    violation,
};
use bench_protocol::ControlAreaMode;
use std::ptr;

/// SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA.
#[repr(C)]
struct Request {
    area: Pointer,
    allocate: u8,
}

const _: () = assert!(size_of::<Request>() == 0x10);

/// The build of version 1903. Since then, areas have room for the reset values of more counters.
const LARGER_SINCE: u32 = 18_362;
const WORDS_BEFORE: usize = 0x60 / 8;
const WORDS: usize = 0xA0 / 8;

/// IA32_MISC_ENABLE, and its bits: performance monitoring is available, PEBS is unavailable (SDM Vol. 4, "Architectural
/// MSRs").
const MISC_ENABLE: u32 = 0x1A0;
const MONITORING_AVAILABLE: u64 = 1 << 7;
const PEBS_UNAVAILABLE: u64 = 1 << 12;

/// `IA32_DS_AREA` (same table).
const DS_AREA: u32 = 0x600;

/// Selects how the information class behaves.
pub fn set_mode(areas: ControlAreaMode) {
    *lock(&MACHINE.kernel.control_areas.mode) = areas;
    write_addresses();
}

fn mode() -> ControlAreaMode {
    *lock(&MACHINE.kernel.control_areas.mode)
}

/// Writes the address of each area to its register, and allocates missing areas, if Windows owns the areas. Windows
/// does this at boot and after sleep.
pub fn write_addresses() {
    if mode() != ControlAreaMode::OwnedByWindows {
        return;
    }
    let thread = nt::current_thread();
    for core in processors::active().iter().filter(|core| core.with(has_pebs)) {
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

/// Resets the areas to those of a machine that has just booted.
pub fn reset() {
    set_mode(ControlAreaMode::Supported);
    lock(&MACHINE.kernel.control_areas.areas).clear();
}

/// Allocates the area of a processor for another driver. Returns false if the processor has one.
pub fn allocate_foreign(processor: u32) -> bool {
    allocate(processor).is_ok()
}

/// Returns the address of each processor's area.
pub fn addresses() -> Vec<Option<u64>> {
    let areas = lock(&MACHINE.kernel.control_areas.areas);
    let address = |number: u32| u64::try_from(areas.get(&number)?.address()).ok();
    processors::active().iter().map(|core| address(core.number)).collect()
}

/// Keeps the areas allocated while the result lives, if the address is in one of them.
pub fn pin(address: u64) -> Option<impl Sized> {
    let areas = lock(&MACHINE.kernel.control_areas.areas);
    let is_there = areas.values().any(|area| area.contains(address));
    is_there.then_some(areas)
}

/// Allocates an area. Returns the existing one as an error.
fn allocate(processor: u32) -> Result<usize, usize> {
    let mut areas = lock(&MACHINE.kernel.control_areas.areas);
    if let Some(area) = areas.get(&processor) {
        return Err(area.address());
    }
    let words = if version::build() < LARGER_SINCE { WORDS_BEFORE } else { WORDS };
    Ok(areas.entry(processor).or_insert_with(|| ControlArea::new(words)).address())
}

/// Implements ZwSetSystemInformation of this class for the current processor.
///
/// # Safety
/// The buffer has `length` bytes, which are readable and writable.
pub unsafe fn set(buffer: Pointer, length: u32) -> NtStatus {
    let mode = mode();
    if mode == ControlAreaMode::Missing {
        return nt::INVALID_INFO_CLASS;
    }
    if usize::try_from(length) != Ok(size_of::<Request>()) {
        return nt::INFO_LENGTH_MISMATCH;
    }
    if affinity::bound_processor().is_none() {
        violation::other("SystemProcessorProfileControlArea on a thread that can be on several processors");
    }
    let request: *mut Request = buffer.cast();
    // SAFETY: the caller guarantees a buffer of the checked length.
    let wants_one = unsafe { request.read_unaligned() }.allocate != 0;
    let Some(core) = processors::find(affinity::current_processor()) else { return nt::NOT_SUPPORTED };
    if !core.with(has_pebs) {
        return nt::NOT_SUPPORTED;
    }
    if !wants_one {
        match mode {
            ControlAreaMode::OwnedByWindows => return nt::SUCCESS,
            ControlAreaMode::FreeFails(status) => return nt::status(status),
            ControlAreaMode::Supported | ControlAreaMode::Missing => {}
        }
        let freed = lock(&MACHINE.kernel.control_areas.areas).remove(&core.number);
        return if freed.is_some() { nt::SUCCESS } else { nt::MEMORY_NOT_ALLOCATED };
    }
    if call_stack::fails("ZwSetSystemInformation") {
        return nt::INSUFFICIENT_RESOURCES;
    }
    let (status, address) = match allocate(core.number) {
        Ok(address) => (nt::SUCCESS, address),
        Err(address) => (nt::ADDRESS_ALREADY_EXISTS, address),
    };
    let answer = Request { area: ptr::with_exposed_provenance_mut(address), allocate: 1 };
    // SAFETY: the caller guarantees a buffer of the checked length.
    unsafe { request.write_unaligned(answer) };
    status
}

/// Returns whether the processor has PEBS. Only processors by Intel have the register.
fn has_pebs(state: &mut State) -> bool {
    let register = state.processor.uncounted(|processor| processor.rdmsr(MISC_ENABLE));
    register.is_ok_and(|value| value & (MONITORING_AVAILABLE | PEBS_UNAVAILABLE) == MONITORING_AVAILABLE)
}
