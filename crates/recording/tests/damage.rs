//! Damaged files: the reader returns the intact blocks, then the reason why it stops.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod scene;

use std::error::Error as _;

use proptest::collection::vec;
use proptest::prelude::*;
use recording::{Block, Damage, FORMAT_VERSION, ReadError};
use scene::{FILE_HEADER, HEAD, forged, places, read, small, written};

/// Splits a file into the bytes of its blocks.
fn parts(file: &[u8]) -> Vec<Vec<u8>> {
    places(file).into_iter().map(|place| file[place].to_vec()).collect()
}

fn file(parts: &[Vec<u8>]) -> Vec<u8> {
    [written(&small())[..FILE_HEADER].to_vec(), parts.concat()].concat()
}

/// Returns the offset of the block with this index.
fn start(parts: &[Vec<u8>], index: usize) -> u64 {
    (FILE_HEADER + parts[..index].iter().map(Vec::len).sum::<usize>()) as u64
}

/// Asserts that all blocks before this index are intact, and returns the damage of the block with this index.
fn damage_of(parts: &[Vec<u8>], index: usize) -> Damage {
    let (blocks, end) = read(&file(parts)[..]);
    assert_eq!(blocks, small()[..index]);
    match end {
        Some(ReadError::Damaged { offset, cause }) if offset == start(parts, index) => cause,
        end => panic!("block {index}: {end:?}"),
    }
}

#[test]
fn a_file_cut_off_anywhere_gives_the_blocks_before_and_says_so() {
    let whole = written(&small());
    let places = places(&whole);
    for length in 0..whole.len() {
        let (blocks, end) = read(&whole[..length]);
        let complete = places.iter().filter(|place| place.end <= length).count();
        assert_eq!(blocks, small()[..complete], "{length}");
        let wanted = if length < FILE_HEADER { 0 } else { places[complete].start as u64 };
        match end {
            Some(ReadError::NotARecording) if length == 0 => {}
            Some(ReadError::CutOff { offset }) if length > 0 => assert_eq!(offset, wanted, "{length}"),
            end => panic!("{length}: {end:?}"),
        }
    }
}

#[test]
fn a_bit_flipped_anywhere_is_found_where_its_block_begins() {
    let whole = written(&small());
    let places = places(&whole);
    for index in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[index] ^= 1 << bit;
            let (blocks, end) = read(&bytes[..]);
            let hit = places.iter().position(|place| place.contains(&index));
            assert_eq!(blocks, small()[..hit.unwrap_or(0)], "{index}");
            match (end, hit) {
                (Some(ReadError::NotARecording), None) => assert!(index < 8),
                (Some(ReadError::Version { file }), None) => {
                    assert!((8..12).contains(&index));
                    assert_eq!(file, FORMAT_VERSION ^ 1 << ((index - 8) * 8 + bit));
                }
                (Some(ReadError::Damaged { offset: 0, cause: Damage::Header(_) }), None) => assert!(index >= 12),
                (Some(ReadError::Damaged { offset, cause }), Some(hit)) => {
                    assert_eq!(offset, places[hit].start as u64, "{index}");
                    let in_head = index - places[hit].start < HEAD;
                    assert!(matches!((&cause, in_head), (Damage::Head, true) | (Damage::Payload { .. }, false)));
                }
                (end, _) => panic!("{index}: {end:?}"),
            }
        }
    }
}

#[test]
fn blocks_that_change_places_are_found() {
    let parts = parts(&written(&small()));
    for first in 0..parts.len() {
        for second in first + 1..parts.len() {
            let mut swapped = parts.clone();
            swapped.swap(first, second);
            let cause = damage_of(&swapped, first);
            let (expected, found) = (first as u64, second as u64);
            assert!(matches!(cause, Damage::Order { expected: e, found: f } if (e, f) == (expected, found)), "{cause}");
        }
    }
}

#[test]
fn a_block_that_comes_twice_is_found_wherever_it_comes_again() {
    let parts = parts(&written(&small()));
    for copied in 0..parts.len() {
        for place in 0..=parts.len() {
            if place == copied {
                continue; // This gives the same file as `copied + 1`.
            }
            let mut more = parts.clone();
            more.insert(place, parts[copied].clone());
            let cause = damage_of(&more, place);
            assert_eq!(matches!(cause, Damage::AfterEnd), place == parts.len(), "{cause}");
            assert!(matches!(cause, Damage::AfterEnd | Damage::Order { .. }), "{cause}");
        }
    }
}

#[test]
fn a_block_that_is_missing_is_found() {
    let parts = parts(&written(&small()));
    for missing in 0..parts.len() {
        let mut fewer = parts.clone();
        fewer.remove(missing);
        if missing + 1 == parts.len() {
            let (blocks, end) = read(&file(&fewer)[..]);
            assert_eq!(blocks, small()[..missing]);
            assert!(matches!(end, Some(ReadError::CutOff { offset }) if offset == start(&fewer, missing)), "{end:?}");
        } else {
            assert!(matches!(damage_of(&fewer, missing), Damage::Order { .. }));
        }
    }
}

#[test]
fn a_block_that_says_what_none_can_is_told_with_its_reason_though_its_checksums_are_right() {
    let text = serde_json::to_vec(&scene::session()).unwrap();
    let length = u32::try_from(text.len()).unwrap();
    let cases = [
        (forged(0, 3, 0, &[]), "there is no block of kind 0"),
        (forged(5, 3, 0, &[]), "there is no block of kind 5"),
        (forged(1, 3, length, &text), "the session does not come first, and once"),
        (forged(3, 3, 47, &[0; 47]), "47 bytes are no whole number of samples"),
        (forged(3, 3, 3_145_776, &[]), "the block has 3145776 bytes, and there can be no more than 3145728"),
        (forged(3, 3, u32::MAX, &[]), "the block has 4294967295 bytes, and there can be no more than 3145728"),
        (forged(2, 3, (32 << 20) + 1, &[]), "the block has 33554433 bytes, and there can be no more than 33554432"),
        (forged(2, 3, 2, b"{}"), "the text of the block says something else than it should"),
        (forged(2, 3, 3, b"\xFF{}"), "the text of the block says something else than it should"),
        (
            forged(2, 3, 40, br#"{"id":1,"name":"","modules":[],"more":1}"#),
            "the text of the block says something else than it should",
        ),
    ];
    for (block, reason) in cases {
        let mut parts = parts(&written(&small()))[..3].to_vec();
        parts.push(block);
        assert_eq!(damage_of(&parts, 3).to_string(), reason);
    }
    let first = vec![forged(3, 0, 0, &[])];
    assert_eq!(damage_of(&first, 0).to_string(), "the session does not come first, and once");
}

#[test]
fn a_block_that_announces_the_longest_payload_and_has_none_is_cut_off() {
    for (kind, length) in [(3, 3_145_728), (2, 32 << 20)] {
        let mut parts = parts(&written(&small()))[..3].to_vec();
        parts.push(forged(kind, 3, length, &[]));
        let (blocks, end) = read(&file(&parts)[..]);
        assert_eq!(blocks, small()[..3]);
        assert!(matches!(end, Some(ReadError::CutOff { offset }) if offset == start(&parts, 3)), "{end:?}");
    }
}

#[test]
fn each_end_says_what_happened_and_a_damage_why() {
    let whole = written(&small());
    let of_version = |version| [&whole[..8], &[version], &whole[9..]].concat();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    for (bytes, text, because) in [
        (&b"PERFILE2........"[..], "the file is no recording", None),
        (&of_version(1), "the recording has version 1 of the format, and this program reads version 2", None),
        (&of_version(7), "the recording has version 7 of the format, and this program reads version 2", None),
        (&whole[..20], "the recording was cut off after 16 bytes", None),
        (&damaged, "the recording is damaged at byte 16", Some("the checksum of the block's head is wrong")),
    ] {
        let (_, end) = read(bytes);
        let end = end.unwrap();
        assert_eq!((end.to_string().as_str(), end.source().map(ToString::to_string).as_deref()), (text, because));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_end_with_a_reason(bytes in vec(any::<u8>(), 0..200), begin in any::<bool>()) {
        let whole = written(&small());
        let file = if begin { [&whole[..FILE_HEADER], &bytes].concat() } else { bytes };
        let (blocks, end) = read(&file[..]);
        prop_assert!(blocks.is_empty() && end.is_some());
    }

    #[test]
    fn arbitrary_text_in_a_block_with_right_checksums_ends_with_a_reason(
        kind in 0_u32..6,
        text in prop_oneof![vec(any::<u8>(), 0..80), "[\\[\\]{}\":,a-z0-9]{0,80}".prop_map(String::into_bytes)],
    ) {
        let mut parts = parts(&written(&small()))[..2].to_vec();
        parts.push(forged(kind, 2, u32::try_from(text.len()).unwrap(), &text));
        let (blocks, end) = read(&file(&parts)[..]);
        let of_samples = kind == 3 && text.len() % 48 == 0;
        prop_assert_eq!(blocks.len(), if of_samples { 3 } else { 2 });
        prop_assert_eq!(matches!(blocks.last(), Some(Block::Samples(_))), of_samples);
        prop_assert!(end.is_some());
    }
}
