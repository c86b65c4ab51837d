//! Memory as the processor accesses it, and the DS save area in it (SDM Vol. 3B, "64 Bit Format of the DS Save Area").

/// Memory that the Debug Store reads and writes by linear address, in aligned words of eight bytes.
pub trait Memory: Send {
    /// Reads a word. Returns `None` if `address` is unmapped or unaligned.
    fn read(&self, address: u64) -> Option<u64>;

    /// Writes a word. Returns `false` without writing if `address` is unmapped or unaligned.
    fn write(&self, address: u64, value: u64) -> bool;

    /// Returns the linear address of a physical one, or `None` if no memory of this kind is there.
    fn linear(&self, physical: u64) -> Option<u64>;
}

/// Size of a word in bytes.
pub(super) const WORD: u64 = 8;

/// An access to unmapped memory.
#[derive(Debug)]
pub(super) struct Unmapped;

/// Offset in the save area of the four words that describe a buffer: base, index, absolute maximum, interrupt
/// threshold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// Branch records.
    Bts = 0x00,
    /// PEBS records.
    Pebs = 0x20,
}

/// The four words of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub(super) base: u64,
    pub(super) index: u64,
    pub(super) maximum: u64,
    pub(super) threshold: u64,
}

impl Buffer {
    /// Returns whether `size` more bytes fit. Always false if the index lies outside the bounds.
    pub(super) fn has_room(&self, size: u64) -> bool {
        self.base <= self.index && self.index.checked_add(size).is_some_and(|end| end <= self.maximum)
    }
}

/// The result of writing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The record is in the buffer. `reached`: the index is at or above the threshold.
    Written { reached: bool },
    /// The record will be written later.
    Late,
    /// The record does not fit, or the index lies outside the bounds.
    Refused,
}

/// The save area of a processor.
pub(super) struct Area<'a> {
    /// `None`: no memory is mapped.
    pub(super) memory: Option<&'a dyn Memory>,
    /// `IA32_DS_AREA`.
    pub(super) address: u64,
}

impl Area<'_> {
    /// Reads the word at `offset`.
    pub(super) fn word(&self, offset: u64) -> Result<u64, Unmapped> {
        self.memory.and_then(|memory| memory.read(self.address.wrapping_add(offset))).ok_or(Unmapped)
    }

    pub(super) fn buffer(&self, section: Section) -> Result<Buffer, Unmapped> {
        let word = |number| self.word(section as u64 + WORD * number);
        Ok(Buffer { base: word(0)?, index: word(1)?, maximum: word(2)?, threshold: word(3)? })
    }

    /// Writes a record at the index and advances the index. In a circular buffer, a record that does not fit goes to
    /// the base.
    pub(super) fn append(&self, section: Section, record: &[u64], circular: bool) -> Result<Outcome, Unmapped> {
        let mut buffer = self.buffer(section)?;
        let size = record.iter().map(|_| WORD).sum();
        if circular && buffer.has_room(0) && !buffer.has_room(size) {
            buffer.index = buffer.base;
        }
        if !buffer.has_room(size) {
            return Ok(Outcome::Refused);
        }
        for (word, address) in record.iter().zip((buffer.index..).step_by(8)) {
            self.write(address, *word)?;
        }
        let index = buffer.index.wrapping_add(size);
        self.write(self.address.wrapping_add(section as u64 + WORD), index)?;
        Ok(Outcome::Written { reached: index >= buffer.threshold })
    }

    /// Writes a word to physical memory.
    pub(super) fn write_physical(&self, physical: u64, value: u64) -> Result<(), Unmapped> {
        let linear = self.memory.and_then(|memory| memory.linear(physical)).ok_or(Unmapped)?;
        self.write(linear, value)
    }

    fn write(&self, address: u64, value: u64) -> Result<(), Unmapped> {
        let written = self.memory.is_some_and(|memory| memory.write(address, value));
        if written { Ok(()) } else { Err(Unmapped) }
    }
}
