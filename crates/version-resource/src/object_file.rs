//! A COFF object file with one resource, as the linkers expect it of a resource compiler ("PE Format", Microsoft Learn,
//! "The .rsrc Section"): directories of type, name and language in one section, the resource in the other.

use crate::{ENGLISH, NAME, RT_VERSION};

const MACHINE_AMD64: u16 = 0x8664;

/// Size of the file header, of a section header, of a relocation and of a symbol.
const FILE_HEADER: usize = 20;
const SECTION_HEADER: usize = 40;
const RELOCATION: usize = 10;

/// Characteristics of a section: initialized data, aligned to 8 bytes, readable.
const DATA: u32 = 0x4040_0040;

/// IMAGE_REL_AMD64_ADDR32NB: the address without the image base.
const ADDR32NB: u16 = 3;

/// Set in a directory entry that leads to a directory.
const TO_DIRECTORY: u32 = 1 << 31;

/// Size of a directory with one entry.
const DIRECTORY: u32 = 16 + 8;

/// Returns the object file.
pub fn of(resource: &[u8]) -> Vec<u8> {
    let directories = directories(resource.len());
    let first = FILE_HEADER + 2 * SECTION_HEADER;
    let relocations = first + directories.len();
    let second = relocations + RELOCATION;
    let symbols = second + resource.len();
    let mut file = Vec::new();
    put(&mut file, &[MACHINE_AMD64, 2]);
    put(&mut file, &[0, size(symbols), 2]); // no time, so that builds are reproducible; two symbols
    put(&mut file, &[0_u16, 0]);
    for (name, length, at, relocations, count) in
        [(b".rsrc$01", directories.len(), first, relocations, 1_u16), (b".rsrc$02", resource.len(), second, 0, 0)]
    {
        file.extend(name);
        put(&mut file, &[0, 0, size(length), size(at), size(relocations), 0]);
        put(&mut file, &[count, 0]);
        put(&mut file, &[DATA]);
    }
    file.extend(&directories);
    // The address of the resource, in the only data entry, is that of the second symbol.
    put(&mut file, &[3 * DIRECTORY, 1]);
    put(&mut file, &[ADDR32NB]);
    file.extend(resource);
    for (name, section) in [(b".rsrc$01", 1_u16), (b".rsrc$02", 2)] {
        file.extend(name);
        put(&mut file, &[0_u32]);
        put(&mut file, &[section, 0]);
        file.extend([3, 0]); // static, without auxiliary records
    }
    put(&mut file, &[4_u32]); // an empty table of strings
    file
}

/// Returns the three directories, each with one entry, and the data entry. All offsets are from their begin.
fn directories(length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, next) in [
        (RT_VERSION, DIRECTORY | TO_DIRECTORY),
        (NAME, (2 * DIRECTORY) | TO_DIRECTORY),
        (ENGLISH.into(), 3 * DIRECTORY),
    ] {
        put(&mut bytes, &[0_u32, 0, 0]);
        put(&mut bytes, &[0_u16, 1]); // entries by name, by number
        put(&mut bytes, &[id, next]);
    }
    put(&mut bytes, &[0, size(length), 0, 0]);
    bytes
}

fn size(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Appends numbers in the order of the processor.
fn put<T: Copy + Into<u64>>(bytes: &mut Vec<u8>, values: &[T]) {
    for value in values {
        let value: u64 = (*value).into();
        bytes.extend(value.to_le_bytes().into_iter().take(size_of::<T>()));
    }
}
