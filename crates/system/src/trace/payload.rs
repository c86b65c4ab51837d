//! The fields of a payload, one after the other.

/// The rest of a payload.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a>(pub &'a [u8]);

impl Payload<'_> {
    /// Skips bytes.
    pub fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }

    /// Reads an integer.
    pub fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    /// Reads an integer.
    pub fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Reads a pointer of 4 or 8 bytes.
    pub fn pointer(&mut self, size: usize) -> Option<u64> {
        if size == 4 { self.u32().map(u64::from) } else { self.u64() }
    }

    /// Skips a field of the type Sid: 4 zero bytes, or a TOKEN_USER and the SID to which it refers.
    pub fn skip_sid(&mut self, pointer: usize) -> Option<()> {
        let mut begin = *self;
        if begin.u32()? == 0 {
            return self.skip(4);
        }
        self.skip(2 * pointer)?;
        // A revision, the number of 32-bit authorities, and six bytes.
        let authorities = usize::from(*self.0.get(1)?);
        self.skip(8 + 4 * authorities)
    }

    /// Reads bytes up to the first zero, or to the end.
    pub fn ansi(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0);
        let (text, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Reads UTF-16 up to the first zero, or to the end.
    pub fn utf16(&mut self) -> String {
        let units =
            self.0.chunks_exact(2).map(|unit| unit.iter().rev().fold(0, |all, byte| all << 8 | u16::from(*byte)));
        let text: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
        self.0 = self.0.get(2 * text.len() + 2..).unwrap_or_default();
        String::from_utf16_lossy(&text)
    }
}
