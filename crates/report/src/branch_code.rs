//! The branch instructions of an image.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, PeFile, SectionTable};

use crate::function_code::CodeError;

/// Maximum number of bytes of an instruction (SDM Vol. 2A, 2.3.11).
const MAX_LENGTH: usize = 15;

/// What is at the address that a processor reports as that of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFix {
    /// A branch.
    Right,
    /// The first instruction of a fused pair, as AMD's processors report it: the branch is at this address.
    Moved(u32),
    /// No branch.
    Wrong,
}

/// What is between the target of a branch and the next branch instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// Code that does not run from one to the other without a taken branch.
    Broken,
    /// Code with an instruction that the decoder does not know, which can be a newer one.
    Unknown,
    /// So many instructions, with the branch.
    Instructions(u32),
}

/// The code of an image.
pub struct BranchCode<'a> {
    image: &'a [u8],
    sections: SectionTable<'a>,
    bitness: u32,
}

impl<'a> BranchCode<'a> {
    /// Reads the headers of an image.
    pub fn new(image: &'a [u8]) -> Result<Self, CodeError> {
        match object::FileKind::parse(image) {
            Ok(object::FileKind::Pe64) => Self::of::<ImageNtHeaders64>(image),
            Ok(object::FileKind::Pe32) => Self::of::<ImageNtHeaders32>(image),
            Ok(kind) => Err(CodeError::Image(format!("{kind:?}"))),
            Err(error) => Err(CodeError::Image(error.to_string())),
        }
    }

    fn of<Headers: ImageNtHeaders>(image: &'a [u8]) -> Result<Self, CodeError> {
        let file = PeFile::<Headers>::parse(image).map_err(|error| CodeError::Image(error.to_string()))?;
        let bitness = if file.nt_headers().is_type_64() { 64 } else { 32 };
        Ok(Self { image, sections: file.section_table(), bitness })
    }

    /// Returns where the branch is that is reported at `address`, relative to the image base.
    pub fn fix(&self, address: u32) -> SourceFix {
        let Some(first) = self.instruction(address) else { return SourceFix::Wrong };
        if is_branch(&first) {
            return SourceFix::Right;
        }
        let next = u32::try_from(first.next_ip()).ok();
        let is_conditional = |address: &u32| {
            self.instruction(*address).is_some_and(|second| second.flow_control() == FlowControl::ConditionalBranch)
        };
        next.filter(is_conditional).map_or(SourceFix::Wrong, SourceFix::Moved)
    }

    /// Returns what runs from `begin` to the branch instruction at `end` without another taken branch.
    pub fn run(&self, begin: u32, end: u32) -> Run {
        let Some(code) = self.sections.pe_data_at(self.image, begin) else { return Run::Broken };
        let mut decoder = Decoder::with_ip(self.bitness, code, begin.into(), DecoderOptions::NONE);
        let end = u64::from(end);
        let mut instructions = 1;
        while decoder.ip() < end && decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Run::Unknown;
            }
            if is_always_taken(&instruction) {
                return Run::Broken;
            }
            instructions += 1;
        }
        if decoder.ip() == end { Run::Instructions(instructions) } else { Run::Broken }
    }

    fn instruction(&self, address: u32) -> Option<Instruction> {
        let code = self.sections.pe_data_at(self.image, address)?;
        let code = code.get(..MAX_LENGTH).unwrap_or(code);
        let instruction = Decoder::with_ip(self.bitness, code, address.into(), DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }
}

/// Returns whether the instruction can be the source of a branch. An interrupt or an exception can come at any other,
/// but is taken to the kernel.
fn is_branch(instruction: &Instruction) -> bool {
    !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::Exception)
}

/// Returns whether the instruction is a jump, a call or a return that is a taken branch each time. The calls of the
/// kernel are far ones, which a recording of near branches does not have.
fn is_always_taken(instruction: &Instruction) -> bool {
    let is_jump_or_return = matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    );
    is_jump_or_return || instruction.is_call_near() || instruction.is_call_near_indirect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DLL: &[u8] = include_bytes!("../tests/fixtures/functions.dll");

    /// Returns the addresses of the instructions from `begin` to `end` with what is decided about each.
    fn decided(begin: u32, end: u32) -> Vec<(u32, SourceFix)> {
        let code = BranchCode::new(DLL).unwrap();
        let mut found = Vec::new();
        let mut address = begin;
        while address < end {
            found.push((address, code.fix(address)));
            address = u32::try_from(code.instruction(address).unwrap().next_ip()).unwrap();
        }
        found
    }

    #[test]
    fn a_branch_is_right_and_the_instruction_before_a_conditional_one_moves_to_it() {
        let code = BranchCode::new(DLL).unwrap();
        let all = decided(0x1040, 0x105E);
        let calls = all.iter().filter(|(_, fix)| *fix == SourceFix::Right).count();
        assert!(calls >= 2, "entry() calls functions and returns: {all:x?}");
        assert!(all.iter().any(|(_, fix)| *fix == SourceFix::Wrong), "{all:x?}");
        for (address, fix) in &all {
            if let SourceFix::Moved(branch) = fix {
                assert_eq!(code.fix(*branch), SourceFix::Right, "{address:x}");
            }
        }
        assert_eq!(code.fix(0x10_0000), SourceFix::Wrong, "outside of the image");
        assert!(BranchCode::new(b"MZ").is_err());
    }
    #[test]
    fn jumps_calls_and_returns_are_always_taken_and_system_calls_are_no_near_branches() {
        let first = |bytes: &[u8]| Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        // jmp, jmp rax, ret, call, call rax; jne, syscall, nop.
        let always: [&[u8]; 5] = [&[0xEB, 0], &[0xFF, 0xE0], &[0xC3], &[0xE8, 0, 0, 0, 0], &[0xFF, 0xD0]];
        let others: [&[u8]; 3] = [&[0x75, 0], &[0x0F, 5], &[0x90]];
        assert!(always.iter().all(|bytes| is_always_taken(&first(bytes))));
        assert!(!others.iter().any(|bytes| is_always_taken(&first(bytes))));
    }
}
