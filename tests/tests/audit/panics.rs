//! The driver contains no code for a panic.

use object::read::pe::PeFile64;

use crate::file::{bytes, functions, image, imports};

#[test]
fn there_is_no_code_for_a_panic_in_the_driver() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    // The panic handler of wdk-panic calls it, so without this import there is no panic.
    assert!(imports(&file).iter().all(|import| import.name != "KeBugCheckEx"));
    let functions = functions(&file);
    assert!(functions.values().any(|name| name == "halprof::driver_entry()"), "names are found: {functions:?}");
    let of_panics = [
        "core::panicking",
        "core::result::unwrap_failed",
        "core::option::expect_failed",
        "core::option::unwrap_failed",
        "alloc::raw_vec::handle_error",
        "alloc::alloc::handle_alloc_error",
        "alloc::raw_vec::capacity_overflow",
        "rust_begin_unwind",
    ];
    for name in functions.values() {
        assert!(!of_panics.iter().any(|part| name.contains(part)), "{name}");
    }
    let reach = image(&file).reach_from(functions.keys().copied());
    assert!(reach.functions.len() >= functions.len() / 2, "the walk goes through all of them");
    assert!(reach.endless.is_empty(), "{:x?}", reach.endless);
    assert!(reach.traps.is_empty(), "{:x?}", reach.traps);
    assert!(reach.recursive.is_empty(), "{:x?}", reach.recursive);
}
