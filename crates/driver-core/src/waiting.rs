//! Requests that wait until enough samples are available: each is completed once, by whoever owns its packet.

use sample_ring::Armed;

use crate::pending::{Entry, Packet, Table};

/// Why a request is completed that was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was cancelled, or its handle is closed.
    Cancelled,
    /// Too many requests wait.
    Busy,
}

/// The table of the driver, and its requests.
pub trait Requests<const MOST: usize> {
    /// A request that the driver owns.
    type Request;
    /// The packet of a request that waits.
    type Packet: Packet;

    /// Runs `work` on the table under its spin lock.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    fn locked<R>(&self, work: impl FnOnce(&mut Table<Self::Packet, MOST>) -> R) -> R;

    /// Returns the cancel routine, which calls [`cancel_routine`].
    fn routine(&self) -> *mut ();

    /// Marks a request as pending.
    fn pend(request: Self::Request) -> Self::Packet;

    /// Returns the request of a packet that no cancel routine can reach.
    fn owned(packet: Self::Packet) -> Self::Request;

    /// Completes a request that was not served.
    fn end(request: Self::Request, why: End);
}

/// Stores a request in the table.
fn insert<R: Requests<MOST>, const MOST: usize>(
    requests: &R,
    request: R::Request,
    key: usize,
    deadline: u64,
) -> Result<(), R::Request> {
    let cancelled = requests.locked(|table| {
        let Some(vacancy) = table.vacancy() else { return Err(request) };
        Ok(vacancy.fill(Entry { packet: R::pend(request), key, deadline }, requests.routine()))
    })?;
    if let Some(entry) = cancelled {
        R::end(R::owned(entry.packet), End::Cancelled);
    }
    Ok(())
}

/// Queues a request of `key` that found too few samples, and wakes the thread that calls [`serve`]: it looks at the
/// rings once more, because the push that filled one may have come before `armed` was set. Under the engine's lock.
///
/// # Errors
/// The request, if the table is full.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn enqueue<R: Requests<MOST>, const MOST: usize>(
    requests: &R,
    armed: &Armed,
    (request, key, deadline): (R::Request, usize, u64),
    wake: impl FnOnce(),
) -> Result<(), R::Request> {
    insert(requests, request, key, deadline)?;
    armed.arm(true);
    wake();
    Ok(())
}

/// Asks for every request that waits, once. `ask` gets the request and its deadline, and returns the request if it goes
/// on waiting; otherwise it has completed it. Returns the next deadline. Under the engine's lock.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn serve<R: Requests<MOST>, const MOST: usize>(
    requests: &R,
    armed: &Armed,
    mut ask: impl FnMut(R::Request, u64) -> Option<R::Request>,
) -> Option<u64> {
    let mut served = 0;
    // A request that keeps waiting goes back to the table, below the index `served`.
    while let Some(Entry { packet, key, deadline }) = requests.locked(|table| table.take_nth(served, |_| true)) {
        let Some(request) = ask(R::owned(packet), deadline) else { continue };
        served += 1;
        if let Err(request) = insert(requests, request, key, deadline) {
            R::end(request, End::Busy);
        }
    }
    let deadline = requests.locked(|table| table.first_deadline());
    armed.arm(deadline.is_some());
    deadline
}

/// Cancels the requests with a key for which `wanted` returns true. Those that the I/O manager cancels at the same time
/// are left to it.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn cancel<R: Requests<MOST>, const MOST: usize>(requests: &R, wanted: impl Fn(usize) -> bool) {
    while let Some(entry) = requests.locked(|table| table.take_nth(0, &wanted)) {
        R::end(R::owned(entry.packet), End::Cancelled);
    }
}

/// Removes the packet of a cancel routine from the table. The routine completes it afterwards.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
pub fn cancel_routine<R: Requests<MOST>, const MOST: usize>(requests: &R, is_it: impl Fn(&R::Packet) -> bool) {
    requests.locked(|table| table.remove(is_it));
}
