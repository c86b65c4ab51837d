//! The memory-mapped registers of the local APIC: reserved pages that fault on access.

use crate::{
    cpu::{
        mmio::{self, Instruction},
        processor::State,
        processors,
    },
    state::machine::MACHINE,
    violation,
};
use windows_sys::Win32::System::Diagnostics::Debug::CONTEXT;

/// The LVT performance entry, the only register that drivers may write; the others belong to the HAL.
const LVT_PERFORMANCE: usize = 0x340;

/// The extended LVT entries of AMD, which drivers may read.
const EXTENDED_LVT: [usize; 4] = [0x500, 0x510, 0x520, 0x530];

/// Executes the first instruction of `code`, which faulted at `address`, on the current processor, and returns its
/// length. Returns None if no registers of the APIC are or were mapped at the address.
pub fn execute(code: &[u8], address: usize, context: &mut CONTEXT) -> Option<usize> {
    let (offset, mapped) = MACHINE.apic_pages.find(address)?;
    let (write, register, length) = match mmio::decode(code)? {
        Instruction::Move { write, register, length } => (write, register, length),
        Instruction::Other(name, length) => {
            violation::other(format!("{name} at the APIC's register {offset:#x}, which takes moves of 32 bits"));
            return Some(length);
        }
    };
    let extended = EXTENDED_LVT.iter().position(|entry| *entry == offset).filter(|_| !write);
    let register = match register_of(context, register) {
        Some(register) if mapped && (offset == LVT_PERFORMANCE || extended.is_some()) => register,
        register => {
            let what = if mapped { "which is the HAL's" } else { "which is no longer mapped" };
            let how = if write { "written" } else { "read" };
            violation::other(format!("the APIC's register {offset:#x} is {how}, {what}"));
            if let (Some(register), false) = (register, write) {
                *register = 0;
            }
            return Some(length);
        }
    };
    let value = u32::try_from(*register & 0xFFFF_FFFF).unwrap_or_default();
    let answer = processors::with_current_state(|_, state| access(state, write.then_some(value), extended));
    if !write {
        *register = u64::from(answer.unwrap_or_default());
    }
    Some(length)
}

/// Writes the LVT performance entry if there is a value, and returns the entry, or an extended one.
fn access(state: &mut State, value: Option<u32>, extended: Option<usize>) -> u32 {
    if state.processor.is_x2apic() {
        violation::other("the APIC's registers are accessed in memory in x2APIC mode");
    }
    violation::check_awake(|| "an access to the local vector table".to_owned());
    if let Some(value) = value {
        state.processor.set_lvt(value);
    }
    extended.map_or_else(|| state.processor.lvt(), |index| state.processor.extended_lvt(index))
}

/// Returns a general register of the thread, by its number in instruction encodings.
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
