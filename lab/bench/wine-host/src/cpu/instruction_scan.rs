//! Finds in machine code the instructions that the lab replaces.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};

/// An instruction that the lab replaces. Each has two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// cpuid.
    Cpuid,
    /// rdtsc.
    Rdtsc,
    /// `dec ecx` right before a `jne` back to it: a loop whose events the model must know.
    Loop,
}

/// Returns the instructions in `code` that the lab replaces, with their offsets. `starts` are offsets at which an
/// instruction is known to start.
///
/// The function decodes from each start to the next, so data between functions can mislead it only up to the next
/// start. A search for the bytes would also find them inside other instructions.
#[must_use]
pub fn find(code: &[u8], starts: &[usize]) -> Vec<(usize, Replaced)> {
    let mut cuts: Vec<usize> = starts.iter().copied().filter(|start| *start < code.len()).collect();
    cuts.extend([0, code.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut found = Vec::new();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        let piece = code.get(*start..*end).unwrap_or_default();
        let mut decoder = Decoder::new(64, piece, DecoderOptions::NONE);
        let mut decrement = None;
        while decoder.can_decode() {
            let at = decoder.position();
            let instruction = decoder.decode();
            match instruction.code() {
                Code::Cpuid if instruction.len() == 2 => found.push((start + at, Replaced::Cpuid)),
                Code::Rdtsc if instruction.len() == 2 => found.push((start + at, Replaced::Rdtsc)),
                _ => {}
            }
            if let Some(before) = decrement.filter(|before| is_branch_to(&instruction, *before)) {
                found.push((start + before, Replaced::Loop));
            }
            decrement = is_decrement(&instruction).then_some(at);
        }
    }
    found
}

fn is_decrement(instruction: &Instruction) -> bool {
    instruction.code() == Code::Dec_rm32 && instruction.op0_register() == Register::ECX && instruction.len() == 2
}

fn is_branch_to(instruction: &Instruction, position: usize) -> bool {
    instruction.code() == Code::Jne_rel8_64 && usize::try_from(instruction.near_branch_target()) == Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUID: [u8; 2] = [0x0F, 0xA2];

    fn cpuids(code: &[u8], starts: &[usize]) -> Vec<usize> {
        let found = find(code, starts).into_iter();
        found.filter(|(_, what)| *what == Replaced::Cpuid).map(|(offset, _)| offset).collect()
    }

    #[test]
    fn cpuid_is_found_between_instructions_and_at_both_ends() {
        let code = [&CPUID[..], &[0x90], &CPUID, &[0xC3], &CPUID].concat();
        assert_eq!(cpuids(&code, &[]), [0, 3, 6]);
    }

    #[test]
    fn the_same_bytes_inside_an_instruction_are_ignored() {
        let code = [&[0xB8, 0x22, 0x0F, 0xA2, 0x11][..], &CPUID].concat(); // mov eax, 0x11A20F22
        assert_eq!(cpuids(&code, &[]), [5]);
    }

    #[test]
    fn data_before_a_function_does_not_hide_its_cpuid() {
        let code = [&[0x48, 0xB8][..], &CPUID, &[0xC3]].concat(); // the beginning of a ten-byte instruction
        assert!(cpuids(&code, &[]).is_empty());
        assert_eq!(cpuids(&code, &[2]), [2]);
    }

    #[test]
    fn starts_outside_the_code_are_ignored() {
        assert_eq!(cpuids(&CPUID, &[2, 3, usize::MAX]), [0]);
        assert!(cpuids(&[], &[0]).is_empty());
    }

    #[test]
    fn rdtsc_is_found_beside_cpuid() {
        let code = [&[0x0F, 0x31][..], &CPUID].concat();
        assert_eq!(find(&code, &[]), [(0, Replaced::Rdtsc), (2, Replaced::Cpuid)]);
    }

    #[test]
    fn a_loop_is_a_decrement_with_a_branch_to_itself() {
        let code = [&[0xB9, 0, 16, 0, 0][..], &[0xFF, 0xC9, 0x75, 0xFC, 0xC3]].concat();
        assert_eq!(find(&code, &[]), [(5, Replaced::Loop)]);
        let elsewhere = [&[0x90][..], &[0xFF, 0xC9, 0x75, 0xFB, 0xC3]].concat(); // to the instruction before it
        assert_eq!(find(&elsewhere, &[]), []);
    }
}
