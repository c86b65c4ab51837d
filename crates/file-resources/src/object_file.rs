//! A COFF object file with resources, as the linkers expect it of a resource compiler ("PE Format", Microsoft Learn,
//! "The .rsrc Section"): directories of type, name and language in one section, the resources in the other.

use crate::{ENGLISH, NAME};

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

/// Size of a directory without its entries, of an entry, of a directory with one entry, and of a data entry.
const EMPTY_DIRECTORY: u32 = 16;
const ENTRY: u32 = 8;
const DIRECTORY: u32 = EMPTY_DIRECTORY + ENTRY;
const DATA_ENTRY: u32 = 16;

/// Alignment of a resource.
const ALIGNMENT: usize = 8;

/// A resource, the only one of its type.
pub struct Resource {
    /// Number of the type.
    pub kind: u32,
    pub bytes: Vec<u8>,
}

/// Returns the object file with these resources, in ascending order of their types.
pub fn of(resources: &[Resource]) -> Vec<u8> {
    let mut contents = Vec::new();
    let mut places = Vec::new();
    for resource in resources {
        places.push(size(contents.len()));
        contents.extend(&resource.bytes);
        contents.resize(contents.len().next_multiple_of(ALIGNMENT), 0);
    }
    let (directories, data_entries) = directories(resources, &places);
    let first = FILE_HEADER + 2 * SECTION_HEADER;
    let relocations = first + directories.len();
    let second = relocations + RELOCATION * data_entries.len();
    let symbols = second + contents.len();
    let count = u16::try_from(data_entries.len()).unwrap_or(u16::MAX);
    let mut file = Vec::new();
    put(&mut file, &[MACHINE_AMD64, 2]);
    put(&mut file, &[0, size(symbols), 2]); // no time, so that builds are reproducible; two symbols
    put(&mut file, &[0_u16, 0]);
    for (name, length, at, relocations, count) in
        [(b".rsrc$01", directories.len(), first, relocations, count), (b".rsrc$02", contents.len(), second, 0, 0)]
    {
        file.extend(name);
        put(&mut file, &[0, 0, size(length), size(at), size(relocations), 0]);
        put(&mut file, &[count, 0]);
        put(&mut file, &[DATA]);
    }
    file.extend(&directories);
    for data_entry in data_entries {
        // Adds the address of the second symbol to the place of the resource.
        put(&mut file, &[data_entry, 1]);
        put(&mut file, &[ADDR32NB]);
    }
    file.extend(contents);
    for (name, section) in [(b".rsrc$01", 1_u16), (b".rsrc$02", 2)] {
        file.extend(name);
        put(&mut file, &[0_u32]);
        put(&mut file, &[section, 0]);
        file.extend([3, 0]); // static, without auxiliary records
    }
    put(&mut file, &[4_u32]); // an empty table of strings
    file
}

/// Returns the directory of types, for each type one of names and one of languages with one entry each, and the data
/// entries; and where the latter are. All offsets are from the begin of the first directory.
fn directories(resources: &[Resource], places: &[u32]) -> (Vec<u8>, Vec<u32>) {
    let count = size(resources.len());
    let behind_types = EMPTY_DIRECTORY + count * ENTRY;
    let of_names = |index: u32| behind_types + index * 2 * DIRECTORY;
    let data_entry = |index: u32| of_names(count) + index * DATA_ENTRY;
    let mut bytes = Vec::new();
    let directory = |bytes: &mut Vec<u8>, entries: &[[u32; 2]]| {
        put(bytes, &[0_u32, 0, 0]);
        put(bytes, &[0_u16, u16::try_from(entries.len()).unwrap_or(u16::MAX)]); // entries by name, by number
        put(bytes, entries.as_flattened());
    };
    let types: Vec<_> = (0..).zip(resources).map(|(index, it)| [it.kind, of_names(index) | TO_DIRECTORY]).collect();
    directory(&mut bytes, &types);
    for index in 0..count {
        directory(&mut bytes, &[[NAME, (of_names(index) + DIRECTORY) | TO_DIRECTORY]]);
        directory(&mut bytes, &[[ENGLISH.into(), data_entry(index)]]);
    }
    for (resource, place) in resources.iter().zip(places) {
        put(&mut bytes, &[*place, size(resource.bytes.len()), 0, 0]);
    }
    (bytes, (0..count).map(data_entry).collect())
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
