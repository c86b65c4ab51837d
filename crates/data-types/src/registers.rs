//! Registers, by the numbers of CodeView.

use iced_x86::Register;

/// Registers of 64-bit code from CV_AMD64_RAX on.
const REGISTERS_64: [Register; 16] = [
    Register::RAX,
    Register::RBX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::RSP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// Registers of 32-bit code from CV_REG_EAX on.
const REGISTERS_32: [Register; 8] = [
    Register::EAX,
    Register::ECX,
    Register::EDX,
    Register::EBX,
    Register::ESP,
    Register::EBP,
    Register::ESI,
    Register::EDI,
];

const CV_AMD64_RAX: u16 = 328;
const CV_REG_EAX: u16 = 17;

/// Returns the register of a number of CodeView, if an address can have it as its base.
///
/// # References
/// "CodeView Registers": `CV_HREG_e` in `cvconst.h`.
pub(crate) fn register(number: u16) -> Option<Register> {
    let find = |first: u16, registers: &[Register]| registers.get(usize::from(number.checked_sub(first)?)).copied();
    find(CV_AMD64_RAX, &REGISTERS_64).or_else(|| find(CV_REG_EAX, &REGISTERS_32))
}

/// Returns CodeView's number of the register that a frame is relative to, or 0 if there is none.
///
/// # References
/// `EncodedFramePtrReg` of LLVM; ESP of 32-bit code stands for a virtual register, which no instruction has.
pub(crate) fn frame_register(encoded: u8, is_64_bit: bool) -> u16 {
    match (encoded, is_64_bit) {
        (1, true) => 335,
        (2, true) => 334,
        (3, true) => 341,
        (2, false) => 22,
        (3, false) => 20,
        _ => 0,
    }
}
