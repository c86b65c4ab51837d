//! The version resources of halprof.sys and client.exe.

use std::fs;

use object::LittleEndian as LE;
use object::read::pe::{PeFile64, ResourceDirectoryEntryData, ResourceDirectoryTable};
use tests::artifacts;

const RT_VERSION: u16 = 16;

/// Size of the header and the key of VS_VERSION_INFO, up to the fixed part.
const FIXED: usize = 40;

#[test]
fn both_files_say_what_they_are_and_of_which_version() {
    for (name, file_type, description) in
        [("halprof.sys", [3, 7], "as a WDM driver."), ("client.exe", [1, 0], "at the command line.")]
    {
        let bytes = fs::read(artifacts().unwrap().join(name)).unwrap();
        let file = PeFile64::parse(&*bytes).unwrap();
        let sections = file.section_table();
        let directory = file.data_directories().resource_directory(&*bytes, &sections).unwrap();
        let directory = directory.unwrap_or_else(|| panic!("{name} has no resources"));
        let only = |table: ResourceDirectoryTable<'_>| {
            let [entry] = table.entries else { panic!("{name}: {} entries", table.entries.len()) };
            (entry.name_or_id().id(), entry.data(directory).unwrap())
        };
        let (id, types) = only(directory.root().unwrap());
        assert_eq!(id, Some(RT_VERSION), "{name}");
        let (_, names) = only(types.table().unwrap());
        let (language, data) = only(names.table().unwrap());
        assert_eq!(language, Some(0x409), "{name}");
        let ResourceDirectoryEntryData::Data(data) = data else { panic!("{name}: another directory") };
        let resource = sections.pe_data_at(&*bytes, data.offset_to_data.get(LE)).unwrap();
        let resource = &resource[..data.size.get(LE) as usize];
        assert_eq!(usize::from(u16::from_le_bytes([resource[0], resource[1]])), resource.len(), "{name}");
        let word = |number: usize| {
            let at = FIXED + 4 * number;
            u32::from_le_bytes(resource[at..at + 4].try_into().unwrap())
        };
        assert_eq!(word(0), 0xFEEF_04BD, "{name}");
        let version: Vec<u32> = env!("CARGO_PKG_VERSION").split('.').map(|number| number.parse().unwrap()).collect();
        assert_eq!([word(2), word(3)], [version[0] << 16 | version[1], version[2] << 16], "{name}");
        assert_eq!([word(9), word(10)], file_type, "{name}");
        let units: Vec<u16> = resource.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        let text = String::from_utf16(&units).unwrap_or_else(|_| String::from_utf16_lossy(&units));
        for (key, value) in
            [("OriginalFilename", name), ("FileVersion", env!("CARGO_PKG_VERSION")), ("FileDescription", description)]
        {
            let from = text.find(key).unwrap_or_else(|| panic!("{name}: no {key}"));
            let field: String = text[from + key.len()..].trim_start_matches('\0').chars().take(120).collect();
            let field = field.split('\0').next().unwrap_or_default();
            assert!(field.ends_with(value), "{name}: {key} is {field:?}");
        }
    }
}
