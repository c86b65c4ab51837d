//! MmMapIoSpaceEx and MmUnmapIoSpace, for the registers of the local APIC.

use crate::{
    cpu::{apic_pages::PAGE, processors},
    kernel::{call_stack, irql},
    nt::{DISPATCH_LEVEL, Pointer},
    state::machine::MACHINE,
    violation::{self, catch_panic},
};
use std::ptr;
use windows_sys::Win32::System::Memory::{PAGE_NOCACHE, PAGE_READWRITE};

/// The address of the APIC after reset (SDM Vol. 3A, "Local APIC Status and Location").
const PHYSICAL: u64 = 0xFEE0_0000;

/// Implements MmMapIoSpaceEx for the APIC, which must be mapped as device memory.
pub extern "system" fn map(physical: u64, size: usize, protect: u32) -> Pointer {
    catch_panic("MmMapIoSpaceEx", ptr::null_mut(), || {
        irql::check("MmMapIoSpaceEx", DISPATCH_LEVEL);
        if call_stack::fails("MmMapIoSpaceEx") {
            return ptr::null_mut();
        }
        if (physical, size, protect) != (PHYSICAL, PAGE, PAGE_READWRITE | PAGE_NOCACHE) {
            violation::other(format!("MmMapIoSpaceEx of {size:#x} bytes at {physical:#x}, protection {protect:#x}"));
            return ptr::null_mut();
        }
        if processors::active().iter().any(|core| core.with(|state| state.processor.is_x2apic())) {
            violation::other("MmMapIoSpaceEx of the APIC in x2APIC mode");
            return ptr::null_mut();
        }
        MACHINE.apic_pages.map()
    })
}

/// Implements MmUnmapIoSpace.
pub extern "system" fn unmap(address: Pointer, size: usize) {
    catch_panic("MmUnmapIoSpace", (), || {
        irql::check("MmUnmapIoSpace", DISPATCH_LEVEL);
        if size != PAGE || !MACHINE.apic_pages.unmap(address.addr()) {
            violation::other(format!("MmUnmapIoSpace of {size:#x} bytes at {address:p}, which is not mapped"));
        }
    });
}

/// Reports and removes what an unloaded driver left behind.
pub fn image_unloaded() {
    if MACHINE.apic_pages.unmap_all() {
        violation::other("a driver was unloaded that had mapped the APIC's registers");
    }
}
