//! halprof.sys as a file.

use std::collections::BTreeMap;
use std::fs;

use object::LittleEndian as LE;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
    IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_RELOCS_STRIPPED, IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_WRITE,
    IMAGE_SUBSYSTEM_NATIVE,
};
use object::read::pe::{ImageThunkData, PeFile64};
use tests::{Machine, artifacts, package};

pub fn driver() -> Vec<u8> {
    fs::read(artifacts().unwrap().join("halprof.sys")).unwrap()
}

/// Module to names.
fn imports(file: &PeFile64) -> BTreeMap<String, Vec<String>> {
    let table = file.import_table().unwrap().expect("a driver imports something");
    let mut modules = BTreeMap::new();
    let mut descriptors = table.descriptors().unwrap();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let module = String::from_utf8_lossy(table.name(descriptor.name.get(LE)).unwrap()).to_lowercase();
        let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE)).unwrap();
        let mut names = Vec::new();
        while let Some(thunk) = thunks.next::<object::pe::ImageNtHeaders64>().unwrap() {
            assert!(!thunk.is_ordinal(), "{module}: an import by number");
            let (_, name) = table.hint_name(thunk.address()).unwrap();
            names.push(String::from_utf8_lossy(name).into_owned());
        }
        modules.insert(module, names);
    }
    modules
}

/// CheckSumMappedFile: 16-bit words added with end-around carry, the checksum's own bytes as zero, plus the length.
pub fn checksum(bytes: &[u8], at: usize) -> u32 {
    let mut sum: u32 = 0;
    for (place, word) in bytes.chunks(2).enumerate() {
        let word = if place * 2 == at || place * 2 == at + 2 {
            0
        } else {
            u16::from_le_bytes([word[0], *word.get(1).unwrap_or(&0)])
        };
        sum += u32::from(word);
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum + u32::try_from(bytes.len()).unwrap()
}

/// Where the checksum stands in a file: IMAGE_OPTIONAL_HEADER64.CheckSum.
pub fn checksum_place(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[0x3C..0x40].try_into().unwrap()) as usize + 24 + 64
}

#[test]
fn the_driver_is_what_windows_loads() {
    let bytes = driver();
    let file = PeFile64::parse(&*bytes).unwrap();
    let headers = file.nt_headers();
    let optional = headers.optional_header;
    assert_eq!(headers.file_header.machine.get(LE), IMAGE_FILE_MACHINE_AMD64);
    assert_eq!(optional.subsystem.get(LE), IMAGE_SUBSYSTEM_NATIVE);
    let characteristics = optional.dll_characteristics.get(LE);
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE).0, 0, "relocatable");
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_NX_COMPAT).0, 0, "NX");
    assert_eq!((headers.file_header.characteristics.get(LE) & IMAGE_FILE_RELOCS_STRIPPED).0, 0);
    let at = checksum_place(&bytes);
    assert_eq!(optional.check_sum.get(LE), checksum(&bytes, at), "checksum");
    assert_ne!(optional.check_sum.get(LE), 0);
    for section in file.section_table().iter() {
        let both = IMAGE_SCN_MEM_EXECUTE | IMAGE_SCN_MEM_WRITE;
        let name = String::from_utf8_lossy(&section.name).into_owned();
        assert_ne!(section.characteristics.get(LE) & both, both, "{name} is writable and executable");
    }
    assert_ne!(
        file.data_directory(IMAGE_DIRECTORY_ENTRY_BASERELOC).unwrap().virtual_address.get(LE),
        0,
        "base relocations"
    );
}

#[test]
fn the_driver_imports_from_the_kernel_and_the_hal_alone() {
    let bytes = driver();
    let imports = imports(&PeFile64::parse(&*bytes).unwrap());
    let modules: Vec<&String> = imports.keys().collect();
    assert_eq!(modules, ["hal.dll", "ntoskrnl.exe"]);
    assert_eq!(imports["hal.dll"], ["KeQueryPerformanceCounter"]);
    assert!(imports["ntoskrnl.exe"].iter().any(|name| name == "KeIpiGenericCall"), "{imports:?}");
}

#[test]
fn the_file_is_the_same_byte_for_byte_before_and_after_its_life() {
    let packed = || fs::read(package().unwrap().join("halprof.sys")).unwrap();
    let before = packed();
    let machine = Machine::boot().unwrap();
    machine.client(&["install"]).unwrap().success().unwrap();
    let installed = machine.driver().unwrap();
    assert_eq!(fs::read(&installed).unwrap(), before, "as installed");
    machine.client(&["start", "Time"]).unwrap().success().unwrap();
    machine.client(&["stop", "Time"]).unwrap().success().unwrap();
    assert_eq!(fs::read(&installed).unwrap(), before, "after it ran");
    assert_eq!(packed(), before);
    machine.finish().unwrap();
}
