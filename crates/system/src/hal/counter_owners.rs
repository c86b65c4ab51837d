//! Who holds the counters, as TraceQueryInformation tells it for TracePmcCounterOwners (Windows 11 and Server 2022).

use std::collections::BTreeMap;
use std::io;

use halprof::text::processors::named;
use serde::Serialize;

use super::HalCalls;

/// Offsets in ETW_PMC_COUNTER_OWNERSHIP_STATUS of evntrace.h: the number of counters, and the first of them.
const COUNT: usize = 4;
const FIRST: usize = 8;

/// Size of an ETW_PMC_COUNTER_OWNER: type, profile source, tag.
const OWNER_BYTES: usize = 12;

/// Values of ETW_PMC_COUNTER_OWNER_TYPE.
const FREE: u32 = 0;
const TAGGED: u32 = 2;
const TAGGED_WITH_SOURCE: u32 = 3;

/// A counter that someone holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct HeldCounter {
    /// Its number on the CPU.
    pub counter: usize,
    /// The four characters by which a driver names itself, such as those of its memory; nothing if Windows has none.
    pub tag: Option<String>,
    /// The profile source that it counts, if Windows knows it.
    pub source: Option<u32>,
    /// The CPUs on which it is held.
    pub processors: Vec<u32>,
}

/// Returns the counters that are held.
///
/// # Errors
/// That of the function: before Windows 11 there is none. [`io::ErrorKind::InvalidData`]: the answer is cut off.
pub fn held(calls: &dyn HalCalls) -> io::Result<Vec<HeldCounter>> {
    let mut held: BTreeMap<HeldCounter, Vec<u32>> = BTreeMap::new();
    for processor in 0..calls.processors() {
        let owners = calls.counter_owners(processor)?;
        for counter in parse(&owners).ok_or(io::ErrorKind::InvalidData)? {
            held.entry(counter).or_default().push(processor);
        }
    }
    Ok(held.into_iter().map(|(counter, processors)| HeldCounter { processors, ..counter }).collect())
}

/// Formats who holds which counters: `counter 0 by Etwp (source 19) on CPUs 0-3`.
#[must_use]
pub fn sentence(held: &[HeldCounter]) -> String {
    let one = |HeldCounter { counter, tag, source, processors }: &HeldCounter| {
        let (who, source) = (tag.as_deref().unwrap_or("someone unknown"), source.map(|one| format!(" (source {one})")));
        format!("counter {counter} by {who}{} on {}", source.unwrap_or_default(), named(processors.iter().copied()))
    };
    held.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Parses the answer for a CPU. Returns the counters that are not free, without CPUs; `None` if it is cut off.
fn parse(answer: &[u8]) -> Option<Vec<HeldCounter>> {
    let word = |at: usize| Some(u32::from_le_bytes(*answer.get(at..)?.first_chunk()?));
    let mut held = Vec::new();
    for counter in 0..usize::try_from(word(COUNT)?).ok()? {
        let at = counter.checked_mul(OWNER_BYTES)?.checked_add(FIRST)?;
        let (kind, source, tag) = (word(at)?, word(at + 4)?, word(at + 8)?);
        if kind != FREE {
            let tag = [TAGGED, TAGGED_WITH_SOURCE].contains(&kind).then(|| characters(tag));
            let source = (kind == TAGGED_WITH_SOURCE).then_some(source);
            held.push(HeldCounter { counter, tag, source, processors: Vec::new() });
        }
    }
    Some(held)
}

fn characters(tag: u32) -> String {
    let visible = |byte: u8| if byte.is_ascii_graphic() { byte.into() } else { '.' };
    tag.to_le_bytes().map(visible).iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer(owners: &[[u32; 3]]) -> Vec<u8> {
        let count = u32::try_from(owners.len()).unwrap();
        [0, count].iter().chain(owners.as_flattened()).flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_counter_that_is_not_free_has_its_tag_and_source() {
        let tag = u32::from_le_bytes(*b"Etw\0");
        let mut held = parse(&answer(&[[0, 9, tag], [1, 9, tag], [2, 9, tag], [3, 19, tag], [7, 1, 2]])).unwrap();
        for one in &mut held {
            one.processors = vec![0, 1, 3];
        }
        assert_eq!(
            sentence(&held),
            "counter 1 by someone unknown on CPUs 0-1,3, counter 2 by Etw. on CPUs 0-1,3, \
             counter 3 by Etw. (source 19) on CPUs 0-1,3, counter 4 by someone unknown on CPUs 0-1,3"
        );
    }

    proptest! {
        #[test]
        fn an_answer_that_is_cut_off_is_none(cut in 0_usize..32) {
            prop_assert_eq!(parse(&answer(&[[1; 3]; 2])[..cut]), None);
        }

        #[test]
        fn any_answer_is_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }
}
