//! The resources of halprof.sys and the programs: what they are, and what they ask of Windows.

use std::collections::BTreeMap;
use std::fs;

use object::LittleEndian as LE;
use object::read::pe::{PeFile64, ResourceDirectoryEntryData, ResourceDirectoryTable};
use tests::artifacts;

const RT_VERSION: u16 = 16;
const RT_MANIFEST: u16 = 24;

/// Size of the header and the key of VS_VERSION_INFO, up to the fixed part.
const FIXED: usize = 40;

/// Returns the only resource of each type, with its language.
fn resources(name: &str) -> BTreeMap<u16, (u16, Vec<u8>)> {
    let bytes = fs::read(artifacts().unwrap().join(name)).unwrap();
    let file = PeFile64::parse(&*bytes).unwrap();
    let sections = file.section_table();
    let directory = file.data_directories().resource_directory(&*bytes, &sections).unwrap();
    let directory = directory.unwrap_or_else(|| panic!("{name} has no resources"));
    let only = |table: ResourceDirectoryTable<'_>| {
        let [entry] = table.entries else { panic!("{name}: {} entries", table.entries.len()) };
        (entry.name_or_id().id().unwrap(), entry.data(directory).unwrap())
    };
    let of_type = |data: ResourceDirectoryEntryData<'_>| {
        let (_, names) = only(data.table().unwrap());
        let (language, data) = only(names.table().unwrap());
        let ResourceDirectoryEntryData::Data(data) = data else { panic!("{name}: another directory") };
        let resource = sections.pe_data_at(&*bytes, data.offset_to_data.get(LE)).unwrap();
        (language, resource[..data.size.get(LE) as usize].to_vec())
    };
    let types = directory.root().unwrap().entries.iter();
    types.map(|entry| (entry.name_or_id().id().unwrap(), of_type(entry.data(directory).unwrap()))).collect()
}

#[test]
fn each_file_says_what_it_is_and_of_which_version() {
    for (name, file_type, description) in [
        ("halprof.sys", [3, 7], "as a WDM driver."),
        ("client.exe", [1, 0], "at the command line."),
        ("halprof-agent.exe", [1, 0], "that many machines report to."),
    ] {
        let (language, resource) = &resources(name)[&RT_VERSION];
        assert_eq!(*language, 0x409, "{name}");
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

#[test]
fn the_programs_run_as_who_started_them_with_texts_in_utf_8_and_long_paths() {
    let types = |name| resources(name).into_keys().collect::<Vec<_>>();
    assert_eq!(types("halprof.sys"), [RT_VERSION]);
    assert_eq!([types("client.exe"), types("halprof-agent.exe")], [(); 2].map(|()| vec![RT_VERSION, RT_MANIFEST]));
    assert_eq!(resources("client.exe")[&RT_MANIFEST], resources("halprof-agent.exe")[&RT_MANIFEST]);
    let (_, manifest) = &resources("client.exe")[&RT_MANIFEST];
    let manifest = String::from_utf8(manifest.clone()).unwrap();
    for setting in
        ["level=\"asInvoker\" uiAccess=\"false\"", ">UTF-8</activeCodePage>", ">true</longPathAware>", "<supportedOS "]
    {
        assert!(manifest.contains(setting), "{setting} is not in {manifest}");
    }
}
