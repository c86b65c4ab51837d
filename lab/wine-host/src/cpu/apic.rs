//! The registers of the local APIC in memory: a page that faults, and what the processor whose APIC it is answers there.

#![expect(unsafe_code, reason = "reserves memory, and reads the instruction that faulted")]

use crate::{
    cpu::{
        mmio::{self, Instruction},
        processor::{self, State},
        trap,
    },
    fault_injection,
    kernel::irql,
    loader::image,
    lock, nt,
    nt::{DISPATCH_LEVEL, Pointer},
    violation::{self, caught},
};
use std::{ptr, sync::Mutex};
use windows_sys::Win32::System::{
    Diagnostics::Debug::CONTEXT,
    Memory::{PAGE_NOCACHE, PAGE_READWRITE},
};

/// Where the APIC is after reset (SDM Vol. 3A, "Local APIC Status and Location").
const PHYSICAL: u64 = 0xFEE0_0000;
const PAGE: usize = 0x1000;

/// The LVT performance entry, of the registers the one that is not the HAL's alone.
const LVT_PERFORMANCE: usize = 0x340;

struct Map {
    address: usize,
    /// False when it was unmapped; the addresses are not given out again.
    mapped: bool,
}

static MAPS: Mutex<Vec<Map>> = Mutex::new(Vec::new());

/// MmMapIoSpaceEx: of the APIC, as device memory has to be mapped.
pub extern "system" fn map(physical: u64, size: usize, protect: u32) -> Pointer {
    caught("MmMapIoSpaceEx", ptr::null_mut(), || {
        irql::check("MmMapIoSpaceEx", DISPATCH_LEVEL);
        if fault_injection::fails("MmMapIoSpaceEx") {
            return ptr::null_mut();
        }
        if (physical, size, protect) != (PHYSICAL, PAGE, PAGE_READWRITE | PAGE_NOCACHE) {
            violation::other(format!("MmMapIoSpaceEx of {size:#x} bytes at {physical:#x}, protection {protect:#x}"));
            return ptr::null_mut();
        }
        if processor::all().iter().any(|core| core.with(|state| state.processor.is_x2apic())) {
            violation::other("MmMapIoSpaceEx of the APIC in x2APIC mode");
            return ptr::null_mut();
        }
        let page = nt::reserve(PAGE);
        if !page.is_null() {
            lock(&MAPS).push(Map { address: page.addr(), mapped: true });
        }
        page
    })
}

/// MmUnmapIoSpace.
pub extern "system" fn unmap(address: Pointer, size: usize) {
    caught("MmUnmapIoSpace", (), || {
        irql::check("MmUnmapIoSpace", DISPATCH_LEVEL);
        let mut maps = lock(&MAPS);
        let map = maps.iter_mut().find(|map| map.address == address.addr() && map.mapped && size == PAGE);
        match map {
            Some(map) => map.mapped = false,
            None => violation::other(format!("MmUnmapIoSpace of {size:#x} bytes at {address:p}, which is not mapped")),
        }
    });
}

/// Offset in the registers, and whether they are mapped; None if the address is elsewhere.
fn find(address: usize) -> Option<(usize, bool)> {
    let within = |map: &Map| {
        let offset = address.checked_sub(map.address).filter(|offset| *offset < PAGE)?;
        Some((offset, map.mapped))
    };
    lock(&MAPS).iter().find_map(within)
}

/// Executes the instruction at `at`, which faulted at `address`, on the current processor; None if it has nothing to do
/// with the APIC. Gives back the bytes of the instruction.
pub fn execute(at: usize, address: usize, context: &mut CONTEXT) -> Option<usize> {
    let (offset, mapped) = find(address)?;
    let length = image::left(at).min(mmio::LONGEST);
    // SAFETY: an adopted driver was executing there, and its image goes on for so long.
    let code = unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(at), length) };
    let (write, register, length) = match mmio::decode(code)? {
        Instruction::Move { write, register, length } => (write, register, length),
        Instruction::Other(name, length) => {
            violation::other(format!("{name} at the APIC's register {offset:#x}, which takes moves of 32 bits"));
            return Some(length);
        }
    };
    let register = match register_of(context, register) {
        Some(register) if mapped && offset == LVT_PERFORMANCE => register,
        register => {
            let what = if mapped { "which is the HAL's" } else { "which is not mapped any more" };
            let how = if write { "written" } else { "read" };
            violation::other(format!("the APIC's register {offset:#x} is {how}, {what}"));
            if let (Some(register), false) = (register, write) {
                *register = 0;
            }
            return Some(length);
        }
    };
    let value = u32::try_from(*register & 0xFFFF_FFFF).unwrap_or_default();
    let answer = trap::on_processor(|_, state| access(state, write.then_some(value)));
    if !write {
        *register = u64::from(answer.unwrap_or_default());
    }
    Some(length)
}

/// Reads the entry, or writes it.
fn access(state: &mut State, value: Option<u32>) -> u32 {
    if state.processor.is_x2apic() {
        violation::other("the APIC's registers are accessed in memory in x2APIC mode");
    }
    trap::check_awake(|| "an access to the LVT performance entry".to_owned());
    if let Some(value) = value {
        state.processor.set_lvt(value);
    }
    state.processor.lvt()
}

/// A general register of the thread, by the number that it has in instructions.
fn register_of(context: &mut CONTEXT, number: usize) -> Option<&mut u64> {
    Some(match number {
        0 => &mut context.Rax,
        1 => &mut context.Rcx,
        2 => &mut context.Rdx,
        3 => &mut context.Rbx,
        4 => &mut context.Rsp,
        5 => &mut context.Rbp,
        6 => &mut context.Rsi,
        7 => &mut context.Rdi,
        8 => &mut context.R8,
        9 => &mut context.R9,
        10 => &mut context.R10,
        11 => &mut context.R11,
        12 => &mut context.R12,
        13 => &mut context.R13,
        14 => &mut context.R14,
        15 => &mut context.R15,
        _ => return None,
    })
}

/// A driver is gone; what it left is noted and forgotten.
pub fn image_unloaded() {
    let mut maps = lock(&MAPS);
    if maps.iter().any(|map| map.mapped) {
        violation::other("a driver was unloaded that had mapped the APIC's registers");
    }
    maps.iter_mut().for_each(|map| map.mapped = false);
}
