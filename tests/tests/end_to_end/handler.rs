//! What the handler of the interrupt can reach in the shipped file, which it must at PROFILE_LEVEL.

use std::collections::BTreeMap;

use object::LittleEndian as LE;
use object::pe::{IMAGE_SCN_MEM_EXECUTE, ImageNtHeaders64};
use object::read::pe::{ExportTarget, ImageThunkData, PeFile64};
use object::{Object, ObjectSection, SectionFlags};
use tests::{Image, Reach};

use crate::binary::driver;

/// What may be called at PROFILE_LEVEL: any IRQL, says the WDK's documentation of each.
const ALLOWED: [&str; 6] = [
    "KeGetCurrentProcessorNumberEx",
    "KeInsertQueueDpc",
    "KeQueryPerformanceCounter",
    "PsGetCurrentProcessId",
    "PsGetCurrentThreadId",
    "memcpy",
];

/// Bytes of stack that the handler may need; a kernel stack has 24 KiB, of which the interrupted code has used some.
const STACK: u64 = 1_024;

/// What the exported function of this name can reach.
fn reach(file: &PeFile64, export: &str) -> Reach {
    let sections = file.sections().filter(|section| match section.flags() {
        SectionFlags::Coff { characteristics } => characteristics & IMAGE_SCN_MEM_EXECUTE == IMAGE_SCN_MEM_EXECUTE,
        _ => false,
    });
    let code: Vec<(u64, &[u8])> = sections.map(|section| (section.address(), section.data().unwrap())).collect();
    let table = file.export_table().unwrap().expect("the driver exports its entry and its handler");
    let found = table.exports().unwrap().into_iter().find(|found| found.name == Some(export.as_bytes()));
    let ExportTarget::Address(address) = found.expect(export).target else { panic!("{export} is elsewhere") };
    Image { code, imports: slots(file) }.reach(file.relative_address_base() + u64::from(address))
}

/// Slots of the import table, at the addresses at which the image wants to be loaded.
fn slots(file: &PeFile64) -> BTreeMap<u64, String> {
    let base = file.relative_address_base();
    let table = file.import_table().unwrap().expect("a driver imports something");
    let mut slots = BTreeMap::new();
    let mut descriptors = table.descriptors().unwrap();
    while let Some(descriptor) = descriptors.next().unwrap() {
        let first = base + u64::from(descriptor.first_thunk.get(LE));
        let mut thunks = table.thunks(descriptor.original_first_thunk.get(LE)).unwrap();
        let mut slot = first;
        while let Some(thunk) = thunks.next::<ImageNtHeaders64>().unwrap() {
            let (_, name) = table.hint_name(thunk.address()).unwrap();
            slots.insert(slot, String::from_utf8_lossy(name).into_owned());
            slot += 8;
        }
    }
    slots
}

#[test]
fn the_handler_reaches_nothing_that_allocates_waits_prints_or_panics() {
    let bytes = driver();
    let file = PeFile64::parse(&*bytes).unwrap();
    let reach = reach(&file, "PerformanceInterrupt");
    let forbidden: Vec<&String> = reach.imports.iter().filter(|name| !ALLOWED.contains(&name.as_str())).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    assert!(reach.imports.contains("KeInsertQueueDpc"), "it wakes who waits: {:?}", reach.imports);
    assert!(reach.endless.is_empty(), "a panic: {:x?}", reach.endless);
    assert!(reach.traps.is_empty(), "{:x?}", reach.traps);
    assert!(reach.unknown.is_empty(), "{:x?}", reach.unknown);
    assert!(reach.recursive.is_empty(), "{:x?}", reach.recursive);
    println!("{} functions, {} bytes of stack", reach.functions.len(), reach.stack);
    assert!(reach.stack <= STACK, "{} bytes of stack", reach.stack);
}

#[test]
fn the_walk_sees_what_the_entry_of_the_driver_needs() {
    // The same walk from where memory is allocated: it is able to find what it must not find above.
    let bytes = driver();
    let file = PeFile64::parse(&*bytes).unwrap();
    let reach = reach(&file, "DriverEntry");
    for name in ["ExAllocatePool2", "IoCreateDevice", "PsCreateSystemThread"] {
        assert!(reach.imports.contains(name), "{name} is not in {:?}", reach.imports);
    }
    assert!(reach.functions.len() > 10);
}
