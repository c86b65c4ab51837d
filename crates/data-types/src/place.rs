//! From an offset in a value to the member that it is in.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::slice;

use crate::bytes::text;
use crate::leaf::{Field, Leaf, Structure};
use crate::type_table::TypeTable;

/// Maximum number of fields and types that are looked at for one name.
const MAX_WORK: usize = 1 << 16;

/// Maximum number of structures within each other.
const MAX_DEPTH: usize = 64;

/// Maximum number of members that are named besides the first, where unions or bit fields have several.
const MAX_ALTERNATIVES: usize = 15;

/// Maximum length of a path in bytes. Longer ones end where they are.
const MAX_PATH: usize = 4096;

/// The name of a datum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The variable and the member: `table.rows[3].lock`. Members of a union that share the bytes, and bit fields that
    /// are accessed at once, are separated by `|`. Bytes without a member have the name of the one before:
    /// `row (padding after state)`. An index that is in a register is left out: `rows[]`.
    pub path: String,
    /// Type of the datum. If there are several, they are separated by `|`.
    pub type_name: String,
    /// Size of the datum in bytes; 0 if it is unknown.
    pub size: u64,
    /// The structure that the datum is a member of.
    pub member: Option<Member>,
}

/// A member of a structure, which is the same for all its variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Member {
    /// Type of the variable, of what a pointer leads to, or of the array's element. Structures within it are a part of
    /// the name.
    pub structure: String,
    /// Name without the indexes of arrays: `lock.owner`, `prices[]`.
    pub name: String,
    /// Offset of the member in bytes from the beginning of the structure. In an array within the structure, that of the
    /// first element.
    pub offset: u64,
}

/// The way to a value: what was named so far.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    text: String,
    /// Whether `->` stands between the text and the next member.
    is_pointer: bool,
    structure: Option<String>,
    member: String,
    /// Offset from the beginning of the structure.
    offset: u64,
    /// Whether the members of a union were entered, of which all must be in the same structure.
    is_alternative: bool,
}

/// Where a path ends.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub path: Path,
    /// The type of the datum, if there is one.
    pub kind: Option<u32>,
    type_name: String,
    size: u64,
    /// No member has the bytes.
    is_empty: bool,
}

impl Path {
    /// A path that begins with a variable, or with what a pointer leads to.
    pub fn new(text: String, is_pointer: bool) -> Self {
        Self { text, is_pointer, structure: None, member: String::new(), offset: 0, is_alternative: false }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Adds an index to the text: that of an element, or none if it is unknown.
    pub fn push_index(&mut self, index: Option<i64>) {
        self.is_pointer = false;
        self.text.push_str(&index.map_or("[]".to_owned(), |index| format!("[{index}]")));
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
    }

    fn enter(&mut self, member: &str) {
        self.text.push_str(if self.is_pointer { "->" } else { "." });
        self.text.push_str(member);
        self.is_pointer = false;
        if !self.member.is_empty() {
            self.member.push('.');
        }
        self.member.push_str(member);
    }

    fn note(&mut self, note: &str) {
        self.text.push(' ');
        self.text.push_str(note);
        if !self.member.is_empty() {
            self.member.push(' ');
        }
        self.member.push_str(note);
    }
}

impl End {
    pub fn into_place(self) -> Place {
        let Path { text, structure, member, offset, .. } = self.path;
        let member = structure.map(|structure| Member { structure, name: member, offset });
        Place { path: text, type_name: self.type_name, size: self.size, member }
    }
}

/// A field that has the bytes that are looked for.
#[derive(Clone, Copy, Debug)]
struct Cover<'a> {
    /// None for a base class.
    name: Option<&'a [u8]>,
    kind: u32,
    offset: u64,
}

/// What a structure has at an offset.
#[derive(Debug, Default)]
struct Covers<'a> {
    fields: Vec<Cover<'a>>,
    /// The last array without a length before the offset.
    endless: Option<Cover<'a>>,
    /// The end of the member that ends last before the offset, and its name.
    before: Option<(u64, &'a [u8])>,
    /// The beginning of the next member.
    after: Option<u64>,
    has_virtual_base: bool,
    is_complete: bool,
}

/// A search for the member at an offset.
pub(crate) struct Search<'a> {
    types: &'a TypeTable,
    /// Number of bytes that are accessed, at least 1.
    accessed: u64,
    /// An unknown multiple of some size was added to the offset.
    has_index: bool,
    work: Cell<usize>,
    /// Number of members of unions that can still be entered besides the first of each.
    alternatives: Cell<usize>,
}

impl<'a> Search<'a> {
    pub fn new(types: &'a TypeTable, accessed: u32, has_index: bool) -> Self {
        let (work, alternatives) = (Cell::new(MAX_WORK), Cell::new(MAX_ALTERNATIVES));
        Self { types, accessed: u64::from(accessed).max(1), has_index, work, alternatives }
    }

    /// Takes a unit of work. Returns false once nothing is left.
    fn works(&self) -> bool {
        let left = self.work.get();
        self.work.set(left.saturating_sub(1));
        left > 0
    }

    /// Returns whether the last member of a structure is an array of at most one element, which stands for any number.
    pub fn has_open_end(&self, kind: u32) -> bool {
        let Some((_, structure)) = self.types.structure(kind) else { return false };
        let mut last = None;
        self.types.fields(structure.fields, |field| {
            if let Field::Member { kind, offset, .. } = field
                && last.is_none_or(|(other, _)| offset >= other)
            {
                last = Some((offset, kind));
            }
            self.works()
        });
        last.is_some_and(|(_, kind)| self.is_open_array(kind))
    }

    /// Returns whether the type is an array of at most one element.
    fn is_open_array(&self, kind: u32) -> bool {
        match self.types.leaf(self.types.plain(kind)) {
            Some(Leaf::Array { element, size }) => self.types.size(element).is_some_and(|each| size <= each),
            _ => false,
        }
    }

    /// Names the byte at `offset` in a value of the type.
    pub fn find(&self, kind: u32, offset: u64, path: Path) -> End {
        self.descend(kind, offset, path, MAX_DEPTH)
    }

    fn descend(&self, kind: u32, mut offset: u64, mut path: Path, depth: usize) -> End {
        let mut kind = kind;
        while self.works() && path.text.len() < MAX_PATH {
            match self.types.leaf(self.types.plain(kind)) {
                Some(Leaf::Array { element, .. }) => {
                    let Some(size) = self.types.size(element).filter(|size| *size > 0) else { break };
                    let index = i64::try_from(offset / size).ok().filter(|_| !self.has_index);
                    path.push_index(index);
                    match self.types.structure(element).filter(|_| !path.is_alternative) {
                        Some((_, structure)) => {
                            path.structure = Some(text(structure.name));
                            path.member.clear();
                            path.offset = 0;
                        }
                        None => path.member.push_str("[]"),
                    }
                    offset %= size;
                    kind = element;
                }
                Some(Leaf::Structure(_)) => {
                    let definition = self.types.structure(kind).filter(|_| depth > 0);
                    let Some((definition, structure)) = definition else { break };
                    return self.member(definition, &structure, offset, path, depth - 1);
                }
                _ => break,
            }
        }
        if offset > 0 {
            path.push(format_args!("+{offset:#x}"));
        }
        let (type_name, size) = (self.types.name(kind), self.types.size(kind).unwrap_or(0));
        End { path, kind: Some(kind), type_name, size, is_empty: false }
    }

    /// Names the byte at `offset` in a structure.
    fn member(&self, index: u32, structure: &Structure<'_>, offset: u64, mut path: Path, depth: usize) -> End {
        if path.structure.is_none() {
            path.structure = Some(text(structure.name));
        }
        let found = self.covers(structure, offset);
        // Padding behind an array of one element is in the structure; the elements that it stands for are behind it.
        let is_last = |cover: &&Cover<'_>| {
            found.after.is_none() && (offset >= structure.size || self.types.size(cover.kind) == Some(0))
        };
        let endless = found.endless.as_ref().filter(is_last).map(slice::from_ref);
        let covers = if found.fields.is_empty() { endless.unwrap_or_default() } else { &found.fields };
        let others = covers.len().saturating_sub(1).min(self.alternatives.get());
        self.alternatives.set(self.alternatives.get() - others);
        let covers = covers.get(..=others).unwrap_or_default();
        let mut ends: Vec<End> = Vec::new();
        for cover in covers {
            let mut path = path.clone();
            path.is_alternative |= covers.len() > 1;
            if let Some(name) = cover.name {
                path.enter(&String::from_utf8_lossy(name));
            }
            path.offset = path.offset.saturating_add(cover.offset);
            ends.push(self.field(cover, offset - cover.offset, path, depth));
        }
        // An empty base class has one byte, which a member can share.
        if ends.iter().any(|end| !end.is_empty) {
            ends.retain(|end| !end.is_empty);
        }
        match ends.len() {
            0 => self.empty(index, structure, &found, offset, path),
            1 => ends.swap_remove(0),
            _ => joined(&path, &ends),
        }
    }

    fn field(&self, cover: &Cover<'_>, offset: u64, path: Path, depth: usize) -> End {
        // The offset of a bit field is that of its unit, of which it has some bytes.
        let offset = if self.bits(cover).is_some() { 0 } else { offset };
        self.descend(cover.kind, offset, path, depth)
    }

    /// Names bytes without a member.
    fn empty(&self, index: u32, structure: &Structure<'_>, found: &Covers<'_>, offset: u64, mut path: Path) -> End {
        let size = match (found.is_complete, found.has_virtual_base, found.before) {
            (false, ..) => {
                path.note("(unknown member)");
                0
            }
            // Only the table of the virtual base has its offset.
            (true, true, _) if found.after.is_none() => {
                path.note("(virtual base)");
                0
            }
            (true, _, before) => {
                let end = found.after.unwrap_or(structure.size);
                match before {
                    Some((_, name)) => path.note(&format!("(padding after {})", String::from_utf8_lossy(name))),
                    None => path.note("(padding)"),
                }
                path.offset = path.offset.saturating_add(offset);
                end.saturating_sub(before.map_or(0, |(end, _)| end))
            }
        };
        End { path, kind: None, type_name: self.types.name(index), size, is_empty: true }
    }

    /// Returns the fields of a structure at an offset.
    fn covers(&self, structure: &Structure<'a>, offset: u64) -> Covers<'a> {
        let mut found = Covers::default();
        let size = |kind| self.types.size(kind);
        found.is_complete = self.types.fields(structure.fields, |field| {
            let (name, kind, start) = match field {
                Field::Member { kind, offset, name } => (Some(name), kind, offset),
                Field::Base { kind, offset } => (None, kind, offset),
                Field::FunctionTable { pointer } => (Some(&b"__vfptr"[..]), pointer, 0),
                Field::VirtualBase { pointer, offset, is_direct } => {
                    found.has_virtual_base = true;
                    if !is_direct {
                        return self.works();
                    }
                    (Some(&b"__vbptr"[..]), pointer, offset)
                }
                Field::Continued { .. } | Field::None => return self.works(),
            };
            let cover = Cover { name, kind, offset: start };
            let (first, end) = self.extent(&cover, size(kind).unwrap_or(0));
            if first <= offset && offset < end || self.shares_bits(&cover, offset) {
                found.fields.push(cover);
            } else if first > offset {
                found.after = Some(found.after.map_or(first, |other| other.min(first)));
            } else if end <= offset && self.is_open_array(kind) {
                found.endless = Some(cover);
            } else if found.before.is_none_or(|(other, _)| end >= other) {
                found.before = Some((end, name.unwrap_or(b"the base class")));
            }
            self.works()
        });
        found
    }

    /// Returns the bits of a bit field, from the beginning of the structure.
    fn bits(&self, cover: &Cover<'_>) -> Option<Range<u64>> {
        let Some(Leaf::BitField { length, position, .. }) = self.types.leaf(self.types.plain(cover.kind)) else {
            return None;
        };
        let first = cover.offset.saturating_mul(8).saturating_add(position.into());
        Some(first..first.saturating_add(length.into()))
    }

    /// Returns the first byte of a field of a size, and the byte behind the last.
    fn extent(&self, cover: &Cover<'_>, size: u64) -> (u64, u64) {
        match self.bits(cover) {
            Some(bits) => (bits.start / 8, bits.end.div_ceil(8)),
            None => (cover.offset, cover.offset.saturating_add(size)),
        }
    }

    /// Returns whether a bit field behind the first of the accessed bytes, in the unit of that byte, has one of them.
    fn shares_bits(&self, cover: &Cover<'_>, offset: u64) -> bool {
        let end = offset.saturating_add(self.accessed).saturating_mul(8);
        cover.offset <= offset && self.bits(cover).is_some_and(|bits| offset * 8 < bits.end && bits.start < end)
    }
}

/// Joins the members that share bytes.
fn joined(path: &Path, ends: &[End]) -> End {
    let strip = |text: &str, prefix: &str| {
        let rest = text.get(prefix.len()..).unwrap_or_default();
        rest.trim_start_matches("->").trim_start_matches('.').to_owned()
    };
    let join = |texts: Vec<String>| {
        let mut seen = BTreeSet::new();
        texts.into_iter().filter(|text| seen.insert(text.clone())).collect::<Vec<_>>().join("|")
    };
    let mut whole = path.clone();
    whole.enter(&join(ends.iter().map(|end| strip(&end.path.text, &path.text)).collect()));
    let members = join(ends.iter().map(|end| strip(&end.path.member, &path.member)).collect());
    whole.member = if path.member.is_empty() { members } else { format!("{}.{members}", path.member) };
    whole.offset = ends.iter().map(|end| end.path.offset).min().unwrap_or(path.offset);
    whole.is_alternative = true;
    let type_name = join(ends.iter().map(|end| end.type_name.clone()).collect());
    let size = ends.iter().map(|end| end.size).max().unwrap_or(0);
    End { path: whole, kind: None, type_name, size, is_empty: false }
}
