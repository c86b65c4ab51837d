//! Damaged files: the reader returns the intact blocks, then the reason why it stops.

use std::error::Error as _;

use crate::support::{
    BLOCK_HEADER, FILE_HEADER, block_ranges, forged, forged_samples, of_version, read, small, written,
};
use proptest::collection::vec;
use proptest::prelude::*;
use recording::{
    Block, BlockError, EncodedBlock, FORMAT_VERSION, ReadError, Reader, StackEnd, StackId, StackNode, StackNodes,
    StackTree,
};

/// Splits a file into the bytes of its blocks.
fn parts(file: &[u8]) -> Vec<Vec<u8>> {
    block_ranges(file).into_iter().map(|range| file[range].to_vec()).collect()
}

fn file(parts: &[Vec<u8>]) -> Vec<u8> {
    [written(&small())[..FILE_HEADER].to_vec(), parts.concat()].concat()
}

/// Returns the offset of the block with this index.
fn start(parts: &[Vec<u8>], index: usize) -> u64 {
    (FILE_HEADER + parts[..index].iter().map(Vec::len).sum::<usize>()) as u64
}

/// Asserts that all blocks before this index are intact, and returns the damage of the block with this index.
fn damage_of(parts: &[Vec<u8>], index: usize) -> BlockError {
    let (blocks, end) = read(&file(parts)[..]);
    assert_eq!(blocks, small()[..index]);
    match end {
        Some(ReadError::Damaged { offset, cause }) if offset == start(parts, index) => cause,
        end => panic!("block {index}: {end:?}"),
    }
}

#[test]
fn truncated_file_gives_its_whole_blocks_and_a_cut_off_error() {
    let whole = written(&small());
    let block_ranges = block_ranges(&whole);
    for length in 0..whole.len() {
        let (blocks, end) = read(&whole[..length]);
        let complete = block_ranges.iter().filter(|range| range.end <= length).count();
        assert_eq!(blocks, small()[..complete], "{length}");
        let wanted = if length < FILE_HEADER { 0 } else { block_ranges[complete].start as u64 };
        match end {
            Some(ReadError::NotARecording) if length == 0 => {}
            Some(ReadError::CutOff { offset }) if length > 0 => assert_eq!(offset, wanted, "{length}"),
            end => panic!("{length}: {end:?}"),
        }
    }
}

#[test]
fn flipped_bit_is_reported_at_the_start_of_its_block() {
    let whole = written(&small());
    let block_ranges = block_ranges(&whole);
    for index in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[index] ^= 1 << bit;
            let (blocks, end) = read(&bytes[..]);
            let hit = block_ranges.iter().position(|range| range.contains(&index));
            assert_eq!(blocks, small()[..hit.unwrap_or(0)], "{index}");
            match (end, hit) {
                (Some(ReadError::NotARecording), None) => assert!(index < 8),
                (Some(ReadError::Version { file }), None) => {
                    assert!((8..12).contains(&index));
                    assert_eq!(file, FORMAT_VERSION ^ 1 << ((index - 8) * 8 + bit));
                }
                (Some(ReadError::Damaged { offset: 0, cause: BlockError::FileHeader(_) }), None) => {
                    assert!(index >= 12);
                }
                (Some(ReadError::Damaged { offset, cause }), Some(hit)) => {
                    assert_eq!(offset, block_ranges[hit].start as u64, "{index}");
                    let in_header = index - block_ranges[hit].start < BLOCK_HEADER;
                    assert!(matches!(
                        (&cause, in_header),
                        (BlockError::BlockHeader, true) | (BlockError::Payload { .. }, false)
                    ));
                }
                (end, _) => panic!("{index}: {end:?}"),
            }
        }
    }
}

#[test]
fn swapped_blocks_are_detected() {
    let parts = parts(&written(&small()));
    for first in 0..parts.len() {
        for second in first + 1..parts.len() {
            let mut swapped = parts.clone();
            swapped.swap(first, second);
            let cause = damage_of(&swapped, first);
            let (expected, found) = (first as u64, second as u64);
            assert!(
                matches!(cause, BlockError::Order { expected: e, found: f } if (e, f) == (expected, found)),
                "{cause}"
            );
        }
    }
}

#[test]
fn repeated_block_is_detected_at_every_position() {
    let parts = parts(&written(&small()));
    for copied in 0..parts.len() {
        for place in 0..=parts.len() {
            if place == copied {
                continue; // This gives the same file as `copied + 1`.
            }
            let mut more = parts.clone();
            more.insert(place, parts[copied].clone());
            let cause = damage_of(&more, place);
            assert_eq!(matches!(cause, BlockError::AfterEnd), place == parts.len(), "{cause}");
            assert!(matches!(cause, BlockError::AfterEnd | BlockError::Order { .. }), "{cause}");
        }
    }
}

#[test]
fn missing_block_is_detected() {
    let parts = parts(&written(&small()));
    for missing in 0..parts.len() {
        let mut fewer = parts.clone();
        fewer.remove(missing);
        if missing + 1 == parts.len() {
            let (blocks, end) = read(&file(&fewer)[..]);
            assert_eq!(blocks, small()[..missing]);
            assert!(matches!(end, Some(ReadError::CutOff { offset }) if offset == start(&fewer, missing)), "{end:?}");
        } else {
            assert!(matches!(damage_of(&fewer, missing), BlockError::Order { .. }));
        }
    }
}

#[test]
fn invalid_block_with_correct_checksums_is_rejected_with_a_reason() {
    let text = serde_json::to_vec(&crate::support::session()).unwrap();
    let length = u32::try_from(text.len()).unwrap();
    let cases = [
        (forged(0, 3, 0, &[]), "block kind 0 is unknown"),
        (forged(7, 3, 0, &[]), "block kind 7 is unknown"),
        (forged(1, 3, length, &text), "the first block must be a session, and no other block may be one"),
        (forged(3, 3, 31, &[0; 31]), "the start of the block of samples is invalid"),
        (forged(3, 3, 48, &[1; 48]), "the start of the block of samples is invalid"),
        (forged(3, 3, 4_144_942, &[]), "the block has 4144942 bytes, but at most 4144941 are allowed"),
        (forged(3, 3, u32::MAX, &[]), "the block has 4294967295 bytes, but at most 4144941 are allowed"),
        (forged(2, 3, (32 << 20) + 1, &[]), "the block has 33554433 bytes, but at most 33554432 are allowed"),
        (forged(2, 3, 2, b"{}"), "the JSON of the block is invalid"),
        (forged(2, 3, 3, b"\xFF{}"), "the JSON of the block is invalid"),
        (forged(2, 3, 40, br#"{"id":1,"name":"","modules":[],"more":1}"#), "the JSON of the block is invalid"),
    ];
    for (block, reason) in cases {
        let mut parts = parts(&written(&small()))[..3].to_vec();
        parts.push(block);
        assert_eq!(damage_of(&parts, 3).to_string(), reason);
    }
    let first = vec![forged(3, 0, 0, &[])];
    assert_eq!(damage_of(&first, 0).to_string(), "the first block must be a session, and no other block may be one");
}

#[test]
fn every_other_version_is_refused_by_its_number() {
    let whole = written(&small());
    for version in (0..=u8::MAX).filter(|version| u32::from(*version) != FORMAT_VERSION) {
        let (blocks, end) = read(&of_version(version, &whole)[..]);
        assert!(blocks.is_empty());
        assert!(matches!(end, Some(ReadError::Version { file }) if file == u32::from(version)), "{version}: {end:?}");
    }
}

#[test]
fn block_without_its_announced_payload_is_cut_off() {
    for (kind, length) in [(3, 4_144_941), (2, 32 << 20)] {
        let mut parts = parts(&written(&small()))[..3].to_vec();
        parts.push(forged(kind, 3, length, &[]));
        let (blocks, end) = read(&file(&parts)[..]);
        assert_eq!(blocks, small()[..3]);
        assert!(matches!(end, Some(ReadError::CutOff { offset }) if offset == start(&parts, 3)), "{end:?}");
    }
}

#[test]
fn errors_say_what_happened_and_why() {
    let whole = written(&small());
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for (bytes, text, because) in [
        (&b"PERFILE2........"[..], "the file is not a recording", None),
        (&of_version(5, &whole), "the recording has format version 5, but this program reads version 6", None),
        (&of_version(7, &whole), "the recording has format version 7, but this program reads version 6", None),
        (&whole[..20], "the recording was cut off after 16 bytes", None),
        (&damaged, "the recording is damaged at byte 16", Some("the checksum of the block header is wrong")),
    ] {
        let (_, end) = read(bytes);
        let end = end.unwrap();
        assert_eq!((end.to_string().as_str(), end.source().map(ToString::to_string).as_deref()), (text, because));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_with_an_error(bytes in vec(any::<u8>(), 0..200), begin in any::<bool>()) {
        let whole = written(&small());
        let file = if begin { [&whole[..FILE_HEADER], &bytes].concat() } else { bytes };
        let (blocks, end) = read(&file[..]);
        prop_assert!(blocks.is_empty() && end.is_some());
    }

    #[test]
    fn arbitrary_text_with_correct_checksums_ends_with_an_error(
        kind in 0_u32..6,
        text in prop_oneof![vec(any::<u8>(), 0..80), "[\\[\\]{}\":,a-z0-9]{0,80}".prop_map(String::into_bytes)],
    ) {
        let mut parts = parts(&written(&small()))[..2].to_vec();
        parts.push(forged(kind, 2, u32::try_from(text.len()).unwrap(), &text));
        let (blocks, end) = read(&file(&parts)[..]);
        prop_assert_eq!(blocks.len(), 2);
        prop_assert!(matches!(end, Some(ReadError::Damaged { .. })), "{:?}", end);
    }

    #[test]
    fn arbitrary_columns_with_correct_checksums_are_rejected(
        [earliest, latest] in any::<[u64; 2]>(),
        numbers in prop_oneof![any::<[u32; 3]>(), [1_u32..9, 1_u32..9, 0_u32..99]],
        columns in vec(prop_oneof![0_u8..3, any::<u8>()], 0..99),
        is_compressed in any::<bool>(),
    ) {
        let frame = if is_compressed { zstd::bulk::compress(&columns, 1).unwrap() } else { columns };
        let block = forged_samples([earliest, latest], numbers, &frame);
        let mut parts = parts(&written(&small()))[..2].to_vec();
        parts.push(block);
        let (blocks, end) = read(&file(&parts)[..]);
        prop_assert_eq!(blocks.len(), 2);
        prop_assert!(matches!(end, Some(ReadError::Damaged { .. })), "{:?}", end);
        prop_assert!(!is_counted(&file(&parts)));
    }
}

/// Returns whether the samples of the last block can be counted by place.
fn is_counted(file: &[u8]) -> bool {
    let mut reader = Reader::new(file).unwrap();
    let blocks = std::iter::from_fn(|| reader.next_encoded()).map_while(Result::ok);
    let samples = blocks.filter_map(|block| match block {
        EncodedBlock::Samples(samples) => Some(samples),
        _ => None,
    });
    samples.last().unwrap().decompress().and_then(|block| block.place_counts()).is_ok()
}

/// Returns a column of numbers below 256, as the format has it: their size in bytes, and their bytes.
fn column(values: &[u8]) -> Vec<u8> {
    [&[1], values].concat()
}

/// Returns a block of call stacks that begins with this number. Each node has its distance to its parent, and twice the
/// difference of its address to the one before.
fn stacks(number: u64, first: u32, nodes: &[(u8, u8)], behind: &[u8]) -> Vec<u8> {
    let (distances, differences): (Vec<u8>, Vec<u8>) = nodes.iter().copied().unzip();
    let columns = [&column(&distances)[..], &column(&differences), behind].concat();
    let numbers = [first, u32::try_from(nodes.len()).unwrap(), u32::try_from(columns.len()).unwrap()];
    let mut payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    payload.extend(crc32fast::hash(&payload).to_le_bytes());
    payload.extend(zstd::bulk::compress(&columns, 1).unwrap());
    forged(5, number, u32::try_from(payload.len()).unwrap(), &payload)
}

/// Reads blocks behind the first two, whose numbers begin with 2.
fn read_behind(blocks: &[Vec<u8>]) -> (Vec<Block>, String) {
    let before = parts(&written(&small()))[..2].to_vec();
    let (mut read, end) = read(&file(&[before, blocks.to_vec()].concat())[..]);
    let reason = match end {
        Some(ReadError::Damaged { cause, .. }) => cause.to_string(),
        Some(ReadError::CutOff { .. }) => "read".to_owned(),
        end => panic!("{end:?}"),
    };
    (read.split_off(2), reason)
}

#[test]
fn call_stacks_are_accepted_in_their_order_and_no_other() {
    let order =
        |expected: u32, found: u32| format!("the stacks of the block begin with number {found} instead of {expected}");
    let two = [(15, 2), (1, 4)];
    for (firsts, whole, reason) in [
        (&[16][..], 1, "read".to_owned()),
        (&[16, 18], 2, "read".to_owned()),
        // The numbering begins anew.
        (&[16, 18, 16, 18], 4, "read".to_owned()),
        (&[18], 0, order(16, 18)),
        (&[15], 0, order(16, 15)),
        (&[0], 0, order(16, 0)),
        (&[16, 17], 1, order(18, 17)),
        (&[16, 19], 1, order(18, 19)),
        (&[16, 18, 18], 2, order(20, 18)),
        (&[16, 16, 20], 2, order(18, 20)),
    ] {
        let blocks: Vec<_> = (2..)
            .zip(firsts)
            .map(|(number, first)| {
                let nodes =
                    if *first < 16 { [(1, 2), (1, 4)] } else { [(u8::try_from(first - 1).unwrap(), 2), two[1]] };
                stacks(number, *first, &nodes, &[])
            })
            .collect();
        let (read, found) = read_behind(&blocks);
        assert_eq!((read.len(), found), (whole, reason), "{firsts:?}");
    }
}

#[test]
fn the_parent_of_a_caller_is_a_caller_before_it_or_an_end() {
    // The second node, with number 17, has the parent 17 - distance.
    for distance in 0..=18 {
        let (read, reason) = read_behind(&[stacks(2, 16, &[(15, 2), (distance, 4)], &[])]);
        let is_valid = matches!(17_u8.checked_sub(distance), Some(1..=3 | 16));
        let wanted = if is_valid { "read" } else { "the stacks of the block are invalid" };
        assert_eq!((read.len(), reason.as_str()), (usize::from(is_valid), wanted), "{distance}");
    }
}

#[test]
fn nothing_follows_the_columns_of_call_stacks() {
    let nodes = [(15, 2), (1, 4)];
    for behind in [&[0][..], &[1, 2, 3]] {
        let (read, reason) = read_behind(&[stacks(2, 16, &nodes, behind)]);
        assert_eq!((read.len(), reason.as_str()), (0, "the stacks of the block are invalid"), "{behind:?}");
    }
}

#[test]
fn a_block_of_stacks_that_does_not_follow_adds_nothing_to_a_tree() {
    let nodes = |first| StackNodes {
        first: StackId::from_number(first).unwrap(),
        nodes: vec![StackNode { parent: StackEnd::Complete.into(), address: first.into() }],
    };
    let mut tree = StackTree::default();
    for (first, length) in [(17, 0), (16, 1), (16, 1), (18, 1), (17, 2)] {
        tree.add(&nodes(first));
        assert_eq!(tree.nodes().len(), length, "{first}");
    }
    assert_eq!(tree.nodes().iter().map(|node| node.address).collect::<Vec<_>>(), [16, 17]);
}

#[test]
fn a_sample_has_a_stack_that_a_block_before_it_has() {
    // Numbers 16 and 17 are in the block; a column has twice the difference to the one before.
    for (stack, reason) in [(16, "read"), (17, "read"), (18, "there is no stack with number 18"), (3, "read")] {
        let columns = columns_of([0, 1], [0, 6], [2 * stack, 0], &[]);
        let frame = zstd::bulk::compress(&columns, 1).unwrap();
        let samples = forged_samples([100, 103], [2, 2, u32::try_from(columns.len()).unwrap()], &frame);
        let payload = &samples[BLOCK_HEADER..];
        let third = forged(3, 3, u32::try_from(payload.len()).unwrap(), payload);
        let (read, found) = read_behind(&[stacks(2, 16, &[(15, 2), (1, 4)], &[]), third]);
        assert_eq!((read.len(), found.as_str()), (1 + usize::from(reason == "read"), reason), "{stack}");
    }
}

#[test]
fn a_block_has_no_more_places_than_samples() {
    let of_places = |values: &[u8]| column(values).repeat(8);
    let columns = [of_places(&[0, 0, 0]), column(&[0, 0]).repeat(5)].concat();
    for (places, is_valid) in [(3, false), (u32::MAX, false)] {
        let frame = zstd::bulk::compress(&columns, 1).unwrap();
        let block = forged_samples([100, 100], [2, places, u32::try_from(columns.len()).unwrap()], &frame);
        let (read, _) = read_behind(&[block]);
        assert_eq!(read.len(), usize::from(is_valid), "{places}");
    }
}

/// The columns of two samples of two places on processor 0, at the times 100 and 103.
fn sample_columns(place: [u8; 2], times: [u8; 2], behind: &[u8]) -> Vec<u8> {
    columns_of(place, times, [0, 0], behind)
}

/// The same, with call stacks.
fn columns_of(place: [u8; 2], times: [u8; 2], stacks: [u8; 2], behind: &[u8]) -> Vec<u8> {
    let [kinds, modes, sources, processes, threads] = [[0, 0], [1, 1], [0x13, 0x13], [4, 4], [8, 8]];
    let (addresses, targets) = ([2, 4], [0, 0]);
    let (processor, numbers, lasts) = ([0, 0], [2, 0], [0, 0]);
    let columns = [
        kinds, modes, sources, processes, threads, addresses, targets, stacks, processor, place, times, numbers, lasts,
    ];
    let columns: Vec<u8> = columns.iter().flat_map(|values| column(values)).collect();
    [&columns, behind].concat()
}

#[test]
fn samples_have_a_place_and_the_times_that_their_block_announces() {
    const INVALID: &str = "the columns of the block's samples are invalid";
    // Times are twice the difference to the one before, and first to the earliest.
    for (place, times, announced, behind, reason) in [
        ([0, 1], [0, 6], [100, 103], &[][..], "read"),
        ([1, 0], [0, 6], [100, 103], &[], "read"),
        ([0, 0], [0, 0], [100, 100], &[], "read"),
        ([0, 2], [0, 6], [100, 103], &[], INVALID),
        ([255, 1], [0, 6], [100, 103], &[], INVALID),
        // The earliest is later or earlier than announced, because the first sample does not have it.
        ([0, 1], [2, 4], [100, 103], &[], INVALID),
        ([0, 1], [1, 8], [100, 103], &[], INVALID),
        ([0, 1], [0, 6], [100, 104], &[], INVALID),
        ([0, 1], [0, 6], [100, 102], &[], INVALID),
        ([0, 1], [0, 6], [100, 103], &[0], INVALID),
    ] {
        let columns = sample_columns(place, times, behind);
        let frame = zstd::bulk::compress(&columns, 1).unwrap();
        let block = forged_samples(announced, [2, 2, u32::try_from(columns.len()).unwrap()], &frame);
        let counted = is_counted(&file(&[parts(&written(&small()))[..2].to_vec(), vec![block.clone()]].concat()));
        let (read, found) = read_behind(&[block]);
        let case = (place, times, announced, behind);
        assert_eq!(counted, reason == "read", "{case:?}");
        assert_eq!((read.len(), found.as_str()), (usize::from(reason == "read"), reason), "{case:?}");
        if let [Block::Samples(samples)] = &read[..] {
            assert_eq!(samples[0].time(), announced[0]);
        }
    }
}
