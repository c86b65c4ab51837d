//! The headers of halprof.sys.

use object::LittleEndian as LE;
use object::pe::{
    IMAGE_DEBUG_TYPE_EX_DLLCHARACTERISTICS, IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_DIRECTORY_ENTRY_DEBUG,
    IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY,
    IMAGE_DLLCHARACTERISTICS_HIGH_ENTROPY_VA, IMAGE_DLLCHARACTERISTICS_NX_COMPAT, IMAGE_DLLCHARACTERISTICS_WDM_DRIVER,
    IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_RELOCS_STRIPPED, IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_WRITE,
    IMAGE_SUBSYSTEM_NATIVE, ImageDebugDirectory,
};
use object::pod::slice_from_all_bytes;
use object::read::pe::PeFile64;
use object::{Object, ObjectSection};
use tests::{checksum, checksum_place};

use crate::file::{bytes, exports};

/// Limit for the file, in bytes. All of it but INIT stays in non-paged memory.
const FILE_SIZE: usize = 296_448;

/// Limit for its code, in bytes.
const CODE_SIZE: u64 = 239_616;

/// IMAGE_DLLCHARACTERISTICS_EX_CET_COMPAT.
const CET_COMPAT: u8 = 0x01;

#[test]
fn the_headers_meet_the_requirements_of_windows() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let headers = file.nt_headers();
    let optional = headers.optional_header;
    assert_eq!(headers.file_header.machine.get(LE), IMAGE_FILE_MACHINE_AMD64);
    assert_eq!(optional.subsystem.get(LE), IMAGE_SUBSYSTEM_NATIVE);
    let characteristics = optional.dll_characteristics.get(LE);
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE).0, 0, "relocatable");
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_NX_COMPAT).0, 0, "NX");
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_HIGH_ENTROPY_VA).0, 0, "64-bit addresses");
    assert_ne!((characteristics & IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY).0, 0, "only with a signature");
    // With it, the I/O manager would expect a driver of devices, and refuse to unload it on request. (From memory: the
    // Windows Research Kernel, IopUnloadDriver.)
    assert_eq!((characteristics & IMAGE_DLLCHARACTERISTICS_WDM_DRIVER).0, 0, "WDM_DRIVER");
    assert_eq!((headers.file_header.characteristics.get(LE) & IMAGE_FILE_RELOCS_STRIPPED).0, 0);
    let at = checksum_place(&bytes).unwrap();
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

/// What makes the file small, and keeps the interrupt path fast, is in `driver/interrupt-path/src/lib.rs`.
#[test]
fn the_driver_is_small() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let code = file.section_by_name(".text").expect("code").size();
    println!("{} bytes, of which {code} are code", bytes.len());
    assert!(bytes.len() <= FILE_SIZE, "{} bytes", bytes.len());
    assert!(code <= CODE_SIZE, "{code} bytes of code");
}

#[test]
fn the_driver_can_run_with_shadow_stacks() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let directory = file.data_directory(IMAGE_DIRECTORY_ENTRY_DEBUG).unwrap();
    let entries = directory.data(&*bytes, &file.section_table()).unwrap();
    let entries = slice_from_all_bytes::<ImageDebugDirectory>(entries).unwrap();
    let extended = entries.iter().find(|entry| entry.typ.get(LE) == IMAGE_DEBUG_TYPE_EX_DLLCHARACTERISTICS);
    let at = extended.expect("extended characteristics").pointer_to_raw_data.get(LE) as usize;
    assert_ne!(bytes[at] & CET_COMPAT, 0);
}

/// Windows starts the driver at the entry point in the header. Microsoft's linker also exports each function with a
/// fixed name: the entry, and those of wdk-sys for the linker (driver/build.rs).
#[test]
fn the_driver_exports_nothing() {
    const OF_RUSTC: [&str; 5] =
        ["DriverEntry", "__CxxFrameHandler3", "__CxxFrameHandler4", "__GSHandlerCheck_EH4", "_fltused"];
    let bytes = bytes();
    let mut found = exports(&PeFile64::parse(&*bytes).unwrap());
    found.retain(|name| cfg!(not(windows)) || !OF_RUSTC.contains(&name.as_str()));
    assert_eq!(found, [""; 0]);
}
