//! Machine code of a function, from the image of its module.
//!
//! The extent of a function is that of its entries in the exception directory, which are exact. A function without an
//! entry extends to the end of its symbol, or to the next function.

use object::LittleEndian;
use object::pe::{IMAGE_DIRECTORY_ENTRY_EXCEPTION, ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, PeFile};

use crate::unwind_functions::UnwindFunctions;

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
    let directory = directory.and_then(|directory| {
        let size = usize::try_from(directory.size.get(LittleEndian)).ok()?;
        at(directory.virtual_address.get(LittleEndian))?.get(..size)
    });
    let functions = UnwindFunctions::read(directory.unwrap_or_default(), &at);
    let (begin, end) = functions.extent(symbol).unwrap_or_else(|| {
        let next = functions.next_after(symbol);
        (symbol, [limit, next].into_iter().flatten().filter(|end| *end > symbol).min().unwrap_or(u32::MAX))
    });
    let rest = at(begin).ok_or(CodeError::NoCode(begin))?;
    let length = usize::try_from(end - begin).unwrap_or(usize::MAX);
    Ok(FunctionCode { address: begin, bytes: rest.get(..length).unwrap_or(rest).to_vec(), is_64_bit })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DLL: &[u8] = include_bytes!("../tests/fixtures/functions.dll");

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
