//! Generates driver/src/layout.rs, which asserts the layout of every structure that the driver uses, as far as its
//! source names fields, with the numbers of the official bindings. The driver checks the assertions on both systems,
//! against the kit and against the genuine WDK.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use syn::Type;

use crate::bindings::{Bindings, integer};
use crate::compare::{Kind, kind, named};

/// The text before the table.
const HEAD: &str = "\
//! What the driver relies on in the kernel's structures. Made by the test `layout` from the official bindings of the WDK;
//! not edited by hand.

macro_rules! layout {
    ($($type:ident: $size:literal bytes, aligned to $alignment:literal {
        $($first:ident $(.$inner:ident)*: $offset:literal,)*
    })*) => {
        $(
            const _: () = assert!(size_of::<wdk_sys::$type>() == $size);
            const _: () = assert!(align_of::<wdk_sys::$type>() == $alignment);
            $(const _: () = assert!(core::mem::offset_of!(wdk_sys::$type, $first $(.$inner)*) == $offset);)*
        )*
    };
}

";

/// Returns the content of the file for these names and fields. Fields that `ours` lacks cannot be used by the driver
/// and are left out.
pub fn text(ours: &Bindings, official: &Bindings, names: &BTreeSet<String>, fields: &BTreeSet<String>) -> String {
    let mut table = Table { ours, official, fields, types: BTreeMap::new() };
    for name in names {
        if let Kind::Composite(name, _) = named(official, name) {
            table.add(&name);
        }
    }
    let mut text = HEAD.to_owned();
    text.push_str("layout! {\n");
    for (name, offsets) in &table.types {
        let (Some(size), Some(alignment)) = (official.size(name), official.alignment(name)) else {
            assert!(offsets.is_empty(), "{name} has fields and no size");
            continue;
        };
        write!(text, "    {name}: {size} bytes, aligned to {alignment} {{").unwrap();
        for (field, offset) in offsets {
            write!(text, "\n        {field}: {offset},").unwrap();
        }
        text.push_str(if offsets.is_empty() { "}\n" } else { "\n    }\n" });
    }
    text.push_str("}\n");
    text
}

/// Returns whether a type has a field. The path may name a field of a field.
fn has(bindings: &Bindings, name: &str, path: &str) -> bool {
    let Kind::Composite(_, composite) = named(bindings, name) else { return false };
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some((_, ty)) = composite.fields.iter().find(|(field, _)| field == first) else { return false };
    rest.is_none_or(|rest| match kind(bindings, ty) {
        Kind::Composite(inner, _) => has(bindings, &inner, rest),
        _ => false,
    })
}

/// Returns size and alignment of a type.
fn extent(bindings: &Bindings, ty: &Type) -> (u64, u64) {
    match kind(bindings, ty) {
        Kind::Plain(name) => {
            let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            let bytes = digits.parse().unwrap_or(8) / 8;
            (bytes, bytes)
        }
        Kind::Pointer(..) | Kind::Function(..) | Kind::Generic(..) => (8, 8),
        Kind::Array(of, length) => {
            let (size, alignment) = extent(bindings, of);
            let length = integer(length.trim_end_matches("usize")).unwrap();
            (size * u64::try_from(length).unwrap(), alignment)
        }
        Kind::Composite(name, _) => (bindings.size(&name).unwrap(), bindings.alignment(&name).unwrap()),
    }
}

struct Table<'a> {
    ours: &'a Bindings,
    official: &'a Bindings,
    fields: &'a BTreeSet<String>,
    /// For each type, the offsets of its fields, which may be fields of fields.
    types: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Table<'_> {
    /// Adds a type that has a name in C.
    fn add(&mut self, name: &str) {
        if !self.types.contains_key(name) {
            self.types.insert(name.to_owned(), BTreeMap::new());
            self.add_fields(name, name, "", 0);
        }
    }

    /// Adds the fields of `part`, which is `name` itself or is at `offset` in it, under the path `path`.
    fn add_fields(&mut self, name: &str, part: &str, path: &str, offset: u64) {
        let Kind::Composite(_, composite) = named(self.official, part) else { return };
        let mut end = 0_u64;
        for (field, ty) in &composite.fields {
            let (size, alignment) = extent(self.official, ty);
            // bindgen does not check fields without a name in C. Their offset follows from the field before them.
            let within = self.official.offset(part, field).unwrap_or(end.next_multiple_of(alignment));
            end = if composite.union { 0 } else { within + size };
            if !self.fields.contains(field) {
                continue;
            }
            let place = format!("{path}{field}");
            let offset = offset + within;
            match kind(self.official, ty) {
                Kind::Composite(inner, _) => {
                    let before = self.types.get(name).map_or(0, BTreeMap::len);
                    self.add_fields(name, &inner, &format!("{place}."), offset);
                    if self.types.get(name).map_or(0, BTreeMap::len) > before {
                        continue;
                    }
                }
                Kind::Pointer(_, to) => {
                    if let Kind::Composite(to, _) = kind(self.official, to) {
                        self.add(&to);
                    }
                }
                _ => {}
            }
            if !field.starts_with("__bindgen_anon_") && has(self.ours, name, &place) {
                self.types.entry(name.to_owned()).or_default().insert(place, offset);
            }
        }
    }
}
