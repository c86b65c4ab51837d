//! Tables of sources that several families of a maker share, in a third of the bytes.

use super::{ProfileSource, Source};

/// Entries in ascending order of their numbers, without pointers.
#[derive(Debug)]
pub(crate) struct PackedSources {
    entries: &'static [PackedSource],
    /// The names of all tables that share these.
    names: &'static str,
    /// The selects of all columns, each once.
    selects: &'static [PackedSelect],
}

/// An entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedSource {
    source: u16,
    /// Where in the names its own begins.
    name: u16,
    name_length: u8,
}

/// The sources of a processor: a column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    table: &'static PackedSources,
    /// The indexes of the selects of the entries.
    selects: &'static [u8],
}

impl PackedSources {
    /// Creates a table. `names` has those of all `entries`, `selects` those of all columns.
    pub(crate) const fn new(
        entries: &'static [PackedSource],
        names: &'static [u8],
        selects: &'static [PackedSelect],
    ) -> Self {
        assert!(names.is_ascii());
        let Ok(names) = str::from_utf8(names) else { return Self { entries: &[], names: "", selects: &[] } };
        Self { entries, names, selects }
    }

    /// Returns a column, with an [index](indexes) for each entry.
    pub(crate) const fn column(&'static self, selects: &'static [u8]) -> Column {
        Column { table: self, selects }
    }
}

impl Column {
    /// Returns the number of entries.
    pub(super) const fn len(self) -> usize {
        self.table.entries.len()
    }

    /// Returns the select of an entry.
    pub(super) fn select(self, index: usize) -> Option<u64> {
        let select = *self.selects.get(index)?;
        self.table.selects.get(usize::from(select)).map(|select| select.unpacked())
    }

    /// Returns an entry.
    pub(super) fn get(self, index: usize) -> Option<ProfileSource> {
        let entry = self.table.entries.get(index)?;
        let (begin, length) = (usize::from(entry.name), usize::from(entry.name_length));
        let name = self.table.names.get(begin..begin + length)?;
        Some(ProfileSource { source: Source(entry.source.into()), name, select: self.select(index)? })
    }

    /// Returns the index of a source.
    pub(super) fn position(self, source: Source) -> Option<usize> {
        self.table.entries.iter().position(|entry| u64::from(entry.source) == source.0)
    }
}

/// Returns the length of all names.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
pub(crate) const fn length_of_names(rows: &[ProfileSource]) -> usize {
    let (mut length, mut index) = (0, 0);
    while index < rows.len() {
        length += rows[index].name.len();
        index += 1;
    }
    length
}

/// Returns all names, one behind the other.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
pub(crate) const fn names<const LENGTH: usize>(rows: &[ProfileSource]) -> [u8; LENGTH] {
    let (mut names, mut begin, mut index) = ([0; LENGTH], 0, 0);
    while index < rows.len() {
        let (_, rest) = names.split_at_mut(begin);
        let (name, _) = rest.split_at_mut(rows[index].name.len());
        name.copy_from_slice(rows[index].name.as_bytes());
        begin += name.len();
        index += 1;
    }
    names
}

/// Packs the entries of a table. `all` has its rows and those that share their [names].
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
#[expect(clippy::cast_possible_truncation, reason = "asserted")]
pub(crate) const fn packed<const LENGTH: usize>(
    rows: &[ProfileSource; LENGTH],
    all: &[ProfileSource],
) -> [PackedSource; LENGTH] {
    let (mut entries, mut index) = ([PackedSource { source: 0, name: 0, name_length: 0 }; LENGTH], 0);
    while index < LENGTH {
        let ProfileSource { source, name, .. } = rows[index];
        let (mut begin, mut other) = (0, 0);
        while all[other].source.0 != source.0 {
            begin += all[other].name.len();
            other += 1;
        }
        assert!(source.0 <= u16::MAX as u64 && begin <= u16::MAX as usize && name.len() <= u8::MAX as usize);
        entries[index] = PackedSource { source: source.0 as u16, name: begin as u16, name_length: name.len() as u8 };
        index += 1;
    }
    entries
}

/// The most selects that the columns of a table may have.
pub(crate) const MOST: usize = 256;

/// Returns the first `LENGTH` selects of several columns, each once, and how many there are.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
pub(crate) const fn distinct<const LENGTH: usize>(columns: &[&[PackedSelect]]) -> ([PackedSelect; LENGTH], usize) {
    let (mut selects, mut count, mut column) = ([PackedSelect::ABSENT; LENGTH], 0, 0);
    while column < columns.len() {
        let mut index = 0;
        while index < columns[column].len() {
            let select = columns[column][index];
            if position(selects.split_at(count).0, select) == count {
                selects[count] = select;
                count += 1;
            }
            index += 1;
        }
        column += 1;
    }
    (selects, count)
}

/// Returns the index of a select, or the number of all if it is not among them.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
const fn position(selects: &[PackedSelect], select: PackedSelect) -> usize {
    let mut index = 0;
    while index < selects.len() && selects[index].0 != select.0 {
        index += 1;
    }
    index
}

/// Returns the indexes of the selects of a column among these.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler alone, which refuses a wrong index")]
#[expect(clippy::cast_possible_truncation, reason = "asserted")]
pub(crate) const fn indexes<const LENGTH: usize>(
    selects: &[PackedSelect],
    column: &[PackedSelect; LENGTH],
) -> [u8; LENGTH] {
    let (mut indexes, mut index) = ([0; LENGTH], 0);
    while index < LENGTH {
        let select = position(selects, column[index]);
        assert!(select < selects.len() && select <= u8::MAX as usize);
        indexes[index] = select as u8;
        index += 1;
    }
    indexes
}

/// An event select register of a table in four bytes: bits 35:32 of the register are in bits 31:28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedSelect(u32);

impl PackedSelect {
    /// The source is absent.
    pub(crate) const ABSENT: Self = Self(0);

    /// Packs a select, which must have no other bits above bit 27.
    pub(crate) const fn new(select: u64) -> Self {
        let packed = Self((select & 0x0FFF_FFFF) as u32 | ((select >> 32 & 0xF) as u32) << 28);
        assert!(packed.unpacked() == select);
        packed
    }

    /// Returns the select.
    pub(crate) const fn unpacked(self) -> u64 {
        (self.0 & 0x0FFF_FFFF) as u64 | (self.0 as u64 >> 28) << 32
    }
}
