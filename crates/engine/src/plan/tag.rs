//! The tag of a session: the number by which the state of a counter names its owner.

/// Maximum number of sessions: the number of tags that the state of a counter can hold. No session has tag 0.
pub const MAX_SESSIONS: u16 = 0xFFF;

/// Number of 64-bit words with a bit for tag 0 and one for each session.
const WORDS: usize = (MAX_SESSIONS as usize + 1) / 64;

/// Returns the lowest tag that is not among `taken`; `None` if all are. Reads `taken` once, because a start that
/// compares each tag with each session costs 8 million comparisons with 4,095 sessions.
///
/// # IRQL
/// Any. The bit set takes 512 bytes of stack, which are returned before any further call: the function is not inlined.
#[inline(never)]
pub fn lowest_free(taken: impl Iterator<Item = u16>) -> Option<u16> {
    let mut words = [0_u64; WORDS];
    for tag in core::iter::once(0).chain(taken) {
        if let Some(word) = words.get_mut(usize::from(tag / 64)) {
            *word |= 1 << (tag % 64);
        }
    }
    let (word, bits) = (0_u16..).zip(words).find(|(_, bits)| *bits != u64::MAX)?;
    u16::try_from(bits.trailing_ones()).ok().map(|bit| 64 * word + bit)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::cell::Cell;

    use super::*;

    #[test]
    fn the_lowest_tag_that_no_session_has_is_given() {
        for (taken, free) in [
            (&[][..], Some(1)),
            (&[1, 2, 4], Some(3)),
            (&[4, 3, 2, 1], Some(5)),
            (&[2, 3, 4095], Some(1)),
            // No session has these, so they take no other's.
            (&[0, 4096, 0xFFFF], Some(1)),
        ] {
            assert_eq!(lowest_free(taken.iter().copied()), free, "{taken:?}");
        }
        for last in [63, 64, 65, 127, 4094] {
            assert_eq!(lowest_free(1..=last), Some(last + 1));
            assert_eq!(lowest_free((1..=MAX_SESSIONS).filter(|tag| *tag != last)), Some(last));
        }
        assert_eq!(lowest_free(1..=MAX_SESSIONS), None);
    }

    #[test]
    fn every_session_is_read_once() {
        let read = Cell::new(0);
        let tags: Vec<u16> = (1..MAX_SESSIONS).rev().collect();
        let free = lowest_free(tags.iter().copied().inspect(|_| read.set(read.get() + 1)));
        assert_eq!((free, read.get()), (Some(MAX_SESSIONS), tags.len()));
    }
}
