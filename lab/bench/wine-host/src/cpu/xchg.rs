//! Decodes the exchange of a cancel routine, which IoSetCancelRoutine executes inline.

use iced_x86::{Code, Decoder, DecoderOptions, Register};

/// An exchange of a 64-bit word in memory with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The address of the word.
    pub address: u64,
    /// The new value of the word.
    pub value: u64,
}

/// Decodes a 64-bit exchange at `ip`. `register` returns the general registers by their numbers in instruction
/// encodings.
#[must_use]
pub fn decode(code: &[u8], ip: u64, register: impl Fn(usize) -> Option<u64>) -> Option<Exchange> {
    let instruction = Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode();
    if instruction.code() != Code::Xchg_rm64_r64 || instruction.op0_register() != Register::None {
        return None;
    }
    let value = register(instruction.op1_register().number())?;
    let address = instruction.virtual_address(0, 0, |wanted, _, _| {
        if wanted.is_segment_register() { Some(0) } else { register(wanted.full_register().number()) }
    })?;
    Some(Exchange { address, value })
}

#[cfg(test)]
mod tests {
    use super::Exchange;

    /// Register n holds n * 0x1000.
    fn decode(code: &[u8]) -> Option<Exchange> {
        super::decode(code, 0x40_0000, |number| Some(number as u64 * 0x1000))
    }

    #[test]
    fn an_exchange_with_memory_is_decoded_with_address_and_value() {
        let exchanges: [(&[u8], u64, u64); 4] = [
            (&[0x48, 0x87, 0x51, 0x68], 0x1068, 0x2000),  // xchg [rcx+68h], rdx
            (&[0x49, 0x87, 0x44, 0x24, 0x68], 0xC068, 0), // xchg [r12+68h], rax
            (&[0x4C, 0x87, 0x7C, 0xCB, 0x10], 0x3010 + 8 * 0x1000, 0xF000), // xchg [rbx+rcx*8+10h], r15
            (&[0x48, 0x87, 0x35, 0x00, 0x01, 0, 0], 0x40_0000 + 0x107, 0x6000), // xchg [rip+100h], rsi
        ];
        for (code, address, value) in exchanges {
            let with_more = [code, &[0x90; 9]].concat();
            assert_eq!(decode(&with_more), Some(Exchange { address, value }), "{code:x?}");
        }
    }

    #[test]
    fn another_instruction_is_not_an_exchange() {
        let others: [&[u8]; 5] = [
            &[0x48, 0x87, 0xD1],       // xchg rcx, rdx
            &[0x87, 0x51, 0x68],       // xchg [rcx+68h], edx
            &[0x48, 0x89, 0x51, 0x68], // mov [rcx+68h], rdx
            &[0x48, 0x87],
            &[],
        ];
        for code in others {
            assert_eq!(decode(code), None, "{code:x?}");
        }
    }
}
