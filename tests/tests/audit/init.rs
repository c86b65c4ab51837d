//! The section INIT, which Windows discards once the driver is loaded.

use std::ops::Range;

use object::pe::{IMAGE_SCN_MEM_DISCARDABLE, IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_WRITE};
use object::read::pe::PeFile64;
use object::{LittleEndian as LE, Object, ObjectSection, SectionFlags};

use crate::file::{bytes, entry, functions, image};

fn init(file: &PeFile64) -> Range<u64> {
    let section = file.section_by_name("INIT").expect("there is a section INIT");
    let SectionFlags::Coff { characteristics } = section.flags() else { panic!("flags of another format") };
    assert_eq!(characteristics & IMAGE_SCN_MEM_DISCARDABLE, IMAGE_SCN_MEM_DISCARDABLE);
    assert_eq!(characteristics & IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_EXECUTE);
    assert_eq!((characteristics & IMAGE_SCN_MEM_WRITE).0, 0);
    section.address()..section.address() + section.size()
}

#[test]
fn discarded_code_is_reached_only_from_the_entry() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let init = init(&file);
    let entry = entry(&file);
    assert!(init.contains(&entry), "{entry:x} in {init:x?}");
    let others = functions(&file).into_keys().filter(|address| *address != entry);
    let reach = image(&file).reach_from(others);
    let inside: Vec<&u64> = reach.functions.iter().filter(|address| init.contains(address)).collect();
    assert!(inside.is_empty(), "{inside:x?}");
}

#[test]
fn no_pointer_outside_of_init_leads_to_discarded_code() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    let init = init(&file);
    let sections = file.section_table();
    let mut blocks = file.data_directories().relocation_blocks(file.data(), &sections).unwrap().expect("relocations");
    let mut pointers = 0;
    while let Some(block) = blocks.next().unwrap() {
        for place in block {
            let Some(data) = sections.pe_data_at(file.data(), place.virtual_address) else { continue };
            let pointer = u64::from_le_bytes(data[..8].try_into().unwrap());
            // Pointers within INIT itself are allowed.
            let own = init.contains(&(file.relative_address_base() + u64::from(place.virtual_address)));
            assert!(own || !init.contains(&pointer), "{:x}: {pointer:x}", place.virtual_address);
            pointers += 1;
        }
    }
    assert!(pointers > 0);
    let entry = file.nt_headers().optional_header.address_of_entry_point.get(LE);
    assert!(init.contains(&(file.relative_address_base() + u64::from(entry))), "the entry is in INIT");
}
