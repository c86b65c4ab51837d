//! The list of profile sources, as TraceQueryInformation returns it for TraceProfileSourceListInfo.

/// Offsets in an entry (PROFILE_SOURCE_INFO of evntrace.h): the offset of the next one or 0, the number, the intervals,
/// and the name in UTF-16 with a zero.
const NEXT: usize = 0;
const SOURCE: usize = 4;
const MINIMUM: usize = 8;
const MAXIMUM: usize = 12;
const NAME: usize = 24;

/// Maximum number of entries, against a list that leads back to itself.
const MAX_SOURCES: usize = 4_096;

/// A profile source of the HAL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalSource {
    /// Its number, a KPROFILE_SOURCE.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The smallest interval.
    pub minimum: u32,
    /// The largest interval.
    pub maximum: u32,
}

/// Parses a list. A damaged entry ends it.
#[must_use]
pub fn parse(bytes: &[u8]) -> Vec<HalSource> {
    let mut sources = Vec::new();
    let mut rest = bytes;
    while let (Some((source, next)), true) = (entry(rest), sources.len() < MAX_SOURCES) {
        sources.push(source);
        let Some(behind) = rest.get(next..).filter(|_| next != 0) else { break };
        rest = behind;
    }
    sources
}

/// Returns the first entry, and the offset of the next one.
fn entry(bytes: &[u8]) -> Option<(HalSource, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let next = usize::try_from(word(NEXT)?).ok()?;
    // The name does not reach into the next entry.
    let name =
        bytes.get(NAME..).map(|name| if next > NAME { name.get(..next - NAME).unwrap_or(name) } else { name })?;
    let units = name.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).take_while(|unit| *unit != 0);
    let name = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some((HalSource { number: word(SOURCE)?, name, minimum: word(MINIMUM)?, maximum: word(MAXIMUM)? }, next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(sources: &[(u32, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (place, (number, name)) in sources.iter().enumerate() {
            let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
            let length = (NAME + name.len()).next_multiple_of(8);
            let next = if place + 1 == sources.len() { 0 } else { u32::try_from(length).unwrap() };
            let start = bytes.len();
            bytes.extend([next, *number, 4_096, 0x7FFF_FFFF, 0, 0].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend(name);
            bytes.resize(start + length, 0xAA);
        }
        bytes
    }

    #[test]
    fn each_source_has_its_number_name_and_intervals() {
        let sources = parse(&list(&[(0, "Timer"), (0x19, "UnhaltedCoreCycles"), (0x200, "x")]));
        let of = |number, name: &str| HalSource { number, name: name.to_owned(), minimum: 4_096, maximum: 0x7FFF_FFFF };
        assert_eq!(sources, [of(0, "Timer"), of(0x19, "UnhaltedCoreCycles"), of(0x200, "x")]);
    }

    proptest! {
        #[test]
        fn any_list_is_parsed_without_a_panic_and_ends(bytes in prop::collection::vec(0_u8..40, 0..400)) {
            prop_assert!(parse(&bytes).len() <= MAX_SOURCES);
        }

        #[test]
        fn a_list_that_is_cut_off_has_the_sources_before_the_cut(cut in 0_usize..200) {
            let whole = list(&[(1, "One"), (2, "Two"), (3, "Three")]);
            let found = parse(&whole[..cut.min(whole.len())]);
            let all = parse(&whole);
            prop_assert!(found.len() <= all.len());
            let whole = found.len().saturating_sub(1);
            prop_assert_eq!(&found[..whole], &all[..whole]);
        }
    }
}
