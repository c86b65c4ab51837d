//! Reads the parts of a mapped PE image that the lab needs. Offsets are those of PE32+ in the PE specification.

use std::ops::Range;

/// IMAGE_SUBSYSTEM_NATIVE.
const NATIVE: u16 = 1;
/// IMAGE_SCN_MEM_EXECUTE.
const EXECUTE: u32 = 0x2000_0000;
/// The signature that Wine writes behind the DOS header of its own files.
const WINE: &[u8] = b"Wine builtin DLL";

/// Bytes of an IMAGE_IMPORT_DESCRIPTOR, an IMAGE_SECTION_HEADER and a RUNTIME_FUNCTION.
const DESCRIPTOR: usize = 20;
const SECTION: usize = 40;
const FUNCTION: usize = 12;
/// Bytes of an UNWIND_INFO before its codes, and of an entry of SCOPE_TABLE_AMD64.
const UNWIND: usize = 4;
const SCOPE: usize = 16;
/// UNW_FLAG_EHANDLER.
const EXCEPTION_HANDLER: u8 = 1;
/// `jmp [rip + disp32]`, with which a linker makes an imported function callable.
const JUMP: [u8; 2] = [0xFF, 0x25];

/// A function that the image imports by name.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// The module that exports it.
    pub module: String,
    /// Its name.
    pub name: String,
    /// The offset in the image at which the loader stores its address.
    pub slot: usize,
}

/// A mapped image.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    /// Offset of the NT headers.
    headers: usize,
}

impl<'a> Image<'a> {
    /// Returns the image, or None if the bytes are no 64-bit PE image.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut image = Self { bytes, headers: 0 };
        image.headers = image.number(0x3C)?;
        let signed = bytes.get(image.headers..)?.starts_with(b"PE\0\0");
        (signed && image.short(image.headers + 0x18)? == 0x20B).then_some(image)
    }

    /// Returns whether the image is a driver, and not one of Wine's own.
    #[must_use]
    pub fn is_foreign_driver(&self) -> bool {
        let wine = self.bytes.get(0x40..).is_some_and(|bytes| bytes.starts_with(WINE));
        self.short(self.headers + 0x5C) == Some(NATIVE) && !wine
    }

    /// Returns offset and length of each section with code.
    #[must_use]
    pub fn code(&self) -> Vec<(usize, usize)> {
        self.sections(|header| self.long(header + 36).is_some_and(|flags| flags & EXECUTE != 0))
    }

    /// Returns offset and length of each section that Windows pages out or discards, by its name.
    #[must_use]
    pub fn pageable(&self) -> Vec<(usize, usize)> {
        let starts_with = |header: usize, name: &[u8]| self.bytes(header, name.len()) == Some(name);
        self.sections(|header| starts_with(header, b"PAGE") || starts_with(header, b"INIT\0"))
    }

    /// Returns offset and length of the sections of which `selects` accepts the header.
    fn sections(&self, selects: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let count = usize::from(self.short(self.headers + 6).unwrap_or_default());
        let first = self.headers + 0x18 + usize::from(self.short(self.headers + 0x14).unwrap_or_default());
        (0..count)
            .map(|index| first + index * SECTION)
            .filter(|header| selects(*header))
            .filter_map(|header| Some((self.number(header + 12)?, self.number(header + 8)?)))
            .collect()
    }

    /// Returns the starts and ends of functions from the unwind table, which does not list leaf functions.
    #[must_use]
    pub fn function_bounds(&self) -> Vec<usize> {
        let Some((table, length)) = self.directory(3) else { return Vec::new() };
        (0..length / FUNCTION)
            .flat_map(|index| [table + index * FUNCTION, table + index * FUNCTION + 4])
            .filter_map(|at| self.number(at))
            .collect()
    }

    /// Returns the ranges of instructions whose faults the image handles itself: the scopes of all functions with
    /// `__C_specific_handler` as their exception handler.
    #[must_use]
    pub fn guarded(&self) -> Vec<Range<usize>> {
        let imports = self.imports();
        let Some(slot) = imports.iter().find(|import| import.name == "__C_specific_handler").map(|import| import.slot)
        else {
            return Vec::new();
        };
        let Some((table, length)) = self.directory(3) else { return Vec::new() };
        let handlers = (0..length / FUNCTION).filter_map(|index| {
            let (handler, data) = self.exception_handler(self.number(table + index * FUNCTION + 8)?)?;
            (self.jump_slot(handler)? == slot).then_some(data)
        });
        handlers.flat_map(|data| self.scopes(data)).collect()
    }

    /// Returns the exception handler of the function with this UNWIND_INFO, and the place of its data.
    fn exception_handler(&self, unwind: usize) -> Option<(usize, usize)> {
        let &[version_and_flags, _, codes, _] = self.bytes(unwind, UNWIND)? else { return None };
        let at = unwind + UNWIND + usize::from(codes).next_multiple_of(2) * 2;
        (version_and_flags >> 3 & EXCEPTION_HANDLER != 0).then_some((self.number(at)?, at + 4))
    }

    /// Returns the import slot through which the code at `at` jumps.
    fn jump_slot(&self, at: usize) -> Option<usize> {
        let next = at + JUMP.len() + 4;
        let distance = self.long(at + JUMP.len())?.cast_signed();
        let is_jump = self.bytes(at, JUMP.len())? == JUMP;
        next.checked_add_signed(isize::try_from(distance).ok()?).filter(|_| is_jump)
    }

    /// Returns the ranges in a SCOPE_TABLE_AMD64.
    fn scopes(&self, table: usize) -> Vec<Range<usize>> {
        let count = self.number(table).unwrap_or_default().min(self.bytes.len() / SCOPE);
        let scope = |index| {
            let at = table + 4 + index * SCOPE;
            Some(self.number(at)?..self.number(at + 4)?)
        };
        (0..count).filter_map(scope).collect()
    }

    /// Returns `length` bytes at `start`.
    #[must_use]
    pub fn bytes(&self, start: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// Returns all imports by name.
    #[must_use]
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        let first = self.directory(1).map_or(0, |(table, _)| table);
        let descriptors = (0..).map_while(|index| {
            let at = first + index * DESCRIPTOR;
            let (names, module, slots) = (self.number(at)?, self.number(at + 12)?, self.number(at + 16)?);
            (first != 0 && module != 0).then_some((names, module, slots))
        });
        for (names, module, slots) in descriptors {
            let module = self.text(module).unwrap_or_default();
            let entries = (0..).map_while(|index| {
                let name = self.bytes(names + index * 8, 8)?.try_into().map(u64::from_le_bytes).ok()?;
                (names != 0 && name != 0).then_some((name, slots + index * 8))
            });
            // The highest bit marks an import by ordinal.
            for (name, slot) in entries.filter(|(name, _)| name >> 63 == 0) {
                let name = usize::try_from(name).ok().and_then(|at| self.text(at + 2));
                imports.extend(name.map(|name| Import { module: module.clone(), name, slot }));
            }
        }
        imports
    }

    /// Returns offset and length of a data directory, or None if it is empty.
    fn directory(&self, index: usize) -> Option<(usize, usize)> {
        let at = self.headers + 0x88 + index * 8;
        let (table, length) = (self.number(at)?, self.number(at + 4)?);
        (table != 0).then_some((table, length))
    }

    fn short(&self, at: usize) -> Option<u16> {
        self.bytes(at, 2)?.try_into().map(u16::from_le_bytes).ok()
    }

    fn long(&self, at: usize) -> Option<u32> {
        self.bytes(at, 4)?.try_into().map(u32::from_le_bytes).ok()
    }

    fn number(&self, at: usize) -> Option<usize> {
        usize::try_from(self.long(at)?).ok()
    }

    fn text(&self, at: usize) -> Option<String> {
        let text = self.bytes.get(at..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
        bytes[at..at + value.len()].copy_from_slice(value);
    }

    /// Returns a driver with one code section, one data section, one function, and two imports, one of them by ordinal.
    fn driver() -> Vec<u8> {
        let mut bytes = vec![0; 0x1000];
        put(&mut bytes, 0x3C, &0x80_u32.to_le_bytes());
        put(&mut bytes, 0x80, b"PE\0\0");
        put(&mut bytes, 0x86, &2_u16.to_le_bytes());
        put(&mut bytes, 0x94, &0xF0_u16.to_le_bytes());
        put(&mut bytes, 0x98, &0x20B_u16.to_le_bytes());
        put(&mut bytes, 0xDC, &1_u16.to_le_bytes());
        put(&mut bytes, 0x110, &0x400_u32.to_le_bytes()); // imports
        put(&mut bytes, 0x120, &0x600_u32.to_le_bytes()); // functions
        put(&mut bytes, 0x124, &12_u32.to_le_bytes());
        for (header, start, flags) in [(0x188, 0x200_u32, EXECUTE), (0x1B0, 0x300, 0)] {
            put(&mut bytes, header + 8, &0x80_u32.to_le_bytes());
            put(&mut bytes, header + 12, &start.to_le_bytes());
            put(&mut bytes, header + 36, &flags.to_le_bytes());
        }
        put(&mut bytes, 0x400, &0x440_u32.to_le_bytes());
        put(&mut bytes, 0x40C, &0x480_u32.to_le_bytes());
        put(&mut bytes, 0x410, &0x4C0_u32.to_le_bytes());
        put(&mut bytes, 0x440, &(1_u64 << 63 | 7).to_le_bytes());
        put(&mut bytes, 0x448, &0x500_u64.to_le_bytes());
        put(&mut bytes, 0x480, b"ntoskrnl.exe\0");
        put(&mut bytes, 0x502, b"ExFreePool\0");
        put(&mut bytes, 0x600, &0x210_u32.to_le_bytes());
        put(&mut bytes, 0x604, &0x230_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn the_parts_of_a_driver_are_read() {
        let bytes = driver();
        let image = Image::new(&bytes).unwrap();
        assert!(image.is_foreign_driver());
        assert_eq!(image.code(), [(0x200, 0x80)]);
        assert_eq!(image.function_bounds(), [0x210, 0x230]);
        let import = Import { module: "ntoskrnl.exe".to_owned(), name: "ExFreePool".to_owned(), slot: 0x4C8 };
        assert_eq!(image.imports(), [import]);
    }

    /// Returns a driver with a function that has a scope, whose handler jumps through the import slot at 0x4C8.
    fn guarded_driver(flags: u8) -> Vec<u8> {
        let mut bytes = driver();
        put(&mut bytes, 0x502, b"__C_specific_handler\0");
        put(&mut bytes, 0x608, &0x700_u32.to_le_bytes());
        put(&mut bytes, 0x700, &[1 | flags << 3, 4, 1, 0, 4, 0x42, 0, 0]); // one unwind code, and padding
        put(&mut bytes, 0x708, &0x240_u32.to_le_bytes());
        put(&mut bytes, 0x70C, &1_u32.to_le_bytes());
        put(&mut bytes, 0x710, &0x218_u32.to_le_bytes());
        put(&mut bytes, 0x714, &0x21A_u32.to_le_bytes());
        put(&mut bytes, 0x240, &[0xFF, 0x25, 0x82, 0x02, 0, 0]);
        bytes
    }

    #[test]
    fn the_scopes_of_functions_with_the_handler_of_c_are_guarded_and_no_others() {
        assert_eq!(Image::new(&guarded_driver(1)).unwrap().guarded(), [Range { start: 0x218, end: 0x21A }]);
        let nothing: [Range<usize>; 0] = [];
        assert_eq!(Image::new(&driver()).unwrap().guarded(), nothing, "another import");
        assert_eq!(Image::new(&guarded_driver(2)).unwrap().guarded(), nothing, "a handler of unwinding alone");
        for (at, value) in [(0x240, 0x90), (0x242, 0x8A)] {
            let mut bytes = guarded_driver(1);
            bytes[at] = value;
            assert_eq!(Image::new(&bytes).unwrap().guarded(), nothing, "another handler");
        }
    }

    #[test]
    fn a_program_and_a_file_of_wine_are_not_foreign_drivers() {
        let mut bytes = driver();
        put(&mut bytes, 0x40, WINE);
        assert!(!Image::new(&bytes).unwrap().is_foreign_driver());
        let mut bytes = driver();
        put(&mut bytes, 0xDC, &3_u16.to_le_bytes());
        assert!(!Image::new(&bytes).unwrap().is_foreign_driver());
    }

    #[test]
    fn a_truncated_image_does_not_panic() {
        let bytes = guarded_driver(1);
        for length in 0..bytes.len() {
            if let Some(image) = Image::new(&bytes[..length]) {
                let _ = (image.code(), image.function_bounds(), image.imports(), image.guarded());
            }
        }
    }
}
