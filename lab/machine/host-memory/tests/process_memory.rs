//! Tests of the memory of this process.

use host_memory::{ProcessMemory, contiguous};
use model::Memory;
use std::sync::atomic::{AtomicU64, Ordering};

fn address(word: &AtomicU64) -> u64 {
    word.as_ptr().expose_provenance() as u64
}

#[test]
fn a_word_is_read_and_written_at_its_address() {
    let words = [7, 8, 9].map(AtomicU64::new);
    assert_eq!(words.each_ref().map(|word| ProcessMemory.read(address(word))), [Some(7), Some(8), Some(9)]);
    assert!(ProcessMemory.write(address(&words[1]), u64::MAX));
    assert_eq!(words.map(|word| word.load(Ordering::Relaxed)), [7, u64::MAX, 9]);
}

#[test]
fn a_piece_has_a_physical_address_of_its_own_until_it_is_removed() {
    let words = [AtomicU64::new(7), AtomicU64::new(8)];
    let (linear, other) = (address(&words[0]), 0x7000);
    let physical = contiguous::add(linear, 16);
    let of_other = contiguous::add(other, 16);
    assert_eq!(
        [0, 15, 16].map(|offset| ProcessMemory.linear(physical + offset)),
        [Some(linear), Some(linear + 15), None]
    );
    assert_eq!([linear + 8, other, linear + 16].map(contiguous::physical), [Some(physical + 8), Some(of_other), None]);
    contiguous::remove(physical);
    assert_eq!((ProcessMemory.linear(physical), contiguous::physical(linear)), (None, None));
    assert_ne!(contiguous::add(linear, 16), physical);
}

#[test]
fn null_and_unaligned_addresses_are_not_mapped() {
    let words = [7, 8].map(AtomicU64::new);
    for wrong in [0].into_iter().chain((1..8).map(|offset| address(&words[0]) + offset)) {
        assert_eq!(ProcessMemory.read(wrong), None, "{wrong:#x}");
        assert!(!ProcessMemory.write(wrong, 1), "{wrong:#x}");
    }
    assert_eq!(words.map(|word| word.load(Ordering::Relaxed)), [7, 8]);
}
