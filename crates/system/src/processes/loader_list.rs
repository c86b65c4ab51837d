//! The modules of a process, read from the lists of its loader: each list is walked once.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use crate::LoadedModule;

/// Maximum number of modules in a list. The process can change it meanwhile, even to a cycle.
const MAX_MODULES: usize = 1 << 14;

/// Where the lists of one width have their fields (phnt, ntpebteb.h, ntpsapi_x.h and ntldr.h).
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Size of a pointer.
    pointer: usize,
    /// Ldr in the PEB.
    loader: u64,
    /// InLoadOrderModuleList in the PEB_LDR_DATA; the links of an LDR_DATA_TABLE_ENTRY are at its start.
    head: u64,
    /// DllBase in the entry.
    base: usize,
    /// SizeOfImage in the entry.
    size: usize,
    /// FullDllName in the entry: its length in bytes, and a pointer after as many bytes as a pointer has.
    path: usize,
}

/// Lists of 64-bit modules.
pub const WIDE: Layout = Layout { pointer: 8, loader: 0x18, head: 0x10, base: 0x30, size: 0x40, path: 0x48 };

/// Lists of 32-bit modules, in a PEB of their own.
pub const NARROW: Layout = Layout { pointer: 4, loader: 0x0C, head: 0x0C, base: 0x18, size: 0x20, path: 0x24 };

/// Size of the part of an entry that has these fields, for either width.
const ENTRY: usize = 0x58;

impl Layout {
    fn pointer_at(self, bytes: &[u8], offset: usize) -> u64 {
        let mut wide = [0; 8];
        for (to, from) in wide.iter_mut().zip(bytes.iter().skip(offset).take(self.pointer)) {
            *to = *from;
        }
        u64::from_le_bytes(wide)
    }
}

/// Appends the modules of the list that begins at the process environment block `peb`. `read` fills a buffer from an
/// address of the process. Entries that cannot be read end the list.
pub fn append(
    modules: &mut Vec<LoadedModule>,
    layout: Layout,
    peb: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut word = [0; 8];
    let word_size = layout.pointer;
    let mut pointer = |address: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>| -> io::Result<u64> {
        read(address, word.get_mut(..word_size).unwrap_or_default())?;
        Ok(layout.pointer_at(&word, 0))
    };
    let loader = pointer(peb.wrapping_add(layout.loader), &mut read)?;
    if loader == 0 {
        return Ok(()); // The process is starting.
    }
    let head = loader.wrapping_add(layout.head);
    let mut entry = pointer(head, &mut read)?;
    // The program itself is in the lists of both widths.
    let mut known: HashSet<u64> = modules.iter().map(|module| module.base).collect();
    for _ in 0..MAX_MODULES {
        let mut fields = [0; ENTRY];
        if entry == head || entry == 0 || read(entry, &mut fields).is_err() {
            break;
        }
        let base = layout.pointer_at(&fields, layout.base);
        let [size, length] = [(layout.size, 4), (layout.path, 2)].map(|(offset, width)| {
            let bytes = fields.iter().skip(offset).take(width);
            bytes.rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
        });
        let text = layout.pointer_at(&fields, layout.path + layout.pointer);
        let mut path = vec![0; length];
        // A module that is being loaded can have no path yet.
        if base != 0 && read(text, &mut path).is_ok() && known.insert(base) {
            modules.push(LoadedModule { base, size: size as u64, path: utf16(&path) });
        }
        entry = layout.pointer_at(&fields, 0);
    }
    Ok(())
}

/// Converts little-endian UTF-16. Unpaired surrogates, which no file system of Windows needs, are replaced.
#[must_use]
pub fn utf16(bytes: &[u8]) -> PathBuf {
    let units = bytes.chunks_exact(2).filter_map(|unit| Some(u16::from_le_bytes(unit.try_into().ok()?)));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Memory of a process: what was written, by address.
    #[derive(Default)]
    struct Memory {
        bytes: BTreeMap<u64, u8>,
        /// Number of reads.
        reads: usize,
    }

    impl Memory {
        fn write(&mut self, address: u64, bytes: &[u8]) {
            self.bytes.extend((address..).zip(bytes.iter().copied()));
        }

        fn pointer(&mut self, layout: Layout, address: u64, value: u64) {
            self.write(address, &value.to_le_bytes()[..layout.pointer]);
        }

        fn read(&mut self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.reads += 1;
            for (address, byte) in (address..).zip(buffer) {
                *byte = *self.bytes.get(&address).ok_or(io::ErrorKind::InvalidInput)?;
            }
            Ok(())
        }
    }

    const PEB: u64 = 0x1000;
    const LOADER: u64 = 0x2000;

    fn entry_address(number: usize) -> u64 {
        0x10_0000 + 0x1000 * number as u64
    }

    /// Writes a list of modules by base, size and path.
    fn process(layout: Layout, modules: &[(u64, u32, &str)]) -> Memory {
        let mut memory = Memory::default();
        memory.pointer(layout, PEB + layout.loader, LOADER);
        let head = LOADER + layout.head;
        let link = |number| if number < modules.len() { entry_address(number) } else { head };
        memory.pointer(layout, head, link(0));
        for (number, (base, size, path)) in modules.iter().enumerate() {
            let entry = entry_address(number);
            memory.write(entry, &[0xEE; ENTRY]);
            memory.pointer(layout, entry, link(number + 1));
            memory.pointer(layout, entry + layout.base as u64, *base);
            memory.write(entry + layout.size as u64, &size.to_le_bytes());
            let text: Vec<u8> = path.encode_utf16().flat_map(u16::to_le_bytes).collect();
            memory.write(entry + layout.path as u64, &u16::try_from(text.len()).unwrap().to_le_bytes());
            memory.pointer(layout, entry + (layout.path + layout.pointer) as u64, entry + 0x100);
            memory.write(entry + 0x100, &text);
        }
        memory
    }

    fn listed(layout: Layout, memory: &mut Memory) -> Vec<(u64, u64, String)> {
        let mut modules = Vec::new();
        append(&mut modules, layout, PEB, |address, buffer| memory.read(address, buffer)).unwrap();
        modules.into_iter().map(|module| (module.base, module.size, module.path.display().to_string())).collect()
    }

    #[test]
    fn every_module_of_a_list_is_read_with_two_reads() {
        for layout in [WIDE, NARROW] {
            let modules = [(0x40_0000, 0x3000, "C:\\a.exe"), (0x7700_0000, 0x1F_0000, "C:\\Übung\\ntdll.dll")];
            let mut memory = process(layout, &modules);
            let wanted = modules.iter().map(|(base, size, path)| (*base, u64::from(*size), (*path).into()));
            assert_eq!(listed(layout, &mut memory), wanted.collect::<Vec<_>>());
            assert_eq!(memory.reads, 2 + 2 * modules.len());
        }
    }

    #[test]
    fn a_process_without_a_loader_yet_has_no_modules() {
        let mut memory = Memory::default();
        memory.pointer(WIDE, PEB + WIDE.loader, 0);
        assert!(listed(WIDE, &mut memory).is_empty());
    }

    #[test]
    fn a_list_that_changes_while_it_is_read_ends() {
        let mut cycle = process(WIDE, &[(1, 2, "a"), (3, 4, "b")]);
        cycle.pointer(WIDE, entry_address(1), entry_address(0));
        assert_eq!(listed(WIDE, &mut cycle).len(), 2);
        let mut gone = process(WIDE, &[(1, 2, "a"), (3, 4, "b")]);
        gone.pointer(WIDE, entry_address(0), 0xDEAD_0000);
        assert_eq!(listed(WIDE, &mut gone).len(), 1);
        let mut unnamed = process(WIDE, &[(1, 2, "a"), (3, 4, "b")]);
        unnamed.pointer(WIDE, entry_address(0) + 0x50, 0xDEAD_0000);
        assert_eq!(listed(WIDE, &mut unnamed), [(3, 4, "b".into())]);
    }
}
