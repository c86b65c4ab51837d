//! The headers of halprof.sys.

use object::LittleEndian as LE;
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_BASERELOC, IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE, IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
    IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_RELOCS_STRIPPED, IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_WRITE,
    IMAGE_SUBSYSTEM_NATIVE,
};
use object::read::pe::PeFile64;
use tests::{checksum, checksum_place};

use crate::file::bytes;

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
