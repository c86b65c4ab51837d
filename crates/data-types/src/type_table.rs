//! The types of a PDB: their records, names and sizes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::OnceLock;

use crate::basic_types::{FIRST_RECORD, basic_target, basic_type};
use crate::bytes::{Bytes, text};
use crate::leaf::{Field, Fields, Leaf, Structure};

/// Maximum number of records that lead from one type to the next, as `const` to what is constant: types of a damaged
/// file can have circles.
const MAX_STEPS: usize = 64;

/// Maximum number of records of one list of fields.
const MAX_LISTS: usize = 4096;

/// The bytes of the stream of types.
type TypeStream = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// Types by their indexes.
pub(crate) struct TypeTable {
    stream: TypeStream,
    /// Index of the first record.
    first: u32,
    /// The beginning of each record in the stream, behind its length.
    starts: Vec<u32>,
    /// Structures that are defined, as hash of their identity and index, in ascending order.
    definitions: OnceLock<Vec<(u64, u32)>>,
}

/// Where the type of a pointer leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointee {
    pub kind: u32,
    pub is_reference: bool,
}

impl TypeTable {
    /// Finds the records of the stream. A damaged one ends the table.
    pub fn new(stream: TypeStream) -> Self {
        let (length, first) = header(Bytes(&stream)).unwrap_or((0, FIRST_RECORD));
        let mut starts = Vec::new();
        let mut position = length;
        let record = |position: u32| {
            let mut bytes = Bytes(stream.get(position as usize..)?);
            let length = bytes.u16()?;
            (bytes.0.len() >= usize::from(length) && length >= 2).then_some(length)
        };
        while let Some(length) = record(position) {
            starts.push(position.saturating_add(2));
            position = position.saturating_add(2).saturating_add(length.into());
        }
        Self { stream, first: first.max(FIRST_RECORD), starts, definitions: OnceLock::new() }
    }

    fn record(&self, index: u32) -> Option<&[u8]> {
        let start = *self.starts.get(index.checked_sub(self.first)? as usize)? as usize;
        let length = Bytes(self.stream.get(start.checked_sub(2)?..)?).u16()?;
        self.stream.get(start..start + usize::from(length))
    }

    pub fn leaf(&self, index: u32) -> Option<Leaf<'_>> {
        Leaf::parse(self.record(index)?)
    }

    /// Returns the type without `const`, `volatile` and other names for it.
    pub fn plain(&self, mut index: u32) -> u32 {
        for _ in 0..MAX_STEPS {
            match self.leaf(index) {
                Some(Leaf::Modifier { target, .. } | Leaf::Alias { target }) => index = target,
                _ => break,
            }
        }
        index
    }

    /// Returns the definition of a structure, for which a record may only stand.
    pub fn structure(&self, index: u32) -> Option<(u32, Structure<'_>)> {
        let index = self.plain(index);
        match self.leaf(index)? {
            Leaf::Structure(structure) if structure.is_forward => self.definition(&structure),
            Leaf::Structure(structure) => Some((index, structure)),
            _ => None,
        }
    }

    /// Finds the definition of a structure by its decorated name. C has none: there, two files can define different
    /// structures of one name, and then neither is taken.
    fn definition(&self, forward: &Structure<'_>) -> Option<(u32, Structure<'_>)> {
        let definitions = self.definitions.get_or_init(|| self.find_definitions());
        let hash = identity(forward);
        let first = definitions.partition_point(|(other, _)| *other < hash);
        let same = definitions.get(first..)?.iter().take_while(|(other, _)| *other == hash).take(MAX_STEPS);
        let mut found = same.filter_map(|(_, index)| match self.leaf(*index)? {
            Leaf::Structure(structure) if is_same(&structure, forward) => Some((*index, structure)),
            _ => None,
        });
        let definition = found.next()?;
        let is_certain = forward.unique_name.is_some()
            || found.all(|(_, other)| (other.fields, other.size) == (definition.1.fields, definition.1.size));
        is_certain.then_some(definition)
    }

    fn find_definitions(&self) -> Vec<(u64, u32)> {
        let indexes = (self.first..).take(self.starts.len());
        let mut found: Vec<(u64, u32)> = indexes
            .filter_map(|index| match self.leaf(index)? {
                Leaf::Structure(structure) if !structure.is_forward => Some((identity(&structure), index)),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Passes the fields of a list as long as `visit` returns true. Returns whether all are known.
    pub fn fields<'a>(&'a self, mut list: u32, mut visit: impl FnMut(Field<'a>) -> bool) -> bool {
        for _ in 0..MAX_LISTS {
            let Some(fields) = self.record(list).and_then(Fields::parse) else { return false };
            let mut next = None;
            for field in fields {
                match field {
                    Ok(Field::Continued { list }) => next = Some(list),
                    Ok(field) if visit(field) => {}
                    _ => return false,
                }
            }
            let Some(index) = next else { return true };
            list = index;
        }
        false
    }

    /// Returns the size of a value of the type in bytes.
    pub fn size(&self, index: u32) -> Option<u64> {
        let mut index = index;
        for _ in 0..MAX_STEPS {
            if index < FIRST_RECORD {
                return basic_type(index).map(|(_, size)| size);
            }
            index = match self.leaf(index)? {
                Leaf::Modifier { target, .. } | Leaf::Alias { target } => target,
                Leaf::BitField { base, .. } | Leaf::Enumeration { base, .. } => base,
                Leaf::Array { size, .. } => return Some(size),
                Leaf::Pointer { size, .. } => return Some(size.into()),
                Leaf::Structure(_) => return self.structure(index).map(|(_, structure)| structure.size),
                Leaf::Function | Leaf::FunctionTable | Leaf::Other => return None,
            };
        }
        None
    }

    /// Returns the type that a pointer or reference leads to.
    pub fn pointee(&self, index: u32) -> Option<Pointee> {
        let index = self.plain(index);
        if let Some(kind) = basic_target(index) {
            return Some(Pointee { kind, is_reference: false });
        }
        match self.leaf(index)? {
            Leaf::Pointer { target, mode: mode @ (0 | 1 | 4), .. } => {
                Some(Pointee { kind: target, is_reference: mode != 0 })
            }
            _ => None,
        }
    }

    /// Returns the name of the type as C writes it without a variable: `const char*`, `int[3][5]`.
    pub fn name(&self, index: u32) -> String {
        self.name_within(index, MAX_STEPS)
    }

    fn name_within(&self, index: u32, steps: usize) -> String {
        let Some(left) = steps.checked_sub(1) else { return UNNAMED.to_owned() };
        if index < FIRST_RECORD {
            let name = basic_type(index).map_or(UNNAMED, |(name, _)| name);
            return if basic_target(index).is_some() { format!("{name}*") } else { name.to_owned() };
        }
        match self.leaf(index) {
            Some(Leaf::Structure(Structure { name, .. }) | Leaf::Enumeration { name, .. }) => text(name),
            Some(Leaf::Modifier { target, is_const, is_volatile }) => {
                let name = self.name_within(target, left);
                let prefix = [(is_const, "const "), (is_volatile, "volatile ")];
                let prefix: String = prefix.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| *word).collect();
                // The pointer is constant, and not what it points to.
                if name.ends_with(['*', '&']) { format!("{name} {}", prefix.trim_end()) } else { prefix + &name }
            }
            Some(Leaf::Pointer { target, class: Some(class), .. }) => {
                format!("{} {}::*", self.name_within(target, left), self.name_within(class, left))
            }
            Some(Leaf::Pointer { target, mode, .. }) => {
                let sign = match mode {
                    1 => "&",
                    4 => "&&",
                    _ => "*",
                };
                self.name_within(target, left) + sign
            }
            Some(Leaf::Array { element, size }) => {
                let count = self.size(element).and_then(|each| size.checked_div(each));
                let name = self.name_within(element, left);
                let (before, after) = name.find('[').map_or((&*name, ""), |place| name.split_at(place));
                let count = count.map_or(String::new(), |count| count.to_string());
                format!("{before}[{count}]{after}")
            }
            Some(Leaf::BitField { base, length, .. }) => format!("{}:{length}", self.name_within(base, left)),
            Some(Leaf::Alias { target }) => self.name_within(target, left),
            Some(Leaf::Function) => "function".to_owned(),
            Some(Leaf::FunctionTable) => "vftable".to_owned(),
            Some(Leaf::Other) | None => UNNAMED.to_owned(),
        }
    }
}

/// Returns the length of the header in bytes, and the index of the first record.
fn header(mut bytes: Bytes<'_>) -> Option<(u32, u32)> {
    bytes.skip(4)?;
    Some((bytes.u32()?, bytes.u32()?))
}

/// The name of a type that the PDB does not have.
const UNNAMED: &str = "?";

/// Returns the hash of what makes two structures the same.
fn identity(structure: &Structure<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    structure.unique_name.unwrap_or(structure.name).hash(&mut hasher);
    hasher.finish()
}

fn is_same(one: &Structure<'_>, other: &Structure<'_>) -> bool {
    (one.unique_name, one.unique_name.is_none().then_some(one.name))
        == (other.unique_name, other.unique_name.is_none().then_some(other.name))
}
