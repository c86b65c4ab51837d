//! Memory as the processor sees it, and the save area in it (SDM Vol. 3B, "64 Bit Format of the DS Save Area").

/// Memory by linear address, in aligned words of eight bytes. The processor reads and writes it by itself.
pub trait Memory: Send {
    /// None: not mapped, or not the address of a word.
    fn read(&self, address: u64) -> Option<u64>;

    /// False: not mapped, or not the address of a word; then nothing is written.
    fn write(&self, address: u64, value: u64) -> bool;
}

/// Bytes of a word.
pub(super) const WORD: u64 = 8;

/// An access to what is not mapped.
#[derive(Debug)]
pub(super) struct Unmapped;

/// The four words of a buffer in the save area: base, index, absolute maximum, interrupt threshold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// Records of branches.
    Bts = 0x00,
    /// Records of events.
    Pebs = 0x20,
}

/// What these words say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub(super) base: u64,
    pub(super) index: u64,
    pub(super) maximum: u64,
    pub(super) threshold: u64,
}

impl Buffer {
    /// `size` more bytes find room.
    pub(super) fn has_room(&self, size: u64) -> bool {
        self.base <= self.index && self.index.checked_add(size).is_some_and(|end| end <= self.maximum)
    }
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in the buffer; and whether the index has come to the threshold.
    Written { reached: bool },
    /// There is no room, or the words contradict each other.
    Refused,
}

/// The save area of a processor.
pub(super) struct Area<'a> {
    /// None: nothing is mapped.
    pub(super) memory: Option<&'a dyn Memory>,
    /// `IA32_DS_AREA`.
    pub(super) address: u64,
}

impl Area<'_> {
    /// The word at an offset.
    pub(super) fn word(&self, offset: u64) -> Result<u64, Unmapped> {
        self.memory.and_then(|memory| memory.read(self.address.wrapping_add(offset))).ok_or(Unmapped)
    }

    pub(super) fn buffer(&self, section: Section) -> Result<Buffer, Unmapped> {
        let word = |number| self.word(section as u64 + WORD * number);
        Ok(Buffer { base: word(0)?, index: word(1)?, maximum: word(2)?, threshold: word(3)? })
    }

    /// Writes a record where the index is, and then the index. In a circular buffer one that finds no room goes to the
    /// base.
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

    fn write(&self, address: u64, value: u64) -> Result<(), Unmapped> {
        let written = self.memory.is_some_and(|memory| memory.write(address, value));
        if written { Ok(()) } else { Err(Unmapped) }
    }
}
