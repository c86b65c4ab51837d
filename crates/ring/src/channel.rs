//! One producer, one consumer, and a ring of fixed room between them.
//!
//! `head` counts the items that were ever pushed, `tail` those that were ever taken; both wrap with their type. The
//! producer alone writes `head`, the consumer alone `tail`, and each on a cache line of its own.

#![expect(unsafe_code, reason = "two owners of one memory, and items that are there by what the counts say")]

use alloc::alloc::{Layout, alloc, dealloc};
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
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
    ends: Line,
    mask: usize,
    items: NonNull<UnsafeCell<MaybeUninit<T>>>,
    side: S,
}

impl<T, S> Shared<T, S> {
    /// The place of the item of this number.
    #[inline]
    fn place(&self, number: usize) -> &UnsafeCell<MaybeUninit<T>> {
        // SAFETY: masked, it is below the capacity, for which there is memory
        let place = unsafe { self.items.add(number & self.mask) };
        // SAFETY: initialized by `channel`, and not freed while an end is left
        unsafe { place.as_ref() }
    }

    const fn capacity(&self) -> usize {
        self.mask + 1
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
        if self.shared().ends.0.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let (items, capacity) = (self.shared().items, self.shared().capacity());
        // SAFETY: nobody else has the memory any more, and it was initialized
        unsafe { self.shared.drop_in_place() };
        free(self.shared, 1);
        if cfg!(loom) {
            for index in 0..capacity {
                // SAFETY: within the array; loom's cells have something to drop, others not
                let item = unsafe { items.add(index) };
                // SAFETY: initialized by `channel`
                unsafe { item.drop_in_place() };
            }
        }
        free(items, capacity);
    }
}

/// Memory for `count` values, or `None` when it is short; never for none.
fn allocate<V>(count: usize) -> Option<NonNull<V>> {
    let layout = Layout::array::<V>(count).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not zero
    NonNull::new(unsafe { alloc(layout) }.cast())
}

fn free<V>(memory: NonNull<V>, count: usize) {
    if let Ok(layout) = Layout::array::<V>(count) {
        // SAFETY: every caller has it from `allocate`, with this count
        unsafe { dealloc(memory.as_ptr().cast(), layout) };
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
        /// With it, half of the room is in use, or was a moment ago: who fetches should be woken. Never missed.
        reached: bool,
    },
}

/// Both ends of a ring with room for `capacity` items, a power of two, and `side`, which both ends see. `None` when memory
/// is short, or for another capacity.
pub fn channel<T: Copy + Send, S: Send + Sync>(capacity: usize, side: S) -> Option<(Producer<T, S>, Consumer<T, S>)> {
    if !capacity.is_power_of_two() || size_of::<T>() == 0 {
        return None;
    }
    let items = allocate::<UnsafeCell<MaybeUninit<T>>>(capacity)?;
    let Some(shared) = allocate::<Shared<T, S>>(1) else {
        free(items, capacity);
        return None;
    };
    if cfg!(loom) {
        for index in 0..capacity {
            // SAFETY: within the array
            let item = unsafe { items.add(index) };
            // SAFETY: room for just this
            unsafe { item.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
    }
    let line = |count| Line(AtomicUsize::new(count));
    // SAFETY: room for just this
    unsafe { shared.write(Shared { head: line(0), tail: line(0), ends: line(2), mask: capacity - 1, items, side }) };
    let end = || End { shared, owns: PhantomData };
    Some((Producer { end: end(), head: 0, tail: 0 }, Consumer { end: end(), tail: 0 }))
}

impl<T: Copy + Send, S> Producer<T, S> {
    /// Writes an item. Any IRQL.
    #[inline]
    pub fn push(&mut self, item: T) -> Pushed {
        let shared = self.end.shared();
        let half = shared.capacity() / 2;
        if self.head.wrapping_sub(self.tail) >= half {
            // Acquire: what the consumer read from the place is read before this writes there.
            self.tail = shared.tail.0.load(Ordering::Acquire);
            if self.head.wrapping_sub(self.tail) >= shared.capacity() {
                return Pushed::Full;
            }
        }
        shared.place(self.head).with_mut(|place| {
            // SAFETY: the consumer has taken what was here, and looks again only when `head` says so
            unsafe { (*place).write(item) };
        });
        self.head = self.head.wrapping_add(1);
        // Release: the item is there for who sees the count.
        shared.head.0.store(self.head, Ordering::Release);
        Pushed::Stored { reached: self.head.wrapping_sub(self.tail) == half.max(1) }
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

    /// Whether half of the room is in use, or more.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.len() >= (self.end.shared().capacity() / 2).max(1)
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
        let mut taken = 0;
        while taken < count {
            let items = self.slice(self.tail.wrapping_add(taken), count - taken);
            show(items);
            taken += items.len();
        }
        self.tail = self.tail.wrapping_add(count);
        // Release: the items were read before the producer sees that their places are free.
        self.end.shared().tail.0.store(self.tail, Ordering::Release);
        count
    }

    /// The item of this number and those that lie behind it, `most` in all. They are there.
    #[cfg(not(loom))]
    fn slice(&self, number: usize, most: usize) -> &[T] {
        let shared = self.end.shared();
        let index = number & shared.mask;
        // SAFETY: masked, it is below the capacity, for which there is memory
        let first = unsafe { shared.items.add(index) };
        let length = most.min(shared.capacity() - index);
        // SAFETY: the producer has written them, and will not again before `tail` says so; cells lie as their items do
        unsafe { core::slice::from_raw_parts(first.as_ptr().cast(), length) }
    }

    /// loom's cells do not lie as their items do: one at a time.
    #[cfg(loom)]
    fn slice(&self, number: usize, _most: usize) -> &[T] {
        let item = self.end.shared().place(number);
        // SAFETY: the producer has written it, and will not again before `tail` says so
        item.with(|item| unsafe { core::slice::from_raw_parts(item.cast(), 1) })
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
