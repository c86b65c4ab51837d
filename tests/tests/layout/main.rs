//! On Linux, wdk-sys generates its bindings from mingw-w64's headers, corrected by the kit. This test compares them
//! with the bindings that Microsoft generated from the genuine WDK (22621) and published in wdk-sys 0.1.0: every
//! structure, constant and function that the source of the driver and of its allocator names, and everything they
//! consist of.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod assertions;
mod bindings;
mod compare;
mod comparisons;
mod driver;
mod packages;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use bindings::{Bindings, Entry};
use compare::Comparison;
use driver::Source;

/// How the driver uses a type that differs from the official one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UsedBy {
    /// The driver has memory for it or for a type that contains it, so its size must be right.
    Value,
    /// Part of such a type, which has the right size nevertheless.
    Part,
    /// Reached through a pointer that the driver does not follow.
    Pointer,
}

/// Types that differ in mingw-w64, in fields that the driver's source does not name. `assertions` and the compiler
/// check that on both systems.
const KNOWN_DIFFERENCES: &[(&str, UsedBy, &str)] = &[
    ("_CM_PARTIAL_RESOURCE_DESCRIPTOR__bindgen_ty_1", UsedBy::Pointer, "hardware resources, in IO_STACK_LOCATION"),
    ("_COMPRESSED_DATA_INFO", UsedBy::Pointer, "for file systems, in FAST_IO_DISPATCH; opaque in mingw-w64"),
    ("_DEVOBJ_EXTENSION", UsedBy::Pointer, "the I/O manager's, in DEVICE_OBJECT; undocumented members"),
    (
        "_DISPATCHER_HEADER__bindgen_ty_1",
        UsedBy::Value,
        "one word with different names for its bytes; only the kernel writes it",
    ),
    ("_DISPATCHER_HEADER__bindgen_ty_1__bindgen_ty_1", UsedBy::Part, "the same"),
    ("_ERESOURCE", UsedBy::Pointer, "for file systems, in DEVICE_OBJECT's queues"),
    ("_ERESOURCE.ExclusiveWaiters", UsedBy::Pointer, "the same"),
    ("_ERESOURCE.SharedWaiters", UsedBy::Pointer, "the same"),
    ("_ERESOURCE__bindgen_ty_1", UsedBy::Pointer, "the same"),
    ("_FAST_MUTEX.Owner", UsedBy::Value, "a pointer that only the kernel writes"),
    ("_IO_COMPLETION_CONTEXT", UsedBy::Pointer, "the I/O manager's, in FILE_OBJECT"),
    ("_IO_RESOURCE_DESCRIPTOR__bindgen_ty_1", UsedBy::Pointer, "hardware resources, in IO_STACK_LOCATION"),
    ("_IO_RESOURCE_DESCRIPTOR__bindgen_ty_1__bindgen_ty_3", UsedBy::Pointer, "the same"),
    ("_IRP", UsedBy::Value, "UserIosb is in a union"),
    (
        "_IRP__bindgen_ty_2__bindgen_ty_1, officially _IRP__bindgen_ty_3__bindgen_ty_1",
        UsedBy::Value,
        "UserApcContext too",
    ),
    ("_EVENT_DATA_DESCRIPTOR", UsedBy::Pointer, "a union at its end; the driver has a structure of its own"),
    ("_KAPC", UsedBy::Value, "members reserved"),
    ("_KDPC", UsedBy::Value, "a union and another list at the beginning; KeInitializeDpc writes it"),
    ("_KTIMER", UsedBy::Value, "a member split; KeInitializeTimerEx writes it"),
    ("_KTIMER.Processor", UsedBy::Value, "the same"),
    ("_LIST_ENTRY, officially _SINGLE_LIST_ENTRY", UsedBy::Part, "in KDPC, beside another member"),
    ("_WAIT_CONTEXT_BLOCK", UsedBy::Value, "a union, in DEVICE_OBJECT; the HAL's"),
];

/// Constants of headers that the official bindings do not cover, with the source of each value.
const CONSTANTS_ELSEWHERE: &[(&str, i128, &str)] = &[
    // The bindings cover the WDK's wdm.h and ntddk.h only.
    ("SystemKernelVaShadowInformation", 196, "Windows SDK, winternl.h"),
    ("EVENT_CONTROL_CODE_DISABLE_PROVIDER", 0, "Windows SDK, evntrace.h"),
    ("EVENT_CONTROL_CODE_ENABLE_PROVIDER", 1, "Windows SDK, evntrace.h"),
    ("KvaShadowEnabled", 1, "Windows SDK, winternl.h: the first bit of KvaShadowFlags"),
];

/// A name in the driver, and the official one.
type Names = (&'static str, &'static str);

/// Structures that the driver declares itself, with their fields.
const OWN_STRUCTURES: &[(Names, &[Names])] = &[
    (("DataDescriptor", "_EVENT_DATA_DESCRIPTOR"), &[("address", "Ptr"), ("size", "Size")]),
    (("Dispatch", "HAL_DISPATCH"), &[("query", "HalQuerySystemInformation"), ("set", "HalSetSystemInformation")]),
    (
        ("TrapFrame", "_KTRAP_FRAME"),
        &[("rip", "Rip"), ("cs", "SegCs"), ("flags", "EFlags"), ("rsp", "Rsp"), ("ss", "SegSs")],
    ),
];

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the bindings that the driver is compiled with.
fn ours() -> Bindings {
    let made = tests::artifacts().unwrap().join("bindings");
    let generated = ["types.rs", "constants.rs", "ntddk.rs"].map(|name| made.join(name));
    // The crate itself declares what bindgen cannot translate.
    let written = packages::folder("Cargo.toml", "wdk-sys").join("src/constants.rs");
    Bindings::read(&[&generated[..], &[written]].concat())
}

fn official() -> Bindings {
    let package = packages::folder("official/Cargo.toml", "wdk-sys");
    let generated = ["types.rs", "constants.rs", "ntddk.rs"].map(|name| package.join("generated_bindings").join(name));
    Bindings::read(&[&generated[..], &[package.join("src/constants.rs")]].concat())
}

/// Returns the source of the driver without the generated assertions.
fn driver() -> Source {
    let mut driver = Source::read(&folder("../driver/src"), "layout.rs");
    for part in ["interrupt-path", "processor"] {
        driver.extend(Source::read(&folder("../driver").join(part).join("src"), ""));
    }
    driver
}

/// Returns the names that the driver uses, and those of its allocator, which is linked into it.
fn names(ours: &Bindings) -> BTreeSet<String> {
    let mut names = driver().names;
    names.extend(Source::read(&packages::folder("Cargo.toml", "wdk-alloc").join("src"), "").names);
    // Associated functions of a type are bindgen's own.
    names.retain(|name| name.split_once("::").is_none_or(|(outer, _)| matches!(ours.get(outer), Some(Entry::Module))));
    names
}

#[test]
fn everything_that_the_driver_uses_is_declared_as_in_the_genuine_wdk() {
    let (ours, official) = (ours(), official());
    let names = names(&ours);
    let mut comparison = Comparison::new(&ours, &official);
    for name in &names {
        comparison.item(name);
    }
    println!("{} names, {} structures and unions", names.len(), comparison.composites.len());
    assert!(names.len() > 100 && comparison.composites.len() > 100, "too few names were found");

    let mut stale: BTreeSet<&str> = KNOWN_DIFFERENCES.iter().map(|(place, ..)| *place).collect();
    let unknown: Vec<&String> = comparison
        .differences
        .iter()
        .filter(|difference| {
            let (place, what) = difference.split_once(": ").unwrap();
            stale.remove(place);
            let sized = what.starts_with("size") || what.starts_with("alignment");
            !KNOWN_DIFFERENCES.iter().any(|(known, by, _)| *known == place && !(sized && *by == UsedBy::Value))
        })
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(stale.is_empty(), "these no longer differ: {stale:?}");
}

#[test]
fn constants_that_the_driver_declares_itself_have_the_official_values() {
    let official = official();
    let mut unused: BTreeSet<&str> = CONSTANTS_ELSEWHERE.iter().map(|(name, ..)| *name).collect();
    let mut compared = BTreeSet::new();
    for constant in driver().constants {
        let value = constant.stands_for.as_ref().map_or_else(
            || official.constant(&constant.name),
            |name| {
                unused.remove(name.as_str());
                let elsewhere =
                    CONSTANTS_ELSEWHERE.iter().find(|(known, ..)| known == name).map(|(_, value, _)| *value);
                let value = official.constant(name).or(elsewhere);
                assert!(value.is_some(), "{}: the source of the value of {name} is unknown", constant.file.display());
                value
            },
        );
        if let Some(value) = value {
            // A status is signed in one and unsigned in the other.
            assert_eq!(
                constant.value & 0xFFFF_FFFF,
                value & 0xFFFF_FFFF,
                "{} {}",
                constant.file.display(),
                constant.name
            );
            compared.insert(constant.stands_for.unwrap_or(constant.name));
        }
    }
    println!("{compared:?}");
    assert!(compared.contains("KernelMode") && compared.contains("STATUS_PENDING"), "{compared:?}");
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn structures_that_the_driver_declares_itself_have_the_official_layout() {
    let official = official();
    let mut asserted = driver().asserted;
    for ((own, theirs), fields) in OWN_STRUCTURES {
        for (field, other) in *fields {
            let offset = asserted.remove(&format!("{own},{field}"));
            assert!(offset.is_some(), "the driver does not assert the offset of {own}.{field}");
            assert_eq!(offset, official.offset(theirs, other), "{own}.{field}");
        }
        // The driver may declare only the beginning of a structure.
        if let Some(size) = asserted.remove(&format!("size_of::<{own}>()")) {
            assert_eq!(Some(size), official.size(theirs), "{own}");
        }
    }
    assert!(asserted.is_empty(), "these assertions have no official counterpart in the table: {asserted:?}");
}

#[test]
fn the_driver_asserts_the_official_layout_of_everything_it_uses() {
    let (ours, official) = (ours(), official());
    let text = assertions::text(&ours, &official, &names(&ours), &driver().fields);
    let file = folder("../driver/src/layout.rs");
    if env::var_os("HALPROF_WRITE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        found == text,
        "driver/src/layout.rs is outdated; to regenerate it: HALPROF_WRITE=1 cargo xtask test\n{text}"
    );
}
