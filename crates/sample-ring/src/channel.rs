//! A bounded ring buffer for one producer and one consumer.
//!
//! `head` counts all items ever pushed and `tail` all items ever removed; both wrap. Only the producer writes `head`,
//! only the consumer writes `tail`, and each is on its own cache line.
//!
//! The consumer may sleep while less than half of the ring is in use; the push that reaches half wakes it. Each end
//! stores its own count, executes a full fence and then loads the other count. If a push and a removal race, at least
//! one end sees the other's count, so the consumer never sleeps while half of the ring is in use.

#![expect(
    unsafe_code,
    reason = "shared ownership of one allocation, whose items are initialized according to the counts"
)]

use alloc::alloc::{Layout, alloc, dealloc};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ops::{Deref, Range};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use crate::memory::Memory;
use crate::sync::{AtomicUsize, UnsafeCell, fence};

/// Room for an item.
type Cell<T> = UnsafeCell<MaybeUninit<T>>;

/// The items of a ring, in memory of their own.
struct Items<T> {
    memory: Memory,
    /// The number of cells at its start.
    capacity: usize,
    owns: PhantomData<Cell<T>>,
}

impl<T> Items<T> {
    /// Makes empty cells. Returns `None` if the memory has no room for them.
    fn new(memory: Memory, capacity: usize) -> Option<Self> {
        const { assert!(align_of::<Cell<T>>() <= Memory::ALIGNMENT) };
        if bytes::<T>(capacity)? > memory.bytes() {
            return None;
        }
        for index in 0..capacity {
            // SAFETY: the memory has room for `capacity` cells
            let cell = unsafe { memory.start().cast::<Cell<T>>().add(index) };
            // SAFETY: the memory is aligned for every cell, and nothing else uses it
            unsafe { cell.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        Some(Self { memory, capacity, owns: PhantomData })
    }
}

impl<T> Deref for Items<T> {
    type Target = [Cell<T>];

    #[inline]
    fn deref(&self) -> &[Cell<T>] {
        // SAFETY: `new` made so many cells there, and they live as long as the value
        unsafe { core::slice::from_raw_parts(self.memory.start().cast().as_ptr(), self.capacity) }
    }
}

#[cfg(loom)]
impl<T> Drop for Items<T> {
    /// Drops loom's record of each cell.
    fn drop(&mut self) {
        let cells = core::ptr::slice_from_raw_parts_mut(self.memory.start().cast::<Cell<T>>().as_ptr(), self.capacity);
        // SAFETY: `new` made the cells, and nothing uses them any more
        unsafe { cells.drop_in_place() };
    }
}

/// A value that begins a cache line.
#[repr(align(64))]
struct CacheAligned<T>(T);

/// State shared by both ends. What one end writes with every item is on no cache line that the other end reads with
/// every item.
#[repr(C)]
struct Shared<T, S> {
    ring: Ring<T>,
    /// The producer may write it with every item.
    side: CacheAligned<S>,
}

/// The ring itself.
#[repr(C)]
struct Ring<T> {
    /// Number of items ever pushed.
    head: CacheAligned<AtomicUsize>,
    /// Number of items ever removed.
    tail: CacheAligned<AtomicUsize>,
    mask: CacheAligned<usize>,
    /// Its length is the capacity.
    items: Items<T>,
    /// Number of ends that have not been dropped.
    ends: AtomicUsize,
}

impl<T, S> Shared<T, S> {
    /// Evaluated by [`channel`].
    const LINES_ARE_SEPARATE: () = assert!(
        offset_of!(Ring<T>, head) + 64 <= offset_of!(Ring<T>, tail)
            && offset_of!(Ring<T>, tail) + 64 <= offset_of!(Ring<T>, mask)
            && offset_of!(Self, side).is_multiple_of(64)
    );

    const fn capacity(&self) -> usize {
        self.ring.mask.0 + 1
    }

    /// Returns half of the capacity, but at least 1.
    const fn watermark(&self) -> usize {
        (self.ring.mask.0 >> 1) + 1
    }
}

/// One of the two ends. The last one to be dropped frees the shared state.
struct End<T, S> {
    shared: NonNull<Shared<T, S>>,
    owns: PhantomData<Shared<T, S>>,
}

// SAFETY: one thread at a time uses an end; items are `Send`, and `side`, which both ends access, is `Send + Sync`
unsafe impl<T: Send, S: Send + Sync> Send for End<T, S> {}

// SAFETY: a shared reference to an end gives access only to the counts and to `side`, which is `Sync`
unsafe impl<T: Send, S: Send + Sync> Sync for End<T, S> {}

impl<T, S> End<T, S> {
    #[inline]
    const fn shared(&self) -> &Shared<T, S> {
        // SAFETY: the allocation lives until the last end is dropped
        unsafe { self.shared.as_ref() }
    }
}

impl<T, S> Drop for End<T, S> {
    fn drop(&mut self) {
        // Release, paired with the acquire fence below: the last end sees everything that this one did.
        if self.shared().ring.ends.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: this is the last end, and `channel` initialized the value
        unsafe { self.shared.drop_in_place() };
        // SAFETY: `channel` allocated the memory with this layout
        unsafe { dealloc(self.shared.as_ptr().cast(), Layout::new::<Shared<T, S>>()) };
    }
}

/// The writing end of a ring.
pub struct Producer<T, S> {
    end: End<T, S>,
    head: usize,
    /// Number of pushes that leave less than half of the ring in use, whatever the consumer does: it only removes
    /// items.
    below_half: usize,
}

/// The reading end of a ring.
pub struct Consumer<T, S> {
    end: End<T, S>,
    tail: usize,
}

/// Outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The ring is full; the item was not stored.
    Full,
    /// The item was stored.
    Stored {
        /// Exactly half of the capacity is now in use (all of a capacity of 1): wake the consumer. After
        /// [`Consumer::is_half_full`] returned false, the push that fills half of the ring always sets this flag.
        watermark_hit: bool,
    },
}

/// Returns the size in bytes of the memory for `capacity` items, or `None` if there is no such memory.
#[must_use]
pub const fn bytes<T>(capacity: usize) -> Option<usize> {
    capacity.checked_mul(size_of::<Cell<T>>())
}

/// Creates a ring of `capacity` items, which must be a power of two, with a value `side` that both ends can access.
/// Returns `None` if memory is short or `capacity` is not a power of two.
pub fn channel<T: Copy + Send, S: Send + Sync>(capacity: usize, side: S) -> Option<(Producer<T, S>, Consumer<T, S>)> {
    channel_in(Memory::allocate(bytes::<T>(capacity)?)?, capacity, || side)
}

/// Creates a ring as [`channel`] does, with its items in `memory`, which needs [`bytes`] bytes. Returns `None` also if
/// `memory` is smaller.
pub fn channel_in<T: Copy + Send, S: Send + Sync>(
    memory: Memory,
    capacity: usize,
    side: impl FnOnce() -> S,
) -> Option<(Producer<T, S>, Consumer<T, S>)> {
    const { Shared::<T, S>::LINES_ARE_SEPARATE }
    if !capacity.is_power_of_two() {
        return None;
    }
    let items = Items::new(memory, capacity)?;
    // SAFETY: the layout has a nonzero size, because it contains the counts
    let memory = unsafe { alloc(Layout::new::<Shared<T, S>>()) };
    let shared = NonNull::new(memory.cast::<Shared<T, S>>())?;
    let count = || CacheAligned(AtomicUsize::new(0));
    let mask = CacheAligned(capacity - 1);
    let ring = Ring { head: count(), tail: count(), mask, items, ends: AtomicUsize::new(2) };
    // The parts one by one, so that `side`, which may be large, is not copied over the stack.
    let state = shared.as_ptr();
    // SAFETY: `state` is the address of memory with the layout of this type
    let place = unsafe { &raw mut (*state).ring };
    // SAFETY: as above
    unsafe { place.write(ring) };
    // SAFETY: as above
    let place = unsafe { &raw mut (*state).side };
    // SAFETY: as above
    unsafe { place.write(CacheAligned(side())) };
    let end = || End { shared, owns: PhantomData };
    Some((Producer { end: end(), head: 0, below_half: (capacity - 1) >> 1 }, Consumer { end: end(), tail: 0 }))
}

impl<T: Copy + Send, S> Producer<T, S> {
    /// Appends an item.
    ///
    /// # IRQL
    /// Any.
    #[inline]
    pub fn push(&mut self, item: T) -> Pushed {
        let Some(below_half) = self.below_half.checked_sub(1) else { return self.push_above_half(item) };
        self.below_half = below_half;
        self.store(item);
        Pushed::Stored { watermark_hit: false }
    }

    /// Appends an item by which half of the ring may be in use.
    #[inline]
    fn push_above_half(&mut self, item: T) -> Pushed {
        let (capacity, watermark) = (self.end.shared().capacity(), self.end.shared().watermark());
        if self.used() >= capacity {
            return Pushed::Full;
        }
        self.store(item);
        // SeqCst, paired with `is_half_full`: a consumer that misses the `head` stored above has stored the `tail`
        // loaded below.
        fence(Ordering::SeqCst);
        let used = self.used();
        self.below_half = (watermark - 1).saturating_sub(used);
        Pushed::Stored { watermark_hit: used == watermark }
    }

    /// Returns the number of items in the ring.
    #[inline]
    fn used(&self) -> usize {
        // Acquire: the consumer has finished reading a slot before it is overwritten.
        self.head.wrapping_sub(self.end.shared().ring.tail.0.load(Ordering::Acquire))
    }

    /// Stores an item into the next slot, which is free.
    #[inline]
    fn store(&mut self, item: T) {
        let shared = self.end.shared();
        // SAFETY: the masked index is below the capacity, which is the length of `items`
        let slot = unsafe { shared.ring.items.get_unchecked(self.head & shared.ring.mask.0) };
        slot.with_mut(|slot| {
            // SAFETY: the slot is free, and the consumer does not read it before `head` is advanced
            unsafe { (*slot).write(item) };
        });
        self.head = self.head.wrapping_add(1);
        // Release: a consumer that sees the new count also sees the item.
        shared.ring.head.0.store(self.head, Ordering::Release);
    }
}

impl<T, S> Producer<T, S> {
    /// Returns the value that both ends share.
    ///
    /// # IRQL
    /// Any.
    #[inline]
    #[must_use]
    pub const fn side(&self) -> &S {
        &self.end.shared().side.0
    }
}

impl<T, S> Consumer<T, S> {
    /// Returns the number of items in the ring.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: the counted items are visible.
        self.end.shared().ring.head.0.load(Ordering::Acquire).wrapping_sub(self.tail)
    }

    /// Returns whether the ring is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether at least half of the capacity is in use. If not, the push that fills half of the ring reports it
    /// in [`Pushed::Stored`].
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        // SeqCst, paired with `push`: a producer that misses the `tail` stored before this has stored the `head` loaded
        // below.
        fence(Ordering::SeqCst);
        self.len() >= self.end.shared().watermark()
    }

    /// Returns the value that both ends share.
    #[must_use]
    pub const fn side(&self) -> &S {
        &self.end.shared().side.0
    }
}

impl<T: Copy + Send, S> Consumer<T, S> {
    /// Passes the oldest items, at most `max`, to `visit` in one or two slices, removes them and returns their number.
    /// If `visit` panics, the items stay in the ring.
    pub fn drain(&mut self, max: usize, mut visit: impl FnMut(&[T])) -> usize {
        let count = self.len().min(max);
        if count == 0 {
            return 0;
        }
        let shared = self.end.shared();
        let begin = self.tail & shared.ring.mask.0;
        let first = count.min(shared.capacity() - begin);
        self.pass(begin..begin + first, &mut visit);
        if first < count {
            self.pass(0..count - first, &mut visit);
        }
        self.tail = self.tail.wrapping_add(count);
        // Release: the items have been read before the producer sees their slots as free.
        shared.ring.tail.0.store(self.tail, Ordering::Release);
        count
    }

    /// Passes the items at these indices to `visit`.
    #[cfg(not(loom))]
    fn pass(&self, indices: Range<usize>, visit: &mut impl FnMut(&[T])) {
        // SAFETY: `drain` passes indices below the capacity, which is the length of `items`
        let cells = unsafe { self.end.shared().ring.items.get_unchecked(indices) };
        // SAFETY: the producer initialized these items and does not touch them before `tail` is advanced; the cells
        // have the layout of their items
        visit(unsafe { core::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) });
    }

    /// Passes the items one by one, because loom's cells do not have the layout of their contents.
    #[cfg(loom)]
    fn pass(&self, indices: Range<usize>, visit: &mut impl FnMut(&[T])) {
        for cell in self.end.shared().ring.items.get(indices).into_iter().flatten() {
            // SAFETY: the producer initialized the item and does not touch it before `tail` is advanced
            cell.with(|item| visit(unsafe { core::slice::from_raw_parts(item.cast(), 1) }));
        }
    }
}

impl<T, S> fmt::Debug for Producer<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<T, S> fmt::Debug for Consumer<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("tail", &self.tail).finish_non_exhaustive()
    }
}
