//! The local APIC's registers in memory.

use crate::{
    kernel::{self, Pointer},
    processor,
};
use core::{
    arch::asm,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

const PHYSICAL: u64 = 0xFEE0_0000;
const PAGE: usize = 0x1000;
/// PAGE_READWRITE and PAGE_NOCACHE.
const DEVICE: u32 = 0x204;
/// PAGE_READWRITE alone.
const CACHED: u32 = 0x4;

const LVT_PERFORMANCE: usize = 0x340;
/// End of interrupt.
const EOI: usize = 0xB0;

static MAPPED: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

/// What was found in the entry of each processor, or is to be there.
static ENTRIES: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Maps it; tells whether it is mapped.
pub fn map() -> bool {
    // SAFETY: device memory, mapped as such.
    let mapped = unsafe { kernel::MmMapIoSpaceEx(PHYSICAL, PAGE, DEVICE) };
    MAPPED.store(mapped, Ordering::SeqCst);
    !mapped.is_null()
}

/// Maps it in ways in which it can not be; tells how many of them gave it all the same.
pub fn map_wrongly() -> u32 {
    let ways = [(PHYSICAL, PAGE, CACHED), (PHYSICAL, 2 * PAGE, DEVICE), (PHYSICAL + 0x1000, PAGE, DEVICE)];
    // SAFETY: to be refused.
    let mapped = ways.iter().filter(|(at, size, how)| !unsafe { kernel::MmMapIoSpaceEx(*at, *size, *how) }.is_null());
    u32::try_from(mapped.count()).unwrap_or(u32::MAX)
}

/// Unmaps it. Where it was is still known, so that it can be accessed all the same.
pub fn unmap() {
    // SAFETY: mapped by `map`, or to be noticed.
    unsafe { kernel::MmUnmapIoSpace(MAPPED.load(Ordering::SeqCst), PAGE) };
}

/// The entry of each processor.
pub fn entries() -> [u32; 8] {
    // SAFETY: a routine of this type.
    unsafe { kernel::KeIpiGenericCall(keep, 0) };
    ENTRIES.each_ref().map(|entry| entry.load(Ordering::SeqCst))
}

/// Gives each processor an entry of its own: this one plus its number.
pub fn set_entries(first: u32) {
    for (entry, value) in ENTRIES.iter().zip(first..) {
        entry.store(value, Ordering::SeqCst);
    }
    // SAFETY: a routine of this type.
    unsafe { kernel::KeIpiGenericCall(put, 0) };
}

/// Ends an interrupt, which is the HAL's to do.
pub fn end_of_interrupt() {
    store(register(EOI), 0);
}

/// Reads the entry in a way that the APIC does not have.
pub fn read_wide() -> u32 {
    let value: u64;
    // SAFETY: to be noticed.
    unsafe {
        asm!("mov {value}, [{at}]", value = out(reg) value, at = in(reg) register(LVT_PERFORMANCE), options(nostack));
    }
    let [low, _] = processor::halves(value);
    low
}

fn register(offset: usize) -> Pointer {
    MAPPED.load(Ordering::SeqCst).wrapping_byte_add(offset)
}

fn mine() -> Option<&'static AtomicU32> {
    usize::try_from(processor::current()).ok().and_then(|place| ENTRIES.get(place))
}

unsafe extern "system" fn keep(_argument: usize) -> usize {
    if let Some(entry) = mine() {
        let value: u32;
        // SAFETY: mapped, or to be noticed.
        unsafe {
            asm!("mov {value:e}, [{at}]", value = out(reg) value, at = in(reg) register(LVT_PERFORMANCE), options(nostack));
        }
        entry.store(value, Ordering::SeqCst);
    }
    0
}

unsafe extern "system" fn put(_argument: usize) -> usize {
    if let Some(entry) = mine() {
        store(register(LVT_PERFORMANCE), entry.load(Ordering::SeqCst));
    }
    0
}

fn store(at: Pointer, value: u32) {
    // SAFETY: mapped, or to be noticed.
    unsafe { asm!("mov [{at}], {value:e}", value = in(reg) value, at = in(reg) at, options(nostack)) };
}
