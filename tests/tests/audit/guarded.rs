//! The functions whose faults the driver handles itself: their unwind information, and who calls them.

use std::collections::BTreeSet;

use object::pe::IMAGE_DIRECTORY_ENTRY_EXCEPTION;
use object::read::pe::PeFile64;
use object::{LittleEndian as LE, Object};

use crate::file::{bytes, entry, functions, image};
use crate::levels::is_entry_point;

/// UNW_FLAG_EHANDLER.
const EXCEPTION_HANDLER: u8 = 1;

/// UNWIND_INFO of the functions: version 1 with an exception handler; 4 bytes of prologue; one code; no frame register;
/// at 4, UWOP_ALLOC_SMALL of 40 bytes; and padding (Microsoft, "x64 exception handling").
const UNWIND: [u8; 8] = [1 | EXCEPTION_HANDLER << 3, 4, 1, 0, 4, 2 | (40 / 8 - 1) << 4, 0, 0];

/// `sub rsp, 40`.
const PROLOGUE: [u8; 4] = [0x48, 0x83, 0xEC, 40];

/// `xor eax, eax; add rsp, 40; ret`.
const HANDLER: [u8; 7] = [0x31, 0xC0, 0x48, 0x83, 0xC4, 40, 0xC3];

/// The parts of the file, by their addresses relative to the image.
struct File<'a>(PeFile64<'a>);

impl<'a> File<'a> {
    fn at(&self, address: u32) -> &'a [u8] {
        self.0.section_table().pe_data_at(self.0.data(), address).expect("an address in the file")
    }

    fn number(&self, address: u32) -> u32 {
        u32::from_le_bytes(self.at(address)[..4].try_into().unwrap())
    }

    /// Returns begin, end and unwind information of every function with a flag of a handler.
    fn with_handlers(&self) -> Vec<[u32; 3]> {
        let directory = self.0.data_directories().get(IMAGE_DIRECTORY_ENTRY_EXCEPTION).expect("a function table");
        let (table, length) = (directory.virtual_address.get(LE), directory.size.get(LE));
        assert!(length > 12 * 100, "the driver has many functions");
        let entry = |index| [0, 4, 8].map(|offset| self.number(table + index * 12 + offset));
        (0..length / 12).map(entry).filter(|[_, _, unwind]| self.at(*unwind)[0] >> 3 & 0b11 != 0).collect()
    }
}

#[test]
fn the_three_guarded_instructions_have_exact_unwind_information_and_a_scope_of_their_own() {
    let bytes = bytes();
    let file = File(PeFile64::parse(&*bytes).unwrap());
    let image = image(&file.0);
    let base = file.0.relative_address_base();
    let mut guarded = BTreeSet::new();
    for [begin, end, unwind] in file.with_handlers() {
        assert_eq!(file.at(unwind)[..8], UNWIND, "{begin:x}");
        assert_eq!(file.at(begin)[..4], PROLOGUE, "{begin:x}");
        let handler = image.reach(base + u64::from(file.number(unwind + 8)));
        assert_eq!(handler.imports, BTreeSet::from(["__C_specific_handler".to_owned()]), "{begin:x}");
        // SCOPE_TABLE_AMD64: one scope, which the handler takes (EXCEPTION_EXECUTE_HANDLER).
        let [count, first, last, filter, target] = [0, 4, 8, 12, 16].map(|offset| file.number(unwind + 12 + offset));
        assert_eq!((count, filter), (1, 1), "{begin:x}");
        assert_eq!(last - first, 2, "{begin:x}: the instruction alone");
        assert!(begin < first && last < target && target < end, "{begin:x}");
        assert_eq!(file.at(target)[..7], HANDLER, "{begin:x}");
        guarded.insert([file.at(first)[0], file.at(first)[1]]);
    }
    assert_eq!(guarded, BTreeSet::from([[0x0F, 0x30], [0x0F, 0x32], [0x0F, 0x33]]), "wrmsr, rdmsr, rdpmc");
}

#[test]
fn no_interrupt_no_call_on_every_processor_and_no_dpc_reaches_a_guarded_instruction() {
    let bytes = bytes();
    let file = File(PeFile64::parse(&*bytes).unwrap());
    let (functions, image) = (functions(&file.0), image(&file.0));
    let base = file.0.relative_address_base();
    let guarded: BTreeSet<u64> = file.with_handlers().iter().map(|[begin, ..]| base + u64::from(*begin)).collect();
    assert_eq!(guarded.len(), 3);
    let is_reached = |address: u64| !image.reach(address).functions.is_disjoint(&guarded);
    let reaching: Vec<_> =
        functions.iter().filter(|(_, name)| is_entry_point(name)).filter(|(at, _)| is_reached(**at)).collect();
    assert!(reaching.is_empty(), "{reaching:?}");
    // A test of the walk: the functions are reached, from the code of requests.
    assert!(functions.keys().any(|address| is_reached(*address)));
    assert!(!is_reached(entry(&file.0)), "loading the driver accesses no register");
}
