//! Finds cpuid instructions in machine code.

use iced_x86::{Code, Decoder, DecoderOptions};

/// Returns the offsets of the two-byte cpuid instructions in `code`. `starts` are offsets at which an instruction is
/// known to start.
///
/// The function decodes from each start to the next, so data between functions can mislead it only up to the next
/// start. A search for the bytes would also find them inside other instructions.
#[must_use]
pub fn find_cpuid(code: &[u8], starts: &[usize]) -> Vec<usize> {
    let mut cuts: Vec<usize> = starts.iter().copied().filter(|start| *start < code.len()).collect();
    cuts.extend([0, code.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut found = Vec::new();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        let piece = code.get(*start..*end).unwrap_or_default();
        let mut decoder = Decoder::new(64, piece, DecoderOptions::NONE);
        while decoder.can_decode() {
            let at = decoder.position();
            let instruction = decoder.decode();
            if instruction.code() == Code::Cpuid && instruction.len() == 2 {
                found.push(start + at);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUID: [u8; 2] = [0x0F, 0xA2];

    #[test]
    fn cpuid_is_found_between_instructions_and_at_both_ends() {
        let code = [&CPUID[..], &[0x90], &CPUID, &[0xC3], &CPUID].concat();
        assert_eq!(find_cpuid(&code, &[]), [0, 3, 6]);
    }

    #[test]
    fn the_same_bytes_inside_an_instruction_are_ignored() {
        let code = [&[0xB8, 0x22, 0x0F, 0xA2, 0x11][..], &CPUID].concat(); // mov eax, 0x11A20F22
        assert_eq!(find_cpuid(&code, &[]), [5]);
    }

    #[test]
    fn data_before_a_function_does_not_hide_its_cpuid() {
        let code = [&[0x48, 0xB8][..], &CPUID, &[0xC3]].concat(); // the beginning of a ten-byte instruction
        assert!(find_cpuid(&code, &[]).is_empty());
        assert_eq!(find_cpuid(&code, &[2]), [2]);
    }

    #[test]
    fn starts_outside_the_code_are_ignored() {
        assert_eq!(find_cpuid(&CPUID, &[2, 3, usize::MAX]), [0]);
        assert!(find_cpuid(&[], &[0]).is_empty());
    }
}
