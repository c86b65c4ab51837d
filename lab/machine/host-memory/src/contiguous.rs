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

/// The pieces.
struct Pieces {
    /// Linear address and size, by the physical address.
    all: BTreeMap<u64, (u64, u64)>,
    /// Physical address of the next piece.
    next: u64,
}

static PIECES: Mutex<Pieces> = Mutex::new(Pieces { all: BTreeMap::new(), next: FIRST });

fn pieces() -> MutexGuard<'static, Pieces> {
    PIECES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a piece of memory, which begins at a page, a physical address that no other piece has or had.
#[must_use]
pub fn add(linear: u64, bytes: u64) -> u64 {
    let mut pieces = pieces();
    let physical = pieces.next;
    pieces.next += bytes.next_multiple_of(GAP) + GAP;
    pieces.all.insert(physical, (linear, bytes));
    physical
}

/// Takes the physical address of a piece away.
pub fn remove(physical: u64) {
    pieces().all.remove(&physical);
}

/// Returns the linear address of a physical one, or `None` if no piece is there.
#[must_use]
pub fn linear(physical: u64) -> Option<u64> {
    let pieces = pieces();
    let (start, (linear, bytes)) = pieces.all.range(..=physical).next_back()?;
    let offset = physical - start;
    (offset < *bytes).then_some(linear + offset)
}

/// Returns the physical address of a linear one, or `None` if it is in no piece.
#[must_use]
pub fn physical(linear: u64) -> Option<u64> {
    let offset = |start: u64, bytes: u64| linear.checked_sub(start).filter(|offset| *offset < bytes);
    pieces().all.iter().find_map(|(physical, (start, bytes))| Some(physical + offset(*start, *bytes)?))
}
