//! Fields of CodeView records, which are little-endian.

/// Bytes that are read from their beginning. Every method returns nothing where bytes are missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first byte, which remains.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    pub fn skip(&mut self, length: usize) -> Option<()> {
        self.0 = self.0.get(length..)?;
        Some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// Reads a numeric leaf: a small number, or its kind and the number behind it. Offsets and sizes are not negative;
    /// a negative number wraps to one that no structure reaches.
    pub fn number(&mut self) -> Option<u64> {
        Some(match self.u16()? {
            small @ ..0x8000 => small.into(),
            0x8000 => i64::from(i8::from_le_bytes(self.array()?)).cast_unsigned(),
            0x8001 => i64::from(i16::from_le_bytes(self.array()?)).cast_unsigned(),
            0x8002 => self.u16()?.into(),
            0x8003 => i64::from(self.i32()?).cast_unsigned(),
            0x8004 => self.u32()?.into(),
            0x8009 | 0x800A => self.array().map(u64::from_le_bytes)?,
            _ => return None,
        })
    }

    /// Reads a name up to its NUL.
    pub fn name(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let name = self.0.get(..length)?;
        self.skip(length + 1)?;
        Some(name)
    }
}

/// Returns a name as text. Linkers write UTF-8; other bytes are replaced.
pub(crate) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
