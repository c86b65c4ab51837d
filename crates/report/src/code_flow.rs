//! The end of a function without unwind information, by the flow of its code.
//!
//! An exported function is a name only for its own code. What belongs to it follows from its branches: the code up to
//! the first instruction after which none follows, and what the function reaches from there. Code that only a jump
//! reaches can be another function (a tail call). It belongs to the function only if it leads back.

use std::collections::BTreeMap;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::newer_code::decode;

/// Maximum number of instructions that are followed.
const MAX_INSTRUCTIONS: usize = 0x4000;

/// Maximum number of bytes of code that are needed.
pub(crate) const MAX_CODE: usize = 0x1_0000;

/// Returns the length of the function at the beginning of `code`.
pub(crate) fn function_length(code: &[u8], is_64_bit: bool) -> usize {
    let code = code.get(..MAX_CODE).unwrap_or(code);
    let mut flow = Flow { code, bitness: if is_64_bit { 64 } else { 32 }, left: MAX_INSTRUCTIONS };
    let mut own = Reached::default();
    flow.follow(0, &mut own);
    loop {
        let end = own.end();
        let targets = own.conditional.iter().map(|target| (*target, true));
        let targets = targets.chain(own.jumps.iter().map(|target| (*target, false)));
        let outside: Vec<_> = targets.filter(|(target, _)| *target >= end).collect();
        let joined = outside.into_iter().find_map(|(target, is_conditional)| {
            let other = flow.follow_branches(end, target);
            let follows = is_conditional && flow.is_padding(end, target);
            let leads_back = || other.targets().any(|target| target > 0 && own.instructions.contains_key(&target));
            (follows || other.instructions.contains_key(&end) || leads_back()).then_some(other)
        });
        match joined {
            Some(other) => own.add(other),
            None => return end,
        }
    }
}

/// Instructions that were reached, as offsets from the beginning of the code.
#[derive(Debug, Default)]
struct Reached {
    /// Each instruction with its length.
    instructions: BTreeMap<usize, usize>,
    /// Targets of conditional branches that were not followed.
    conditional: Vec<usize>,
    /// Targets of jumps.
    jumps: Vec<usize>,
}

impl Reached {
    /// Returns the end of the last instruction.
    fn end(&self) -> usize {
        self.instructions.last_key_value().map_or(0, |(offset, length)| offset + length)
    }

    fn targets(&self) -> impl Iterator<Item = usize> {
        self.conditional.iter().chain(&self.jumps).copied()
    }

    fn add(&mut self, other: Self) {
        self.instructions.extend(other.instructions);
        self.conditional.extend(other.conditional);
        self.jumps.extend(other.jumps);
    }
}

struct Flow<'a> {
    code: &'a [u8],
    bitness: u32,
    /// Number of instructions that are still followed.
    left: usize,
}

impl Flow<'_> {
    /// Returns the instructions from `start`, and what their conditional branches reach between `end` and `start`: the
    /// body of a loop whose condition is at `start`.
    fn follow_branches(&mut self, end: usize, start: usize) -> Reached {
        let mut reached = Reached::default();
        self.follow(start, &mut reached);
        let mut followed = 0;
        while let Some(target) = reached.conditional.get(followed).copied() {
            followed += 1;
            if (end..start).contains(&target) {
                self.follow(target, &mut reached);
            }
        }
        reached
    }

    /// Adds the instructions from `start` to the first one after which none follows.
    fn follow(&mut self, start: usize, reached: &mut Reached) {
        let Some(rest) = self.code.get(start..) else { return };
        // Addresses below zero are outside the code too.
        let base = 0x1_0000_0000_u64;
        let base = if self.bitness == 64 { base } else { base / 2 };
        let mut decoder = Decoder::with_ip(self.bitness, rest, base + start as u64, DecoderOptions::NONE);
        while decoder.can_decode() {
            let (instruction, newer) = decode(&mut decoder, rest);
            let offset = usize::try_from(instruction.ip().wrapping_sub(base)).unwrap_or(usize::MAX);
            let is_unknown = newer.is_none() && instruction.is_invalid();
            if self.left == 0 || is_unknown || reached.instructions.contains_key(&offset) {
                return;
            }
            self.left -= 1;
            reached.instructions.insert(offset, newer.map_or(instruction.len(), <[u8]>::len));
            if newer.is_some() {
                continue;
            }
            let target = || usize::try_from(instruction.near_branch_target().checked_sub(base)?).ok();
            match instruction.flow_control() {
                FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => reached.conditional.extend(target()),
                FlowControl::UnconditionalBranch => {
                    reached.jumps.extend(target());
                    return;
                }
                FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => return,
                FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int3 => return,
                _ => {}
            }
        }
    }

    /// Returns whether compilers could have filled the code between two addresses, to align what follows.
    fn is_padding(&self, begin: usize, end: usize) -> bool {
        let is_filler = |one: Instruction| matches!(one.mnemonic(), Mnemonic::Int3 | Mnemonic::Nop);
        let bytes = self.code.get(begin..end);
        bytes.is_some_and(|bytes| Decoder::new(self.bitness, bytes, DecoderOptions::NONE).into_iter().all(is_filler))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(code: &[&[u8]]) -> usize {
        function_length(&code.concat(), true)
    }

    const RET: &[u8] = &[0xC3];
    const NOP: &[u8] = &[0x90];
    const INT3: &[u8] = &[0xCC];

    /// A jump over `distance` bytes.
    fn jmp(distance: i8) -> Vec<u8> {
        vec![0xEB, distance.cast_unsigned()]
    }

    /// A conditional jump over `distance` bytes.
    fn je(distance: i8) -> Vec<u8> {
        vec![0x74, distance.cast_unsigned()]
    }

    #[test]
    fn a_function_ends_with_its_return_and_not_with_the_next_function() {
        assert_eq!(length(&[NOP, RET, NOP, RET]), 2);
        assert_eq!(length(&[NOP, RET, INT3, INT3, NOP, RET]), 2);
        assert_eq!(length(&[]), 0);
        // An undefined instruction ends the function, and so does the end of the code.
        assert_eq!(length(&[NOP, &[0x0F, 0x0B], NOP, RET]), 3);
        assert_eq!(length(&[NOP, NOP]), 2);
        // An instruction of APX does not.
        assert_eq!(length(&[&[0xD5, 0x18, 0x01, 0xC3], NOP, RET, NOP]), 6);
    }

    #[test]
    fn code_behind_a_conditional_branch_belongs_to_the_function() {
        assert_eq!(length(&[&je(1), RET, NOP, RET, NOP]), 5);
        // With padding between, too.
        assert_eq!(length(&[&je(3), RET, INT3, NOP, NOP, RET, NOP]), 7);
        // Behind code of another function, it does not.
        assert_eq!(length(&[&je(3), RET, &[0x50], RET, NOP, RET, NOP]), 3);
        // If it leads back, it does: it is moved out of the way.
        assert_eq!(length(&[&je(4), NOP, RET, &[0x50], RET, &jmp(-6), RET]), 8);
    }

    #[test]
    fn a_loop_that_begins_with_a_jump_belongs_to_the_function() {
        // jmp condition; body; condition: je body; ret
        assert_eq!(length(&[&jmp(1), NOP, &je(-3), RET, NOP]), 6);
    }

    #[test]
    fn a_jump_to_another_function_does_not_extend_the_function() {
        assert_eq!(length(&[NOP, &jmp(2), NOP, RET, NOP, RET]), 3);
        // Even if that one comes next, or calls the first one at its end.
        assert_eq!(length(&[NOP, &jmp(1), RET, NOP, RET]), 3);
        assert_eq!(length(&[NOP, &jmp(1), RET, NOP, &jmp(-7), RET]), 3);
    }
}
