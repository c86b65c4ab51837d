//! The functions of an image in its exception directory (".pdata" and "struct UNWIND_INFO", "x64 exception handling",
//! Microsoft Learn).
//!
//! A function can have several entries, called parts here. All parts except the first are chained to it. Functions that
//! call nothing and keep no state need no entry.

/// Flag of unwind information that ends with the entry of the function to which a part belongs.
const UNW_FLAG_CHAININFO: u8 = 4;

/// Last version of the unwind information in which the chained entry follows the array of unwind codes.
const LAST_KNOWN_VERSION: u8 = 2;

/// Bit of the address of unwind information that instead makes it the address of another entry.
const INDIRECT: u32 = 1;

/// Maximum number of chained entries that are followed.
const MAX_CHAIN: usize = 32;

/// Size of RUNTIME_FUNCTION.
const ENTRY_SIZE: usize = 12;

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

/// A part of a function. Addresses are relative to the base of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FunctionPart {
    /// Address of the first byte.
    pub begin: u32,
    /// Address after the last byte.
    pub end: u32,
    /// Address of the first byte of the function.
    pub function: u32,
}

/// The parts of all functions with unwind information, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnwindFunctions(Vec<FunctionPart>);

impl UnwindFunctions {
    /// Reads the exception directory. `at` returns the bytes of the image at an address. Entries without unwind
    /// information in the image are no functions.
    pub fn read<'a>(directory: &[u8], at: &impl Fn(u32) -> Option<&'a [u8]>) -> Self {
        let entries = directory.chunks_exact(ENTRY_SIZE).filter_map(RuntimeFunction::parse);
        let part = |entry: RuntimeFunction| FunctionPart {
            begin: entry.begin,
            end: entry.end,
            function: primary(entry, at).begin,
        };
        let is_function = |entry: &RuntimeFunction| entry.begin < entry.end && at(entry.unwind & !INDIRECT).is_some();
        let mut parts: Vec<FunctionPart> = entries.filter(is_function).map(part).collect();
        parts.sort_by_key(|part| part.begin);
        Self(parts)
    }

    /// Returns the part that has `address`.
    pub fn part_at(&self, address: u32) -> Option<FunctionPart> {
        self.0.get(self.index_at(address)?).copied()
    }

    fn index_at(&self, address: u32) -> Option<usize> {
        let index = self.0.partition_point(|part| part.begin <= address).checked_sub(1)?;
        self.0.get(index).filter(|part| address < part.end).map(|_| index)
    }

    /// Returns the beginning of the first part after `address`.
    pub fn next_after(&self, address: u32) -> Option<u32> {
        self.0.get(self.0.partition_point(|part| part.begin <= address)).map(|part| part.begin)
    }

    /// Returns begin and end of the function that has `address`, with the parts that follow each other without a gap.
    pub fn extent(&self, address: u32) -> Option<(u32, u32)> {
        let (before, after) = self.0.split_at_checked(self.index_at(address)?)?;
        let first = after.first()?;
        let is_part = |part: &&FunctionPart| part.function == first.function;
        let begin = before
            .iter()
            .rev()
            .take_while(is_part)
            .fold(first.begin, |begin, part| if part.end == begin { part.begin } else { begin });
        let end = after
            .iter()
            .take_while(is_part)
            .fold(first.begin, |end, part| if part.begin == end { part.end } else { end });
        Some((begin, end))
    }
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

/// Returns the entry to which an entry points: instead of its unwind information, or at the end of that, after an even
/// number of unwind codes.
fn chained<'a>(entry: RuntimeFunction, at: &impl Fn(u32) -> Option<&'a [u8]>) -> Option<RuntimeFunction> {
    if entry.unwind & INDIRECT != 0 {
        return RuntimeFunction::parse(at(entry.unwind & !INDIRECT)?);
    }
    let information = at(entry.unwind)?;
    let (version, flags) = (information.first()? & 7, information.first()? >> 3);
    let codes = usize::from(*information.get(2)?).next_multiple_of(2);
    let has_chain = version <= LAST_KNOWN_VERSION && flags & UNW_FLAG_CHAININFO != 0;
    let next = has_chain.then(|| information.get(4 + 2 * codes..)).flatten()?;
    RuntimeFunction::parse(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unwind information at 0x10 without flags and one code, at 0x20 with two codes, chained to [1000, 1010), and at
    /// 0x40 of version 3. At 0x60 is the entry of [1000, 1010).
    fn unwind(address: u32) -> Option<&'static [u8]> {
        const PLAIN: [u8; 8] = [1, 0, 1, 0, 1, 2, 0, 0];
        const CHAINED: [u8; 20] = [0x21, 0, 2, 0, 1, 2, 3, 4, 0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0x10, 0, 0, 0];
        const NEWER: [u8; 20] = [0x23, 0, 2, 0, 1, 2, 3, 4, 0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0x10, 0, 0, 0];
        const ENTRY: [u8; 12] = [0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0x10, 0, 0, 0];
        match address {
            0x10 => Some(&PLAIN),
            0x20 => Some(&CHAINED),
            0x40 => Some(&NEWER),
            0x60 => Some(&ENTRY),
            _ => None,
        }
    }

    fn functions(entries: &[[u32; 3]]) -> UnwindFunctions {
        let bytes: Vec<u8> = entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        UnwindFunctions::read(&bytes, &unwind)
    }

    #[test]
    fn a_function_has_its_chained_parts_that_follow_it() {
        let functions = functions(&[
            [0x1000, 0x1010, 0x10],
            [0x1010, 0x1030, 0x20],
            [0x1040, 0x1050, 0x20],
            [0x1050, 0x1060, 0x10],
        ]);
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
            assert_eq!(functions.extent(address), wanted, "{address:#x}");
        }
        assert_eq!(functions.part_at(0x1045), Some(FunctionPart { begin: 0x1040, end: 0x1050, function: 0x1000 }));
        assert_eq!(
            [0x1000, 0x1030, 0x1050].map(|address| functions.next_after(address)),
            [Some(0x1010), Some(0x1040), None]
        );
    }

    #[test]
    fn an_entry_can_point_to_another_entry_and_an_unknown_version_has_no_chain() {
        let functions = functions(&[[0x2000, 0x2010, 0x61], [0x3000, 0x3010, 0x40], [0x4010, 0x4000, 0x10]]);
        let function = |address| functions.part_at(address).map(|part| part.function);
        assert_eq!([0x2000, 0x3000, 0x4000].map(function), [Some(0x1000), Some(0x3000), None]);
    }

    /// Programs of GHC have entries with arbitrary numbers among the others (findings/elm-function-table.sh).
    #[test]
    fn an_entry_without_unwind_information_is_no_function() {
        let functions =
            functions(&[[0x1000, 0x1010, 0x10], [0x2000, 0x91D5_D260, 0x9237_E6B0], [0x3000, 0x3010, 0x10]]);
        assert_eq!([0x1000, 0x2000, 0x3000].map(|address| functions.part_at(address).is_some()), [true, false, true]);
    }

    #[test]
    fn a_chain_without_an_end_is_left() {
        let endless =
            |_| -> Option<&'static [u8]> { Some(&[0x21, 0, 0, 0, 0, 0x10, 0, 0, 0x10, 0x10, 0, 0, 0, 0, 0, 0]) };
        let entry: Vec<u8> = [0x1000_u32, 0x1010, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(UnwindFunctions::read(&entry, &endless).extent(0x1000), Some((0x1000, 0x1010)));
    }
}
