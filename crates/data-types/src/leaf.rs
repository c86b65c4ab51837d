//! Records of types, and the fields of their lists.
//!
//! # References
//! "CodeView Type Records" and "The PDB TPI and IPI Streams" of LLVM's documentation; `cvinfo.h` of microsoft-pdb.

use crate::bytes::Bytes;

/// Property bit of a structure: its definition is another record.
const FORWARD_REFERENCE: u16 = 1 << 7;

/// Property bit of a structure: a decorated name follows its name.
const HAS_UNIQUE_NAME: u16 = 1 << 9;

/// A record of a type. Types are indexes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Leaf<'a> {
    /// A structure, class, interface or union.
    Structure(Structure<'a>),
    /// Size in bytes.
    Array {
        element: u32,
        size: u64,
    },
    Pointer {
        target: u32,
        /// In bytes.
        size: u8,
        /// 0 a pointer, 1 `&`, 4 `&&`; others are pointers to members.
        mode: u8,
        /// Of a pointer to a member, the class.
        class: Option<u32>,
    },
    Modifier {
        target: u32,
        is_const: bool,
        is_volatile: bool,
    },
    /// Bits of a field of the type `base`.
    BitField {
        base: u32,
        length: u8,
        position: u8,
    },
    Enumeration {
        base: u32,
        name: &'a [u8],
    },
    Alias {
        target: u32,
    },
    Function,
    /// What the pointer to the table of virtual functions leads to.
    FunctionTable,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure<'a> {
    /// The list of its fields.
    pub fields: u32,
    /// In bytes.
    pub size: u64,
    pub name: &'a [u8],
    /// The decorated name, which C has not.
    pub unique_name: Option<&'a [u8]>,
    pub is_forward: bool,
}

impl<'a> Leaf<'a> {
    /// Parses a record behind its length.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(record);
        Some(match bytes.u16()? {
            0x1001 => {
                let (target, flags) = (bytes.u32()?, bytes.u16()?);
                Self::Modifier { target, is_const: flags & 1 != 0, is_volatile: flags & 2 != 0 }
            }
            0x1002 => {
                let (target, attributes) = (bytes.u32()?, bytes.u32()?);
                let (size, mode) = (attributes >> 13 & 0x3F, attributes >> 5 & 7);
                let size = match (size, attributes & 0x1F) {
                    (0, 0x0A) => 4,
                    (0, 0x0C) => 8,
                    (size, _) => size,
                };
                let class = if matches!(mode, 2 | 3) { bytes.u32() } else { None };
                Self::Pointer { target, size: u8::try_from(size).ok()?, mode: u8::try_from(mode).ok()?, class }
            }
            0x000A => Self::FunctionTable,
            0x1008 | 0x1009 => Self::Function,
            0x1205 => Self::BitField { base: bytes.u32()?, length: bytes.u8()?, position: bytes.u8()? },
            // LF_ARRAY and LF_STRIDED_ARRAY; the type of the index, and the stride of the second
            kind @ (0x1503 | 0x1516) => {
                let element = bytes.u32()?;
                bytes.skip(if kind == 0x1516 { 8 } else { 4 })?;
                Self::Array { element, size: bytes.number()? }
            }
            // LF_CLASS, LF_STRUCTURE and LF_INTERFACE: number of fields, ..., bases, shape of the table
            0x1504 | 0x1505 | 0x1519 => {
                bytes.skip(2)?;
                let (properties, fields) = (bytes.u16()?, bytes.u32()?);
                bytes.skip(8)?;
                Self::Structure(Structure::parse(bytes, properties, fields)?)
            }
            0x1506 => {
                bytes.skip(2)?;
                let (properties, fields) = (bytes.u16()?, bytes.u32()?);
                Self::Structure(Structure::parse(bytes, properties, fields)?)
            }
            // The same with 32 bits of properties, and the number of fields last
            kind @ (0x1608..=0x160B) => {
                let properties = bytes.u16()?;
                bytes.skip(2)?;
                let fields = bytes.u32()?;
                bytes.skip(if kind == 0x160A { 2 } else { 10 })?;
                Self::Structure(Structure::parse(bytes, properties, fields)?)
            }
            0x1507 => {
                bytes.skip(4)?;
                let base = bytes.u32()?;
                bytes.skip(4)?;
                Self::Enumeration { base, name: bytes.name()? }
            }
            0x150A => Self::Alias { target: bytes.u32()? },
            _ => Self::Other,
        })
    }
}

impl<'a> Structure<'a> {
    fn parse(mut bytes: Bytes<'a>, properties: u16, fields: u32) -> Option<Self> {
        let (size, name) = (bytes.number()?, bytes.name()?);
        let unique_name = if properties & HAS_UNIQUE_NAME != 0 { bytes.name() } else { None };
        Some(Self { fields, size, name, unique_name, is_forward: properties & FORWARD_REFERENCE != 0 })
    }
}

/// A field of a list. Offsets are in bytes from the beginning of the structure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    Member {
        kind: u32,
        offset: u64,
        name: &'a [u8],
    },
    Base {
        kind: u32,
        offset: u64,
    },
    /// A virtual base, whose offset a table has that `pointer` at `offset` points to.
    VirtualBase {
        pointer: u32,
        offset: u64,
        is_direct: bool,
    },
    /// The pointer to the table of virtual functions, at offset 0.
    FunctionTable {
        pointer: u32,
    },
    /// The list goes on in another record.
    Continued {
        list: u32,
    },
    /// Functions, nested types, static members and constants, which have no place in the structure.
    None,
}

/// The fields of one record. The last item is an error if the rest of the record is unknown.
pub(crate) struct Fields<'a>(Bytes<'a>);

impl<'a> Fields<'a> {
    /// Returns the fields of a record, if it is a list of fields.
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(record);
        (bytes.u16()? == 0x1203).then_some(Self(bytes))
    }

    fn field(bytes: &mut Bytes<'a>) -> Option<Field<'a>> {
        let kind = bytes.u16()?;
        let attributes = bytes.u16()?;
        let field = match kind {
            0x150D => Field::Member { kind: bytes.u32()?, offset: bytes.number()?, name: bytes.name()? },
            0x1400 | 0x151A => Field::Base { kind: bytes.u32()?, offset: bytes.number()? },
            0x1401 | 0x1402 => {
                bytes.skip(4)?;
                let (pointer, offset) = (bytes.u32()?, bytes.number()?);
                bytes.number()?;
                Field::VirtualBase { pointer, offset, is_direct: kind == 0x1401 }
            }
            0x1409 => Field::FunctionTable { pointer: bytes.u32()? },
            0x1404 => Field::Continued { list: bytes.u32()? },
            // LF_ENUMERATE
            0x1502 => {
                bytes.number()?;
                bytes.name()?;
                Field::None
            }
            // LF_STMEMBER, LF_METHOD, LF_NESTTYPE and LF_NESTTYPEEX
            0x150E..=0x1510 | 0x1512 => {
                bytes.skip(4)?;
                bytes.name()?;
                Field::None
            }
            // LF_ONEMETHOD, which has an offset if it introduces a virtual function
            0x1511 => {
                bytes.skip(if matches!(attributes >> 2 & 7, 4 | 6) { 8 } else { 4 })?;
                bytes.name()?;
                Field::None
            }
            _ => return None,
        };
        // LF_PAD1 to LF_PAD15: the low digit is the number of bytes up to the next field.
        while let Some(padding @ 0xF1..) = bytes.peek() {
            bytes.skip(usize::from(padding & 0xF)).or_else(|| bytes.skip(bytes.0.len()))?;
        }
        Some(field)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, UnknownField>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = Self::field(&mut self.0).ok_or(UnknownField);
        if field.is_err() {
            self.0 = Bytes(&[]);
        }
        Some(field)
    }
}

/// A field whose length is unknown, and so where the next one begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnknownField;
