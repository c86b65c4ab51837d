//! Cores and packages as Windows reports them.

use std::collections::BTreeMap;

use super::{CorePlace, Topology};

/// RelationProcessorCore, RelationProcessorPackage and RelationGroup (winnt.h, LOGICAL_PROCESSOR_RELATIONSHIP).
const CORE: u32 = 0;
const PACKAGE: u32 = 3;
const GROUP: u32 = 4;

/// Processors of one group, as bits.
type Affinity = (u16, u64);

/// Parses what GetLogicalProcessorInformationEx writes for RelationAll: structures
/// SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX (winnt.h). The processors of the groups are numbered one group after the
/// other, which is how the kernel numbers them (KeGetProcessorIndexFromNumber).
///
/// Returns `None` if the structures contradict their lengths.
#[must_use]
pub fn parse(mut bytes: &[u8]) -> Option<Topology> {
    let (mut cores, mut packages, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let (relationship, size) = (number(bytes, 0)?, number(bytes, 4)?);
        let (one, rest) = bytes.split_at_checked(usize::try_from(size).ok().filter(|size| *size >= 8)?)?;
        match relationship {
            CORE => cores.push(affinities(one)?),
            PACKAGE => packages.push(affinities(one)?),
            GROUP => groups = active_processors(one)?,
            _ => {}
        }
        bytes = rest;
    }
    let firsts: Vec<u32> = groups
        .iter()
        .scan(0, |next, count| {
            let first = *next;
            *next += u32::from(*count);
            Some(first)
        })
        .collect();
    let processors = |affinities: &[Affinity]| -> Vec<u32> {
        let of_group = |(group, mask): &Affinity| {
            let (first, mask) = (firsts.get(usize::from(*group)).copied().unwrap_or_default(), *mask);
            (0..u64::BITS).filter(move |bit| mask >> bit & 1 == 1).map(move |bit| first + bit)
        };
        affinities.iter().flat_map(of_group).collect()
    };
    let in_order = |sets: &[Vec<Affinity>]| {
        let mut sets: Vec<Vec<u32>> = sets.iter().map(|set| processors(set)).collect();
        sets.sort();
        sets
    };
    let packages = in_order(&packages);
    let mut topology = Topology::new();
    let mut next_core: BTreeMap<u32, u32> = BTreeMap::new();
    for core in in_order(&cores) {
        let first = core.first()?;
        let package = (0..).zip(&packages).find(|(_, package)| package.contains(first)).map_or(0, |(number, _)| number);
        let next = next_core.entry(package).or_default();
        topology.extend(core.iter().map(|processor| (*processor, CorePlace { package, core: *next })));
        *next += 1;
    }
    Some(topology)
}

/// Returns the processors of a PROCESSOR_RELATIONSHIP.
fn affinities(one: &[u8]) -> Option<Vec<Affinity>> {
    let count = u16::from_le_bytes(one.get(30..32)?.try_into().ok()?);
    let affinity = |index: usize| {
        let start = 32 + index * 16;
        let mask = u64::from_le_bytes(one.get(start..start + 8)?.try_into().ok()?);
        Some((u16::from_le_bytes(one.get(start + 8..start + 10)?.try_into().ok()?), mask))
    };
    (0..usize::from(count)).map(affinity).collect()
}

/// Returns the number of active processors of each group of a GROUP_RELATIONSHIP.
fn active_processors(one: &[u8]) -> Option<Vec<u8>> {
    let count = u16::from_le_bytes(one.get(10..12)?.try_into().ok()?);
    (0..usize::from(count)).map(|index| one.get(32 + index * 48 + 1).copied()).collect()
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the structure of a core or a package.
    fn relationship(kind: u32, affinities: &[Affinity]) -> Vec<u8> {
        let size = u32::try_from(32 + affinities.len() * 16).unwrap();
        let mut bytes = [kind.to_le_bytes(), size.to_le_bytes()].concat();
        bytes.resize(30, 0);
        bytes.extend(u16::try_from(affinities.len()).unwrap().to_le_bytes());
        for (group, mask) in affinities {
            bytes.extend(mask.to_le_bytes());
            bytes.extend(group.to_le_bytes());
            bytes.extend([0; 6]);
        }
        bytes
    }

    /// Returns the structure of the groups, each with its active processors of a maximum of 64.
    fn groups(active: &[u8]) -> Vec<u8> {
        let size = u32::try_from(32 + active.len() * 48).unwrap();
        let mut bytes = [GROUP.to_le_bytes(), size.to_le_bytes()].concat();
        bytes.extend(u16::try_from(active.len()).unwrap().to_le_bytes());
        bytes.extend(u16::try_from(active.len()).unwrap().to_le_bytes());
        bytes.resize(32, 0);
        for count in active {
            bytes.extend([64, *count]);
            bytes.extend([0; 46]);
        }
        bytes
    }

    fn places(topology: &Topology) -> Vec<(u32, u32, u32)> {
        topology.iter().map(|(processor, place)| (*processor, place.package, place.core)).collect()
    }

    #[test]
    fn threads_of_a_core_are_together_and_cores_are_numbered_in_their_package() {
        let cache = [2_u32.to_le_bytes(), 16_u32.to_le_bytes(), [0; 4], [0; 4]].concat();
        let bytes = [
            relationship(CORE, &[(0, 0b1100)]),
            relationship(CORE, &[(0, 0b0011)]),
            cache,
            relationship(PACKAGE, &[(0, 0b1111)]),
            groups(&[4]),
        ]
        .concat();
        assert_eq!(places(&parse(&bytes).unwrap()), [(0, 0, 0), (1, 0, 0), (2, 0, 1), (3, 0, 1)]);
    }

    #[test]
    fn the_processors_of_a_second_group_follow_those_of_the_first() {
        let bytes = [
            relationship(PACKAGE, &[(0, 0b11)]),
            relationship(PACKAGE, &[(1, 0b11)]),
            groups(&[2, 2]),
            relationship(CORE, &[(0, 0b01)]),
            relationship(CORE, &[(0, 0b10)]),
            relationship(CORE, &[(1, 0b11)]),
        ]
        .concat();
        assert_eq!(places(&parse(&bytes).unwrap()), [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 0)]);
    }

    #[test]
    fn structures_that_end_too_early_are_no_topology() {
        let whole = [relationship(CORE, &[(0, 1)]), groups(&[1])].concat();
        assert!(parse(&whole).is_some());
        for length in 1..whole.len() {
            // A cut between two structures leaves a core without its group.
            assert_eq!(parse(&whole[..length]).is_some(), length == 48, "{length}");
        }
        let endless = [CORE.to_le_bytes(), 0_u32.to_le_bytes()].concat();
        assert_eq!(parse(&endless), None);
    }
}
