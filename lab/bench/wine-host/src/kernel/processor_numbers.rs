//! Processor numbers. The machine has one group, so a processor's number is also its index.

#![expect(unsafe_code, reason = "reads and writes what the driver points to")]

use crate::{
    cpu::{affinity, processors},
    kernel::call_stack,
    nt::{self, NtStatus},
    state::machine::MACHINE,
};

/// ALL_PROCESSOR_GROUPS.
const ALL_GROUPS: u16 = 0xFFFF;

/// INVALID_PROCESSOR_INDEX.
const INVALID: u32 = u32::MAX;

/// PROCESSOR_NUMBER.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProcessorNumber {
    group: u16,
    number: u8,
    reserved: u8,
}

impl ProcessorNumber {
    pub fn new(index: u32) -> Self {
        Self { group: 0, number: u8::try_from(index).unwrap_or(u8::MAX), reserved: 0 }
    }

    /// Returns the index of the processor, if it exists.
    pub fn index(self) -> Option<u32> {
        let Self { group, number, reserved } = self;
        let core = processors::find(u32::from(number)).filter(|_| group == 0 && reserved == 0);
        core.map(|core| core.number)
    }
}

/// Implements KeQueryActiveProcessorCountEx. An unknown group has no processors.
pub extern "system" fn active_count(group: u16) -> u32 {
    if matches!(group, 0 | ALL_GROUPS) { MACHINE.topology.active() } else { 0 }
}

/// Implements KeQueryMaximumProcessorCountEx.
pub extern "system" fn maximum_count(group: u16) -> u32 {
    if matches!(group, 0 | ALL_GROUPS) { MACHINE.topology.maximum() } else { 0 }
}

/// Implements KeGetCurrentProcessorNumberEx.
pub unsafe extern "system" fn current(number: *mut ProcessorNumber) -> u32 {
    let index = affinity::current_processor();
    if !number.is_null() {
        // SAFETY: the pointer is not null, so it must point to a variable of the driver.
        unsafe { number.write(ProcessorNumber::new(index)) };
    }
    index
}

/// Implements KeGetProcessorNumberFromIndex.
pub unsafe extern "system" fn from_index(index: u32, number: *mut ProcessorNumber) -> NtStatus {
    if call_stack::fails("KeGetProcessorNumberFromIndex") || processors::find(index).is_none() {
        return nt::INVALID_PARAMETER;
    }
    // SAFETY: the driver must pass a writable variable.
    unsafe { number.write(ProcessorNumber::new(index)) };
    nt::SUCCESS
}

/// Implements KeGetProcessorIndexFromNumber.
pub unsafe extern "system" fn to_index(number: *const ProcessorNumber) -> u32 {
    // SAFETY: the driver must pass a number that can be read.
    let number = unsafe { number.read() };
    number.index().unwrap_or(INVALID)
}
