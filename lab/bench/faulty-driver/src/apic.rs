//! The memory-mapped registers of the local APIC.

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

/// The LVT entry of each processor, as read or to be written.
static ENTRIES: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Maps the registers and returns whether that succeeded.
pub fn map() -> bool {
    // SAFETY: device memory, mapped as such.
    let mapped = unsafe { kernel::MmMapIoSpaceEx(PHYSICAL, PAGE, DEVICE) };
    MAPPED.store(mapped, Ordering::SeqCst);
    !mapped.is_null()
}

/// Tries to map the registers in invalid ways and returns how many attempts succeeded.
pub fn map_wrongly() -> u32 {
    let ways = [(PHYSICAL, PAGE, CACHED), (PHYSICAL, 2 * PAGE, DEVICE), (PHYSICAL + 0x1000, PAGE, DEVICE)];
    // SAFETY: the lab must reject this.
    let mapped = ways.iter().filter(|(at, size, how)| !unsafe { kernel::MmMapIoSpaceEx(*at, *size, *how) }.is_null());
    u32::try_from(mapped.count()).unwrap_or(u32::MAX)
}

/// Unmaps the registers. The address is kept, so that they can be accessed after that.
pub fn unmap() {
    // SAFETY: mapped by `map`, or the lab must notice the call.
    unsafe { kernel::MmUnmapIoSpace(MAPPED.load(Ordering::SeqCst), PAGE) };
}

/// Returns the LVT entry of each processor.
pub fn entries() -> [u32; 8] {
    // SAFETY: the routine has the required type.
    unsafe { kernel::KeIpiGenericCall(read_entry, 0) };
    ENTRIES.each_ref().map(|entry| entry.load(Ordering::SeqCst))
}

/// Sets the LVT entry of each processor to `first` plus the processor's number.
pub fn set_entries(first: u32) {
    for (entry, value) in ENTRIES.iter().zip(first..) {
        entry.store(value, Ordering::SeqCst);
    }
    // SAFETY: the routine has the required type.
    unsafe { kernel::KeIpiGenericCall(write_entry, 0) };
}

/// Ends an interrupt, which only the HAL may do.
pub fn end_of_interrupt() {
    store(register(EOI), 0);
}

/// Reads the entry with a 64-bit access, which the APIC does not support.
pub fn read_wide() -> u32 {
    let value: u64;
    // SAFETY: the lab must notice this access.
    unsafe {
        asm!("mov {value}, [{at}]", value = out(reg) value, at = in(reg) register(LVT_PERFORMANCE), options(nostack));
    }
    let [low, _] = processor::halves(value);
    low
}

fn register(offset: usize) -> Pointer {
    MAPPED.load(Ordering::SeqCst).wrapping_byte_add(offset)
}

fn current_entry() -> Option<&'static AtomicU32> {
    usize::try_from(processor::current()).ok().and_then(|place| ENTRIES.get(place))
}

unsafe extern "system" fn read_entry(_argument: usize) -> usize {
    if let Some(entry) = current_entry() {
        let value: u32;
        // SAFETY: mapped, or the lab must notice the access.
        unsafe {
            asm!("mov {value:e}, [{at}]", value = out(reg) value, at = in(reg) register(LVT_PERFORMANCE), options(nostack));
        }
        entry.store(value, Ordering::SeqCst);
    }
    0
}

unsafe extern "system" fn write_entry(_argument: usize) -> usize {
    if let Some(entry) = current_entry() {
        store(register(LVT_PERFORMANCE), entry.load(Ordering::SeqCst));
    }
    0
}

fn store(at: Pointer, value: u32) {
    // SAFETY: mapped, or the lab must notice the access.
    unsafe { asm!("mov [{at}], {value:e}", value = in(reg) value, at = in(reg) at, options(nostack)) };
}
