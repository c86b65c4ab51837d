//! One producer, one consumer, and a ring of fixed room between them.
//!
//! `head` counts the items that were ever pushed, `tail` those that were ever taken; both wrap with their type. The
//! producer alone writes `head`, the consumer alone `tail`, and each on a cache line of its own.
//!
//! Who fetches sleeps below the half, and the push that reaches it wakes. Each side writes its count and looks at the
//! other's after a fence: of a fetch and a push at the same time at least one sees the other, so that nobody sleeps
//! while half of the room is in use.

#![expect(unsafe_code, reason = "two owners of one memory, and items that are there by what the counts say")]

use alloc::alloc::{Layout, alloc, dealloc};
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use crate::sync::{AtomicUsize, UnsafeCell, fence};

/// A count on a cache line of its own.
#[repr(align(64))]
struct Line(AtomicUsize);

/// What both ends see.
struct Shared<T, S> {
    /// Items ever pushed.
    head: Line,
    /// Items ever taken.
    tail: Line,
    /// Ends that are left.
    ends: AtomicUsize,
    mask: usize,
    /// As many as the capacity.
    items: Vec<UnsafeCell<MaybeUninit<T>>>,
    side: S,
}

impl<T, S> Shared<T, S> {
    const fn capacity(&self) -> usize {
        self.mask + 1
    }

    /// Half of the capacity, 1 at least.
    const fn half(&self) -> usize {
        (self.mask >> 1) + 1
    }
}

/// One of the two ends.
struct End<T, S> {
    shared: NonNull<Shared<T, S>>,
    owns: PhantomData<Shared<T, S>>,
}

// SAFETY: an end may be used from any thread, by one at a time; items cross threads, and the side is seen from both
unsafe impl<T: Send, S: Send + Sync> Send for End<T, S> {}

// SAFETY: a shared reference to an end gives no more than counts and the side
unsafe impl<T: Send, S: Send + Sync> Sync for End<T, S> {}

impl<T, S> End<T, S> {
    #[inline]
    const fn shared(&self) -> &Shared<T, S> {
        // SAFETY: the memory lives as long as an end is left
        unsafe { self.shared.as_ref() }
    }
}

impl<T, S> Drop for End<T, S> {
    fn drop(&mut self) {
        // Release: what this end did is seen by the last one.
        if self.shared().ends.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: nobody else has it any more, and `channel` initialized it
        unsafe { self.shared.drop_in_place() };
        // SAFETY: `channel` allocated it, with this layout
        unsafe { dealloc(self.shared.as_ptr().cast(), Layout::new::<Shared<T, S>>()) };
    }
}

/// The end that writes.
pub struct Producer<T, S> {
    end: End<T, S>,
    head: usize,
    /// As it was last seen.
    tail: usize,
}

/// The end that fetches.
pub struct Consumer<T, S> {
    end: End<T, S>,
    tail: usize,
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// There was no room.
    Full,
    /// It is in the ring.
    Stored {
        /// With it, exactly half of the room is in use (of a room for one, all): who fetches is to be woken. Whoever
        /// has seen less than half with [`Consumer::is_half_full`] will be told of it by such a push.
        reached: bool,
    },
}

/// Both ends of a ring with room for `capacity` items, a power of two, and `side`, which both ends see. `None` when memory
/// is short, or for another capacity.
pub fn channel<T: Copy + Send, S: Send + Sync>(capacity: usize, side: S) -> Option<(Producer<T, S>, Consumer<T, S>)> {
    if !capacity.is_power_of_two() {
        return None;
    }
    let mut items = Vec::new();
    items.try_reserve_exact(capacity).ok()?;
    items.resize_with(capacity, || UnsafeCell::new(MaybeUninit::uninit()));
    // SAFETY: the counts alone have a size
    let memory = unsafe { alloc(Layout::new::<Shared<T, S>>()) };
    let shared = NonNull::new(memory.cast::<Shared<T, S>>())?;
    let line = || Line(AtomicUsize::new(0));
    let both = Shared { head: line(), tail: line(), ends: AtomicUsize::new(2), mask: capacity - 1, items, side };
    // SAFETY: room for just this
    unsafe { shared.write(both) };
    let end = || End { shared, owns: PhantomData };
    Some((Producer { end: end(), head: 0, tail: 0 }, Consumer { end: end(), tail: 0 }))
}

impl<T: Copy + Send, S> Producer<T, S> {
    /// Writes an item. Any IRQL.
    #[inline]
    pub fn push(&mut self, item: T) -> Pushed {
        let shared = self.end.shared();
        if self.head.wrapping_sub(self.tail) >= shared.capacity() {
            // Acquire: what the consumer read from the place is read before this writes there.
            self.tail = shared.tail.0.load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail) >= shared.capacity() {
                return Pushed::Full;
            }
        }
        // SAFETY: masked, it is below the capacity, and there are as many items
        let place = unsafe { shared.items.get_unchecked(self.head & shared.mask) };
        place.with_mut(|place| {
            // SAFETY: the consumer has taken what was here, and looks again only when `head` says so
            unsafe { (*place).write(item) };
        });
        self.head = self.head.wrapping_add(1);
        // Release: the item is there for who sees the count.
        shared.head.0.store(self.head, Ordering::Release);
        // With a `tail` of before there seem to be more items than there are, never fewer: only now it takes a look.
        if self.head.wrapping_sub(self.tail) < shared.half() {
            return Pushed::Stored { reached: false };
        }
        // SeqCst, as in `is_half_full`: who does not see the count above has written the one below.
        fence(Ordering::SeqCst);
        // Acquire: as above.
        self.tail = shared.tail.0.load(Ordering::Acquire);
        Pushed::Stored { reached: self.head.wrapping_sub(self.tail) == shared.half() }
    }
}

impl<T, S> Producer<T, S> {
    /// What both ends see. Any IRQL.
    #[inline]
    #[must_use]
    pub const fn side(&self) -> &S {
        &self.end.shared().side
    }
}

impl<T, S> Consumer<T, S> {
    /// How many items are there.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire: with the count come the items.
        self.end.shared().head.0.load(Ordering::Acquire).wrapping_sub(self.tail)
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether half of the room is in use, or more. Where it is not, a push will say that it reached the half.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        // SeqCst, as in `push`: who does not see the `tail` that was written before this has written what is seen now.
        fence(Ordering::SeqCst);
        self.len() >= self.end.shared().half()
    }

    /// What both ends see.
    #[must_use]
    pub const fn side(&self) -> &S {
        &self.end.shared().side
    }
}

impl<T: Copy + Send, S> Consumer<T, S> {
    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let mut item = None;
        self.drain(1, |items| item = items.first().copied());
        item
    }

    /// Shows the oldest items, `most` of them at the most, in one or two slices, and takes them; answers how many. If
    /// `show` panics they stay.
    pub fn drain(&mut self, most: usize, mut show: impl FnMut(&[T])) -> usize {
        let count = self.len().min(most);
        if count == 0 {
            return 0;
        }
        let shared = self.end.shared();
        let begin = self.tail & shared.mask;
        let first = count.min(shared.capacity() - begin);
        self.show(begin..begin + first, &mut show);
        if first < count {
            self.show(0..count - first, &mut show);
        }
        self.tail = self.tail.wrapping_add(count);
        // Release: the items were read before the producer sees that their places are free.
        shared.tail.0.store(self.tail, Ordering::Release);
        count
    }

    /// Shows the items at these places, which are in the ring.
    #[cfg(not(loom))]
    fn show(&self, places: Range<usize>, show: &mut impl FnMut(&[T])) {
        // SAFETY: `drain` stays below the capacity, and there are as many items
        let cells = unsafe { self.end.shared().items.get_unchecked(places) };
        // SAFETY: the producer has written them, and will not again before `tail` says so; cells lie as their items do
        show(unsafe { core::slice::from_raw_parts(cells.as_ptr().cast(), cells.len()) });
    }

    /// The same, one by one: loom's cells do not lie as their items do.
    #[cfg(loom)]
    fn show(&self, places: Range<usize>, show: &mut impl FnMut(&[T])) {
        for cell in self.end.shared().items.get(places).into_iter().flatten() {
            // SAFETY: the producer has written it, and will not again before `tail` says so
            cell.with(|item| show(unsafe { core::slice::from_raw_parts(item.cast(), 1) }));
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
