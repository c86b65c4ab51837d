//! Machine code of a function, from the image of its module.
//!
//! The extent of a function is that of its entries in the exception directory (".pdata", "x64 exception handling",
//! Microsoft Learn), which are exact. A function that calls nothing and keeps no state has no entry; it extends to the
//! end of its symbol, or to the next function.

use object::LittleEndian;
use object::pe::{IMAGE_DIRECTORY_ENTRY_EXCEPTION, ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, PeFile};

/// Flag of unwind information that ends with the entry of the function to which a part belongs.
const UNW_FLAG_CHAININFO: u8 = 4;

/// Maximum number of chained entries that are followed.
const MAX_CHAIN: usize = 32;

/// Size of RUNTIME_FUNCTION.
const ENTRY_SIZE: usize = 12;

/// The machine code of a function. Addresses are relative to the base of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionCode {
    /// Address of the first byte.
    pub address: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether the code has 64-bit instructions, not 32-bit ones.
    pub is_64_bit: bool,
}

/// Why an image has no code of a function.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The file is not a consistent PE image.
    #[error("the image is damaged: {0}")]
    Image(String),
    /// The address is in no section of the file.
    #[error("the image has no code at {0:#x}")]
    NoCode(u32),
}

/// RUNTIME_FUNCTION: a part of a function, and its unwind information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RuntimeFunction {
    begin: u32,
    end: u32,
    unwind: u32,
}

impl RuntimeFunction {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |index: usize| Some(u32::from_le_bytes(bytes.get(index..index + 4)?.try_into().ok()?));
        Some(Self { begin: word(0)?, end: word(4)?, unwind: word(8)? })
    }
}

/// Returns the code of the function with a symbol at `symbol`. It extends at most to `limit`, the end of the symbol or
/// the beginning of the next one, unless the exception directory has its end.
pub(crate) fn function_code(image: &[u8], symbol: u32, limit: Option<u32>) -> Result<FunctionCode, CodeError> {
    match object::FileKind::parse(image) {
        Ok(object::FileKind::Pe64) => code::<ImageNtHeaders64>(image, symbol, limit),
        Ok(object::FileKind::Pe32) => code::<ImageNtHeaders32>(image, symbol, limit),
        Ok(kind) => Err(CodeError::Image(format!("{kind:?}"))),
        Err(error) => Err(CodeError::Image(error.to_string())),
    }
}

fn code<Headers: ImageNtHeaders>(image: &[u8], symbol: u32, limit: Option<u32>) -> Result<FunctionCode, CodeError> {
    let file = PeFile::<Headers>::parse(image).map_err(|error| CodeError::Image(error.to_string()))?;
    let is_64_bit = file.nt_headers().is_type_64();
    let sections = file.section_table();
    let at = |address: u32| sections.pe_data_at(image, address);
    let directory = file.data_directories().get(IMAGE_DIRECTORY_ENTRY_EXCEPTION).filter(|_| is_64_bit);
    let entries: Vec<RuntimeFunction> = directory
        .and_then(|directory| {
            let size = usize::try_from(directory.size.get(LittleEndian)).ok()?;
            at(directory.virtual_address.get(LittleEndian))?.get(..size)
        })
        .map_or_else(Vec::new, |bytes| bytes.chunks_exact(ENTRY_SIZE).filter_map(RuntimeFunction::parse).collect());
    let (begin, end) = extent(&entries, symbol, &|address| at(address)).unwrap_or_else(|| {
        let next = entries.iter().map(|entry| entry.begin).filter(|begin| *begin > symbol).min();
        (symbol, [limit, next].into_iter().flatten().filter(|end| *end > symbol).min().unwrap_or(u32::MAX))
    });
    let rest = at(begin).ok_or(CodeError::NoCode(begin))?;
    let length = usize::try_from(end - begin).unwrap_or(usize::MAX);
    Ok(FunctionCode { address: begin, bytes: rest.get(..length).unwrap_or(rest).to_vec(), is_64_bit })
}

/// Returns begin and end of the function that has `address`, with the parts that follow each other without a gap.
fn extent<'a>(entries: &[RuntimeFunction], address: u32, at: &impl Fn(u32) -> Option<&'a [u8]>) -> Option<(u32, u32)> {
    let index = entries.iter().position(|entry| (entry.begin..entry.end).contains(&address))?;
    let primary = primary(*entries.get(index)?, at);
    let is_part = |entry: &&RuntimeFunction| self::primary(**entry, at) == primary;
    let (before, after) = entries.split_at_checked(index)?;
    let begin = before
        .iter()
        .rev()
        .take_while(is_part)
        .fold(after.first()?.begin, |begin, entry| if entry.end == begin { entry.begin } else { begin });
    let end = after
        .iter()
        .take_while(is_part)
        .fold(after.first()?.begin, |end, entry| if entry.begin == end { entry.end } else { end });
    Some((begin, end))
}

/// Returns the entry of the whole function to which a part belongs.
fn primary<'a>(mut entry: RuntimeFunction, at: &impl Fn(u32) -> Option<&'a [u8]>) -> RuntimeFunction {
    for _ in 0..MAX_CHAIN {
        match chained(entry, at) {
            Some(next) => entry = next,
            None => break,
        }
    }
    entry
}

/// Returns the entry at the end of the unwind information, after an even number of unwind codes, if it has one.
fn chained<'a>(entry: RuntimeFunction, at: &impl Fn(u32) -> Option<&'a [u8]>) -> Option<RuntimeFunction> {
    let information = at(entry.unwind)?;
    let flags = information.first()? >> 3;
    let codes = usize::from(*information.get(2)?).next_multiple_of(2);
    let next = (flags & UNW_FLAG_CHAININFO != 0).then(|| information.get(4 + 2 * codes..)).flatten()?;
    RuntimeFunction::parse(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DLL: &[u8] = include_bytes!("../tests/fixtures/functions.dll");

    fn entry(begin: u32, end: u32, unwind: u32) -> RuntimeFunction {
        RuntimeFunction { begin, end, unwind }
    }

    /// Unwind information at 0x10 without flags and one code, and at 0x20 with two codes, chained to [1000, 1010).
    fn unwind(address: u32) -> Option<&'static [u8]> {
        const PLAIN: [u8; 8] = [1, 0, 1, 0, 1, 2, 0, 0];
        const CHAINED: [u8; 20] = [0x21, 0, 2, 0, 1, 2, 3, 4, 0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0x10, 0, 0, 0];
        match address {
            0x10 => Some(&PLAIN),
            0x20 => Some(&CHAINED),
            _ => None,
        }
    }

    #[test]
    fn a_function_has_its_chained_parts_that_follow_it() {
        let entries = [
            entry(0x1000, 0x1010, 0x10),
            entry(0x1010, 0x1030, 0x20),
            entry(0x1040, 0x1050, 0x20),
            entry(0x1050, 0x1060, 0x10),
        ];
        for (address, wanted) in [
            (0xFFF, None),
            (0x1000, Some((0x1000, 0x1030))),
            (0x1010, Some((0x1000, 0x1030))),
            (0x102F, Some((0x1000, 0x1030))),
            (0x1030, None),
            (0x1040, Some((0x1040, 0x1050))),
            (0x1050, Some((0x1050, 0x1060))),
            (0x1060, None),
        ] {
            assert_eq!(extent(&entries, address, &unwind), wanted, "{address:#x}");
        }
    }

    #[test]
    fn a_chain_without_an_end_is_left() {
        let endless =
            |_| -> Option<&'static [u8]> { Some(&[0x21, 0, 0, 0, 0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0, 0, 0, 0]) };
        assert_eq!(extent(&[entry(0x1000, 0x1010, 0)], 0x1000, &endless), Some((0x1000, 0x1010)));
    }

    #[test]
    fn code_without_an_entry_extends_to_the_limit_or_the_next_entry() {
        let code = |address, limit| function_code(DLL, address, limit).map(|code| (code.address, code.bytes.len()));
        assert_eq!(code(0x1020, Some(0x1031)), Ok((0x1020, 0x11)));
        // entry() calls functions, so it has an entry, which is right and the limit is not.
        assert_eq!(code(0x1040, Some(0x1042)), Ok((0x1040, 0x1E)));
        assert_eq!(code(0x1020, None), Ok((0x1020, 0x20)));
        assert_eq!(code(0x10_0000, None), Err(CodeError::NoCode(0x10_0000)));
        assert!(matches!(function_code(b"MZ", 0x1000, None), Err(CodeError::Image(_))));
    }
}
