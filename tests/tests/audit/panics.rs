//! The driver contains no code for a panic.

use object::read::pe::PeFile64;

use crate::file::{bytes, functions, image, imports};

#[test]
fn the_driver_contains_no_code_for_a_panic() {
    let bytes = bytes();
    let file = PeFile64::parse(&*bytes).unwrap();
    // wdk-panic's panic handler calls KeBugCheckEx, so the driver cannot panic without this import.
    assert!(imports(&file).iter().all(|import| import.name != "KeBugCheckEx"));
    let functions = functions(&file);
    assert!(
        functions.values().any(|name| name == "halprof::driver_entry()"),
        "the debug information has names: {functions:?}"
    );
    let panic_functions = [
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
        assert!(!panic_functions.iter().any(|part| name.contains(part)), "{name}");
    }
    let reach = image(&file).reach_from(functions.keys().copied());
    assert!(reach.functions.len() >= functions.len() / 2, "the walk reaches most functions");
    assert!(reach.endless.is_empty(), "{:x?}", reach.endless);
    assert!(reach.traps.is_empty(), "{:x?}", reach.traps);
    assert!(reach.recursive.is_empty(), "{:x?}", reach.recursive);
}
