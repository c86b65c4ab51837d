//! The load configuration of a program that mingw-w64 has linked.
//!
//! Binutils before 2.45 leave the entry for it in the optional header at zero, so Windows would not read it. The linker
//! of Visual Studio and later binutils write the entry themselves.

use anyhow::{Context, Result, ensure};
use object::LittleEndian as LE;
use object::read::pe::PeFile64;

/// Name of the section with nothing but the load configuration (`crates/system/src/windows/libraries.rs`).
const SECTION: &[u8] = b".ldcfg";

/// Offset of the optional header in the NT headers: the signature and the file header (PE Format, "File Headers").
const OPTIONAL_HEADER: usize = 24;
/// Offset of the checksum in the optional header of a 64-bit file.
const CHECKSUM: usize = 64;
/// Offset of the entry for the load configuration, the eleventh of the data directories.
const ENTRY: usize = 112 + 10 * 8;

/// Enters the load configuration into the header of a program, unless its linker has done so.
pub fn enter(mut program: Vec<u8>) -> Result<Vec<u8>> {
    let (headers, address, size) = {
        let file = PeFile64::parse(&*program).context("the program is not a 64-bit PE file")?;
        let sections = file.section_table();
        let mut found = sections.iter().filter(|section| section.raw_name() == SECTION);
        let section = found.next().context("the program has no load configuration")?;
        let data = section.pe_data(&*program).ok().and_then(|data| data.first_chunk::<4>());
        // The structure begins with its size; a section is longer.
        let size = u32::from_le_bytes(*data.context("the load configuration is empty")?);
        ensure!((0x50..=section.virtual_size.get(LE)).contains(&size), "the load configuration has {size} bytes");
        (file.dos_header().nt_headers_offset(), section.virtual_address.get(LE), size)
    };
    let header = usize::try_from(headers)? + OPTIONAL_HEADER;
    let entry = program.get_mut(header + ENTRY..header + ENTRY + 8).context("the program has no data directories")?;
    if *entry == [0; 8] {
        entry.copy_from_slice(&[address.to_le_bytes(), size.to_le_bytes()].concat());
        // It does not hold any more. Windows checks those of drivers only, and 0 says that there is none.
        program.get_mut(header + CHECKSUM..header + CHECKSUM + 4).context("the header is too short")?.fill(0);
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 64 + OPTIONAL_HEADER;

    /// Returns a 64-bit file with one section, whose data begins with these bytes.
    fn program(name: [u8; 8], data: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 1024];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(60, &64_u32.to_le_bytes());
        put(64, b"PE\0\0\x64\x86\x01\0"); // AMD64, one section
        put(84, &240_u16.to_le_bytes()); // size of the optional header
        put(HEADER, &0x20B_u16.to_le_bytes());
        put(HEADER + CHECKSUM, &[1, 2, 3, 4]);
        put(HEADER + 108, &16_u32.to_le_bytes()); // number of data directories
        let section = HEADER + 240;
        put(section, &name);
        put(section + 8, &[0x140_u32, 0x5000, 0x200, 512].map(u32::to_le_bytes).concat());
        put(512, data);
        file
    }

    fn entry(program: &[u8]) -> [u32; 2] {
        [0, 4].map(|at| u32::from_le_bytes(program[HEADER + ENTRY + at..][..4].try_into().unwrap()))
    }

    #[test]
    fn the_entry_refers_to_the_section_and_one_of_the_linker_stays() {
        let before = program(*b".ldcfg\0\0", &0x140_u32.to_le_bytes());
        let after = enter(before.clone()).unwrap();
        assert_eq!(entry(&after), [0x5000, 0x140]);
        let changed = (0..before.len()).filter(|at| before[*at] != after[*at]);
        assert!(
            changed.into_iter().all(|at| (ENTRY..ENTRY + 8).contains(&(at - HEADER)) || at - HEADER - CHECKSUM < 4)
        );
        assert_eq!(after[HEADER + CHECKSUM..][..4], [0; 4]);
        let mut linked = before;
        linked[HEADER + ENTRY..][..8].copy_from_slice(&[0, 0x30, 0, 0, 0x70, 0, 0, 0]);
        assert_eq!(enter(linked.clone()).unwrap(), linked);
    }

    #[test]
    fn a_program_without_a_load_configuration_is_refused() {
        for (name, data) in [(b".rdata\0\0", 0x140_u32), (b".ldcfg\0\0", 0), (b".ldcfg\0\0", 0x141)] {
            assert!(enter(program(*name, &data.to_le_bytes())).is_err(), "{data:#x}");
        }
        assert!(enter(b"MZ".to_vec()).is_err());
    }
}
