//! The checksum of a PE file.

/// Returns the checksum of a PE file as CheckSumMappedFile computes it: all 16-bit words, added with end-around carry,
/// plus the length. The checksum field at `at` counts as zero.
#[must_use]
pub fn checksum(bytes: &[u8], at: usize) -> u32 {
    let words = bytes.chunks(2).enumerate().filter(|(place, _)| ![at, at + 2].contains(&(place * 2)));
    let sum = words.fold(0_u32, |sum, (_, word)| {
        let word = word.iter().rev().fold(0, |word, byte| (word << 8) | u32::from(*byte));
        ((sum + word) & 0xFFFF) + ((sum + word) >> 16)
    });
    sum + u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Returns the offset of IMAGE_OPTIONAL_HEADER64.CheckSum, or `None` if the file is too short to have one.
#[must_use]
pub fn checksum_place(bytes: &[u8]) -> Option<usize> {
    let header = u32::from_le_bytes(bytes.get(0x3C..0x40)?.try_into().ok()?);
    Some(usize::try_from(header).ok()? + 24 + 64)
}
