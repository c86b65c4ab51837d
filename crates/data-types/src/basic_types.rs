//! Types that have an index and no record.

/// Number of the first type with a record.
pub(crate) const FIRST_RECORD: u32 = 0x1000;

/// Returns the name of a type without a record, and its size in bytes.
///
/// # References
/// "The PDB TPI and IPI Streams", Type Indices, of LLVM's documentation: bits 7:0 are the kind, bits 11:8 the mode of a
/// pointer to it.
pub(crate) fn basic_type(index: u32) -> Option<(&'static str, u64)> {
    let pointer = match index >> 8 {
        0 => None,
        // 4, 8 and 16 bytes; the older modes are of 16-bit programs
        4 | 5 => Some(4),
        6 => Some(8),
        7 => Some(16),
        _ => return None,
    };
    let (name, size) = match index & 0xFF {
        0x03 => ("void", 0),
        0x08 => ("HRESULT", 4),
        0x10 => ("signed char", 1),
        0x11 | 0x72 => ("short", 2),
        0x12 => ("long", 4),
        0x13 | 0x76 => ("__int64", 8),
        0x14 | 0x78 => ("__int128", 16),
        0x20 => ("unsigned char", 1),
        0x21 | 0x73 => ("unsigned short", 2),
        0x22 => ("unsigned long", 4),
        0x23 | 0x77 => ("unsigned __int64", 8),
        0x24 | 0x79 => ("unsigned __int128", 16),
        0x30 => ("bool", 1),
        0x31 => ("bool16", 2),
        0x32 => ("bool32", 4),
        0x33 => ("bool64", 8),
        0x40 => ("float", 4),
        0x41 => ("double", 8),
        0x42 => ("long double", 10),
        0x43 => ("__float128", 16),
        0x46 => ("__half", 2),
        0x50 => ("_Complex float", 8),
        0x51 => ("_Complex double", 16),
        0x68 => ("__int8", 1),
        0x69 => ("unsigned __int8", 1),
        0x70 => ("char", 1),
        0x71 => ("wchar_t", 2),
        0x74 => ("int", 4),
        0x75 => ("unsigned", 4),
        0x7A => ("char16_t", 2),
        0x7B => ("char32_t", 4),
        0x7C => ("char8_t", 1),
        _ => return None,
    };
    Some((name, pointer.unwrap_or(size)))
}

/// Returns the type that a pointer without a record points to.
pub(crate) fn basic_target(index: u32) -> Option<u32> {
    (index < FIRST_RECORD && index >> 8 != 0).then_some(index & 0xFF)
}
