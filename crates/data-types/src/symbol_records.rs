//! Records of symbols: data, functions, their blocks, and where their variables are.
//!
//! # References
//! "CodeView Symbol Records" of LLVM's documentation; `cvinfo.h` of microsoft-pdb.

use crate::bytes::Bytes;

/// An address as a PDB has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionAddress {
    pub section: u16,
    pub offset: u32,
}

/// Code in which a variable is in one place, except in the gaps: offset from its beginning, and length.
#[derive(Clone, Debug)]
pub(crate) struct CodeRange {
    pub start: SectionAddress,
    pub length: u16,
    pub gaps: Vec<(u16, u16)>,
}

/// Where a variable is, or a part of it. Registers have the numbers of CodeView.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// The part of the variable from `part` on, in bytes.
    Register { register: u16, part: u32 },
    /// In memory, at the register and the offset.
    Memory { register: u16, offset: i32, part: u32 },
    /// In memory, at the offset from the register that the function has for its frame.
    Frame { offset: i32 },
}

/// A record that this crate uses.
#[derive(Clone, Debug)]
pub(crate) enum Symbol<'a> {
    Data {
        kind: u32,
        address: SectionAddress,
        name: &'a [u8],
    },
    Function {
        start: SectionAddress,
        length: u32,
    },
    Block {
        start: SectionAddress,
        length: u32,
    },
    InlineSite,
    /// The end of a function, block or inlined function.
    End,
    /// The registers that variables and parameters of the function are relative to: 0 none, 1 the stack pointer, 2 the
    /// frame pointer, 3 another.
    Frame {
        variables: u8,
        parameters: u8,
    },
    /// A variable; where it is, the next records say.
    Variable {
        kind: u32,
        is_parameter: bool,
        name: &'a [u8],
    },
    /// A variable that is in one place in its whole function or block.
    Fixed {
        kind: u32,
        location: Location,
        name: &'a [u8],
    },
    /// Where the variable of the record before is; without a range, in its whole function.
    Range {
        location: Location,
        range: Option<CodeRange>,
    },
}

/// CodeView's number of EBP.
const EBP: u16 = 22;

impl<'a> Symbol<'a> {
    /// Parses a record behind its length.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(record);
        Some(match bytes.u16()? {
            // S_LDATA32 and S_GDATA32. Those of threads (S_LTHREAD32, S_GTHREAD32) have no address in the image.
            0x110C | 0x110D => {
                let kind = bytes.u32()?;
                Self::Data { kind, address: address(&mut bytes)?, name: bytes.name()? }
            }
            // S_LPROC32, S_GPROC32, and the same with an ID or of a deferred procedure call
            0x110F | 0x1110 | 0x1146 | 0x1147 | 0x1155 | 0x1156 => {
                bytes.skip(12)?;
                let length = bytes.u32()?;
                bytes.skip(12)?;
                Self::Function { start: address(&mut bytes)?, length }
            }
            0x1103 => {
                bytes.skip(8)?;
                let length = bytes.u32()?;
                Self::Block { start: address(&mut bytes)?, length }
            }
            0x114D | 0x115D => Self::InlineSite,
            // S_END, S_INLINESITE_END and S_PROC_ID_END
            0x0006 | 0x114E | 0x114F => Self::End,
            0x1012 => {
                bytes.skip(22)?;
                let flags = bytes.u32()?;
                let register = |shift: u32| u8::try_from(flags >> shift & 3).unwrap_or(0);
                Self::Frame { variables: register(14), parameters: register(16) }
            }
            0x113E => {
                let (kind, flags) = (bytes.u32()?, bytes.u16()?);
                Self::Variable { kind, is_parameter: flags & 1 != 0, name: bytes.name()? }
            }
            // S_REGISTER
            0x1106 => {
                let (kind, register) = (bytes.u32()?, bytes.u16()?);
                Self::Fixed { kind, location: Location::Register { register, part: 0 }, name: bytes.name()? }
            }
            // S_REGREL32
            0x1111 => {
                let (offset, kind, register) = (bytes.i32()?, bytes.u32()?, bytes.u16()?);
                Self::Fixed { kind, location: Location::Memory { register, offset, part: 0 }, name: bytes.name()? }
            }
            // S_BPREL32
            0x110B => {
                let (offset, kind) = (bytes.i32()?, bytes.u32()?);
                let location = Location::Memory { register: EBP, offset, part: 0 };
                Self::Fixed { kind, location, name: bytes.name()? }
            }
            // S_DEFRANGE_REGISTER
            0x1141 => {
                let register = bytes.u16()?;
                bytes.skip(2)?;
                Self::Range { location: Location::Register { register, part: 0 }, range: Some(range(&mut bytes)?) }
            }
            // S_DEFRANGE_SUBFIELD_REGISTER
            0x1143 => {
                let register = bytes.u16()?;
                bytes.skip(2)?;
                let part = bytes.u32()? & 0xFFF;
                Self::Range { location: Location::Register { register, part }, range: Some(range(&mut bytes)?) }
            }
            // S_DEFRANGE_FRAMEPOINTER_REL
            0x1142 => {
                let location = Location::Frame { offset: bytes.i32()? };
                Self::Range { location, range: Some(range(&mut bytes)?) }
            }
            // S_DEFRANGE_FRAMEPOINTER_REL_FULL_SCOPE
            0x1144 => Self::Range { location: Location::Frame { offset: bytes.i32()? }, range: None },
            // S_DEFRANGE_REGISTER_REL
            0x1145 => {
                let (register, flags, offset) = (bytes.u16()?, bytes.u16()?, bytes.i32()?);
                let location = Location::Memory { register, offset, part: u32::from(flags >> 4) };
                Self::Range { location, range: Some(range(&mut bytes)?) }
            }
            _ => return None,
        })
    }
}

fn address(bytes: &mut Bytes<'_>) -> Option<SectionAddress> {
    let offset = bytes.u32()?;
    Some(SectionAddress { section: bytes.u16()?, offset })
}

fn range(bytes: &mut Bytes<'_>) -> Option<CodeRange> {
    let (start, length) = (address(bytes)?, bytes.u16()?);
    let mut gaps = Vec::new();
    while let Some(start) = bytes.u16() {
        gaps.push((start, bytes.u16()?));
    }
    Some(CodeRange { start, length, gaps })
}
