//! Decodes an instruction that faulted on a memory-mapped register.

use iced_x86::{Code, Decoder, DecoderOptions};

/// The longest x86 instruction in bytes.
pub const MAX_INSTRUCTION_LENGTH: usize = 15;

/// A decoded instruction.
#[derive(Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A `mov` between memory and a 32-bit register, the only access that the APIC's registers allow.
    Move {
        /// Whether it writes to memory.
        write: bool,
        /// The number of the register in instruction encodings.
        register: usize,
        /// Length of the instruction in bytes.
        length: usize,
    },
    /// Another instruction: its name and its length in bytes.
    Other(String, usize),
}

/// Decodes the instruction at the start of `code`. Returns None if there is none.
#[must_use]
pub fn decode(code: &[u8]) -> Option<Instruction> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let length = instruction.len();
    let (write, register) = match instruction.code() {
        Code::INVALID => return None,
        Code::Mov_r32_rm32 => (false, instruction.op0_register()),
        Code::Mov_rm32_r32 => (true, instruction.op1_register()),
        other => return Some(Instruction::Other(format!("{other:?}"), length)),
    };
    Some(Instruction::Move { write, register: register.number(), length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_between_memory_and_32_bit_registers_are_decoded() {
        let moves: [(&[u8], bool, usize); 6] = [
            (&[0x8B, 0x01], false, 0),                                      // mov eax, [rcx]
            (&[0x89, 0x10], true, 2),                                       // mov [rax], edx
            (&[0x8B, 0x80, 0x40, 0x03, 0x00, 0x00], false, 0),              // mov eax, [rax+340h]
            (&[0x45, 0x8B, 0xBC, 0x24, 0x40, 0x03, 0x00, 0x00], false, 15), // mov r15d, [r12+340h]
            (&[0x44, 0x89, 0x45, 0x00], true, 8),                           // mov [rbp], r8d
            (&[0x89, 0x34, 0x0B], true, 6),                                 // mov [rbx+rcx], esi
        ];
        for (code, write, register) in moves {
            let with_more = [code, &[0x90; 9]].concat();
            let expected = Instruction::Move { write, register, length: code.len() };
            assert_eq!(decode(&with_more), Some(expected), "{code:x?}");
        }
    }

    #[test]
    fn another_instruction_is_reported_by_name() {
        let others: [(&[u8], &str); 4] = [
            (&[0xF7, 0x01, 0, 0, 1, 0], "Test_rm32_imm32"),
            (&[0x48, 0x8B, 0x01], "Mov_r64_rm64"),
            (&[0x8A, 0x01], "Mov_r8_rm8"),
            (&[0xC7, 0x01, 0xFE, 0, 0, 0], "Mov_rm32_imm32"),
        ];
        for (code, name) in others {
            assert_eq!(decode(code), Some(Instruction::Other(name.to_owned(), code.len())));
        }
    }

    #[test]
    fn a_truncated_instruction_is_not_decoded() {
        assert_eq!((decode(&[]), decode(&[0x8B]), decode(&[0x8B, 0x80, 0x40])), (None, None, None));
    }
}
