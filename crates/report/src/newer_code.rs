//! The length of instructions that the decoder does not know: those of APX and AVX10.2.
//!
//! Their prefixes are a REX2 prefix, and an EVEX prefix in forms that were reserved ("Intel Advanced Performance
//! Extensions Architecture Specification", 3.1; "Intel AVX10.2 Architecture Specification"). Older decoders
//! take a part of such an instruction for the whole, and what follows for other instructions.

use iced_x86::{Decoder, DecoderOptions, Instruction};

const REX2: u8 = 0xD5;
const EVEX: u8 = 0x62;

/// Maximum number of bytes of an instruction.
const MAX_LENGTH: usize = 15;

/// Number of bytes of an EVEX prefix.
const EVEX_LENGTH: usize = 4;

/// Decodes the next instruction of `code`. If it is one that the decoder does not know, its bytes are returned as well,
/// and the decoder goes on behind it.
pub(crate) fn decode<'a>(decoder: &mut Decoder<'_>, code: &'a [u8]) -> (Instruction, Option<&'a [u8]>) {
    let position = decoder.position();
    let instruction = decoder.decode();
    let is_unknown = instruction.is_invalid() && decoder.bitness() == 64;
    let rest = code.get(position..).filter(|_| is_unknown);
    let bytes = rest.and_then(|rest| rest.get(..newer_length(rest)?));
    if let Some(bytes) = bytes
        && decoder.set_position(position + bytes.len()).is_ok()
    {
        decoder.set_ip(instruction.ip().wrapping_add(bytes.len() as u64));
        return (instruction, Some(bytes));
    }
    (instruction, None)
}

/// Returns the length of the 64-bit instruction at the beginning of `code`, which the decoder does not know, if it has
/// one of the newer prefixes.
fn newer_length(code: &[u8]) -> Option<usize> {
    let prefixes = code.iter().take_while(|byte| is_legacy_prefix(**byte)).count();
    let rest = code.get(prefixes..)?;
    let length = match *rest.first()? {
        REX2 => rex2_length(code.get(..prefixes)?, rest)?,
        EVEX if prefixes == 0 => evex_length(rest)?,
        _ => return None,
    };
    (length <= MAX_LENGTH && length <= code.len()).then_some(length)
}

fn is_legacy_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2E | 0x36 | 0x3E | 0x64..=0x67 | 0xF0 | 0xF2 | 0xF3)
}

/// Returns the length of an instruction with a REX2 prefix. It is that of the instruction with a REX prefix and one
/// byte more; the prefix has a bit for the byte 0F.
fn rex2_length(prefixes: &[u8], rest: &[u8]) -> Option<usize> {
    let (payload, tail) = (*rest.get(1)?, rest.get(2..)?);
    let is_second_map = payload & 0x80 != 0;
    let mut code = prefixes.to_vec();
    code.push(0x40 | payload & 0x0F);
    if is_second_map {
        code.push(0x0F);
    }
    code.extend(tail.iter().take(MAX_LENGTH));
    let instruction = Decoder::new(64, &code, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| instruction.len() + usize::from(!is_second_map))
}

/// Returns the length of an instruction with an EVEX prefix: after it are the opcode, the operands, and in some a
/// constant.
fn evex_length(code: &[u8]) -> Option<usize> {
    let map = code.get(1)? & 7;
    let is_16_bit = code.get(2)? & 3 == 1;
    let (opcode, operand) = (*code.get(EVEX_LENGTH)?, *code.get(EVEX_LENGTH + 1)?);
    let (mode, selector, register) = (operand >> 6, operand >> 3 & 7, operand & 7);
    let wide = if is_16_bit { 2 } else { 4 };
    let constant = match (map, opcode) {
        (1, 0x70..=0x73 | 0xC2 | 0xC4..=0xC6) | (3, _) | (4, 0x24 | 0x2C | 0x6B | 0x80 | 0x83 | 0xC0 | 0xC1) => 1,
        (4, 0x69 | 0x81) => wide,
        (4, 0xF6) if selector < 2 => 1,
        (4, 0xF7) if selector < 2 => wide,
        (7, 0xF6 | 0xF8) => 4,
        (1..=7, _) => 0,
        _ => return None,
    };
    let has_index = mode != 3 && register == 4;
    let displacement = match mode {
        1 => 1,
        2 => 4,
        0 if register == 5 => 4,
        0 if has_index && code.get(EVEX_LENGTH + 2)? & 7 == 5 => 4,
        _ => 0,
    };
    Some(EVEX_LENGTH + 2 + usize::from(has_index) + displacement + constant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions as Intel's specifications encode them, with an operand from memory where it changes the length.
    const KNOWN: [(&str, &[u8]); 22] = [
        ("add r16d, eax", &[0xD5, 0x10, 0x01, 0xC0]),
        ("add [r16+r17*2+8], rax", &[0xD5, 0x38, 0x01, 0x44, 0x48, 0x08]),
        ("mov r16d, 12345678h", &[0xD5, 0x10, 0xB8, 0x78, 0x56, 0x34, 0x12]),
        ("mov r16, imm64", &[0xD5, 0x18, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("add r16w, ax", &[0x66, 0xD5, 0x10, 0x01, 0xC0]),
        ("imul r16d, eax", &[0xD5, 0xC0, 0xAF, 0xC0]),
        ("cmovz r16d, [rip+4]", &[0xD5, 0xC0, 0x44, 0x05, 4, 0, 0, 0]),
        ("jmpabs", &[0xD5, 0x00, 0xA1, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("pushp rax", &[0xD5, 0x08, 0x50]),
        ("{nd} add ecx, eax, ebx", &[0x62, 0xF4, 0x74, 0x18, 0x01, 0xD8]),
        ("{nf} add ecx, 01020304h", &[0x62, 0xF4, 0x7C, 0x0C, 0x81, 0xC1, 4, 3, 2, 1]),
        ("{nf} add cx, 0102h", &[0x62, 0xF4, 0x7D, 0x0C, 0x81, 0xC1, 2, 1]),
        ("{nf} sub qword [rax+rcx], 1", &[0x62, 0xF4, 0xFC, 0x0C, 0x83, 0x2C, 0x08, 1]),
        ("ctest dword [rbx], 1", &[0x62, 0xF4, 0x44, 0x02, 0xF7, 0x03, 1, 0, 0, 0]),
        ("{nf} neg ecx", &[0x62, 0xF4, 0x7C, 0x0C, 0xF7, 0xD9]),
        ("push2 rax, rbx", &[0x62, 0xF4, 0x64, 0x18, 0xFF, 0xF0]),
        ("{nf} andn eax, ebx, [ebp+80h]", &[0x62, 0xF2, 0x64, 0x0C, 0xF2, 0x85, 0x80, 0, 0, 0]),
        ("vaddps zmm0, zmm1, [r16]", &[0x62, 0xF9, 0x74, 0x48, 0x58, 0x00]),
        ("vaddps zmm0, zmm1, [rax+r17]", &[0x62, 0xF1, 0x70, 0x48, 0x58, 0x04, 0x08]),
        ("vminmaxps xmm0, xmm0, xmm1, 7", &[0x62, 0xF3, 0x7D, 0x08, 0x52, 0xC1, 7]),
        ("vmovd xmm0, xmm1", &[0x62, 0xF1, 0x7E, 0x08, 0x7E, 0xC1]),
        ("urdmsr rax, 10h", &[0x62, 0xF7, 0x7F, 0x08, 0xF8, 0xC0, 0x10, 0, 0, 0]),
    ];

    #[test]
    fn an_instruction_ends_where_the_specification_says() {
        for (name, bytes) in KNOWN {
            let mut code = bytes.to_vec();
            code.extend([0x90; 16]);
            assert_eq!(newer_length(&code), Some(bytes.len()), "{name}");
            for shorter in 0..bytes.len() {
                assert_eq!(newer_length(&bytes[..shorter]), None, "{name}: {shorter}");
            }
        }
    }

    #[test]
    fn the_decoder_knows_none_of_them() {
        for (name, bytes) in KNOWN {
            let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
            assert!(decoder.decode().is_invalid(), "{name}: the decoder knows it now");
        }
    }

    #[test]
    fn other_code_is_none_of_them() {
        for code in
            [&[0x0F, 0xFF, 0x00][..], &[0x06], &[0xD5, 0x80, 0x04, 0x90], &[0x66, 0x62, 0xF4, 0x74, 0x18, 1, 0xD8]]
        {
            assert_eq!(newer_length(code), None, "{code:x?}");
        }
    }
}
