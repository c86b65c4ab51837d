//! Tests of the comparison, with the output of both versions of bindgen.

use crate::bindings::Bindings;
use crate::compare::Comparison;

/// Output of bindgen 0.68.
const OFFICIAL: &str = r#"
pub type ULONG = ::core::ffi::c_ulong;
pub mod _KIND {
    pub type Type = ::core::ffi::c_int;
    pub const First: Type = 0;
    pub const Second: Type = 1;
}
pub use self::_KIND::Type as KIND;
#[repr(C)]
pub struct _THING {
    pub Kind: KIND,
    pub Inner: _INNER,
    pub Next: *mut _THING,
}
#[test]
fn bindgen_test_layout__THING() {
    assert_eq!(
        ::core::mem::size_of::<_THING>(),
        24usize,
        concat!("Size of: ", stringify!(_THING)),
    );
    assert_eq!(
        ::core::mem::align_of::<_THING>(),
        8usize,
        concat!("Alignment of ", stringify!(_THING)),
    );
    assert_eq!(
        unsafe { ::core::ptr::addr_of!((*ptr).Inner) as usize - ptr as usize },
        4usize,
        concat!("Offset of field: ", stringify!(_THING), "::", stringify!(Inner)),
    );
}
pub union _INNER {
    pub Value: ULONG,
}
#[test]
fn bindgen_test_layout__INNER() {
    assert_eq!(
        ::core::mem::size_of::<_INNER>(),
        4usize,
        concat!("Size of: ", stringify!(_INNER)),
    );
    assert_eq!(
        ::core::mem::align_of::<_INNER>(),
        4usize,
        concat!("Alignment of ", stringify!(_INNER)),
    );
}
pub const LIMIT: u32 = 64;
extern "C" {
    pub fn UseThing(Thing: *mut _THING, Kind: KIND) -> ULONG;
}
"#;

/// The same declarations as the current bindgen writes them, with another name for a parameter and for a type.
const OURS: &str = r#"
pub type DWORD = u32;
pub mod _KIND {
    pub type Type = ::core::ffi::c_int;
    pub const First: Type = 0;
    pub const Second: Type = 1;
}
pub use self::_KIND::Type as KIND;
#[repr(C)]
pub struct _THING {
    pub Kind: KIND,
    pub Inner: _INNER,
    pub Next: *mut _THING,
}
const _: () = {
    ["Size of _THING"][::core::mem::size_of::<_THING>() - 24usize];
    ["Alignment of _THING"][::core::mem::align_of::<_THING>() - 8usize];
    [
        "Offset of field: _THING::Inner",
    ][::core::mem::offset_of!(_THING, Inner) - 4usize];
};
pub union _INNER {
    pub Value: DWORD,
}
const _: () = {
    ["Size of _INNER"][::core::mem::size_of::<_INNER>() - 4usize];
    ["Alignment of _INNER"][::core::mem::align_of::<_INNER>() - 4usize];
};
pub const LIMIT: u32 = 0x40; // in another base
unsafe extern "C" {
    pub fn UseThing(It: *mut _THING, Kind: KIND) -> DWORD;
}
"#;

/// Returns the differences after `from` is replaced by `to` in `OURS`.
fn differences(from: &str, to: &str) -> Vec<String> {
    assert!(OURS.contains(from), "{from}");
    let (mut ours, mut official) = (Bindings::default(), Bindings::default());
    ours.add(&OURS.replace(from, to));
    official.add(OFFICIAL);
    let mut comparison = Comparison::new(&ours, &official);
    for name in ["UseThing", "LIMIT", "_KIND", "_KIND::Second"] {
        comparison.item(name);
    }
    comparison.differences.into_iter().collect()
}

#[test]
fn equivalent_declarations_do_not_differ() {
    assert_eq!(differences("", ""), [""; 0]);
}

#[test]
fn every_change_is_reported() {
    let cases = [
        ("LIMIT: u32 = 0x40", "LIMIT: u32 = 0x41", "LIMIT: is 0x41, officially 64"),
        ("LIMIT: u32", "LIMIT: i32", "LIMIT: is i32, officially u32"),
        ("LIMIT", "LIMIT2", "LIMIT: not in the kit's bindings"),
        ("Second: Type = 1", "Second: Type = 2", "_KIND::Second: is 2, officially 1"),
        ("Next: *mut", "Next: *const", "_THING.Next: is *const _THING, officially *mut _THING"),
        ("_THING>() - 24", "_THING>() - 32", "_THING: size Some(32), officially Some(24)"),
        ("_THING>() - 8", "_THING>() - 16", "_THING: alignment Some(16), officially Some(8)"),
        ("Inner) - 4", "Inner) - 8", "_THING.Inner: at Some(8), officially Some(4)"),
        ("    pub Next", "    pub Prev", "_THING: only in ours: Prev; only in the official one: Next"),
        ("pub Value: DWORD", "pub Value: u16", "_INNER.Value: is u16, officially u32"),
        ("pub union", "pub struct", "_INNER: is another kind of type officially"),
        ("It: *mut _THING", "It: DWORD", "UseThing(0): is u32, officially *mut _THING"),
        (", Kind: KIND)", ")", "UseThing: takes 1 parameters, officially 2"),
        (" -> DWORD", "", "UseThing: one has a result, the other none"),
        (" -> DWORD", " -> u64", "UseThing(result): is u64, officially u32"),
    ];
    for (from, to, difference) in cases {
        assert_eq!(differences(from, to), [difference], "{from} -> {to}");
    }
}
