//! From where the programs load DLLs: an elevated one must take none from its own folder.

use std::collections::BTreeSet;
use std::fs;

use object::LittleEndian as LE;
use object::pe::{IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT, IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG};
use object::read::pe::PeFile64;
use tests::artifacts;

/// LOAD_LIBRARY_SEARCH_SYSTEM32 (libloaderapi.h).
const SEARCH_SYSTEM32: u16 = 0x800;

/// Offset of DependentLoadFlags in IMAGE_LOAD_CONFIG_DIRECTORY64 (winnt.h).
const DEPENDENT_LOAD_FLAGS: usize = 0x4E;

/// What the programs may import: DLLs of System32 in every Windows 10, and sets of functions that are always there.
const DLLS: [&str; 13] = [
    "advapi32.dll",
    "api-ms-win-core-synch-l1-2-0.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "combase.dll",
    "kernel32.dll",
    "msvcrt.dll",
    "ntdll.dll",
    "sechost.dll",
    "shell32.dll",
    "user32.dll",
    "userenv.dll",
    "ws2_32.dll",
];

#[test]
fn the_programs_load_their_imports_from_system32_only() {
    for program in ["client.exe", "halprof-agent.exe"] {
        check(program);
    }
}

fn check(program: &str) {
    let bytes = fs::read(artifacts().unwrap().join(program)).unwrap();
    let file = PeFile64::parse(&*bytes).unwrap();
    let directories = file.data_directories();
    let entry = directories.get(IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG).filter(|entry| entry.virtual_address.get(LE) != 0);
    let entry =
        entry.unwrap_or_else(|| panic!("{program} has no load configuration, so it loads DLLs from its own folder"));
    let data = entry.data(&*bytes, &file.section_table()).unwrap();
    let size = u32::from_le_bytes(data[..4].try_into().unwrap()) as usize;
    assert!((DEPENDENT_LOAD_FLAGS + 2..=data.len()).contains(&size), "{size} of {} bytes", data.len());
    let flags = u16::from_le_bytes(data[DEPENDENT_LOAD_FLAGS..DEPENDENT_LOAD_FLAGS + 2].try_into().unwrap());
    assert_eq!(flags, SEARCH_SYSTEM32);

    // Delayed imports would be searched for when they are used first.
    assert!(directories.get(IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT).is_none_or(|entry| entry.virtual_address.get(LE) == 0));
    let table = file.import_table().unwrap().unwrap();
    let mut descriptors = table.descriptors().unwrap();
    let mut names = BTreeSet::new();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let name = table.name(descriptor.name.get(LE)).unwrap();
        names.insert(String::from_utf8(name.to_ascii_lowercase()).unwrap());
    }
    let others: Vec<_> = names.iter().filter(|name| !DLLS.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(names.contains("kernel32.dll"), "{names:?}");

    // What is loaded later is restricted by a call at the beginning of main.
    let name = b"\0SetDefaultDllDirectories\0";
    assert!(bytes.windows(name.len()).any(|window| window == name), "{program} does not call the function");
}
