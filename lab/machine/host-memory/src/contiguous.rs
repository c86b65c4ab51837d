//! Physical addresses of memory of this process that the code under test takes for contiguous physical memory.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Size of a page.
pub const PAGE: usize = 0x1000;

/// First physical address, and the distance of the pieces besides their size: no piece borders on another.
const FIRST: u64 = 0x1_2345_6000;
const GAP: u64 = 0x10_0000;

/// The pieces by their physical addresses, with linear address and size, and the next address.
static PIECES: Mutex<(BTreeMap<u64, (u64, u64)>, u64)> = Mutex::new((BTreeMap::new(), FIRST));

fn pieces() -> MutexGuard<'static, (BTreeMap<u64, (u64, u64)>, u64)> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a piece of memory, which begins at a page, a physical address that no other piece has or had.
pub fn add(linear: u64, bytes: u64) -> u64 {
    let mut pieces = pieces();
    let physical = pieces.1;
    pieces.1 += bytes.next_multiple_of(GAP) + GAP;
    pieces.0.insert(physical, (linear, bytes));
    physical
}

/// Takes the physical address of a piece away.
pub fn remove(physical: u64) {
    pieces().0.remove(&physical);
}

/// Returns the linear address of a physical one, or `None` if no piece is there.
pub fn linear(physical: u64) -> Option<u64> {
    let pieces = pieces();
    let (start, (linear, bytes)) = pieces.0.range(..=physical).next_back()?;
    let offset = physical - start;
    (offset < *bytes).then_some(linear + offset)
}

/// Returns the physical address of a linear one, or `None` if it is in no piece.
pub fn physical(linear: u64) -> Option<u64> {
    let offset = |start: u64, bytes: u64| linear.checked_sub(start).filter(|offset| *offset < bytes);
    pieces().0.iter().find_map(|(physical, (start, bytes))| Some(physical + offset(*start, *bytes)?))
}
