//! The load configuration of a program that mingw-w64 has linked.
//!
//! Binutils before 2.45 leave the entry for it in the optional header at zero, so Windows would not read it. The linker
//! of Visual Studio and later binutils write the entry themselves.

use anyhow::{Context, Result, ensure};
use object::LittleEndian as LE;
use object::read::pe::PeFile64;

/// Name of the section with nothing but the load configuration (`client/src/windows/libraries.rs`).
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
