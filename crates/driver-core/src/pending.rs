//! The table of requests that wait and can be cancelled meanwhile.
//!
//! A packet belongs to the code that takes its cancel routine away: that is the driver if the exchange returns the
//! routine. Otherwise it is the cancel routine, which the I/O manager has called or is about to call.

use core::sync::atomic::Ordering;

use crate::sync::AtomicPtr;

/// A packet of the I/O manager whose request waits. The value owns the packet unless the I/O manager has taken the
/// cancel routine.
pub trait Packet {
    /// Returns the field with the cancel routine, which the I/O manager exchanges too.
    fn cancel_routine(&self) -> &AtomicPtr<()>;

    /// Returns whether the I/O manager has marked the packet as cancelled. It does so before it takes the routine.
    fn is_cancelled(&self) -> bool;
}

/// A request that waits.
#[derive(Debug)]
pub struct Entry<P> {
    /// Its packet.
    pub packet: P,
    /// File object of the request.
    pub key: usize,
    /// Time at which the request must be completed.
    pub deadline: u64,
}

/// The requests that wait. Every call is made under the same spin lock.
#[derive(Debug)]
pub struct Table<P, const MOST: usize>([Option<Entry<P>>; MOST]);

impl<P: Packet, const MOST: usize> Default for Table<P, MOST> {
    fn default() -> Self {
        Self::new()
    }
}

/// A free place in the table.
#[derive(Debug)]
pub struct Vacancy<'a, P>(&'a mut Option<Entry<P>>);

impl<P: Packet> Vacancy<'_, P> {
    /// Stores a packet that is marked as pending, with this cancel routine.
    ///
    /// Returns the entry if it was cancelled before it had the routine: the caller completes it. If it was cancelled
    /// and the I/O manager has taken the routine already, the routine waits for the lock and finds the entry.
    #[must_use]
    pub fn fill(self, entry: Entry<P>, routine: *mut ()) -> Option<Entry<P>> {
        exchange(&entry.packet, routine);
        if entry.packet.is_cancelled() && exchange(&entry.packet, core::ptr::null_mut()) {
            return Some(entry);
        }
        *self.0 = Some(entry);
        None
    }
}

impl<P: Packet, const MOST: usize> Table<P, MOST> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { None }; MOST])
    }

    /// Returns a free place; `None` if the table is full.
    pub fn vacancy(&mut self) -> Option<Vacancy<'_, P>> {
        self.0.iter_mut().find(|place| place.is_none()).map(Vacancy)
    }

    /// Removes the first entry at the index `from` or later with a key for which `wanted` returns true, and takes its
    /// cancel routine away. Entries whose cancel routine is about to remove them are left to it.
    pub fn take_nth(&mut self, from: usize, wanted: impl Fn(usize) -> bool) -> Option<Entry<P>> {
        let meant = |place: &&mut Option<Entry<P>>| place.as_ref().is_some_and(|entry| wanted(entry.key));
        self.0.iter_mut().skip(from).filter(meant).find_map(|place| {
            if exchange(&place.as_ref()?.packet, core::ptr::null_mut()) { place.take() } else { None }
        })
    }

    /// Removes the entry of the packet for which `is_it` returns true. Only its cancel routine calls this, which has
    /// the packet then.
    pub fn remove(&mut self, is_it: impl Fn(&P) -> bool) {
        for place in self.0.iter_mut().filter(|place| place.as_ref().is_some_and(|entry| is_it(&entry.packet))) {
            *place = None;
        }
    }

    /// Returns the earliest deadline.
    #[must_use]
    pub fn first_deadline(&self) -> Option<u64> {
        self.0.iter().flatten().map(|entry| entry.deadline).min()
    }
}

/// Exchanges the cancel routine as IoSetCancelRoutine does, which is inline in the WDK. Returns whether there was one.
fn exchange(packet: &impl Packet, routine: *mut ()) -> bool {
    // Acquire and release, paired with the exchange of the I/O manager: if that came first, the mark that it stored
    // before is visible here.
    !packet.cancel_routine().swap(routine, Ordering::AcqRel).is_null()
}
